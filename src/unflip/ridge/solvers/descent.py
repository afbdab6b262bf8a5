"""Gradient descent from zero, for fits with early stopping."""

from __future__ import annotations

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.losses import Loss


def gradient_descent(
    X: FloatArray,
    targets: FloatArray,
    loss: Loss,
    *,
    step: float | FloatArray,
    n_steps: int,
    reg: float = 0.0,
) -> FloatArray:
    r"""Minimise a ridge-regularized loss by gradient steps from zero, without an intercept.

    .. math:: W \leftarrow W - \eta \nabla F(W), \qquad
              F(W) = \frac1n \sum_i \ell_{t_i}(W^\top x_i) + \gamma \lVert W \rVert^2

    Parameters
    ----------
    X : ndarray of shape (m, p)
        Rows.
    targets : ndarray of shape (m,) or (m, r)
        Targets of the rows; every column is a fit of its own.
    loss : Loss
        The loss ℓ of clean labels.
    step : float or ndarray of shape (r,)
        Step size η, or one for each column.
    n_steps : int
        Number of steps.
    reg : float
        Regularization strength γ.

    Returns
    -------
    ndarray of shape (p, r)
        Coefficients after the last step.

    Examples
    --------
    >>> from unflip.losses import SQUARED
    >>> X = np.array([[1.0], [2.0]])
    >>> gradient_descent(X, np.array([1.0, 2.0]), SQUARED, step=0.1, n_steps=1)
    array([[0.5]])
    """
    row_loss = loss.of_targets(targets[:, None] if targets.ndim == 1 else targets)
    coef = np.zeros((X.shape[1], row_loss.n_scores))
    for _ in range(n_steps):
        coef = coef - step * (X.T @ row_loss.gradient(X @ coef) / len(X) + 2 * reg * coef)
    return coef
