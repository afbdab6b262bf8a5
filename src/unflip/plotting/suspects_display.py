"""Plot of the probability that labels are wrong, and of the expected precision of the suspects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_count, as_floats
from unflip.auditing.report import Audit, checked_rate
from unflip.labels.codes import UNCHECKED
from unflip.plotting.display import Display, check_audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SuspectsDisplay(Display):
    """P(label wrong), most likely wrong first, and the expected precision of the first m rows.

    Parameters
    ----------
    wrong : array-like of shape (n,)
        P(label wrong), in any order.
    n_suspects : int
        Number of suspects of the audit.
    false_discovery_rate : float
        Accepted fraction of correct labels among them.

    Attributes
    ----------
    probability_ : ndarray of shape (n,)
        P(label wrong), the largest first.
    precision_ : ndarray of shape (n,)
        Mean of the first 1, 2, … of them.

    Examples
    --------
    >>> from unflip.plotting import SuspectsDisplay
    >>> display = SuspectsDisplay([0.1, 0.9, 0.7], n_suspects=2, false_discovery_rate=0.2)
    >>> display.precision_.round(2)
    array([0.9 , 0.8 , 0.57])
    """

    def __init__(self, wrong: ArrayLike, *, n_suspects: int, false_discovery_rate: float) -> None:
        probability = as_floats(wrong, "wrong")
        if probability.ndim != 1:
            raise ValueError(
                f"wrong has shape {probability.shape}: give P(label wrong) of each row."
            )
        self.probability_: FloatArray = np.sort(probability)[::-1]
        counts = np.arange(1, len(self.probability_) + 1)
        self.precision_: FloatArray = np.cumsum(self.probability_) / counts
        self.n_suspects = as_count(n_suspects, "n_suspects")
        self.false_discovery_rate = checked_rate(false_discovery_rate)

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """Plot the suspects of an audit, without the checked rows."""
        check_audit(audit)
        evidence = audit.evidence.counted
        display = cls(
            evidence.wrong[evidence.truth == UNCHECKED],
            n_suspects=audit.n_suspects,
            false_discovery_rate=audit.false_discovery_rate,
        )
        return display.plot(ax)

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import COLOURS, FAINT, INK

        # Three times as many rows as suspects, so that the cut is inside the plot.
        n_rows = min(len(self.probability_), max(3 * self.n_suspects, 50))
        m = np.arange(1, n_rows + 1)
        ax.plot(
            m, self.precision_[:n_rows], color=COLOURS["optimized"], label="mean of the first m"
        )
        ax.plot(
            m, self.probability_[:n_rows], color=COLOURS["naive"], ls="-.", label="the m-th row"
        )
        ax.axhline(
            1 - self.false_discovery_rate,
            color=FAINT,
            ls=":",
            label=f"{1 - self.false_discovery_rate:.0%}",
        )
        ax.vlines(
            self.n_suspects, 0, 1, color=INK, lw=0.9, ls="--", label=f"{self.n_suspects} suspects"
        )
        ax.set_xlim(0, n_rows)
        ax.set_ylim(0, 1.32)  # room for the legend above all lines
        ax.set_yticks(np.linspace(0, 1, 6))
        ax.set_xlabel("rows, most likely wrong first (m)")
        ax.set_ylabel("P(label wrong)")
        ax.set_title("Suspects: probability of a wrong label")
        ax.legend(loc="upper center", ncols=2)
