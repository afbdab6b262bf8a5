r"""The law of the ridge scores of k classes with isotropic noise, and the accuracy of their argmax.

Rows are x = μ_b + N(0, I) in class b, with proportions π_b. Let K = MMᵀ be the Gram matrix of the
class means, Π = diag(π), C the transition matrix, D = diag(P(observed)) and q the bulk gain.
One-hot targets give scores with class means G and, within every class, covariance B:

.. math::
    G = (I + q K \Pi)^{-1} q K \Pi C, \qquad
    B = \frac1h \bigl[ q^2 (C - G)^\top \Pi K \Pi (C - G)
        + (1 - h) (D - C^\top \Pi G - G^\top \Pi C + G^\top \Pi G) \bigr].

The fit is linear in its targets, so the scores of a table T (row = observed class) have means GT
and covariance TᵀBT. With an intercept M is centred by πᵀM, C and D by P(observed), and P(observed)
is added to every row of G. The derivation is in docs/theory/multiclass.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import qmc

from unflip import targets as target_values
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_count, as_flag, as_floats, as_number, shown
from unflip.labels.noise import NoiseModel, check_noise
from unflip.theory.model import check_distance
from unflip.theory.orthant import MAX_DIMENSION, orthant_probability
from unflip.theory.resolvent import bulk_gain
from unflip.theory.resolvent import h as variance_share

_ROUNDING = 1e-12  # a share below this is rounding error
_N_STARTS = 1024
_N_POLISHED = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class MulticlassPrediction:
    """Gaussian law of the c scores Wᵀx (+ b) of a new row, given its true class.

    Attributes
    ----------
    means : ndarray of shape (k, c)
        Mean scores of each class.
    covariance : ndarray of shape (c, c)
        Covariance of the scores within a class, the same in all.
    priors : ndarray of shape (k,)
        Proportions of the true classes.
    """

    means: FloatArray
    covariance: FloatArray
    priors: FloatArray

    @cached_property
    def class_accuracies(self) -> FloatArray:
        """Share of each class whose own score is the largest; the first of equal scores counts as the largest."""
        n_classes, n_scores = self.means.shape
        if n_scores != n_classes:
            raise ValueError(
                f"{n_scores} scores of {n_classes} classes have no class each: give targets with "
                f"{n_classes} columns, or use readout_accuracy."
            )
        return _argmax_accuracies(self.means, self.covariance)

    @property
    def accuracy(self) -> float:
        """Accuracy on clean labels of the largest score."""
        return float(self.priors @ self.class_accuracies)

    @cached_property
    def readout_accuracy(self) -> float:
        """Accuracy on clean labels of the best linear rule on the scores, Fisher's discriminants.

        Class b has the discriminant m_bᵀV⁻¹s − ½m_bᵀV⁻¹m_b + log π_b. No k×k table of targets does
        better with any thresholds, and every invertible one does as well as any other.
        """
        whitened = _whitened(self.means, self.covariance)
        gram = whitened @ whitened.T
        discriminants = gram - gram.diagonal() / 2 + np.log(self.priors)
        return float(self.priors @ _argmax_accuracies(discriminants, gram))


def predict_multiclass(
    *,
    means: ArrayLike,
    n: int,
    noise: NoiseModel,
    targets: str | ArrayLike = "optimized",
    reg: float,
    fit_intercept: bool = False,
) -> MulticlassPrediction:
    """Predict the scores of k classes and their accuracy on clean labels.

    Parameters
    ----------
    means : array-like of shape (k, p)
        Means of the classes.
    n : int
        Number of rows to fit.
    noise : NoiseModel
        Flips and proportions of the k classes.
    targets : {"naive", "unbiased", "optimized"} or array-like of shape (k, c)
        What the observed classes (rows) are regressed on: the one-hot label, the inverse
        transition, the posterior P(true class | observed label), or a table.
    reg : float
        γ, finite.
    fit_intercept : bool
        Whether an intercept is fitted to each score.

    Returns
    -------
    MulticlassPrediction

    Examples
    --------
    >>> noise = NoiseModel([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]], [0.3, 0.3, 0.4])
    >>> means = np.outer([-2.0, 0.0, 2.0], np.eye(200)[0])
    >>> for name in ("naive", "unbiased", "optimized"):
    ...     found = predict_multiclass(means=means, n=2000, noise=noise, targets=name, reg=10.0, fit_intercept=True)
    ...     print(name, round(found.accuracy, 3), round(found.readout_accuracy, 3))
    naive 0.381 0.761
    unbiased 0.656 0.761
    optimized 0.403 0.761
    """
    law = _one_hot_law(means, n, noise, reg, fit_intercept)
    return law.regressed_on(target_values.resolve_table(targets, noise))


def multiclass_bayes_accuracy(*, means: ArrayLike, noise: NoiseModel) -> float:
    """Best accuracy that any classifier can have, knowing the class means: the limit of infinitely many rows.

    Given the means, x enters Bayes' rule through the scores Mx alone, whose class means and
    covariance are K = MMᵀ.
    """
    centres, _ = _checked(means, 1, noise, 0.0)
    centres = centres - centres.mean(axis=0)
    gram = centres @ centres.T
    return MulticlassPrediction(
        means=gram, covariance=gram, priors=noise.known_priors
    ).readout_accuracy


def optimal_multi_lpc(
    *,
    means: ArrayLike,
    n: int,
    noise: NoiseModel,
    reg: float,
    fit_intercept: bool = False,
    worst: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """(α, β) of the paper's Multi-LPC family with the best predicted accuracy, or with the worst.

    Adding one number to all of α and β adds the same to all scores, and a common positive factor
    scales them: neither changes the argmax. Of all such pairs the one with Σβ = 0 and ‖α‖² + ‖β‖² =
    k is returned, as (1, …, 1) and (0, …, 0), the naive targets, have it.

    Parameters
    ----------
    means, n, noise, reg, fit_intercept
        As in `predict_multiclass`.
    worst : bool
        Whether to minimise the accuracy instead.

    Returns
    -------
    alpha, beta : ndarray of shape (k,)
        For `unflip.targets.multi_lpc`. The search starts from fixed points, so the answer is always
        the same; it is the best of several local optima, without proof that there is no better one.
    """
    law = _one_hot_law(means, n, noise, reg, fit_intercept)
    as_flag(worst, "worst")

    def objective(scores: FloatArray, coarse: bool = False) -> float:
        alpha, beta = _pair(law, scores)
        found = law.regressed_on(target_values.multi_lpc(alpha, beta))
        accuracy = float(
            law.priors @ _argmax_accuracies(found.means, found.covariance, coarse=coarse)
        )
        return accuracy if worst else -accuracy

    def polish(scores: FloatArray, coarse: bool = False) -> FloatArray:
        return np.asarray(
            minimize(objective, scores, args=(coarse,), options={"gtol": 1e-4, "maxiter": 30}).x
        )

    starts = sorted(_starts(noise.n_classes), key=lambda scores: objective(scores, coarse=True))
    alpha, beta = _pair(
        law, polish(min((polish(start, True) for start in starts[:_N_POLISHED]), key=objective))
    )
    level = beta.mean()
    scale = np.sqrt(noise.n_classes / np.sum((alpha - level) ** 2 + (beta - level) ** 2))
    return scale * (alpha - level), scale * (beta - level)


@dataclass(frozen=True)
class _OneHotLaw:
    """Law (G, B) of the scores of one-hot targets, from which every table's follows."""

    means: FloatArray  # G
    root: (
        FloatArray  # of B = rootᵀroot, which keeps the digits of small variances beside large ones
    )
    priors: FloatArray

    def regressed_on(self, table: FloatArray) -> MulticlassPrediction:
        """Law of the scores of a table; those that are constant have a variance of exactly zero."""
        spread = self.root @ table
        spread[np.abs(spread) <= _ROUNDING * np.max(np.abs(self.root) @ np.abs(table), axis=0)] = (
            0.0
        )
        return MulticlassPrediction(
            means=self.means @ table, covariance=spread.T @ spread, priors=self.priors
        )


def _one_hot_law(
    means: ArrayLike, n: int, noise: NoiseModel, reg: float, fit_intercept: bool
) -> _OneHotLaw:
    centres, penalty = _checked(means, n, noise, reg)
    as_flag(fit_intercept, "fit_intercept")
    priors, observed, expected = noise.known_priors, noise.observed, noise.transition
    flips = _root_of_flips(priors, expected)
    offset = np.zeros_like(observed)
    if fit_intercept:
        offset = observed
        centres, expected = centres - priors @ centres, expected - offset
    aspect = centres.shape[1] / n
    gain, share = float(bulk_gain(aspect, penalty)), float(variance_share(aspect, penalty))
    if share == 0:
        raise ValueError(
            "reg = 0 at p = n has no finite variance: use a positive reg or another n."
        )
    root = np.sqrt(priors)[:, None]
    axes, lengths, _ = np.linalg.svd(root * centres, full_matrices=len(root) > centres.shape[1])
    lengths = np.pad(lengths, (0, len(root) - len(lengths)))[:, None]
    # √Π(C − G) = (I + q√ΠK√Π)⁻¹√ΠC along these axes; as a difference it would cancel where classes
    # are far apart.
    missed = axes.T @ (root * expected) / (1 + gain * lengths**2)
    weights = gain * lengths * missed  # the mean of W along its directions
    scores = axes @ (lengths * weights) / root
    parts = np.vstack([weights, np.sqrt(aspect) * gain * np.vstack([flips, missed])])  # 1 − h = ηq²
    return _OneHotLaw(scores + offset, parts / np.sqrt(share), priors)


def _root_of_flips(priors: FloatArray, transition: FloatArray) -> FloatArray:
    """Root of D − CᵀΠC, the spread within classes: Cholesky's factor.

    The matrix is Σ wᵢⱼ(eᵢ − eⱼ)(eᵢ − eⱼ)ᵀ over pairs of labels, wᵢⱼ being how often a class has
    both. A label that is eliminated adds to the pairs of the others, so that nothing is subtracted,
    and rare flips keep their digits.
    """
    both = (transition.T * priors) @ transition
    root = np.zeros_like(both)
    for label in range(len(priors) - 1):
        others = slice(label + 1, None)
        pairs = both[label, others]
        if total := float(pairs.sum()):
            root[label, label], root[label, others] = np.sqrt(total), -pairs / np.sqrt(total)
            both[others, others] += np.outer(pairs / total, pairs)
    return root


def _argmax_accuracies(
    means: FloatArray, covariance: FloatArray, *, coarse: bool = False
) -> FloatArray:
    """P(score b is the largest | class b) for every class b."""
    k = len(means)
    if k > MAX_DIMENSION + 1:
        raise ValueError(
            f"Accuracies are known for up to {MAX_DIMENSION + 1} classes; this mixture has {k}."
        )
    accuracies = np.empty(k)
    for b in range(k):
        rivals = np.delete(np.arange(k), b)
        leads = np.eye(k)[b] - np.eye(k)[rivals]
        lead, spread = leads @ means[b], leads @ covariance @ leads.T
        scale = max(
            np.abs(lead).max(), np.sqrt(max(spread.diagonal().max(), 0.0))
        )  # of the leads: offsets cancel
        certain = spread.diagonal() <= _ROUNDING * scale**2
        spread[certain] = spread[:, certain] = 0.0
        tied = certain & (np.abs(lead) <= np.sqrt(_ROUNDING) * scale)
        lead[tied] = rivals[tied] - b  # the first of equal scores wins
        accuracies[b] = orthant_probability(lead, spread, coarse=coarse)
    return accuracies


def _whitened(means: FloatArray, covariance: FloatArray) -> FloatArray:
    """Coordinates of the class means in which the covariance is the identity.

    Directions without variance are dropped: the weights vanish there, so the classes do not differ
    (with an intercept, one-hot scores sum to 1 in every class).
    """
    means = means - means.mean(
        axis=0
    )  # a common shift tells no class from another, but would drown the rest
    std = np.sqrt(covariance.diagonal())
    unit = np.where(std > 0, std, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    kept = values > _ROUNDING * len(values)
    return np.asarray((means / unit) @ vectors[:, kept] / np.sqrt(values[kept]))


def _starts(k: int) -> list[FloatArray]:
    """Slopes and offsets to start from, spread evenly; scores of very different sizes are among the best."""
    points = qmc.Halton(3 * k, scramble=False).random(_N_STARTS + 1)[1:]  # the first is the origin
    sizes = 10.0 ** (-3 * points[:, :k])
    starts = np.tile(sizes, 2) * ndtri(points[:, k:])
    return list(starts / np.linalg.norm(starts, axis=1, keepdims=True))


def _pair(law: _OneHotLaw, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(α, β) of which each score is offset + slope · the standardised one-hot score: units that suit a search."""
    slopes, offsets = np.split(scores, 2)
    centre = law.priors @ law.means
    std = np.sqrt(np.sum(law.root**2, axis=0) + law.priors @ (law.means - centre) ** 2)
    beta = offsets - slopes * centre / std
    return beta + slopes / std, beta


def _checked(means: ArrayLike, n: int, noise: NoiseModel, reg: float) -> tuple[FloatArray, float]:
    check_noise(noise)
    centres, penalty = as_floats(means, "means"), as_number(reg, "reg")
    if centres.ndim != 2 or len(centres) != noise.n_classes or not centres.shape[1]:
        raise ValueError(
            f"means has shape {centres.shape}: give one row of p features for each of the noise "
            f"model's {noise.n_classes} classes."
        )
    if not np.isfinite(centres).all():
        raise ValueError("means hold a value that is not finite: give numbers.")
    check_distance(centres, "means")
    as_count(n, "n", least=1)
    if not 0 <= penalty < np.inf:
        raise ValueError(
            f"reg = {shown(reg)} must be zero or positive and finite: it is the ridge penalty γ."
        )
    return centres, penalty
