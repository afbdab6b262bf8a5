"""What checking labels or adding rows would bring: accuracy now and after each effort."""

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
    """Accuracy to expect on clean labels, a line for each effort.

    Parameters
    ----------
    efforts : sequence of str
        What is done, in words; the first is nothing.
    accuracies : array-like of shape (m,)
        Accuracy after it.
    error : float
        Standard error of the first.
    """

    _size: ClassVar[tuple[float, float]] = (6.2, 3.2)

    def __init__(
        self, efforts: Sequence[str], accuracies: ArrayLike, *, error: float = 0.0
    ) -> None:
        self.efforts, self.accuracies = (
            as_array(efforts, "efforts").tolist(),
            as_floats(accuracies, "accuracies"),
        )
        self.error = as_number(error, "error")
        if self.accuracies.ndim != 1 or np.shape(self.efforts) != self.accuracies.shape:
            raise ValueError(
                f"efforts has shape {np.shape(self.efforts)} and accuracies "
                f"{self.accuracies.shape}: give as many of both."
            )
        if not np.isfinite(self.accuracies).all():
            raise ValueError(
                "The audit does not know what efforts would bring: give audit_scores "
                "effective_dimension=."
            )

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """Draw the plan of an audit."""
        check_audit(audit)
        plan = audit.plan
        return cls(plan.effort.tolist(), plan.accuracy, error=audit.expected_accuracy_std).plot(ax)

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import COLOURS, FAINT, INK

        now, lines = float(self.accuracies[0]), np.arange(len(self.efforts))
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
        ax.set_title("What each effort would bring")
        ax.legend(loc="best")
