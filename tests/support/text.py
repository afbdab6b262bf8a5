"""Sparse rows that look like counted words."""

import numpy as np
from scipy import sparse


def draw_texts(n_rows, n_words, length, seed=0, tilt=0.3):
    """Word frequencies by Zipf's law, a little different in two classes; rows of about unit length,
    and the classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(2, size=n_rows)
    lengths = 3 + rng.poisson(length * rng.lognormal(0, 0.5, size=n_rows))
    words = np.empty(lengths.sum(), dtype=int)
    lean = tilt * rng.normal(size=n_words)
    for a in (0, 1):
        shares = np.exp((2 * a - 1) * lean) / (10.0 + np.arange(n_words))
        chosen = np.repeat(classes == a, lengths)
        words[chosen] = rng.choice(n_words, size=chosen.sum(), p=shares / shares.sum())
    owners = np.repeat(np.arange(n_rows), lengths)
    X = sparse.coo_array((np.ones(len(words)), (owners, words)), shape=(n_rows, n_words)).tocsr()
    X.data = np.log1p(X.data)
    return sparse.csr_array(X / np.sqrt(length)), classes
