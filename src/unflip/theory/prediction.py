"""Predicted accuracy in the isotropic mixture, for the squared loss and other convex losses."""

from __future__ import annotations

from numpy.typing import ArrayLike

from unflip._utils.validation import as_flag
from unflip.losses import SQUARED, Loss, resolve
from unflip.theory.convex import predict_convex
from unflip.theory.isotropic import predict_squared
from unflip.theory.model import Mixture, Prediction, check_mixture


def predict(
    mixture: Mixture,
    *,
    targets: str | ArrayLike = "optimized",
    reg: ArrayLike,
    loss: str | Loss = "squared",
    fit_intercept: bool = False,
) -> Prediction:
    """Predict the scores, accuracy and risk of the classifier on clean labels.

    Parameters
    ----------
    mixture : Mixture
        ‖μ‖, η and the noise model; ‖μ‖ and η may be arrays.
    targets : {"naive", "unbiased", "optimized"} or (t_neg, t_pos)
        Regression targets of the two observed classes. For other losses they set the weights of
        the losses of the two labels (`unflip.losses.TargetLoss`).
    reg : array-like
        Regularization strength γ; broadcasts against the mixture. With the squared loss ``np.inf``
        gives the limit γ → ∞, where the scores vanish but their separation does not.
    loss : {"squared", "logistic"} or Loss
        Loss that the classifier minimises. A custom loss needs its first two derivatives
        (`unflip.losses.Loss`).
    fit_intercept : bool
        If False, the origin is the midpoint of the class means, as in the paper.

    Returns
    -------
    Prediction

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> mixture = Mixture(mean_norm=2.0, aspect=1.0, noise=noise)
    >>> for name in ("naive", "unbiased", "optimized"):
    ...     print(name, predict(mixture, targets=name, reg=10.0).accuracy.round(3))
    naive 0.768
    unbiased 0.795
    optimized 0.883
    """
    check_mixture(mixture)
    intercept = as_flag(fit_intercept, "fit_intercept")
    resolved = resolve(loss)
    if resolved is SQUARED:
        return predict_squared(mixture, targets=targets, reg=reg, fit_intercept=intercept)
    return predict_convex(mixture, targets=targets, reg=reg, loss=resolved, fit_intercept=intercept)
