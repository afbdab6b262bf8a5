"""Example data: Gaussian mixtures, short messages, and loaders for public data sets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.randomness import RandomState, generator
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_count, as_floats, as_number, as_path, check_choice, shown
from unflip.labels.noise import NoiseModel

AMAZON_DOMAINS = ("books", "dvd", "elec", "kitchen")

# Phrases of `make_messages`, separated by semicolons.
_BILLING = """the invoice is too high; I was charged twice; my card was declined; the refund has
not arrived; the price has changed; where is my receipt; the fee is a mistake; the discount is
missing; I cancelled the payment; the bank sent it back; the total does not add up; you took the
wrong amount"""
_DELIVERY = """the parcel is late; the box was open; the courier never rang; it went to another
address; tracking has stopped; a part is missing; the driver left it outside; it is the wrong
size; the package was wet; I was not at home; it is stuck at the depot; half of it is broken"""
_EITHER = """please call me back; this is the second time; I wrote last week; nobody answers the
phone; I have been a customer for years; thanks for your help; the order number is below; I am not
happy; what happens now; it was a present; I read the terms; your website was no help; can you
look into it; I would like an answer today"""


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
    """Draw samples from a Gaussian mixture, with their true classes.

    Parameters
    ----------
    n_samples, n_features : int
        n and p.
    mean_norm : float
        ‖μ‖ of the two-class model with means ∓μ; μ is the same in every coordinate. Ignored if
        `means` is given.
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
        Samples.
    y : ndarray of int, shape (n,)
        True classes 0..k-1.

    Examples
    --------
    >>> X, y = make_mixture(1000, 50, mean_norm=3.0, priors=[0.3, 0.7], random_state=0)
    >>> X.shape, np.bincount(y)
    ((1000, 50), array([277, 723]))
    """
    n = as_count(n_samples, "n_samples")
    p = as_count(n_features, "n_features", least=1)
    centres = _checked_means(means, p, mean_norm)
    k = len(centres)
    class_priors = np.full(k, 1 / k) if priors is None else priors
    proportions = NoiseModel.none(k).with_priors(class_priors).known_priors
    rng = generator(random_state)
    y = rng.choice(k, size=n, p=proportions)
    X = rng.normal(size=(n, p))
    if covariances is not None:
        for a, factor in enumerate(_factors(covariances, k, p)):
            X[y == a] = X[y == a] @ factor
    return X + centres[y], y


def make_messages(
    n_samples: int, *, random_state: RandomState = None
) -> tuple[list[str], IntArray]:
    """Generate short customer messages about billing (class 0) or delivery (class 1).

    A message has one or two phrases of its class, none or one of the other class, and three
    neutral phrases.

    Parameters
    ----------
    n_samples : int
        Number of messages.
    random_state : int, Generator, RandomState or None
        Seed or source of the draws.

    Returns
    -------
    texts : list of str
        Messages.
    y : ndarray of int, shape (n,)
        True classes 0 and 1.

    Examples
    --------
    >>> texts, y = make_messages(4, random_state=0)
    >>> print(texts[0])
    the parcel is late, your website was no help, please call me back, I wrote last week
    >>> y
    array([1, 1, 1, 0])
    """
    rng = generator(random_state)
    own = [_phrases(_BILLING), _phrases(_DELIVERY)]
    neutral = _phrases(_EITHER)
    y = rng.integers(2, size=as_count(n_samples, "n_samples"))
    return [_message(rng, own[a], own[1 - a], neutral) for a in y], y.astype(np.intp)


def load_amazon_reviews(
    domain: str, *, data_home: str | os.PathLike[str] | None = None
) -> tuple[FloatArray, IntArray]:
    """Load one domain of the Amazon reviews of the paper's Table 1.

    The data have no licence and are not included. Put ``books.mat``, ``dvd.mat``, ``elec.mat`` and
    ``kitchen.mat`` (from the repository elfirdoussilab1/High-Dimensional-Learning-Noisy-Labels on
    GitHub, folder datasets/Amazon_review) into a folder ``amazon_reviews``. Set the environment
    variable ``UNFLIP_DATA`` to the parent folder.

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
    check_choice(domain, AMAZON_DOMAINS, "domain")
    from scipy.io import loadmat  # imported here because only this loader needs it

    content = loadmat(
        _data_file(data_home, "amazon_reviews", f"{domain}.mat", "load_amazon_reviews")
    )
    is_negative = content["labels"].ravel().astype(np.intp)
    return np.asarray(content["fts"], dtype=float), 1 - is_negative


@dataclass(frozen=True, eq=False)
class CrowdLabels:
    """Samples with true labels, and annotators' votes on the training samples.

    Attributes
    ----------
    X_train, X_test : ndarray of shape (n, p)
        Samples.
    y_train, y_test : ndarray of int, shape (n,)
        True classes.
    item, annotator, vote : ndarray of int, shape (n_votes,)
        Training sample, annotator and class of each vote.
    """

    X_train: FloatArray
    y_train: IntArray
    X_test: FloatArray
    y_test: IntArray
    item: IntArray
    annotator: IntArray
    vote: IntArray

    def random_votes(self, random_state: RandomState = None) -> IntArray:
        """Return one vote for each training sample, drawn at random."""
        return self._first_by(generator(random_state).random(len(self.item)))

    def worst_votes(self) -> IntArray:
        """Return for each training sample the vote of its least accurate annotator.

        Annotators are ranked by their accuracy on the true labels.
        """
        n_correct = np.bincount(self.annotator, self.vote == self.y_train[self.item])
        accuracy = n_correct / np.maximum(np.bincount(self.annotator), 1)
        return self._first_by(accuracy[self.annotator])

    def _first_by(self, key: FloatArray) -> IntArray:
        order = np.lexsort((key, self.item))
        rows, first = np.unique(self.item[order], return_index=True)
        if len(rows) < len(self.y_train):
            raise ValueError(
                f"{len(self.y_train) - len(rows)} training samples have no vote: drop them first."
            )
        return np.asarray(self.vote[order[first]])


def load_sentiment_votes(*, data_home: str | os.PathLike[str] | None = None) -> CrowdLabels:
    """Load film review sentences (MiniLM embeddings) with votes of annotators.

    The annotators are from Amazon Mechanical Turk. The data have no licence and are not included.
    Put ``data.npz`` into a folder ``sentiment_mturk`` and set the environment variable
    ``UNFLIP_DATA`` to its parent. The file holds ``emb_train``, ``emb_test`` (n×384), ``y_train``,
    ``y_test`` (1 = positive), and one vote per entry of ``vote_item``, ``vote_worker`` and
    ``vote_label``. Votes and texts are those of the repository fmenat/PyLearningCrowds on GitHub,
    folder data/Sentiment (Rodrigues, Pereira and Ribeiro 2013).

    Parameters
    ----------
    data_home : path, optional
        The folder that holds ``sentiment_mturk``; the value of ``UNFLIP_DATA`` by default.
    """
    with np.load(
        _data_file(data_home, "sentiment_mturk", "data.npz", "load_sentiment_votes")
    ) as content:
        return CrowdLabels(
            X_train=content["emb_train"].astype(float),
            y_train=content["y_train"].astype(np.intp),
            X_test=content["emb_test"].astype(float),
            y_test=content["y_test"].astype(np.intp),
            item=content["vote_item"].astype(np.intp),
            annotator=content["vote_worker"].astype(np.intp),
            vote=content["vote_label"].astype(np.intp),
        )


def load_scene_votes(*, data_home: str | os.PathLike[str] | None = None) -> CrowdLabels:
    """Load photographs of eight kinds of scenes (VGG16 activations) with votes of annotators.

    The annotators are from Amazon Mechanical Turk. The data have no licence and are not included.
    Put ``data.npz`` into a folder ``labelme_mturk`` and set the environment variable
    ``UNFLIP_DATA`` to its parent. The file holds ``X_train``, ``X_test`` (n×512, activations of
    VGG16 averaged over the picture), ``y_train``, ``y_test`` (0 to 7), and ``votes`` (training
    samples × annotators, −1 for no vote). They are those of the repository fmenat/PyLearningCrowds
    on GitHub, folder data/LabelMe (Rodrigues and Pereira 2018).

    Parameters
    ----------
    data_home : path, optional
        The folder that holds ``labelme_mturk``; the value of ``UNFLIP_DATA`` by default.

    Returns
    -------
    CrowdLabels
        The features are not transformed: nonnegative, with long tails. A linear classifier is more
        accurate on their square roots.
    """
    with np.load(_data_file(data_home, "labelme_mturk", "data.npz", "load_scene_votes")) as content:
        votes = content["votes"]
        item, annotator = np.nonzero(votes >= 0)
        return CrowdLabels(
            X_train=content["X_train"].astype(float),
            y_train=content["y_train"].astype(np.intp),
            X_test=content["X_test"].astype(float),
            y_test=content["y_test"].astype(np.intp),
            item=item,
            annotator=annotator,
            vote=votes[item, annotator].astype(np.intp),
        )


def _data_file(
    data_home: str | os.PathLike[str] | None, folder: str, name: str, loader: str
) -> Path:
    if data_home is not None:
        home = as_path(data_home, "data_home")
    elif os.environ.get("UNFLIP_DATA"):
        home = Path(os.environ["UNFLIP_DATA"])
    else:
        raise FileNotFoundError(
            f"Set the environment variable UNFLIP_DATA to the folder that holds {folder}/ (or give "
            f"data_home=); help({loader}) names the source of the data."
        )
    path = home / folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist; help({loader}) names the source of the data."
        )
    return path


def _phrases(text: str) -> list[str]:
    return [" ".join(phrase.split()) for phrase in text.split(";")]


def _message(rng: np.random.Generator, own: list[str], other: list[str], neutral: list[str]) -> str:
    counts = ((own, rng.integers(1, 3)), (other, rng.integers(0, 2)), (neutral, 3))
    chosen = [
        phrase for phrases, count in counts for phrase in rng.choice(phrases, count, replace=False)
    ]
    return ", ".join(rng.permutation(chosen))


def _checked_means(means: ArrayLike | None, n_features: int, mean_norm: float) -> FloatArray:
    if means is None:
        length = as_number(mean_norm, "mean_norm")
        if not 0 <= length < np.inf:
            raise ValueError(
                f"mean_norm = {shown(mean_norm)} must be zero or positive, and finite: it is ‖μ‖."
            )
        mu = np.full(n_features, length / np.sqrt(n_features))
        return np.array([-mu, mu])
    centres = as_floats(means, "means")
    if centres.ndim != 2 or centres.shape[1] != n_features:
        raise ValueError(
            f"means has shape {centres.shape}; it needs one row of {n_features} features "
            "(n_features) per class."
        )
    return centres


def _factors(covariances: ArrayLike, k: int, p: int) -> list[FloatArray]:
    """Return matrices F with FᵀF = covariance, one per class."""
    stack = as_floats(covariances, "covariances")
    if stack.shape not in ((p, p), (k, p, p)):
        raise ValueError(
            f"covariances has shape {stack.shape}; give ({p}, {p}) or ({k}, {p}, {p}) for "
            f"n_features = {p}."
        )
    if not np.isfinite(stack).all():
        raise ValueError("covariances holds NaN or infinite values: give finite numbers.")
    factors = [_square_root(covariance) for covariance in stack.reshape(-1, p, p)]
    return factors * (k // len(factors))


def _square_root(covariance: FloatArray) -> FloatArray:
    if not np.allclose(covariance, covariance.T):
        raise ValueError("A covariance is not symmetric: give (C + C.T) / 2.")
    values, vectors = np.linalg.eigh(covariance)
    if values[0] < -1e-10 * abs(values[-1]):
        raise ValueError(
            f"A covariance has the negative eigenvalue {values[0]:g}: it must be positive "
            "semi-definite."
        )
    return np.asarray(np.sqrt(np.maximum(values, 0))[:, None] * vectors.T)
