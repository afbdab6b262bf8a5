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

from unflip._utils.arrays import TINY, as_numpy, at_least, namespace, pick
from unflip._utils.typing import Array, FloatArray
from unflip.labels.noise import Channel


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
        likelihoods = at_least(xp.sum(joint, axis=1, keepdims=True), TINY)
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
