"""Suspects: rows whose label is probably wrong, and the false discovery rate among them."""

from __future__ import annotations

import numpy as np

from unflip._utils.record_tables import Table, table
from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evidence import Evidence
from unflip.labels.codes import UNCHECKED

# Rows at least whose probabilities are averaged at a time; a choice.
_LEAST_BATCH = 100


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
    listed = evidence.worst_first[:n_unchecked]
    if evidence.uses_true_class:
        labelled = listed[evidence.labelled[listed]]
        return evidence.true_class.n_suspects(labelled, false_discovery_rate)
    return n_suspects_at(_first_marginals(evidence, listed), false_discovery_rate)


def _first_marginals(evidence: Evidence, listed: IntArray) -> FloatArray:
    """Return `marginal_wrong` of the first rows, to beyond the first that is likelier right.

    No later row can be a suspect. Labels that are likelier wrong are few, so this is fast.
    """
    n_likely = int((evidence.wrong[listed] >= 0.5).sum())
    batch = max(n_likely + 1, _LEAST_BATCH)
    marginals = [np.empty(0)]
    for start in range(0, len(listed), batch):
        marginals.append(evidence.marginal_wrong(listed[start : start + batch]))
        if marginals[-1].min() < 0.5:
            break
    return np.concatenate(marginals)


def suspect_table(evidence: Evidence, n_suspects: int) -> Table:
    """Return the first `n_suspects` rows, and all others with a more likely class than observed."""
    posterior = evidence.label_posterior
    codes = evidence.codes
    order = evidence.worst_first
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
    gradient = spread @ evidence.wrong_gradient(np.arange(len(wrong)))
    variance = sampling + float(gradient @ evidence.parameter_covariance @ gradient)
    return float(wrong.sum()), float(np.sqrt(variance))


def influential_classes(evidence: Evidence, most: int) -> IntArray:
    """Return the classes whose noise rates, one step away, change most labels; at most `most`."""
    changed = evidence.noise.model.known_priors * _rate_steps(evidence)
    return np.sort(np.argsort(-changed, kind="stable")[:most])


def _rate_steps(evidence: Evidence) -> FloatArray:
    """Return the standard error of each noise rate, (k,), or 0.05 if it has none."""
    errors = np.diag(evidence.noise.errors)
    return np.where(errors > 0, errors, 0.05)


def sensitivity_table(evidence: Evidence, false_discovery_rate: float, classes: IntArray) -> Table:
    """Return the findings with noise rates lower and higher by their standard error, or by 0.05.

    The noise rates of `classes` change, one at a time.

    Columns: ``true_class`` whose noise rate changes (none in the first row), its ``rate``, and the
    resulting ``n_suspects``, ``expected_wrong``, ``expected_accuracy`` and ``overlap``: the share
    of the top suspects (at least 20 rows) that are also top suspects after the change. If noise
    may depend on the row, the findings do not depend on noise rates: there is one row.
    """
    steps = _rate_steps(evidence)
    n_compared = max(count_suspects(evidence, false_discovery_rate), min(20, len(evidence.codes)))
    worst = evidence.worst_first[:n_compared]
    lines = [("", np.nan, *_findings(evidence, worst, false_discovery_rate))]
    for a in [] if evidence.uses_true_class else classes.tolist():
        for change in (-steps[a], steps[a]):
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
    overlap = np.isin(worst, evidence.worst_first[: len(worst)]).mean()
    accuracy = float(evidence.probabilities.max(axis=1).mean())
    if evidence.uses_true_class:
        accuracy = evidence.accuracy
    return (
        count_suspects(evidence, false_discovery_rate),
        float(evidence.wrong.sum()),
        accuracy,
        float(overlap),
    )
