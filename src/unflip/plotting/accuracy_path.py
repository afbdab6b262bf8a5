"""Accuracy on clean labels along the penalty γ: of a fitted classifier's rows, or as the theory predicts it."""

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

_THEORY_REGS = np.logspace(-3, 3, 121)
_NAMED = ("naive", "unbiased", "optimized")


class AccuracyPathDisplay(Display):
    """Accuracy against γ, a line for each kind of targets.

    Parameters
    ----------
    regs : array-like of shape (m,)
        Penalties γ.
    accuracies : mapping of str to array-like of shape (m,)
        Accuracy along them, by name of the targets.
    errors : mapping of str to array-like of shape (m,), optional
        Standard errors.
    chosen_reg : float, optional
        Penalty to mark.
    limit : float, optional
        Best accuracy that there is, to mark.
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
        """Draw the accuracy to expect at other penalties, with its standard error, from leave-one-out scores.

        The classifier is fitted anew at each penalty.

        Parameters
        ----------
        estimator : LPClassifier or Pipeline
            Fitted; a pipeline ends in an LPClassifier, and its earlier steps are kept as they are.
        X, y
            The rows and observed labels that it was fitted to.
        regs : array-like, optional
            Penalties; by default some of those that ``reg="loo"`` tries, and the estimator's own.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        """
        fitted, rows = last_step(estimator, LPClassifier), rows_of_last_step(estimator, X)
        path = _worth_trying(rows, fitted.reg_) if regs is None else _checked_regs(regs)
        name = fitted.targets if isinstance(fitted.targets, str) else "LPC"
        found = np.array([_refitted(fitted, rows, y, float(reg)) for reg in path])
        display = cls(path, {name: found[:, 0]}, errors={name: found[:, 1]}, chosen_reg=fitted.reg_)
        return display.plot(ax)

    @classmethod
    def from_mixture(
        cls, mixture: theory.Mixture, *, fit_intercept: bool = False, ax: Axes | None = None
    ) -> Self:
        """Draw what the theory predicts for the paper's targets, and the best accuracy there is.

        Parameters
        ----------
        mixture : theory.Mixture
            Of one ‖μ‖ and one p/n.
        fit_intercept : bool
            As in `theory.predict`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        """
        check_mixture(mixture)
        if np.size(mixture.mean_norm) != 1 or np.size(mixture.aspect) != 1:
            raise ValueError("from_mixture draws one mixture: give one mean_norm and one aspect.")
        accuracies = {name: _predicted(mixture, name, fit_intercept) for name in _NAMED}
        accuracies["oracle"] = _predicted(mixture.clean, "naive", fit_intercept)
        return cls(_THEORY_REGS, accuracies, limit=float(mixture.bayes_accuracy)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        from unflip.plotting.style import COLOURS, FAINT, INK

        for name, accuracy in self.accuracies.items():
            few = len(self.regs) < len(_THEORY_REGS)
            ax.plot(self.regs, accuracy, color=COLOURS[name], label=name, marker="o" if few else "")
            if name in self.errors:
                error = self.errors[name]
                low, high = accuracy - error, accuracy + error
                ax.fill_between(
                    self.regs, low, high, color=COLOURS[name], alpha=0.15, lw=0, label="± 1 s.e."
                )
        if self.limit is not None:
            ax.axhline(self.limit, color=FAINT, ls=":", label="n → ∞")
        if self.chosen_reg:
            ax.axvline(
                self.chosen_reg, color=INK, lw=0.9, ls="--", label=f"γ = {self.chosen_reg:.3g}"
            )
        ax.set_xscale("log")
        ax.set_xlabel("penalty γ")
        ax.set_ylabel("accuracy on clean labels")
        ax.set_title("Accuracy along the penalty")
        ax.legend()


def _checked_regs(regs: ArrayLike) -> FloatArray:
    penalties = as_floats(regs, "regs")
    if penalties.ndim != 1 or not len(penalties):
        raise ValueError(f"regs = {shown(regs)} must be a list of penalties: give at least one.")
    return penalties


def _checked_lines(
    lines: Mapping[str, ArrayLike], name: str, regs: FloatArray
) -> dict[str, FloatArray]:
    check_kind(lines, Mapping, name, "give values along regs by the name of the targets")
    found = {key: as_floats(values, f"{name}[{key!r}]") for key, values in lines.items()}
    for key, values in found.items():
        if values.shape != regs.shape:
            raise ValueError(
                f"{name}[{key!r}] has shape {values.shape} and regs {regs.shape}: give as many of "
                "both."
            )
    return found


def _worth_trying(X: ArrayLike, chosen: float) -> FloatArray:
    """Return penalties over the range that leave-one-out tries, and the chosen one, which may lie beyond."""
    rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    regs = coarse_regs(decompose(rows))
    return np.union1d(regs, [chosen]) if chosen > 0 else regs


def _refitted(
    estimator: LPClassifier, X: ArrayLike, y: ArrayLike, reg: float
) -> tuple[float, float]:
    """Return the expected accuracy at another penalty, and its standard error."""
    other = clone(estimator).set_params(reg=reg)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said at the estimator's own fit
        other.fit(X, y)
    return other.expected_accuracy_, other.expected_accuracy_std_


def _predicted(mixture: theory.Mixture, targets: str, fit_intercept: bool) -> FloatArray:
    return theory.predict(
        mixture, targets=targets, reg=_THEORY_REGS, fit_intercept=fit_intercept
    ).accuracy
