"""The paper's Gaussian mixtures with flipped labels, whose true rates are known."""

import numpy as np

from unflip import NoiseModel
from unflip.datasets import make_mixture

N, P, PI_NEG, EPS_NEG = 1000, 100, 1 / 3, 0.2
EPS_POS, MEAN_NORMS = np.arange(7) / 10, (1.0, 1.5, 2.0, 3.0)


def draw_mixture(eps_pos, mean_norm, seed):
    """Rows, true and observed labels of the paper's setting."""
    rng = np.random.default_rng(seed)
    X, y = make_mixture(N, P, mean_norm=mean_norm, priors=[PI_NEG, 1 - PI_NEG], random_state=rng)
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG)
    return X, y, noise.flip(y, random_state=rng), noise


def place(row):
    """Name a point of the grid."""
    return f"ε₊={row['eps_pos']:g} ‖μ‖={row['mean_norm']:g}" + (f" γ={row['reg']:g}" if "reg" in row else "")
