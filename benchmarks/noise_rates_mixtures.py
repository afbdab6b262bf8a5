"""The paper's Gaussian mixtures with simulated label noise."""

import numpy as np

from unflip import NoiseModel
from unflip.datasets import make_mixture

N = 1000
P = 100
PI_NEG = 1 / 3
EPS_NEG = 0.2
EPS_POS = np.arange(7) / 10
MEAN_NORMS = (1.0, 1.5, 2.0, 3.0)


def draw_mixture(eps_pos, mean_norm, seed):
    """Return rows, true labels, observed labels and noise model of the paper's setting."""
    rng = np.random.default_rng(seed)
    X, y = make_mixture(N, P, mean_norm=mean_norm, priors=[PI_NEG, 1 - PI_NEG], random_state=rng)
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG)
    return X, y, noise.flip(y, random_state=rng), noise


def place(row):
    """Return the name of a grid point."""
    return f"ε₊={row['eps_pos']:g} ‖μ‖={row['mean_norm']:g}" + (
        f" γ={row['reg']:g}" if "reg" in row else ""
    )
