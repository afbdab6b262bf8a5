"""Plot of a model's accuracy on true labels against its confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_floats, check_kind, shown
from unflip.auditing.evaluation.model_evaluation import Evaluation
from unflip.plotting.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CalibrationCurveDisplay(Display):
    """Accuracy on true labels by confidence, with 95% intervals.

    Parameters
    ----------
    confidence, accuracy : array-like of shape (m,)
        Mean probability of the predicted class in each bin, and the share of correct predictions;
        NaN if it is not known.
    low, high : array-like of shape (m,)
        Limits of the interval of the accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import evaluate
    >>> from unflip.plotting import CalibrationCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(500)  # a model's probabilities
    >>> true = (rng.random(500) < positive).astype(int)
    >>> labels = np.where(rng.random(500) < 0.2, 1 - true, true)
    >>> display = CalibrationCurveDisplay.from_evaluation(evaluate(positive, labels))
    >>> display.ax_.get_ylabel()
    'accuracy on true labels'
    """

    _size: ClassVar[tuple[float, float]] = (4.6, 4.2)

    def __init__(
        self, confidence: ArrayLike, accuracy: ArrayLike, *, low: ArrayLike, high: ArrayLike
    ) -> None:
        self.confidence = _shares(confidence, "confidence")
        n_bins = len(self.confidence)
        self.accuracy = _shares(accuracy, "accuracy", n_bins, may_be_nan=True)
        self.low = _shares(low, "low", n_bins)
        self.high = _shares(high, "high", n_bins)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, ax: Axes | None = None) -> Self:
        """Plot the calibration curve of an evaluation."""
        check_kind(evaluation, Evaluation, "evaluation", "give the result of unflip.evaluate")
        curve = evaluation.calibration_curve
        if not len(curve):
            raise ValueError(
                "The evaluation has no calibration curve, because the model gave predictions only: "
                "give its probabilities to evaluate."
            )
        return cls(curve.confidence, curve.accuracy, low=curve.low, high=curve.high).plot(ax)

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import COLOURS, FAINT

        known = np.isfinite(self.accuracy)
        colour = COLOURS["unbiased"]
        ax.axline((1, 1), slope=1, color=FAINT, ls=":", label="confidence = accuracy")
        ax.vlines(
            self.confidence[known],
            self.low[known],
            self.high[known],
            color=colour,
            alpha=0.5,
            label="95% interval",
        )
        ax.plot(self.confidence[known], self.accuracy[known], "o-", color=colour, label="accuracy")
        least = float(min(self.confidence.min(), self.low[known].min(initial=1.0)))
        ax.set_xlim(max(least - 0.04, 0.0), 1.02)
        ax.set_ylim(max(least - 0.04, 0.0), 1.02)
        ax.set_xlabel("confidence (probability of the predicted class)")
        ax.set_ylabel("accuracy on true labels")
        ax.set_title("Calibration curve")
        ax.legend(loc="best")


def _shares(
    values: ArrayLike, name: str, n_bins: int | None = None, *, may_be_nan: bool = False
) -> FloatArray:
    """Return a share for each bin; raise ValueError for anything else."""
    shares = as_floats(values, name)
    if shares.ndim != 1 or not len(shares) or len(shares) != (n_bins or len(shares)):
        bins = "each bin" if n_bins is None else f"each of the {n_bins} bins of confidence"
        raise ValueError(f"{name} has shape {shares.shape}: give a number for {bins}.")
    is_share = (shares >= 0) & (shares <= 1)
    if may_be_nan:
        is_share |= np.isnan(shares)
    if not is_share.all():
        raise ValueError(f"{name} = {shown(values)} must hold numbers between 0 and 1.")
    return shares
