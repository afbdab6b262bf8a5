"""The rows whose labels look wrong, worst first, and how many of them to act on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evidence import Evidence
from unflip.labels.classes import UNCHECKED

Table = np.recarray[Any, Any]


def table(**columns: ArrayLike) -> Table:
    """Return the columns as a record array."""
    arrays = [np.asarray(column) for column in columns.values()]
    fields = [(name, array.dtype) for name, array in zip(columns, arrays, strict=True)]
    return np.rec.fromarrays(arrays, dtype=np.dtype(fields))


def worst_first(evidence: Evidence) -> IntArray:
    """Return all rows by P(label wrong), the largest first, those that were checked after all others.

    Ties are in the order of the rows.
    """
    return np.lexsort((-evidence.wrong, evidence.truth != UNCHECKED))


def cut(wrong: FloatArray, false_discovery_rate: float) -> int:
    """Return the largest m whose mean P(label wrong) among the m worst rows is at least 1 − false_discovery_rate.

    Rows whose label is more likely right than wrong are no suspects, however sure the others are.
    """
    worst = np.sort(wrong)[::-1]
    mean = np.cumsum(worst) / np.arange(1, len(worst) + 1)
    # The running mean never rises, so it is counted how long it stays above; rounding must not lose
    # a tie.
    return int(((mean >= 1 - false_discovery_rate - 1e-12) & (worst >= 0.5)).sum())


def n_to_act_on(evidence: Evidence, false_discovery_rate: float) -> int:
    """Return the `cut` of the rows that were not checked: of the others nothing is left to find out."""
    return cut(evidence.wrong[evidence.truth == UNCHECKED], false_discovery_rate)


def suspect_table(evidence: Evidence, n_suspects: int) -> Table:
    """List the first `n_suspects` rows, and all others for which another class is likelier than the observed one."""
    posterior, codes = evidence.label_posterior, evidence.codes
    order = worst_first(evidence)
    listed = np.zeros(len(codes), dtype=bool)
    listed[order[:n_suspects]] = True
    listed |= (posterior.argmax(axis=1) != codes) & evidence.labelled
    rows = order[listed[order]]
    others = posterior[rows].copy()
    others[np.arange(len(rows)), codes[rows]] = -1.0
    proposed = evidence.classes[others.argmax(axis=1)]
    observed = evidence.classes[codes[rows]]
    return table(row=rows, observed=observed, proposed=proposed, probability=evidence.wrong[rows])


def unlabelled_table(evidence: Evidence) -> Table:
    """List the rows without a label, the surest first, with the likeliest class and its probability."""
    rows = np.flatnonzero(~evidence.labelled)
    posterior = evidence.label_posterior[rows]
    order = np.argsort(-posterior.max(axis=1), kind="stable")
    proposed = evidence.classes[posterior.argmax(axis=1)]
    return table(
        row=rows[order], proposed=proposed[order], probability=posterior.max(axis=1)[order]
    )


def expected_wrong(evidence: Evidence) -> tuple[float, float]:
    """Return the expected number of wrong labels and its standard error, from the rows and from the rates."""
    wrong = evidence.wrong
    total = float(wrong.sum())
    sampling = float(wrong @ (1 - wrong)) * len(wrong) / evidence.n_rows
    others = evidence.noise_one_error_away()
    unmoved = float(evidence.unmoved.wrong.sum()) if others else total
    moved = [float(other.wrong.sum()) - unmoved for other in map(evidence.under, others)]
    return total, float(np.sqrt(sampling + sum(change**2 for change in moved)))


def sensitivity_table(
    evidence: Evidence, false_discovery_rate: float, given_change: float = 0.05
) -> Table:
    """Tell how the answers move with each rate: down and up by its standard error, or by `given_change` if it has none.

    Fields: ``true_class`` whose flip rate moves (the first row: none does), ``rate`` the flip rate
    then, and under it ``n_suspects``, ``expected_wrong``, ``expected_accuracy``, and ``overlap``,
    the share of the rows acted on that would still be the worst (of the 20 worst where fewer are).
    """
    errors = np.diag(evidence.noise.errors)
    steps = np.where(errors > 0, errors, given_change)
    n_compared = max(n_to_act_on(evidence, false_discovery_rate), min(20, len(evidence.codes)))
    worst = worst_first(evidence)[:n_compared]
    moves = [(a, change) for a, step in enumerate(steps.tolist()) for change in (-step, step)]
    cases = [("", np.nan, evidence)]
    for a, change in moves:
        other = evidence.with_rate(a, change)
        if other is not None:
            cases.append(
                (str(evidence.classes[a]), 1 - float(other.noise.model.transition[a, a]), other)
            )
    names = ("true_class", "rate", "n_suspects", "expected_wrong", "expected_accuracy", "overlap")
    lines = [
        (name, rate, *_answers(case, worst, false_discovery_rate)) for name, rate, case in cases
    ]
    return table(**dict(zip(names, zip(*lines, strict=True), strict=True)))


def _answers(
    evidence: Evidence, worst: IntArray, false_discovery_rate: float
) -> tuple[int, float, float, float]:
    still = np.isin(worst, worst_first(evidence)[: len(worst)]).mean()
    accuracy = evidence.probabilities.max(axis=1).mean()
    return (
        n_to_act_on(evidence, false_discovery_rate),
        float(evidence.wrong.sum()),
        float(accuracy),
        float(still),
    )
