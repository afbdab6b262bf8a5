"""The multi-class settings of the paper's appendix."""

import numpy as np

from unflip import NoiseModel

_SETTINGS = {
    3: ([-2, 0, 2], [[0, 0.3, 0], [0, 0, 0.4], [0.5, 0, 0]], [0.3, 0.3, 0.4]),
    4: (
        [-6, -2, 2, 6],
        [[0, 0, 0.5, 0], [0, 0, 0, 0.3], [0, 0.4, 0, 0], [0.3, 0, 0, 0]],
        [0.3, 0.2, 0.3, 0.2],
    ),
}


def paper_setting(n_classes, n_features=200):
    """Return the class means and the noise model for k = 3 or 4; row = true class (see
    docs/errata.md)."""
    positions, flips, priors = (np.array(part, dtype=float) for part in _SETTINGS[n_classes])
    noise = NoiseModel(flips + np.diag(1 - flips.sum(axis=1)), priors)
    return np.outer(positions, np.eye(n_features)[0]), noise
