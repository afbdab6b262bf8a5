"""Why a row is suspect: the inputs that favour the proposed class, and similar rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.record_tables import Table, lines_of, table
from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evidence import Evidence
from unflip.auditing.nearest_rows import NearestRows, nearest_rows
from unflip.auditing.reasons import Contributions, OpenRows

#: Nearest rows of a suspect that are shown.
N_NEAREST = 2
# Least P(own label is right) of a row that is shown as an example. A choice.
_CONFIDENT = 0.95
_N_PRINTED = 5  # inputs that are printed


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one row is suspect; ``print`` shows the main reasons.

    Attributes
    ----------
    row : int
        The row.
    observed, proposed : label
        Its label, and the most likely other class.
    inputs : DataFrame or record array
        Inputs that contribute to the log-odds, the largest contribution first. Columns ``name``,
        ``contribution`` (positive: favours the proposed class) and ``share`` of the contribution in
        the sum of all absolute contributions. Empty if ``note`` says why.
    log_odds : float
        Log-odds of the proposed class against the observed one by the fit: ``constant`` plus all
        contributions. NaN without inputs.
    constant : float
        Log-odds of a reference row: an empty row if X is sparse, else the mean row.
    nearest : DataFrame or record array
        The nearest rows whose own label has a probability of at least 0.95. Columns ``row``,
        ``label`` and ``distance``: Euclidean, and 1 − cosine similarity if X is sparse.
    note : str
        Why there are no inputs or no nearest rows; empty if there are.
    """

    row: int
    observed: Any
    proposed: Any
    inputs: Table
    log_odds: float
    constant: float
    nearest: Table
    note: str = ""

    def __str__(self) -> str:
        lines = [f"Row {self.row} is labelled {self.observed!r}; proposed: {self.proposed!r}."]
        if len(self.inputs):
            lines.append(
                f"Log-odds of {self.proposed!r} against {self.observed!r} by the fit: "
                f"{self.log_odds:+.2f}, from a constant {self.constant:+.2f} and:"
            )
        strongest = sorted(lines_of(self.inputs), key=lambda line: -abs(line.contribution))
        for name, contribution, share in strongest[:_N_PRINTED]:
            lines.append(f"  {name}: {contribution:+.2f} ({share:+.0%})")
        for row, label, distance in lines_of(self.nearest):
            lines.append(f"Similar row {row} is labelled {label!r} (distance {distance:.2f}).")
        return "\n".join([*lines, self.note] if self.note else lines)


@dataclass(frozen=True, eq=False)
class Explainer:
    """Explains rows of an audit; it holds the rows as an array, so do not keep it.

    Attributes
    ----------
    evidence : Evidence
        The audit.
    rows : OpenRows
        Its samples.
    """

    evidence: Evidence
    rows: OpenRows

    @cached_property
    def confident(self) -> NDArray[np.bool_]:
        """Whether the label of each row is almost certainly right, (n,)."""
        return np.asarray(self.evidence.labelled & (self.evidence.wrong <= 1 - _CONFIDENT))

    def proposed(self, rows: IntArray) -> IntArray:
        """Return the most likely class of each row other than its label."""
        others = self.evidence.label_posterior[rows].copy()
        others[np.arange(len(rows)), self.evidence.codes[rows]] = -1.0
        return np.asarray(others.argmax(axis=1))

    def nearest(self, rows: IntArray) -> NearestRows:
        """Return the nearest confident rows of each row."""
        if self.rows.rows is None:
            nothing = np.empty((len(rows), 0))
            return NearestRows(nothing.astype(np.intp), nothing)
        return nearest_rows(self.rows.rows, rows, self.confident, N_NEAREST)

    def contributions(self, row: int) -> Contributions | None:
        """Return the contributions to the log-odds of a row; None if there are none."""
        if self.rows.why_no_inputs:
            return None
        place = np.array([row])
        return self.rows.contributions(
            place, int(self.proposed(place)[0]), int(self.evidence.codes[row])
        )

    def explain(self, row: int) -> Explanation:
        """Explain one row."""
        place = np.array([row])
        classes = self.evidence.classes.tolist()
        notes = dict.fromkeys([self.rows.why_no_inputs, self.rows.why_not_compared])
        contributions = self.contributions(row)
        names = self.rows.input_names if contributions is not None else np.empty(0, dtype=object)
        values = np.empty(0) if contributions is None else contributions.of_row(0)
        return Explanation(
            row=row,
            observed=classes[int(self.evidence.codes[row])],
            proposed=classes[int(self.proposed(place)[0])],
            inputs=_input_table(names, values),
            log_odds=np.nan if contributions is None else float(contributions.log_odds[0]),
            constant=np.nan if contributions is None else float(contributions.constants[0]),
            nearest=self._nearest_table(row),
            note=" ".join(filter(None, notes)),
        )

    def _nearest_table(self, row: int) -> Table:
        nearest = self.nearest(np.array([row]))
        rows = nearest.rows[0][nearest.rows[0] >= 0]
        labels = self.evidence.classes[self.evidence.codes[rows]]
        return table(row=rows, label=labels, distance=nearest.distances[0][: len(rows)])


def _input_table(names: NDArray[Any], values: FloatArray) -> Table:
    """Return the inputs that contribute, the largest contribution first."""
    places = np.flatnonzero(values)
    places = places[np.argsort(-values[places], kind="stable")]
    total = np.abs(values).sum()
    return table(
        name=names[places],
        contribution=values[places],
        share=values[places] / (total if total > 0 else 1.0),
    )
