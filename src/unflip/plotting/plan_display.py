"""Plot of the expected accuracy after checking labels or adding rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.validation import as_array, as_floats, as_number
from unflip.auditing.report import Audit
from unflip.plotting.display import Display, check_audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PlanDisplay(Display):
    """Expected accuracy on clean labels, one line per effort.

    Parameters
    ----------
    efforts : sequence of str
        Description of each effort; the first is the present state.
    accuracies : array-like of shape (m,)
        Expected accuracy after each effort.
    error : float
        Standard error of the first.

    Examples
    --------
    >>> from unflip.plotting import PlanDisplay
    >>> display = PlanDisplay(["now", "10× rows"], [0.75, 0.85], error=0.01).plot()
    >>> display.ax_.get_xlabel()
    'expected accuracy on clean labels'
    """

    _size: ClassVar[tuple[float, float]] = (6.2, 3.2)

    def __init__(
        self, efforts: Sequence[str], accuracies: ArrayLike, *, error: float = 0.0
    ) -> None:
        self.efforts = as_array(efforts, "efforts").tolist()
        self.accuracies = as_floats(accuracies, "accuracies")
        self.error = as_number(error, "error")
        if self.accuracies.ndim != 1 or np.shape(self.efforts) != self.accuracies.shape:
            raise ValueError(
                f"efforts has shape {np.shape(self.efforts)} and accuracies "
                f"{self.accuracies.shape}: give equal shapes."
            )
        if not np.isfinite(self.accuracies).all():
            raise ValueError(
                "accuracies holds NaN, because the audit has no estimate of the gain: give "
                "audit_scores effective_dimension=."
            )

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """Plot the plan of an audit."""
        check_audit(audit)
        plan = audit.plan
        return cls(plan.effort.tolist(), plan.accuracy, error=audit.expected_accuracy_std).plot(ax)

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import COLOURS, FAINT, INK

        now = float(self.accuracies[0])
        lines = np.arange(len(self.efforts))
        ax.axvspan(
            now - self.error, now + self.error, color=FAINT, alpha=0.2, lw=0, label="now ± 1 s.e."
        )
        ax.axvline(now, color=FAINT, lw=1)
        ax.hlines(lines, now, self.accuracies, color=COLOURS["optimized"], lw=2)
        ax.plot(self.accuracies, lines, "o", color=COLOURS["optimized"])
        for line, accuracy in zip(lines, self.accuracies, strict=True):
            ax.annotate(
                f"{accuracy:.1%}",
                (accuracy, line),
                (7, 0),
                textcoords="offset points",
                va="center",
                color=INK,
            )
        ax.set_yticks(lines, self.efforts)
        ax.invert_yaxis()
        ax.margins(x=0.15)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("expected accuracy on clean labels")
        ax.set_title("Expected gain of each effort")
        ax.legend(loc="best")
