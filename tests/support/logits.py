"""Logits with noisy labels, and intercepts by their definition."""

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import softmax

from unflip import NoiseModel

TWO = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.35)
THREE = NoiseModel(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.2, 0.3, 0.5])
BOTH = pytest.mark.parametrize("noise", [TWO, THREE], ids=["two classes", "three classes"])


def draw(noise, n=80, factor=1.0):
    """Return logits that are `factor` times too small, labels, and unequal shares of the rows."""
    rng = np.random.default_rng(0)
    logits = 2.5 * rng.normal(size=(n, noise.n_classes))
    drawn = softmax(
        logits + intercepts_by_definition(logits, np.full(n, 1 / n), noise.priors), axis=1
    )
    y = (drawn.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    share = rng.random(n)
    return logits / factor, noise.flip(y, random_state=0), share / share.sum()


def intercepts_by_definition(logits, share, priors, n_rows=np.inf):
    """Return intercepts that make the mean probabilities the regularized priors; the first is 0."""

    def missing(intercepts):
        whole = np.append(0.0, intercepts)
        apart = whole - np.log(priors)
        mean = share @ softmax(logits + whole, axis=1)
        return (mean - priors + (apart - apart.mean()) / n_rows)[1:]

    return np.append(0.0, root(missing, np.zeros(len(priors) - 1), tol=1e-12).x)
