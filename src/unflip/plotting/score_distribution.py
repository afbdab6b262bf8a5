"""Plot of the leave-one-out log-odds by observed label, with the fitted densities."""

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

_HEADROOM = 1.4  # factor by which the y axis is extended for the legend


class ScoreDistributionDisplay(Display):
    """Leave-one-out log-odds of two classes by observed label.

    The log-odds are corrected for leakage of the row's own label. Solid lines are fitted mixtures
    of two Gaussians with a common variance, one per true class. Dashed lines are the component of
    the wrong labels.

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
        Means and standard deviation of the two Gaussians.
    shares_ : ndarray of shape (2, 2)
        Fraction of each true class (column) among the rows of each observed class.

    Examples
    --------
    >>> from unflip import LPClassifier, NoiseModel
    >>> from unflip.datasets import make_mixture
    >>> from unflip.plotting import ScoreDistributionDisplay
    >>> X, y = make_mixture(400, 20, random_state=0)
    >>> observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    >>> clf = LPClassifier().fit(X, observed)
    >>> display = ScoreDistributionDisplay.from_estimator(clf, observed)
    >>> display.ax_.get_xlabel()
    'leave-one-out log-odds of 1'
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
                f"{type(self).__name__} shows two classes, with one log-odds per row: log_odds "
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
        """Plot the training rows of a fitted classifier.

        Parameters
        ----------
        estimator : LPClassifier or Pipeline
            Fitted estimator; a pipeline must end in an LPClassifier.
        y : array-like of shape (n,)
            The observed labels of the fit.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        """
        fitted = last_step(estimator, LPClassifier)
        labels = column_or_1d(y)
        classes = fitted.classes_
        if labels.shape != fitted.label_posterior_.shape[:1]:
            raise ValueError(
                f"y has {len(labels)} labels but the estimator was fitted to "
                f"{len(fitted.label_posterior_)} rows: give the labels of the fit."
            )
        _check_two(classes)
        codes = _codes(labels, classes)
        return cls(
            fitted.loo_log_odds_, codes, fitted.label_posterior_, display_labels=classes
        ).plot(ax)

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None) -> Self:
        """Plot the rows of an audit."""
        check_audit(audit)
        _check_two(audit.classes)
        evidence = audit.evidence.counted
        # Probabilities of 0 and 1 have infinite log-odds: clip them.
        with np.errstate(divide="ignore"):
            log_odds = np.clip(np.diff(np.log(evidence.probabilities))[:, 0], -30.0, 30.0)
        return cls(
            log_odds, evidence.codes, evidence.label_posterior, display_labels=audit.classes
        ).plot(ax)

    def density(self, grid: FloatArray, observed: int) -> tuple[FloatArray, FloatArray]:
        """Return the fitted density of an observed class, and its part of wrong labels."""
        parts = self.shares_[observed][:, None] * norm.pdf(grid, self.means_[:, None], self.std_)
        return parts.sum(axis=0), parts[1 - observed]

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import INK, NEGATIVE, POSITIVE

        low, high = np.quantile(self.log_odds, (0.002, 0.998))  # without outliers
        grid = np.linspace(low, high, 300)
        bins = np.linspace(low, high, 41).tolist()
        inside = (self.log_odds >= low) & (self.log_odds <= high)
        for b, colour in enumerate((NEGATIVE, POSITIVE)):
            log_odds = self.log_odds[(self.codes == b) & inside]
            name = str(self.display_labels[b])
            ax.hist(log_odds, bins=bins, density=True, color=colour, alpha=0.35)
            fitted, wrong = self.density(grid, b)
            ax.plot(grid, fitted, color=colour, label=name)
            ax.plot(grid, wrong, color=colour, ls="--", label=f"{name}, wrong")
        ax.axvline(0, ymax=1 / _HEADROOM, color=INK, lw=0.8, ls=":")
        ax.set_xlabel(f"leave-one-out log-odds of {self.display_labels[1]}")
        ax.set_ylabel("density")
        ax.set_title("Scores by observed label: rows (bars), fit (lines)")
        ax.set_ylim(top=_HEADROOM * ax.get_ylim()[1])
        ax.legend(ncols=2, loc="upper center", title="observed label", title_fontsize="small")


def _two_gaussians(log_odds: FloatArray, posterior: FloatArray) -> tuple[FloatArray, float]:
    """Return means and common standard deviation of the classes, weighted by the posterior."""
    weights = posterior / np.maximum(posterior.sum(axis=0), np.finfo(float).tiny)
    means = log_odds @ weights
    variance = float((posterior * (log_odds[:, None] - means) ** 2).sum() / posterior.sum())
    return means, float(np.sqrt(variance))


def _checked_codes(codes: ArrayLike) -> IntArray:
    classes = as_array(codes, "codes")
    if classes.ndim != 1 or not np.isin(classes, (0, 1)).all() or len(np.unique(classes)) < 2:
        raise ValueError(
            f"codes = {shown(codes)} must hold the class of each row: give 0 and 1, each at least "
            "once."
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
