"""The paper's Multi-LPC: its settings, and its rules with choices made on the test rows.

The paper's model has no intercept. Its rules are fitted without and with one.
"""

from functools import cache

import numpy as np
from sklearn.linear_model import Ridge

from peers import Outcome, timed
from unflip import NoiseModel, targets, theory

N = 2000
P = 200
#: By number of classes: class means on the first axis, transition matrix, class priors.
PAPER = {
    3: ([-2, 0, 2], [[0.7, 0.3, 0], [0, 0.6, 0.4], [0.5, 0, 0.5]], [0.3, 0.3, 0.4]),
    4: (
        [-6, -2, 2, 6],
        [[0.5, 0, 0.5, 0], [0, 0.7, 0, 0.3], [0, 0.4, 0.6, 0], [0.3, 0, 0, 0.7]],
        [0.3, 0.2, 0.3, 0.2],
    ),
}
GAMMAS = np.logspace(-4, 4, 9)
N_PAIRS = 5000
PAIRS_GAMMA = 1.0
THEORY_GAMMAS = (1.0, 10.0)
PAPER_NAIVE = "paper's naive"
PAPER_ORACLE = "paper's oracle"
PAPER_PAIRS = "best of 5000 (α, β)"
NO_INTERCEPT = ", no intercept"
WITH_INTERCEPT = ", with intercept"
PAPER_ROWS = tuple(
    name + end
    for name in (PAPER_NAIVE, PAPER_PAIRS, PAPER_ORACLE)
    for end in (NO_INTERCEPT, WITH_INTERCEPT)
)


def paper_setting(k):
    """Return the class means and the noise model for k = 3 or 4."""
    places, transition, priors = PAPER[k]
    return np.outer(places, np.eye(P)[0]), NoiseModel(transition, priors)


@cache
def best_pair(k, gamma):
    """Return (α, β) with the best predicted accuracy, for fits with an intercept."""
    means, noise = paper_setting(k)
    return theory.optimal_multi_lpc(means=means, n=N, noise=noise, reg=gamma, fit_intercept=True)


def paper_rules(draw):
    """Fit the paper's rules, without and with an intercept."""
    fits = []
    for end, fit_intercept in ((NO_INTERCEPT, False), (WITH_INTERCEPT, True)):
        fits += [
            best_gamma(PAPER_NAIVE + end, draw, draw.observed, fit_intercept),
            best_of_pairs(PAPER_PAIRS + end, draw, fit_intercept),
            best_gamma(PAPER_ORACLE + end, draw, draw.y, fit_intercept),
        ]
    return fits


def best_gamma(method, draw, labels, fit_intercept):
    """Fit ridge regression on one-hot labels, with the γ that is best on the test rows."""
    candidates, seconds = timed(
        lambda: [one_hot_scores(draw, labels, gamma, fit_intercept) for gamma in GAMMAS]
    )
    return Outcome(
        method,
        max(candidates, key=lambda scores: (scores.argmax(axis=1) == draw.y_test).mean()),
        seconds,
    )


def one_hot_scores(draw, labels, gamma, fit_intercept):
    """Return scores of the test rows by ridge regression on one-hot labels."""
    k = draw.noise.n_classes
    ridge = Ridge(alpha=len(labels) * gamma, fit_intercept=fit_intercept).fit(
        draw.X, np.eye(k)[labels]
    )
    return ridge.predict(draw.X_test)


def best_of_pairs(method, draw, fit_intercept):
    """Return the pair (α, β) that is best on the test rows, of random pairs and the naive one."""
    k = draw.noise.n_classes
    rng = np.random.default_rng((15, k))
    pairs = np.vstack([np.repeat([1.0, 0.0], k), rng.uniform(-2, 2, size=(N_PAIRS - 1, 2 * k))])
    scores = one_hot_scores(draw, draw.observed, PAIRS_GAMMA, fit_intercept)
    best, seconds = timed(
        lambda: max(pairs, key=lambda pair: (of_pair(scores, pair) == draw.y_test).mean())
    )
    return Outcome(method, scores @ targets.multi_lpc(*np.split(best, 2)), seconds)


def of_pair(scores, pair):
    """Return the classes that a pair (α, β) predicts from one-hot scores."""
    return (scores @ targets.multi_lpc(*np.split(pair, 2))).argmax(axis=1)
