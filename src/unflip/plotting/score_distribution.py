"""Where the rows of each observed class score, by what the other rows say of them, and the densities fitted to that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d

from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_array, as_floats, shown
from unflip.auditing.report import Audit
from unflip.model.classifier import LPClassifier
from unflip.plotting.display import Display, check_audit, checked_labels
from unflip.plotting.fitted import last_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 40
_SHOWN = (0.002, 0.998)  # quantiles of the log-odds between which is drawn
_HEADROOM = 1.4  # of the axis, for the legend
_LARGEST = 30.0  # log-odds; probabilities of 0 and 1 have infinite ones


class ScoreDistributionDisplay(Display):
    """Leave-one-out log-odds of two classes by observed label.

    No row's own label has a part in its log-odds. Lines are densities of two Gaussians with one
    variance, a component for each true class; dashed is the component of the rows whose label is
    wrong.

    Parameters
    ----------
    log_odds : array-like of shape (n,)
        Log-odds of the second class.
    codes : array-like of shape (n,)
        Observed class of each row, 0 or 1.
    posterior : array-like of shape (n, 2)
        P(true class | row, observed label).
    display_labels : array-like of shape (2,), optional
        Names of the classes.

    Attributes
    ----------
    means_, std_ : ndarray of shape (2,) and float
        Of the two Gaussians.
    shares_ : ndarray of shape (2, 2)
        Share of each true class (column) among the rows of each observed one.
    """

    def __init__(
        self,
        log_odds: ArrayLike,
        codes: ArrayLike,
        posterior: ArrayLike,
        *,
        display_labels: ArrayLike | None = None,
    ) -> None:
        self.log_odds = as_floats(log_odds, "log_odds")
        self.codes: IntArray = _checked_codes(codes)
        self.posterior = as_floats(posterior, "posterior")
        if self.posterior.shape != (len(self.codes), 2) or self.log_odds.shape != self.codes.shape:
            raise ValueError(
                f"{type(self).__name__} shows two classes, with a log-odds for each row: log_odds "
                f"has shape {self.log_odds.shape}, posterior {self.posterior.shape}, and there are "
                f"{len(self.codes)} labels."
            )
        self.display_labels = checked_labels(display_labels, 2)
        self.means_, self.std_ = _two_gaussians(self.log_odds, self.posterior)
        self.shares_ = np.array([self.posterior[self.codes == b].mean(axis=0) for b in (0, 1)])

    @classmethod
    def from_estimator(
        cls, estimator: LPClassifier | Pipeline, y: ArrayLike, *, ax: Axes | None = None
    ) -> Self:
        """Draw the training rows of a fitted classifier.

        Parameters
        ----------
        estimator : LPClassifier or Pipeline
            Fitted; a pipeline ends in an LPClassifier.
        y : array-like of shape (n,)
            The observed labels that it was fitted to.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        """
        fitted = last_step(estimator, LPClassifier)
        labels, classes = column_or_1d(y), fitted.classes_
        if labels.shape != fitted.label_posterior_.shape[:1]:
            raise ValueError(
                f"y has {len(labels)} labels but the estimator was fitted to "
                f"{len(fitted.label_posterior_)} rows: give the labels that it was fitted to."
            )
        _check_two(classes)
        codes = _codes(labels, classes)
        return cls(
            fitted.loo_log_odds_, codes, fitted.label_posterior_, display_labels=classes
        ).plot(ax)

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """Draw the rows of an audit."""
        check_audit(audit)
        _check_two(audit.classes)
        evidence = audit.evidence
        with np.errstate(divide="ignore"):  # clipped
            log_odds = np.clip(np.diff(np.log(evidence.probabilities))[:, 0], -_LARGEST, _LARGEST)
        return cls(
            log_odds, evidence.codes, audit.label_posterior, display_labels=audit.classes
        ).plot(ax)

    def density(self, grid: FloatArray, observed: int) -> tuple[FloatArray, FloatArray]:
        """Return the fitted density of an observed class, and the part of it whose label is wrong."""
        parts = self.shares_[observed][:, None] * norm.pdf(grid, self.means_[:, None], self.std_)
        return parts.sum(axis=0), parts[1 - observed]

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import INK, NEGATIVE, POSITIVE

        low, high = np.quantile(self.log_odds, _SHOWN)
        grid = np.linspace(low, high, 300)
        for b, colour in enumerate((NEGATIVE, POSITIVE)):
            inside = self.log_odds[
                (self.codes == b) & (self.log_odds >= low) & (self.log_odds <= high)
            ]
            name = str(self.display_labels[b])
            ax.hist(
                inside,
                bins=np.linspace(low, high, _BINS + 1).tolist(),
                density=True,
                color=colour,
                alpha=0.35,
            )
            fitted, wrong = self.density(grid, b)
            ax.plot(grid, fitted, color=colour, label=name)
            ax.plot(grid, wrong, color=colour, ls="--", label=f"{name}, wrong")
        ax.axvline(0, ymax=1 / _HEADROOM, color=INK, lw=0.8, ls=":")
        ax.set_xlabel(f"leave-one-out log-odds of {self.display_labels[1]}")
        ax.set_ylabel("density")
        ax.set_title("Scores by observed label: bars rows, lines fitted")
        ax.set_ylim(top=_HEADROOM * ax.get_ylim()[1])
        ax.legend(ncols=2, loc="upper center", title="observed label", title_fontsize="small")


def _two_gaussians(log_odds: FloatArray, posterior: FloatArray) -> tuple[FloatArray, float]:
    """Return means and common standard deviation, each row counted for a class as far as it belongs to it."""
    weights = posterior / np.maximum(posterior.sum(axis=0), np.finfo(float).tiny)
    means = log_odds @ weights
    variance = float((posterior * (log_odds[:, None] - means) ** 2).sum() / posterior.sum())
    return means, float(np.sqrt(variance))


def _checked_codes(codes: ArrayLike) -> IntArray:
    classes = as_array(codes, "codes")
    if classes.ndim != 1 or not np.isin(classes, (0, 1)).all() or len(np.unique(classes)) < 2:
        raise ValueError(
            f"codes = {shown(codes)} must hold the class of each row: 0 or 1, and both of them."
        )
    return classes.astype(np.intp)


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    for label in np.setdiff1d(labels, classes).tolist():
        raise ValueError(
            f"y holds the label {label!r}, which is not among the classes {classes.tolist()}."
        )
    return np.asarray(np.searchsorted(classes, labels))


def _check_two(classes: NDArray[Any]) -> None:
    if len(classes) != 2:
        raise ValueError(
            f"ScoreDistributionDisplay shows two classes; there are {len(classes)}: "
            f"{classes.tolist()}."
        )
