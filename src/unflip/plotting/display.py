"""Base class of the displays: `plot(ax=None)` sets `figure_` and `ax_`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.validation import as_array, check_kind
from unflip.auditing.report import Audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


class Display(ABC):
    """A plot that stores its numbers, so that it can be drawn again.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the plot.
    figure_ : matplotlib.figure.Figure
        Figure of these axes.
    """

    ax_: Axes
    figure_: FigureBase
    _size: ClassVar[tuple[float, float]] = (5.6, 3.9)  # of a new figure, in inches

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the axes, or on a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        """
        if find_spec("matplotlib") is None:
            raise ImportError(
                f"{type(self).__name__} needs matplotlib; install it with: "
                'pip install "unflip[plot]"'
            )
        # Imported here, because matplotlib is optional.
        from matplotlib import pyplot

        from unflip.plotting.style import house_look

        with house_look():
            if ax is None:
                _, ax = pyplot.subplots(figsize=self._size, layout="constrained")
            self.ax_ = ax
            self._draw(ax)
        self.figure_ = self.ax_.figure
        return self

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on these axes."""


def checked_labels(display_labels: ArrayLike | None, k: int) -> NDArray[Any]:
    """Return the names of k classes, by default 0 to k − 1."""
    labels = np.arange(k) if display_labels is None else as_array(display_labels, "display_labels")
    if labels.shape != (k,):
        raise ValueError(
            f"display_labels has shape {labels.shape}: give a name for each of the {k} classes."
        )
    return labels


def check_audit(audit: object) -> None:
    """Raise ValueError unless this is an audit."""
    check_kind(audit, Audit, "audit", "give the result of unflip.audit or audit_scores")
