r"""Which rows to check next, and what their true labels will tell.

Rows are drawn at random, but at least 40% of them where label and prediction differ: labels are
wrong there more often, so a check tells more. Within these two groups every row has the same
probability, which is known. A later batch continues an earlier one: it fills up the same shares.

More checks add their expected Fisher information to the covariance of the model of the true class.
The interval of the accuracy that follows shows whether they are worth the effort.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unflip._utils.randomness import RandomState, generator
from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.interval import Interval
from unflip.calibration.true_class import TrueClassModel

# Share of the checks on rows where label and prediction differ, at least.
_LEAST_SHARE = 0.4
#: Number of checks that the stop rule decides on: the next ones.
NEXT_CHECKS = 100
#: Least narrowing of the 95% interval of the accuracy, and least gain in accuracy, for which checks
#: are worth the effort. Narrowing by 0.02 is ± 1 point, the precision with which reports show
#: intervals; benchmarks/honesty_stopping.py measures decisions by it. Half a point of accuracy is a
#: choice: the least that knowing the noise rates is usually worth.
WORTH_NARROWING = 0.02
WORTH_GAIN = 0.005
# Rows of each group whose information stands for that of the group.
_N_REPRESENTATIVE = 1000


@dataclass(frozen=True, eq=False)
class CheckPlan:
    """Rows to check next, and what to expect of it.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        The rows. The first ones are a smaller sample of the same kind.
    inclusion : ndarray of shape (n,)
        Probability with which each row is among the checked ones, earlier checks included. Pass it
        as ``inclusion=`` if other rows are checked besides.
    interval : Interval
        Expected accuracy, with its interval of today.
    interval_after : Interval
        The same with the interval to expect after the checks.
    accuracy_gain : float
        Rough gain in accuracy of a classifier that is trained on the checked labels; NaN if it is
        not known.
    """

    rows: IntArray
    inclusion: FloatArray
    interval: Interval
    interval_after: Interval
    accuracy_gain: float

    @property
    def narrowing(self) -> float:
        """By how much the interval of the accuracy is expected to become narrower."""
        return self.interval.width - self.interval_after.width

    def is_worth(self, *, narrowing: float = WORTH_NARROWING, gain: float = WORTH_GAIN) -> bool:
        """Whether the checks narrow the interval, or raise the accuracy, by at least this much."""
        return self.narrowing >= narrowing or self.accuracy_gain >= gain


@dataclass(frozen=True, eq=False)
class CheckSample:
    """The random sample of rows to check.

    Attributes
    ----------
    model : TrueClassModel
        Scores, labels and checked rows.
    unchecked : ndarray of shape (n,)
        Whether each row is still to be checked.
    """

    model: TrueClassModel
    unchecked: IntArray
    _intervals_after: dict[int, Interval] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, model: TrueClassModel) -> CheckSample:
        """Return the sample of the rows without a trusted label."""
        return cls(model, np.flatnonzero(model.unchecked))

    @property
    def _differs(self) -> IntArray:
        """1 for rows where label and prediction differ, else 0, (n,)."""
        return np.asarray(self.model.rows.cells == 1, dtype=np.intp)

    def quotas(self, m: int) -> IntArray:
        """Return how many of m more rows come from each group: no difference, difference."""
        differs = self._differs
        available = np.bincount(differs[self.unchecked], minlength=2)
        sizes = np.bincount(differs, minlength=2)
        n_checked = sizes - available
        share = max(_LEAST_SHARE, sizes[1] / sizes.sum())
        wanted = round(share * (int(n_checked.sum()) + m)) - n_checked[1]
        n_differing = int(np.clip(wanted, max(m - available[0], 0), min(available[1], m)))
        return np.array([m - n_differing, n_differing])

    def draw(self, m: int, random_state: RandomState = 0) -> IntArray:
        """Return m rows in random order."""
        shuffled = generator(random_state).permutation(self.unchecked)
        differs = self._differs[shuffled]
        taken = [shuffled[differs == group][:quota] for group, quota in enumerate(self.quotas(m))]
        chosen = np.isin(shuffled, np.concatenate(taken))
        return np.asarray(shuffled[chosen])

    def inclusion(self, m: int) -> FloatArray:
        """Return the probability with which each row is checked after m more, (n,)."""
        differs = self._differs
        sizes = np.bincount(differs, minlength=2)
        available = np.bincount(differs[self.unchecked], minlength=2)
        shares = (sizes - available + self.quotas(m)) / np.maximum(sizes, 1)
        return np.asarray(shares[differs])

    def interval_after(self, m: int) -> Interval:
        """Return the accuracy, with the interval to expect after m more checks."""
        if m not in self._intervals_after:
            self._intervals_after[m] = self._interval_after(m)
        return self._intervals_after[m]

    def _interval_after(self, m: int) -> Interval:
        rows = []
        counts = []
        for group, quota in enumerate(self.quotas(m).tolist()):
            members = self.unchecked[self._differs[self.unchecked] == group]
            step = max(1, len(members) // _N_REPRESENTATIVE)
            members = members[::step]
            rows.append(members)
            counts.append(np.full(len(members), quota / max(len(members), 1)))
        after = self.model.after(np.concatenate(rows), np.concatenate(counts))
        interval = after.expected_accuracy
        # The classes of the checked rows are then known.
        unknown = 1 - m / max(len(self.unchecked), 1)
        low = interval.value - unknown * (interval.value - interval.low)
        high = interval.value + unknown * (interval.high - interval.value)
        return Interval(interval.value, low, high)

    def n_for(self, half_width: float) -> int:
        """Return the number of checks after which the interval is ± half_width at most."""
        low = 0
        high = len(self.unchecked)
        while low < high:
            middle = (low + high) // 2
            if self.interval_after(middle).width <= 2 * half_width:
                high = middle
            else:
                low = middle + 1
        return low
