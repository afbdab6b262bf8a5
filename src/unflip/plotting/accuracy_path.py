"""Plot of the accuracy on clean labels against the regularization strength γ."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from unflip import theory
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_floats, as_number, check_kind, shown
from unflip.model.classifier import LPClassifier
from unflip.plotting.display import Display
from unflip.plotting.fitted import last_step, rows_of_last_step
from unflip.ridge.selection import coarse_regs
from unflip.ridge.spectrum.decomposition import decompose
from unflip.theory.model import check_mixture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THEORY_REGS = np.logspace(-3, 3, 121)  # γ of `from_mixture`


class AccuracyPathDisplay(Display):
    """Accuracy against γ, one line per kind of targets.

    Parameters
    ----------
    regs : array-like of shape (m,)
        Regularization strengths γ.
    accuracies : mapping of str to array-like of shape (m,)
        Accuracy at each γ, by name of the targets.
    errors : mapping of str to array-like of shape (m,), optional
        Standard errors.
    chosen_reg : float, optional
        γ to mark.
    limit : float, optional
        Accuracy of the Bayes classifier, to mark.

    Examples
    --------
    >>> from unflip import NoiseModel, theory
    >>> from unflip.plotting import AccuracyPathDisplay
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> mixture = theory.Mixture(mean_norm=2.0, aspect=1.0, noise=noise)
    >>> display = AccuracyPathDisplay.from_mixture(mixture)
    >>> display.ax_.get_ylabel()
    'accuracy on clean labels'
    """

    def __init__(
        self,
        regs: ArrayLike,
        accuracies: Mapping[str, ArrayLike],
        *,
        errors: Mapping[str, ArrayLike] | None = None,
        chosen_reg: float | None = None,
        limit: float | None = None,
    ) -> None:
        self.regs = _checked_regs(regs)
        self.accuracies = _checked_lines(accuracies, "accuracies", self.regs)
        self.errors = {} if errors is None else _checked_lines(errors, "errors", self.regs)
        self.chosen_reg = None if chosen_reg is None else as_number(chosen_reg, "chosen_reg")
        self.limit = None if limit is None else as_number(limit, "limit")

    @classmethod
    def from_estimator(
        cls,
        estimator: LPClassifier | Pipeline,
        X: ArrayLike,
        y: ArrayLike,
        *,
        regs: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the expected accuracy and its standard error at several regularization strengths.

        The classifier is refitted at each γ. The accuracy is estimated from leave-one-out scores.

        Parameters
        ----------
        estimator : LPClassifier or Pipeline
            Fitted estimator. A pipeline must end in an LPClassifier; its earlier steps are not
            refitted.
        X, y
            The rows and observed labels of the fit.
        regs : array-like, optional
            Regularization strengths; by default a coarse grid over the range that ``reg="loo"``
            searches, and the estimator's own γ.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        """
        fitted = last_step(estimator, LPClassifier)
        rows = rows_of_last_step(estimator, X)
        path = _default_regs(rows, fitted.reg_) if regs is None else _checked_regs(regs)
        name = fitted.targets if isinstance(fitted.targets, str) else "LPC"
        accuracies, errors = np.transpose([_refitted(fitted, rows, y, float(reg)) for reg in path])
        display = cls(path, {name: accuracies}, errors={name: errors}, chosen_reg=fitted.reg_)
        return display.plot(ax)

    @classmethod
    def from_mixture(
        cls, mixture: theory.Mixture, *, fit_intercept: bool = False, ax: Axes | None = None
    ) -> Self:
        """Plot the predicted accuracy of the paper's targets, and the Bayes accuracy.

        Parameters
        ----------
        mixture : theory.Mixture
            Mixture with one ‖μ‖ and one p/n.
        fit_intercept : bool
            As in `theory.predict`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        """
        check_mixture(mixture)
        if np.size(mixture.mean_norm) != 1 or np.size(mixture.aspect) != 1:
            raise ValueError("from_mixture draws one mixture: give one mean_norm and one aspect.")
        accuracies = {
            name: _predicted(mixture, name, fit_intercept)
            for name in ("naive", "unbiased", "optimized")
        }
        accuracies["oracle"] = _predicted(mixture.clean, "naive", fit_intercept)
        return cls(_THEORY_REGS, accuracies, limit=float(mixture.bayes_accuracy)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import COLOURS, FAINT, INK

        marker = "o" if len(self.regs) < len(_THEORY_REGS) else ""
        for name, accuracy in self.accuracies.items():
            ax.plot(self.regs, accuracy, color=COLOURS[name], label=name, marker=marker)
            if name in self.errors:
                error = self.errors[name]
                ax.fill_between(
                    self.regs,
                    accuracy - error,
                    accuracy + error,
                    color=COLOURS[name],
                    alpha=0.15,
                    lw=0,
                    label="± 1 s.e.",
                )
        if self.limit is not None:
            ax.axhline(self.limit, color=FAINT, ls=":", label="n → ∞")
        if self.chosen_reg:
            ax.axvline(
                self.chosen_reg, color=INK, lw=0.9, ls="--", label=f"γ = {self.chosen_reg:.3g}"
            )
        ax.set_xscale("log")
        ax.set_xlabel("regularization strength γ")
        ax.set_ylabel("accuracy on clean labels")
        ax.set_title("Accuracy against regularization strength")
        ax.legend()


def _checked_regs(regs: ArrayLike) -> FloatArray:
    values = as_floats(regs, "regs")
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"regs = {shown(regs)} must be a list of regularization strengths: give at least one."
        )
    return values


def _checked_lines(
    lines: Mapping[str, ArrayLike], name: str, regs: FloatArray
) -> dict[str, FloatArray]:
    check_kind(lines, Mapping, name, "give values along regs by the name of the targets")
    arrays = {key: as_floats(values, f"{name}[{key!r}]") for key, values in lines.items()}
    for key, values in arrays.items():
        if values.shape != regs.shape:
            raise ValueError(
                f"{name}[{key!r}] has shape {values.shape} and regs {regs.shape}: give equal "
                "shapes."
            )
    return arrays


def _default_regs(X: ArrayLike, chosen: float) -> FloatArray:
    """Return a grid over the range that leave-one-out searches, and the chosen γ."""
    rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    regs = coarse_regs(decompose(rows))
    return np.union1d(regs, [chosen]) if chosen > 0 else regs


def _refitted(
    estimator: LPClassifier, X: ArrayLike, y: ArrayLike, reg: float
) -> tuple[float, float]:
    """Return the expected accuracy at another γ, and its standard error."""
    refitted = clone(estimator).set_params(reg=reg)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # already shown by the estimator's own fit
        refitted.fit(X, y)
    return refitted.expected_accuracy_, refitted.expected_accuracy_std_


def _predicted(mixture: theory.Mixture, targets: str, fit_intercept: bool) -> FloatArray:
    return theory.predict(
        mixture, targets=targets, reg=_THEORY_REGS, fit_intercept=fit_intercept
    ).accuracy
