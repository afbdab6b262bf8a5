"""How sure the suspects of an audit are, one by one and together, and where to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_count, as_floats
from unflip.auditing.report import Audit, checked_rate
from unflip.plotting.display import Display, check_audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN_PER_SUSPECT, _LEAST_SHOWN = 3, 50
_HEADROOM = 1.32  # top of the axis: room for the legend above all lines


class SuspectsDisplay(Display):
    """P(label wrong) of each row, worst first, and its mean over the first m: the precision to expect among them.

    Parameters
    ----------
    wrong : array-like of shape (n,)
        P(label wrong), in any order.
    n_suspects : int
        How many suspects are acted on.
    false_discovery_rate : float
        Share of right labels that is accepted among them.

    Attributes
    ----------
    probability_ : ndarray of shape (n,)
        P(label wrong), the largest first.
    precision_ : ndarray of shape (n,)
        Mean of the first 1, 2, … of them.
    """

    def __init__(self, wrong: ArrayLike, *, n_suspects: int, false_discovery_rate: float) -> None:
        probability = as_floats(wrong, "wrong")
        if probability.ndim != 1:
            raise ValueError(
                f"wrong has shape {probability.shape}: give P(label wrong) of each row."
            )
        self.probability_: FloatArray = np.sort(probability)[::-1]
        self.precision_: FloatArray = np.cumsum(self.probability_) / np.arange(
            1, len(self.probability_) + 1
        )
        self.n_suspects = as_count(n_suspects, "n_suspects")
        self.false_discovery_rate = checked_rate(false_discovery_rate)

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """Draw the suspects of an audit, without the rows that were checked."""
        check_audit(audit)
        n_suspects, rate = audit.n_suspects, audit.false_discovery_rate
        wrong = np.delete(audit.evidence.wrong, audit.checked)
        return cls(wrong, n_suspects=n_suspects, false_discovery_rate=rate).plot(ax)

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import COLOURS, FAINT, INK

        shown = min(len(self.probability_), max(_SHOWN_PER_SUSPECT * self.n_suspects, _LEAST_SHOWN))
        m = np.arange(1, shown + 1)
        ax.plot(m, self.precision_[:shown], color=COLOURS["optimized"], label="mean of the first m")
        ax.plot(m, self.probability_[:shown], color=COLOURS["naive"], ls="-.", label="the m-th row")
        ax.axhline(
            1 - self.false_discovery_rate,
            color=FAINT,
            ls=":",
            label=f"{1 - self.false_discovery_rate:.0%}",
        )
        ax.vlines(
            self.n_suspects, 0, 1, color=INK, lw=0.9, ls="--", label=f"{self.n_suspects} suspects"
        )
        ax.set_xlim(0, shown)
        ax.set_ylim(0, _HEADROOM)
        ax.set_yticks(np.linspace(0, 1, 6))
        ax.set_xlabel("rows, worst first (m)")
        ax.set_ylabel("P(label wrong)")
        ax.set_title("How sure the suspects are")
        ax.legend(loc="upper center", ncols=2)
