"""Data for the benchmarks: random splits, noisy labels, realised noise rates, trusted labels."""

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler

from unflip import NoiseModel
from unflip.datasets import load_amazon_reviews


@dataclass(frozen=True)
class Draw:
    """Training rows with true and observed labels, test rows with true labels, noise model."""

    X: np.ndarray
    y: np.ndarray
    observed: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    noise: object

    @property
    def priors(self):
        """Proportions of the true classes among the training rows."""
        return np.bincount(self.y) / len(self.y)


def split_rows(X, y, n_train, noise, rng, standardise=True):
    """Split at random, standardise by the training rows, add label noise to them."""
    order = rng.permutation(len(y))
    train = order[:n_train]
    test = order[n_train:]
    scaler = StandardScaler(with_mean=standardise, with_std=standardise).fit(X[train])
    observed = noise.flip(y[train], random_state=rng)
    return Draw(
        scaler.transform(X[train]), y[train], observed, scaler.transform(X[test]), y[test], noise
    )


def all_rows(y, rng):
    """Keep every row."""
    return np.arange(len(y))


def review_draws(domains, rates, n_draws, seed, n_train=None, choose=all_rows):
    """Yield draws of Amazon reviews, for each domain and each pair of noise rates.

    Four fifths of the rows are for training, unless ``n_train`` is set. ``choose`` returns the rows
    of a domain to keep. Yields the domain, the number of the draw, the draw, and its random
    generator.
    """
    for d, domain in enumerate(domains):
        X, y = load_amazon_reviews(domain)
        for r, (eps_pos, eps_neg) in enumerate(rates):
            noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
            for number in range(n_draws):
                rng = np.random.default_rng((seed, d, r, number))
                kept = choose(y, rng)
                size = n_train or int(0.8 * len(kept))
                yield domain, number, split_rows(X[kept], y[kept], size, noise, rng), rng


def flipped_shares(y, observed, n_classes=2):
    """Count with the true labels: share of each observed label, by true class, (k, k)."""
    return np.array(
        [
            np.bincount(observed[y == a], minlength=n_classes) / (y == a).sum()
            for a in range(n_classes)
        ]
    )


def realised(y, observed):
    """Return the noise model with the realised noise rates."""
    return NoiseModel(flipped_shares(y, observed, y.max() + 1))


def trusted_labels(y, n_trusted, rng):
    """Return the true labels of random rows, NaN for the others."""
    y_trusted = np.full(len(y), np.nan)
    chosen = rng.choice(len(y), n_trusted, replace=False)
    y_trusted[chosen] = y[chosen]
    return y_trusted
