r"""Information of the observed labels about slope, intercepts and noise rates.

A label has the probability L = Σ_a P(a | s) T_{aỹ}, with P = softmax(τℓ + b) and noise rates ε that
T depends on. With the posterior Q ∝ P·T, the derivatives of log L are

.. math:: \frac{P_a}{L} \frac{\partial T_{a \tilde y}}{\partial \varepsilon_a}, \qquad
          (Q - P)^\top \tau\ell \;\text{ by } \log\tau, \qquad Q - P \;\text{ by } b.

The sum of their outer products over the rows estimates the Fisher information.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._utils.arrays import TINY, as_numpy, at_least, like, namespace, pick
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.intercepts import ClassProportions
from unflip.calibration.observations import Observations
from unflip.labels.noise import Channel

# Smallest likelihood of a label, so that squares of derivatives do not overflow.
_LEAST_LIKELIHOOD = 1e-100
#: Variance of a mean of leave-one-out scores, relative to that of independent scores. They are sums
#: over pairs of rows and each pair counts twice: the factor is 2 if label noise dominates, and at
#: most 4.
PAIR_VARIANCE = 2.0


@dataclass(frozen=True, eq=False)
class LabelInformation:
    """Means over the rows of log L, of its derivatives, and of their outer products.

    Attributes
    ----------
    log_likelihood : float
        Mean of log L.
    rate_gradient : ndarray of shape (k,)
        Its derivative by the noise rates.
    matrix : ndarray of shape (2k, 2k)
        Information on the k rates, log τ, and the intercepts but the first.
    posterior : array of shape (n, k)
        Q of each row.
    """

    log_likelihood: float
    rate_gradient: FloatArray
    matrix: FloatArray
    posterior: Array

    @classmethod
    def of(
        cls, probabilities: Array, scaled: Array, codes: Array, share: Array, noise: Channel
    ) -> LabelInformation:
        """Compute the means.

        Parameters
        ----------
        probabilities : array of shape (n, k)
            P(true class | score).
        scaled : array of shape (n, k)
            Their log-odds τℓ without intercepts.
        codes, share : array of shape (n,)
            Column of the transition of each row, and its share in the total weight.
        noise : Channel
            The noise.
        """
        xp = namespace(probabilities)
        joint = at_least(probabilities, TINY) * pick(noise.transition.T, codes)
        likelihoods = at_least(xp.sum(joint, axis=1, keepdims=True), _LEAST_LIKELIHOOD)
        by_rates = probabilities * pick(noise.rate_derivatives.T, codes) / likelihoods
        posterior = joint / likelihoods
        by_logits = posterior - probabilities
        by_slope = xp.sum(by_logits * scaled, axis=1, keepdims=True)
        derivatives = xp.concat([by_rates, by_slope, by_logits[:, 1:]], axis=1)
        weighted = derivatives * share[:, None]
        gradient = as_numpy(xp.sum(weighted, axis=0))[: noise.n_classes]
        mean_log = float(share @ xp.log(likelihoods[:, 0]))
        return cls(mean_log, gradient, as_numpy(weighted.T @ derivatives), posterior)

    def with_priors(self, n_effective: float) -> FloatArray:
        """Return the information of n_effective rows and of the priors of slope and intercepts."""
        total: FloatArray = n_effective * self.matrix
        k = len(self.rate_gradient)
        total[k, k] += 1  # the standard normal prior of log τ (`fit_slope`)
        # That of the intercepts (`ClassProportions.intercepts`).
        total[k + 1 :, k + 1 :] += (np.eye(k) - 1 / k)[1:, 1:]
        return total


def calibration_covariance(
    probabilities: Array,
    logits: Array,
    observations: Observations,
    noise: Channel,
    rate_covariance: FloatArray,
) -> FloatArray:
    """Return the covariance of log τ and of the centred intercepts, (k + 1, k + 1).

    Parameters are those of `joint_covariance`.
    """
    k = noise.n_classes
    return joint_covariance(probabilities, logits, observations, noise, rate_covariance)[k:, k:]


def joint_covariance(
    probabilities: Array,
    logits: Array,
    observations: Observations,
    noise: Channel,
    rate_covariance: FloatArray,
) -> FloatArray:
    r"""Return the covariance of noise rates, log τ and centred intercepts, (2k + 1, 2k + 1).

    If the noise rates ε have the covariance C, and slope and intercepts θ are fitted for given
    rates, θ moves by −J with the rates, and has the covariance

    .. math:: I_{\theta\theta}^{-1} + J C J^\top, \qquad
              J = I_{\theta\theta}^{-1} I_{\theta\varepsilon},

    with the information I of the labels. Known class priors fix the intercepts, up to the draw of
    the rows.

    Parameters
    ----------
    probabilities : array of shape (n, k)
        P(true class | score) under `noise`.
    logits : array of shape (n, k)
        Their log-odds without intercepts.
    observations : Observations
        Their observed labels.
    noise : Channel
        Noise with priors.
    rate_covariance : ndarray of shape (k, k)
        C, the covariance of the noise rates of the classes.
    """
    k = noise.n_classes
    codes = observations.codes
    share = observations.shares
    moved = np.zeros(k)  # the intercepts that known priors fix move with the slope
    if observations.priors_known:
        proportions = ClassProportions.of(codes, share, observations, noise)
        moved = proportions.intercepts_derivative(probabilities, logits, share)
    information = LabelInformation.of(
        probabilities, logits + like(moved, logits), codes, share, noise
    ).with_priors(observations.n_effective / PAIR_VARIANCE)
    fitted = slice(k, k + 1 if observations.priors_known else 2 * k)
    inverse = np.linalg.inv(information[fitted, fitted])
    n_fitted = len(inverse)
    # Columns: rates, then θ. Intercepts are centred, so that no class is special.
    basis = np.zeros((2 * k + 1, k + n_fitted))
    basis[:k, :k] = np.eye(k)
    basis[k, k] = 1
    basis[k + 1 :, k] = moved - moved.mean()
    basis[k + 1 :, k + 1 :] = (np.eye(k) - 1 / k)[:, 1:n_fitted]
    by_rates = basis[:, :k] - basis[:, k:] @ inverse @ information[fitted, :k]
    given_rates = basis[:, k:] @ inverse @ basis[:, k:].T
    return np.asarray(by_rates @ rate_covariance @ by_rates.T + given_rates)
