"""Plot of the transition matrix P(observed label | true class), with standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from unflip._utils.validation import as_floats
from unflip.auditing.report import Audit
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.model.classifier import LPClassifier
from unflip.plotting.display import Display, check_audit, checked_labels
from unflip.plotting.fitted import last_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class NoiseMatrixDisplay(Display):
    """Transition matrix (row = true class, column = observed label) with standard errors.

    Parameters
    ----------
    transition : array-like of shape (k, k)
        P(observed label | true class).
    errors : array-like of shape (k, k), optional
        Standard errors; 0 for rates that were not estimated.
    display_labels : array-like of shape (k,), optional
        Names of the classes.

    Examples
    --------
    >>> from unflip import LPClassifier, NoiseModel
    >>> from unflip.datasets import make_mixture
    >>> from unflip.plotting import NoiseMatrixDisplay
    >>> X, y = make_mixture(400, 20, random_state=0)
    >>> observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    >>> display = NoiseMatrixDisplay.from_estimator(LPClassifier().fit(X, observed))
    >>> display.ax_.get_title()
    'P(observed label | true class)'
    """

    _size: ClassVar[tuple[float, float]] = (4.4, 3.8)

    def __init__(
        self,
        transition: ArrayLike,
        *,
        errors: ArrayLike | None = None,
        display_labels: ArrayLike | None = None,
    ) -> None:
        self.transition = as_floats(transition, "transition")
        if self.transition.ndim != 2 or len(self.transition) != self.transition.shape[1]:
            raise ValueError(f"transition has shape {self.transition.shape}: give a k×k matrix.")
        k = len(self.transition)
        self.errors = np.zeros((k, k)) if errors is None else as_floats(errors, "errors")
        if self.errors.shape != (k, k):
            raise ValueError(
                f"errors has shape {self.errors.shape}: give one for each of the {k}×{k} rates."
            )
        self.display_labels = checked_labels(display_labels, k)

    @classmethod
    def from_estimator(
        cls, estimator: LPClassifier | NoiseEstimator | Pipeline, *, ax: Axes | None = None
    ) -> Self:
        """Plot the noise rates of a fitted classifier, noise estimator or pipeline."""
        fitted = last_step(estimator, LPClassifier, NoiseEstimator)
        return cls(
            fitted.noise_.transition, errors=fitted.noise_std_, display_labels=fitted.classes_
        ).plot(ax)

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """Plot the noise rates of an audit."""
        check_audit(audit)
        return cls(
            audit.noise.transition, errors=audit.noise_std, display_labels=audit.classes
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        ax.imshow(self.transition, cmap="Blues", vmin=0, vmax=1)
        for (a, b), rate in np.ndenumerate(self.transition):
            colour = "white" if rate > 0.55 else "black"  # legible on the cell's shade
            ax.text(b, a, self._cell(a, b), ha="center", va="center", color=colour)
        ticks = range(len(self.transition))
        ax.set_xticks(ticks, self.display_labels)
        ax.set_yticks(ticks, self.display_labels)
        ax.grid(False)
        ax.set_xlabel("observed label")
        ax.set_ylabel("true class")
        ax.set_title("P(observed label | true class)")

    def _cell(self, a: int, b: int) -> str:
        error = self.errors[a, b]
        return f"{self.transition[a, b]:.2f}" + (f"\n± {error:.2f}" if error > 0 else "")
