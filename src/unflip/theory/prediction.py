"""What accuracy to expect in the isotropic mixture: one door for every loss."""

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
        ‖μ‖, η and the noise; ‖μ‖ and η may be arrays.
    targets : {"naive", "unbiased", "optimized"} or (t_neg, t_pos)
        What the observed classes are regressed on; for other losses, how they weigh the loss of
        either label.
    reg : array-like
        γ; broadcasts against the mixture. With the squared loss ``np.inf`` gives the limit γ → ∞,
        where the scores vanish but their separation does not.
    loss : {"squared", "logistic"} or Loss
        The loss that the classifier minimises; your own needs its first two derivatives
        (`unflip.losses.Loss`).
    fit_intercept : bool
        False is the paper's model: the origin is the midpoint of the class means.

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
    intercept, resolved = as_flag(fit_intercept, "fit_intercept"), resolve(loss)
    if resolved is SQUARED:
        return predict_squared(mixture, targets=targets, reg=reg, fit_intercept=intercept)
    return predict_convex(mixture, targets=targets, reg=reg, loss=resolved, fit_intercept=intercept)
