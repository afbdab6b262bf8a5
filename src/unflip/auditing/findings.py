"""The numbers of an audit: suspects, noise rates, expected accuracy, tests and outlook."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_count, as_number, shown
from unflip.auditing.dependence import Dependence, dependence_test
from unflip.auditing.evidence import Evidence
from unflip.auditing.outlook import Outlook
from unflip.auditing.suspects import (
    Table,
    expected_wrong,
    n_to_act_on,
    sensitivity_table,
    suspect_table,
    table,
    unlabelled_table,
    worst_first,
)
from unflip.labels.classes import UNCHECKED
from unflip.labels.noise import NoiseModel

_N_SHOWN = 5
_PLANNED_CHECKS = (10, 50, 100)


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """The numbers of an audit, each computed when it is first asked for.

    Parameters
    ----------
    evidence : Evidence
        What everything is computed from.
    false_discovery_rate : float
        Share of right labels that is accepted among the first ``n_suspects`` suspects.
    """

    evidence: Evidence
    false_discovery_rate: float = 0.1

    @property
    def classes(self) -> NDArray[Any]:
        """Labels, sorted."""
        return self.evidence.classes

    @property
    def noise(self) -> NoiseModel:
        """The noise model, with priors; of votes, how the label that most of them favour differs from the true one."""
        return self.evidence.noise.model

    @property
    def noise_std(self) -> FloatArray:
        """Standard errors of ``noise.transition``, (k, k); 0 where the noise model was given."""
        return self.evidence.noise.errors

    @property
    def noise_source(self) -> str:
        """Where the rates come from: "given", "trusted rows", "mixture", "anchor rows" or "votes"."""
        return self.evidence.noise.source

    @property
    def assumption(self) -> str:
        """What was assumed of the rates rather than seen, in words; empty where nothing was."""
        return self.evidence.noise.assumption

    @cached_property
    def label_posterior(self) -> FloatArray:
        """P(true class | row, observed label or votes), (n, k); 0 and 1 for trusted rows."""
        return self.evidence.label_posterior.copy()

    @cached_property
    def suspects(self) -> Table:
        """Rows whose label looks wrong, worst first, with fields row, observed, proposed and probability.

        The probability is P(label wrong); ``proposed`` is the likeliest other class. Listed are the
        first ``n_suspects`` and all others for which another class is likelier than the observed
        one; last, the trusted rows whose label is wrong.
        """
        return suspect_table(self.evidence, self.n_suspects)

    @cached_property
    def unlabelled(self) -> Table:
        """Rows without any vote, the surest first, with fields row, proposed and probability, that of ``proposed``."""
        return unlabelled_table(self.evidence)

    @cached_property
    def n_suspects(self) -> int:
        """The largest m whose mean P(label wrong) among the first m suspects is at least 1 − false_discovery_rate.

        Trusted rows do not count: what they are is known.
        """
        return n_to_act_on(self.evidence, self.false_discovery_rate)

    @cached_property
    def checked(self) -> IntArray:
        """Trusted rows, in the order of the data."""
        return np.flatnonzero(self.evidence.truth != UNCHECKED)

    @property
    def expected_wrong(self) -> float:
        """Expected number of wrong labels among all rows."""
        return self._expected_wrong[0]

    @property
    def expected_wrong_std(self) -> float:
        """Its standard error, from the rows and from the rates."""
        return self._expected_wrong[1]

    @property
    def expected_accuracy(self) -> float:
        """Accuracy to expect on new rows with clean labels."""
        return self.evidence.accuracy

    @property
    def expected_accuracy_std(self) -> float:
        """Its standard error."""
        return self.evidence.accuracy_std

    @cached_property
    def dependence(self) -> Dependence:
        """Test of whether flips depend on more of a row than its true class."""
        return dependence_test(self.evidence)

    @cached_property
    def sensitivity(self) -> Table:
        """How the answers move with each rate, by its standard error or by 0.05 where it was given.

        Fields: ``true_class`` whose flip rate moves (the first row: none does), ``rate`` its flip
        rate then, and under it ``n_suspects``, ``expected_wrong``, ``expected_accuracy`` and
        ``overlap``: the share of the first ``n_suspects`` suspects that would still be the worst.
        """
        return sensitivity_table(self.evidence, self.false_discovery_rate)

    @cached_property
    def plan(self) -> Table:
        """Accuracy now, after checks of the first suspects, of all rows, and with twice the rows; see `accuracy_after`.

        Fields: ``effort`` in words, ``checked`` rows, ``accuracy``.
        """
        n = len(self.evidence.codes)
        counts = sorted({m for m in (*_PLANNED_CHECKS, self.n_suspects) if 0 < m < n})
        lines = [("now", 0, self.expected_accuracy)]
        lines += [(f"check {m} suspects", m, self.accuracy_after(m)) for m in counts]
        lines += [("check all rows", n, self.accuracy_after(n))]
        lines += [("twice the rows", 0, self.accuracy_after(0, growth=2.0))]
        effort, checked, accuracy = zip(*lines, strict=True)
        return table(effort=effort, checked=checked, accuracy=accuracy)

    def accuracy_after(self, m: int, *, growth: float = 1.0) -> float:
        """Return the accuracy to expect once the m worst rows are checked, set right, and the classifier refitted.

        With ``growth`` there are that many times as many rows, the new ones labelled as noisily as
        these. A rough guide from the isotropic theory (see docs/audit.md); NaN for `audit_scores`
        without a dimension.
        """
        times = as_number(growth, "growth")
        if not 1 <= times < np.inf:
            raise ValueError(
                f"growth = {shown(growth)} must be at least 1 and finite: 2 means twice as many "
                "rows."
            )
        checked = self._worst_first[: as_count(m, "m", most=len(self.evidence.codes))]
        return self._outlook.after(checked, times)

    @cached_property
    def _expected_wrong(self) -> tuple[float, float]:
        return expected_wrong(self.evidence)

    @cached_property
    def _worst_first(self) -> IntArray:
        return worst_first(self.evidence)

    @cached_property
    def _outlook(self) -> Outlook:
        return Outlook.of(self.evidence)
