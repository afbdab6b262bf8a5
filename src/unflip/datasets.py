"""Data to try things on: Gaussian mixtures, and the paper's review data from a folder of yours."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.io import loadmat

from unflip._typing import FloatArray, IntArray, RandomState
from unflip._validation import as_floats
from unflip.noise import NoiseModel

AMAZON_DOMAINS = ("books", "dvd", "elec", "kitchen")


def make_mixture(
    n_samples: int,
    n_features: int,
    *,
    mean_norm: float = 2.0,
    means: ArrayLike | None = None,
    priors: ArrayLike | None = None,
    covariances: ArrayLike | None = None,
    random_state: RandomState = None,
) -> tuple[FloatArray, IntArray]:
    """Draw rows from a Gaussian mixture, with their true classes.

    Parameters
    ----------
    n_samples, n_features : int
        n and p.
    mean_norm : float
        ‖μ‖ of the two-class model with means ∓μ; μ is the same in every coordinate. Ignored where `means` is given.
    means : array-like of shape (k, p), optional
        Means of k classes.
    priors : array-like of shape (k,), optional
        Proportions of the classes, equal by default.
    covariances : array-like of shape (p, p) or (k, p, p), optional
        One covariance for all classes or one each; the identity by default.
    random_state : int, Generator, RandomState or None
        Seed or source of the draws.

    Returns
    -------
    X : ndarray of shape (n, p)
        Rows.
    y : ndarray of int, shape (n,)
        True classes 0..k-1.

    Examples
    --------
    >>> X, y = make_mixture(1000, 50, mean_norm=3.0, priors=[0.3, 0.7], random_state=0)
    >>> X.shape, np.bincount(y)
    ((1000, 50), array([277, 723]))
    """
    centres = _checked_means(means, n_features, mean_norm)
    k = len(centres)
    proportions = NoiseModel.none(k).with_priors(np.full(k, 1 / k) if priors is None else priors).known_priors
    rng = _generator(random_state)
    y = rng.choice(k, size=n_samples, p=proportions)
    X = rng.normal(size=(n_samples, n_features))
    if covariances is not None:
        for a, factor in enumerate(_factors(covariances, k, n_features)):
            X[y == a] = X[y == a] @ factor
    return X + centres[y], y


def load_amazon_reviews(domain: str, *, data_home: str | os.PathLike[str] | None = None) -> tuple[FloatArray, IntArray]:
    """Load one domain of the Amazon reviews of the paper's Table 1.

    The data carry no licence and are not shipped. Put ``books.mat``, ``dvd.mat``, ``elec.mat`` and ``kitchen.mat``
    (from the repository elfirdoussilab1/High-Dimensional-Learning-Noisy-Labels on GitHub, folder
    datasets/Amazon_review) into a folder ``amazon_reviews`` and name its parent in ``UNFLIP_DATA``.

    Parameters
    ----------
    domain : {"books", "dvd", "elec", "kitchen"}
        Kind of product.
    data_home : path, optional
        The folder that holds ``amazon_reviews``; the value of ``UNFLIP_DATA`` by default.

    Returns
    -------
    X : ndarray of shape (n, 400)
        Word counts.
    y : ndarray of int, shape (n,)
        0 for a negative review, 1 for a positive one; these labels are clean.
    """
    if domain not in AMAZON_DOMAINS:
        raise ValueError(f"domain={domain!r} is not known: use one of {', '.join(map(repr, AMAZON_DOMAINS))}.")
    home = data_home if data_home is not None else os.environ.get("UNFLIP_DATA")
    if not home:
        raise FileNotFoundError(
            "Set the environment variable UNFLIP_DATA to the folder that holds amazon_reviews/ (or give data_home=); "
            "help(load_amazon_reviews) says where the data come from."
        )
    path = Path(home) / "amazon_reviews" / f"{domain}.mat"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; help(load_amazon_reviews) says where the data come from.")
    content = loadmat(path)
    labels = content["labels"].ravel()
    return np.asarray(content["fts"], dtype=float), (1 - labels.astype(np.intp))  # the file says 1 for negative


def _checked_means(means: ArrayLike | None, n_features: int, mean_norm: float) -> FloatArray:
    if means is None:
        if not mean_norm >= 0:
            raise ValueError(f"mean_norm = {mean_norm!r} must be zero or positive: it is ‖μ‖.")
        mu = np.full(n_features, mean_norm / np.sqrt(n_features))
        return np.array([-mu, mu])
    centres = as_floats(means, "means")
    if centres.ndim != 2 or centres.shape[1] != n_features:
        raise ValueError(f"means has shape {centres.shape}; it needs one row of {n_features} features per class.")
    return centres


def _factors(covariances: ArrayLike, k: int, p: int) -> list[FloatArray]:
    """Matrices F with FᵀF = covariance, one per class."""
    stack = as_floats(covariances, "covariances")
    if stack.shape not in ((p, p), (k, p, p)):
        raise ValueError(f"covariances has shape {stack.shape}; give ({p}, {p}) or ({k}, {p}, {p}).")
    factors = [_square_root(covariance) for covariance in stack.reshape(-1, p, p)]
    return factors * (k // len(factors))


def _square_root(covariance: FloatArray) -> FloatArray:
    if not np.allclose(covariance, covariance.T):
        raise ValueError("A covariance is not symmetric: give (C + C.T) / 2.")
    values, vectors = np.linalg.eigh(covariance)
    if values[0] < -1e-10 * abs(values[-1]):
        raise ValueError(f"A covariance has the negative eigenvalue {values[0]:g}: it must be positive semi-definite.")
    return np.asarray(np.sqrt(np.maximum(values, 0))[:, None] * vectors.T)


def _generator(random_state: RandomState) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
