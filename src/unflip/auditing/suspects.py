"""Suspects: rows whose label is probably wrong, and the false discovery rate among them."""

from __future__ import annotations

import numpy as np

from unflip._utils.record_tables import Table, table
from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evidence import Evidence
from unflip.labels.codes import UNCHECKED


def worst_first(evidence: Evidence) -> IntArray:
    """Return all rows sorted by P(label wrong), the largest first, with checked rows last.

    Ties are in the order of the rows.
    """
    return np.lexsort((-evidence.wrong, evidence.truth != UNCHECKED))


def n_suspects_at(wrong: FloatArray, false_discovery_rate: float) -> int:
    """Return the largest m for which the first m rows have a mean P(label wrong) of 1 − rate.

    Rows are in the order of the list. It ends before a row whose label is more likely right than
    wrong.
    """
    is_wrong = np.logical_and.accumulate(wrong >= 0.5)
    mean = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    # The slack of 1e-12 keeps ties that rounding would lose.
    counts = np.flatnonzero(is_wrong & (mean >= 1 - false_discovery_rate - 1e-12)) + 1
    return int(counts.max(initial=0))


def count_suspects(evidence: Evidence, false_discovery_rate: float) -> int:
    """Return the number of suspects among the rows that were not checked.

    If noise may depend on the row, it is `TrueClassModel.n_suspects`. Otherwise it is
    `n_suspects_at` of the probabilities, averaged over the standard errors of the noise rates and
    of the calibration.
    """
    n_unchecked = int((evidence.truth == UNCHECKED).sum())
    listed = worst_first(evidence)[:n_unchecked]
    if evidence.uses_true_class:
        labelled = listed[evidence.labelled[listed]]
        return evidence.true_class.n_suspects(labelled, false_discovery_rate)
    return n_suspects_at(evidence.marginal_wrong[listed], false_discovery_rate)


def suspect_table(evidence: Evidence, n_suspects: int) -> Table:
    """Return the first `n_suspects` rows, and all others with a more likely class than observed."""
    posterior = evidence.label_posterior
    codes = evidence.codes
    order = worst_first(evidence)
    listed = np.zeros(len(codes), dtype=bool)
    listed[order[:n_suspects]] = True
    listed |= (posterior.argmax(axis=1) != codes) & evidence.labelled
    rows = order[listed[order]]
    other_classes = posterior[rows].copy()
    other_classes[np.arange(len(rows)), codes[rows]] = -1.0
    proposed = evidence.classes[other_classes.argmax(axis=1)]
    observed = evidence.classes[codes[rows]]
    return table(row=rows, observed=observed, proposed=proposed, probability=evidence.wrong[rows])


def unlabelled_table(evidence: Evidence) -> Table:
    """Return the rows without a label, with the most likely class; most certain first."""
    rows = np.flatnonzero(~evidence.labelled)
    posterior = evidence.label_posterior[rows]
    order = np.argsort(-posterior.max(axis=1), kind="stable")
    proposed = evidence.classes[posterior.argmax(axis=1)]
    return table(
        row=rows[order], proposed=proposed[order], probability=posterior.max(axis=1)[order]
    )


def expected_wrong(evidence: Evidence) -> tuple[float, float]:
    """Return the expected number of wrong labels, and its standard error.

    The standard error includes sampling and the standard errors of the noise rates, or those of
    the model for noise that may depend on the row.
    """
    if evidence.uses_true_class:
        wrong_share = evidence.true_class.correct_labels.complement
        n_labels = int(evidence.labelled.sum())
        return n_labels * wrong_share.value, n_labels * wrong_share.std
    wrong = evidence.wrong
    spread = wrong * (1 - wrong)
    sampling = float(spread.sum()) * len(wrong) / evidence.n_effective
    gradient = spread @ evidence.wrong_gradient
    variance = sampling + float(gradient @ evidence.parameter_covariance @ gradient)
    return float(wrong.sum()), float(np.sqrt(variance))


def sensitivity_table(evidence: Evidence, false_discovery_rate: float) -> Table:
    """Return the findings with each noise rate lower and higher by its standard error, or by 0.05.

    Fields: ``true_class`` whose noise rate changes (none in the first row), its ``rate``, and the
    resulting ``n_suspects``, ``expected_wrong``, ``expected_accuracy`` and ``overlap``: the share
    of the top suspects (at least 20 rows) that are also top suspects after the change. If noise
    may depend on the row, the findings do not depend on noise rates: there is one row.
    """
    errors = np.diag(evidence.noise.errors)
    steps = np.where(errors > 0, errors, 0.05)
    n_compared = max(count_suspects(evidence, false_discovery_rate), min(20, len(evidence.codes)))
    worst = worst_first(evidence)[:n_compared]
    lines = [("", np.nan, *_findings(evidence, worst, false_discovery_rate))]
    for a, step in enumerate([] if evidence.uses_true_class else steps.tolist()):
        for change in (-step, step):
            moved = evidence.with_rate(a, change)
            if moved is not None:
                rate = 1 - float(moved.noise.model.transition[a, a])
                findings = _findings(moved, worst, false_discovery_rate)
                lines.append((str(evidence.classes[a]), rate, *findings))
    names = ("true_class", "rate", "n_suspects", "expected_wrong", "expected_accuracy", "overlap")
    return table(**dict(zip(names, zip(*lines, strict=True), strict=True)))


def _findings(
    evidence: Evidence, worst: IntArray, false_discovery_rate: float
) -> tuple[int, float, float, float]:
    overlap = np.isin(worst, worst_first(evidence)[: len(worst)]).mean()
    accuracy = float(evidence.probabilities.max(axis=1).mean())
    if evidence.uses_true_class:
        accuracy = evidence.accuracy
    return (
        count_suspects(evidence, false_discovery_rate),
        float(evidence.wrong.sum()),
        accuracy,
        float(overlap),
    )
