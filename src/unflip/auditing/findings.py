"""The numbers of an audit: suspects, noise rates, expected accuracy, tests and outlook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.randomness import RandomState
from unflip._utils.record_tables import Table, table
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_count, as_number, shown
from unflip.auditing.annotator_table import annotator_table, confusion_table
from unflip.auditing.check_plan import NEXT_CHECKS, CheckPlan, CheckSample
from unflip.auditing.dependence import Dependence, dependence_test
from unflip.auditing.evidence import Evidence, ModelCalibration
from unflip.auditing.next_votes import next_votes
from unflip.auditing.outlook import Outlook
from unflip.auditing.suspects import (
    count_suspects,
    expected_wrong,
    influential_classes,
    sensitivity_table,
    suspect_table,
    unlabelled_table,
)
from unflip.calibration.interval import Interval
from unflip.labels.codes import UNCHECKED
from unflip.labels.noise import NoiseModel

#: Classes whose noise rates are named in sentences, and moved in `Findings.main_sensitivity`; a
#: choice.
MOST_RATES = 6
_PLANNED_CHECKS = (10, 50, 100)  # numbers of labels to check in `Findings.plan`


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """The numbers of an audit, each computed at its first use.

    Parameters
    ----------
    evidence : Evidence
        Probabilities and noise model.
    false_discovery_rate : float
        Maximum expected false discovery rate: share of correct labels among the first
        ``n_suspects`` suspects.
    before_checks : Findings, optional
        The same rows without trusted labels; None if none were passed as a sample of the rows.
    n_unsure : int
        Rows of a file of checked rows without a true label. They count as unchecked.
    """

    evidence: Evidence
    false_discovery_rate: float = 0.1
    before_checks: Findings | None = None
    n_unsure: int = 0

    @property
    def classes(self) -> NDArray[Any]:
        """Labels, sorted."""
        return self.evidence.classes

    @property
    def noise(self) -> NoiseModel:
        """The noise model, with priors; with votes, that of the majority labels."""
        return self.evidence.reported_noise[0]

    @property
    def noise_std(self) -> FloatArray:
        """Standard errors of ``noise.transition``, (k, k); 0 if the noise model was given."""
        return self.evidence.reported_noise[1]

    @property
    def noise_source(self) -> str:
        """Source of the rates; see `Noise.source`."""
        return self.evidence.noise.source

    @property
    def assumption(self) -> str:
        """Sentence on what was assumed about the rates without a test; empty if nothing was."""
        return self.evidence.noise.assumption

    @property
    def model_calibration(self) -> ModelCalibration | None:
        """How `audit_scores` calibrated the probabilities that it was given; None after `audit`."""
        return self.evidence.model_calibration

    @property
    def features(self) -> Any:
        """Fitted transformer of the samples, such as `KernelFeatures`; None for a linear fit.

        With `estimator=` it is that of step 1, and None if X is not numeric.
        """
        return self.evidence.features

    @cached_property
    def label_posterior(self) -> FloatArray:
        """P(true class | row, observed label or votes), (n, k); 0 and 1 for trusted rows."""
        return self.evidence.label_posterior.copy()

    @property
    def n_labels(self) -> int:
        """Number of rows with a label; with votes, of all rows."""
        return len(self.evidence.counted.codes)

    @property
    def n_unchecked(self) -> int:
        """Number of these rows without a trusted label."""
        return int((self.evidence.counted.truth == UNCHECKED).sum())

    @cached_property
    def suspects(self) -> Table:
        """Rows whose label is probably wrong, most likely wrong first.

        A DataFrame, as are all tables of an audit; without pandas, a NumPy record array. Columns:
        ``row``, ``observed``, ``proposed`` (the most likely other class) and ``probability``,
        P(label wrong). The first ``n_suspects`` rows come first, then all other
        rows with a more likely class than the observed one, then checked rows with a wrong label.
        """
        return suspect_table(self.evidence, self.n_suspects)

    @cached_property
    def unlabelled(self) -> Table:
        """Rows without a label or votes, with the likeliest class, most certain first.

        Columns ``row``, ``proposed`` and its ``probability``.
        """
        return unlabelled_table(self.evidence)

    @cached_property
    def annotators(self) -> Table | None:
        """Quality of each annotator, those with most votes first; None without votes.

        Columns of `Votes.summary`, and ``accuracy``, the share of right votes, with its 95%
        interval from ``low`` to ``high``, for any label noise. Without trusted labels of sampled
        rows they are those of other data sets with such scores and votes (see
        docs/checked_rows.md). The column ``information`` is what a vote tells about the true class,
        in bits, and ``weight`` is what it counts: less than 1 if the annotator copies others.
        """
        noise = self.evidence.noise
        if noise.votes is None or noise.annotators is None:
            return None
        return annotator_table(noise.votes, noise.annotators, self.evidence.true_class)

    @cached_property
    def confusions(self) -> Table | None:
        """How often each annotator gives each label to rows of each class; None without votes.

        Columns ``annotator``, ``true_class``, ``label``, ``rate``, P(label | true class) among the
        votes of the annotator, and its 95% interval from ``low`` to ``high``, as of `annotators`.
        """
        noise = self.evidence.noise
        if noise.votes is None or noise.annotators is None:
            return None
        return confusion_table(noise.votes, self.evidence.true_class)

    @property
    def effective_votes(self) -> float:
        """Mean number of independent votes that the votes on a row are worth; NaN without votes.

        Less than the mean number of votes if annotators share errors or copy each other.
        """
        noise = self.evidence.noise
        if noise.votes is None or noise.annotators is None:
            return np.nan
        return noise.annotators.effective_votes(noise.votes)

    @cached_property
    def n_suspects(self) -> int:
        """Number of suspects at the false discovery rate.

        The largest m for which the first m suspects have a mean P(label wrong) of at least
        1 − false_discovery_rate, averaged over the standard errors of the noise rates and of the
        calibration. Checked rows are not counted.
        """
        return count_suspects(self.evidence.counted, self.false_discovery_rate)

    @cached_property
    def checked(self) -> IntArray:
        """Rows with a trusted label, in the order of the data."""
        return np.flatnonzero(self.evidence.truth != UNCHECKED)

    @property
    def n_checked(self) -> int:
        """Number of rows with a trusted label and a label or votes."""
        return self.n_labels - self.n_unchecked

    @property
    def expected_wrong(self) -> float:
        """Expected number of wrong labels among all rows."""
        return self._expected_wrong[0]

    @property
    def expected_wrong_std(self) -> float:
        """Standard error of ``expected_wrong``, from sampling and from the noise rates."""
        return self._expected_wrong[1]

    @property
    def expected_accuracy(self) -> float:
        """Expected accuracy of a classifier on new rows with clean labels."""
        return self.evidence.accuracy

    @property
    def expected_accuracy_std(self) -> float:
        """Standard error of ``expected_accuracy``.

        Without trusted labels, it assumes that noise depends on the class alone.
        """
        return self.evidence.accuracy_std

    @property
    def expected_accuracy_interval(self) -> Interval:
        """Accuracy on new rows with clean labels and its 95% interval, for any label noise.

        Without trusted labels of sampled rows, value and interval are those of other data sets with
        such scores and labels (see docs/checked_rows.md).
        """
        return self.evidence.true_class.expected_accuracy

    @property
    def expected_wrong_interval(self) -> Interval:
        """Number of wrong labels and its 95% interval, for any label noise."""
        wrong = self.evidence.true_class.correct_labels.complement
        n = int(self.evidence.labelled.sum())
        return Interval(n * wrong.value, n * wrong.low, n * wrong.high)

    @cached_property
    def corrected_labels_interval(self) -> Interval:
        """Share of right labels after each is replaced by its most likely class, for any noise.

        With its 95% interval, over the rows with a label or vote. See `label_posterior`.
        """
        counted = self.evidence.counted
        model = counted.true_class.restricted(counted.labelled)
        return model.share(counted.label_posterior[counted.labelled].argmax(axis=1))

    @property
    def is_calibrated(self) -> bool:
        """Whether trusted labels of sampled rows calibrate the probabilities."""
        return self.evidence.is_calibrated

    @cached_property
    def dependence(self) -> Dependence:
        """Test of class-conditional noise; a small p-value means instance-dependent noise."""
        return dependence_test(self.evidence.counted)

    @cached_property
    def sensitivity(self) -> Table:
        """The findings with each noise rate changed by its standard error, or by 0.05 if given.

        Columns: ``true_class`` whose noise rate changes (none in the first row), its ``rate``, and
        the resulting ``n_suspects``, ``expected_wrong``, ``expected_accuracy`` and ``overlap``: the
        share of the top suspects (at least 20 rows) that are also top suspects after the change.
        """
        every_class = np.arange(len(self.classes))
        return sensitivity_table(self.evidence.counted, self.false_discovery_rate, every_class)

    @cached_property
    def main_sensitivity(self) -> Table:
        """`sensitivity` to at most six noise rates: those that change the most labels."""
        if len(self.classes) <= MOST_RATES:
            return self.sensitivity
        counted = self.evidence.counted
        classes = influential_classes(counted, MOST_RATES)
        return sensitivity_table(counted, self.false_discovery_rate, classes)

    @cached_property
    def plan(self) -> Table:
        """Expected accuracy now, after some checks, and with twice as many rows.

        Columns: ``effort`` in words, ``checked`` rows, ``accuracy`` (see `accuracy_after`). Efforts
        beyond the list of unchecked ``suspects`` are omitted.
        """
        n = self.n_labels
        n_listed = len(self.suspects) - int(np.isin(self.suspects.row, self.checked).sum())
        efforts = {m for m in _PLANNED_CHECKS if m <= n_listed} | {self.n_suspects}
        counts = sorted(m for m in efforts if 0 < m < n)
        lines = [("now", 0, self.expected_accuracy)]
        lines += [(_check_in_words(m), m, self.accuracy_after(m)) for m in counts]
        lines += [("check all rows", n, self.accuracy_after(n))]
        lines += [("twice the rows", 0, self.accuracy_after(0, growth=2.0))]
        effort, checked, accuracy = zip(*lines, strict=True)
        return table(effort=effort, checked=checked, accuracy=accuracy)

    def check_next(self, m: int, *, random_state: RandomState = 0) -> IntArray:
        """Return m rows to check next: a random sample, whose true labels go into ``trusted=``.

        At least 40% of the checked rows are to be rows where label and prediction differ. Within
        the two groups rows are drawn with equal probabilities, so intervals and rates are valid.
        Rows that were checked before count, so a later batch continues an earlier one. Rows without
        a label are not drawn.
        """
        return self._drawn(m, random_state)

    def plan_checks(self, m: int, *, random_state: RandomState = 0) -> CheckPlan:
        """Return the rows of `check_next`, and the interval to expect after they are checked."""
        sample = self._check_sample
        n_checks = self._n_checks(m)
        rows = self._drawn(n_checks, random_state)
        inclusion = np.zeros(len(self.evidence.codes))
        inclusion[self.evidence.counted_rows] = sample.inclusion(n_checks)
        drawn = np.searchsorted(self.evidence.counted_rows, rows)
        return CheckPlan(
            rows=rows,
            inclusion=inclusion,
            interval=self.expected_accuracy_interval,
            interval_after=self.interval_after(n_checks),
            accuracy_gain=self._outlook.after(drawn) - self._outlook.after(drawn[:0]),
        )

    @cached_property
    def next_checks(self) -> CheckPlan:
        """Plan of the next 100 checks, or of all that are left; see `plan_checks`."""
        return self.plan_checks(min(NEXT_CHECKS, len(self._check_sample.unchecked)))

    def checks_for(self, half_width: float) -> int:
        """Return how many more checks give the accuracy an interval of ± half_width at most."""
        width = as_number(half_width, "half_width")
        if not 0 < width < 1:
            raise ValueError(
                f"half_width = {shown(half_width)} must lie strictly between 0 and 1, for example "
                "0.05."
            )
        return self._check_sample.n_for(width)

    def interval_after(self, m: int) -> Interval:
        """Return the expected accuracy with the interval to expect after m more checks."""
        return self._check_sample.interval_after(self._n_checks(m))

    def _n_checks(self, m: int) -> int:
        return as_count(m, "m", most=len(self._check_sample.unchecked))

    @cached_property
    def _check_sample(self) -> CheckSample:
        """The random sample, by the indices of the counted rows."""
        unchecked = np.flatnonzero(self.evidence.counted.truth == UNCHECKED)
        return CheckSample(self.evidence.true_class, unchecked)

    def _drawn(self, m: int, random_state: RandomState) -> IntArray:
        drawn = self._check_sample.draw(self._n_checks(m), random_state)
        return self.evidence.counted_rows[drawn]

    def ask_next(self, m: int, *, costs: Mapping[Any, float] | None = None) -> Table:
        """Return whom to ask next about which rows: the m votes with the largest gain for the cost.

        Parameters
        ----------
        m : int
            Number of votes, each on another row.
        costs : mapping, optional
            Cost of a vote of each annotator, by name: ``math.inf`` for those who cannot be asked,
            1 for those who are not named.

        Returns
        -------
        DataFrame, or record array without pandas
            Columns ``row``, ``annotator``, ``gain`` (expected bits of information about the true
            class) and ``cost``, largest gain for its cost first.
        """
        noise = self.evidence.noise
        if noise.votes is None or noise.annotators is None:
            raise ValueError("There are no annotators to ask: audit Votes instead of labels.")
        return next_votes(noise.annotators, noise.votes, self.label_posterior, m, costs)

    def accuracy_after(self, m: int, *, growth: float = 1.0) -> float:
        """Return the expected accuracy after the m most suspicious labels are checked.

        Wrong labels are corrected, and the classifier is fitted again. With ``growth`` there are
        that many times as many rows, and the new labels are as noisy as the old ones. This is a
        rough guide from the isotropic theory (see docs/audit.md). It is NaN for `audit_scores`
        without ``effective_dimension``.
        """
        times = as_number(growth, "growth")
        if not 1 <= times < np.inf:
            raise ValueError(
                f"growth = {shown(growth)} must be at least 1 and finite: 2 means twice as many "
                "rows."
            )
        n_checked = as_count(m, "m", most=self.n_labels)
        checked = self.evidence.counted.worst_first[:n_checked]
        return self._outlook.after(checked, times)

    @cached_property
    def _expected_wrong(self) -> tuple[float, float]:
        return expected_wrong(self.evidence.counted)

    @cached_property
    def _outlook(self) -> Outlook:
        return Outlook.of(self.evidence.counted)


def _check_in_words(m: int) -> str:
    return f"check the {m} most suspicious labels" if m > 1 else "check the most suspicious label"
