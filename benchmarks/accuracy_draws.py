"""Data for accuracy.py: reviews, annotators' votes, breast cancer and digits."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from draws import Draw, all_rows, realised, review_draws, split_rows
from unflip import NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_sentiment_votes

# Noise rates (ε₊, ε₋) of the reviews, and symmetric noise rates of scikit-learn's data sets.
LEVELS = ((0.2, 0.1), (0.3, 0.3), (0.4, 0.1), (0.4, 0.3))
SYMMETRIC = (0.0, 0.1, 0.2)
NEGATIVES = 0.3  # share of negative rows in the imbalanced reviews


def amazon_draws(splits, quick):
    """Amazon reviews, 1600 training rows."""
    yield from named_reviews(splits, quick, 1, all_rows)


def imbalanced_draws(splits, quick):
    """Amazon reviews with 30% negatives, four fifths for training."""
    yield from named_reviews(splits, quick, 2, fewer_negatives)


def fewer_negatives(y, rng):
    """Keep all positive rows, and so many negative rows that they are 30% of the kept ones."""
    positives = np.flatnonzero(y == 1)
    negatives = np.flatnonzero(y == 0)
    n_kept = round(len(positives) * NEGATIVES / (1 - NEGATIVES))
    return np.concatenate([positives, rng.permutation(negatives)[:n_kept]])


def named_reviews(splits, quick, seed, choose):
    """Yield each domain at each pair of noise rates, with its key."""
    domains = AMAZON_DOMAINS[: 2 if quick else None]
    for domain, split, draw, _ in review_draws(domains, LEVELS, splits, seed, choose=choose):
        yield (domain, f"{draw.noise.eps_pos:g}/{draw.noise.eps_neg:g}", split), draw


def vote_draws(splits, quick):
    """Film reviews labelled by annotators: all training rows, realised noise rates."""
    crowd = load_sentiment_votes()
    scaler = StandardScaler().fit(crowd.X_train)
    X = scaler.transform(crowd.X_train)
    X_test = scaler.transform(crowd.X_test)
    named = [("least accurate annotator", 0, crowd.worst_votes())]
    named += [
        ("random vote", s, crowd.random_votes(np.random.default_rng((3, s)))) for s in range(splits)
    ]
    for name, split, votes in named:
        noise = realised(crowd.y_train, votes)
        level = f"{noise.eps_pos:.2f}/{noise.eps_neg:.2f}" if name != "random vote" else "realised"
        yield (name, level, split), Draw(X, crowd.y_train, votes, X_test, crowd.y_test, noise)


def sklearn_draws(splits, quick):
    """Breast cancer and digits with symmetric noise, 70% for training."""
    cancer = load_breast_cancer()
    digits = load_digits()
    pair = np.isin(digits.target, (3, 8))
    sets = {
        "cancer": (cancer.data, cancer.target),
        "digits odd": (digits.data, digits.target % 2),
        "digits 3/8": (digits.data[pair], (digits.target[pair] == 8).astype(int)),
    }
    for d, (name, (X, y)) in enumerate(sets.items()):
        for r, eps in enumerate(SYMMETRIC):
            for split in range(splits):
                rng = np.random.default_rng((4, d, r, split))
                noise = NoiseModel.binary(eps_pos=eps, eps_neg=eps)
                yield (name, f"{eps:g}", split), split_rows(X, y, int(0.7 * len(y)), noise, rng)
