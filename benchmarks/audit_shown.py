"""Time to print an audit, and to write its page, relative to the audit itself.

Rows are simulated, the digits are those of scikit-learn; 20% of the labels are redrawn. An audit is
printed, then written as a page, each for the first time. The templates of the page are compiled
before, as in all but the first audit of a process. Medians of processor time; PASS or MISS at 25%.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

from unflip import audit

SHARE_REDRAWN = 0.2
WORDS_PER_TEXT = 60
LIMIT = 0.25  # of the time of the audit
N_REPEATS = 5


def mixture(n, p, k, mean_norm):
    """Return rows of Gaussian classes, and their classes."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(k, p))
    means *= mean_norm / np.linalg.norm(means, axis=1, keepdims=True)
    y = rng.integers(k, size=n)
    return means[y] + rng.normal(size=(n, p)), y


def texts(n, p, k):
    """Return TF-IDF features of texts, with word frequencies that fall like 1/rank."""
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    words = np.empty((n, WORDS_PER_TEXT), dtype=int)
    for each in range(k):
        frequency = np.exp(0.7 * rng.normal(size=p)) / np.arange(1, p + 1)
        shape = (int((y == each).sum()), WORDS_PER_TEXT)
        words[y == each] = rng.choice(p, size=shape, p=frequency / frequency.sum())
    rows = np.repeat(np.arange(n), WORDS_PER_TEXT)
    counts = csr_matrix((np.ones(words.size), (rows, words.ravel())), shape=(n, p))
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts), y


def digits():
    """Return the scaled pixels of the digits, and the digits."""
    pixels, y = load_digits(return_X_y=True)
    return StandardScaler().fit_transform(pixels), y


SETS = {
    "800 × 50, 2 classes": lambda: mixture(800, 50, 2, 2.0),
    "5000 × 500, 2 classes": lambda: mixture(5000, 500, 2, 2.0),
    "digits, 1797 × 64, 10 classes": digits,
    "3000 × 200, 8 classes": lambda: mixture(3000, 200, 8, 4.0),
    "5000 × 200, 50 classes": lambda: mixture(5000, 200, 50, 6.0),
    "texts, 2000 × 30,000, 2 classes": lambda: texts(2000, 30_000, 2),
    "texts, 2000 × 30,000, 8 classes": lambda: texts(2000, 30_000, 8),
}


def redrawn(y):
    """Return labels of which a share is drawn again at random."""
    rng = np.random.default_rng(1)
    return np.where(rng.random(len(y)) < SHARE_REDRAWN, rng.permutation(y), y)


def seconds_of(X, labels, path):
    """Return the seconds of an audit, of its print and of its page."""
    clock = [time.process_time()]
    report = audit(X, labels)
    clock.append(time.process_time())
    str(report)
    clock.append(time.process_time())
    report.to_html(path)
    clock.append(time.process_time())
    return np.diff(clock)


def main():
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore", UserWarning)  # uncertain rates warn
    print(f"{'':34}{'audit, s':>9}{'print':>8}{'page':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, draw in SETS.items():
            X, y = draw()
            labels = redrawn(y)
            path = Path(folder) / "page.html"
            seconds_of(X, labels, path)
            times = np.median([seconds_of(X, labels, path) for _ in range(N_REPEATS)], axis=0)
            shares = times[1:] / times[0]
            verdict = "PASS" if shares.sum() <= LIMIT else "MISS"
            print(f"{name:34}{times[0]:9.3f}{shares[0]:8.0%}{shares[1]:8.0%}  {verdict}")


if __name__ == "__main__":
    main()
