"""Data with more than two classes, each with the methods to fit."""

from functools import partial

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine

from draws import Draw, realised, split_rows, trusted_labels
from several_classes_fits import N_TRUSTED, classic_outcomes, paper_outcomes, scene_outcomes
from several_classes_paper import PAPER, N, P, paper_setting
from unflip import NoiseModel
from unflip.datasets import load_scene_votes, make_mixture

N_TEST = 4000
EPS = 0.3  # noise rate of iris, wine and digits


def paper_draws(n_draws, quick):
    """Gaussian classes with the means, label noise and class priors of the paper's appendix."""
    for k in PAPER:
        means, noise = paper_setting(k)
        for seed in range(n_draws):
            rng = np.random.default_rng((11, k, seed))
            X, y = make_mixture(N, P, means=means, priors=noise.priors, random_state=rng)
            X_test, y_test = make_mixture(
                N_TEST, P, means=means, priors=noise.priors, random_state=rng
            )
            draw = Draw(X, y, noise.flip(y, rng), X_test, y_test, noise)
            yield (f"{k} classes", "paper", seed), draw, paper_outcomes


def scene_draws(n_draws, quick):
    """Photographs of eight kinds of scenes, each with one random vote of an annotator."""
    crowd = load_scene_votes()
    X = np.sqrt(crowd.X_train)
    X_test = np.sqrt(crowd.X_test)
    for seed in range(n_draws):
        votes = crowd.random_votes(np.random.default_rng((12, seed)))
        draw = Draw(X, crowd.y_train, votes, X_test, crowd.y_test, realised(crowd.y_train, votes))
        y_trusted = trusted_labels(draw.y, N_TRUSTED, np.random.default_rng((13, seed)))
        yield ("scenes", "votes", seed), draw, partial(scene_outcomes, y_trusted=y_trusted)


def classic_draws(n_draws, quick):
    """Iris, wine and digits, half for training, 30% of the labels moved to any other class."""
    sets = {"iris": load_iris(), "wine": load_wine(), "digits": load_digits()}
    for d, (name, data) in enumerate(sets.items()):
        k = len(data.target_names)
        noise = NoiseModel((1 - EPS) * np.eye(k) + EPS / (k - 1) * (1 - np.eye(k)))
        X = data.data / 16 if name == "digits" else data.data
        for seed in range(n_draws):
            rng = np.random.default_rng((14, d, seed))
            draw = split_rows(X, data.target, len(X) // 2, noise, rng, standardise=name != "digits")
            yield (name, f"{EPS:g}", seed), draw, classic_outcomes
