"""Audits with known suspects, for tests of the HTML page."""

import numpy as np

from unflip import Audit, NoiseModel, audit_scores
from unflip.auditing.evidence import Evidence, Noise, ScoredRows
from unflip.calibration.observations import Observations
from unflip.labels.classes import true_codes
from unflip.labels.codes import UNCHECKED

CLASSES = np.array(["<b>ham</b>", "=spam"])
NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.3, pi_neg=0.5)
N_ROWS, N_UP, N_DOWN = 200, 100, 20
NASTY = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!-- <script>",
    "\"double\" 'single' `back` ${1} {{ 2 }}",
    "line\u2028separator\u2029paragraph",
    "\ud800 alone, \x00 nothing",
    "&lt; stays &amp; as it is",
    "עברית and \u202eturned",
]


def nasty_audit(classes=CLASSES, trusted=None, false_discovery_rate=0.1):
    """Return an audit with 100 suspects of the first class, and 20 of the second."""
    p_second = np.concatenate(
        [
            np.linspace(0.60, 0.69, N_UP),
            np.linspace(0.40, 0.31, N_DOWN),
            np.linspace(0.60, 0.69, 80),
        ]
    )
    codes = np.repeat([0, 1, 1], [N_UP, N_DOWN, N_ROWS - N_UP - N_DOWN])
    true_second = np.clip((p_second - 0.3) / 0.4, 1e-12, 1 - 1e-12)  # without the noise
    probabilities = np.column_stack([1 - true_second, true_second])
    log_scores = np.log(probabilities)
    rows = Observations(codes, np.ones(N_ROWS), float(N_ROWS), priors_known=True)
    truth = np.full(N_ROWS, UNCHECKED)
    if trusted is not None:
        truth = true_codes(trusted, N_ROWS, np.arange(N_ROWS), classes, "trusted")
    evidence = Evidence(
        classes=classes,
        codes=codes,
        truth=truth,
        probabilities=probabilities,
        log_scores=log_scores,
        noise=Noise(
            model=NOISE,
            errors=np.zeros((2, 2)),
            source="given",
            assumption="",
            priors_given=True,
        ),
        class_conditional_accuracy=float(probabilities.max(axis=1).mean()),
        class_conditional_accuracy_std=0.02,
        dimension=20,
        n_effective=float(N_ROWS),
        scored=ScoredRows(log_scores, rows, NOISE.priors),
    )
    return Audit(evidence, false_discovery_rate)


def nasty_texts():
    """Return a text for each row: the nasty texts in turn, each with its row number."""
    return [f"{NASTY[i % len(NASTY)]} of row {i}" for i in range(N_ROWS)]


def nasty_ids():
    """Return an id for each row; a spreadsheet would run some of them."""
    return [
        ["=1+1", "-5", "@sum", "+4e3", "\tx", 'plain, "quoted"', "a\nb"][i % 7]
        for i in range(N_ROWS)
    ]


def three_classes():
    """Return an audit of three classes without an outlook."""
    rng = np.random.default_rng(0)
    noise = NoiseModel([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7]], [0.3, 0.3, 0.4])
    true = rng.dirichlet(np.full(3, 0.3), size=300)
    codes = np.array([rng.choice(3, p=row @ noise.transition) for row in true])
    return audit_scores(true @ noise.transition, np.array(["a", "b", "c"])[codes], noise=noise)


def spotless():
    """Return an audit without suspects."""
    labels = np.repeat([0, 1], 30)
    pred_probs = np.where(labels[:, None] == [0, 1], 0.699, 0.301)
    return audit_scores(pred_probs, labels, noise=None)
