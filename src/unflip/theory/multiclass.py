r"""Distribution of the ridge scores of k isotropic classes, and the accuracy of their argmax.

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
from unflip.theory.model import check_mean_size
from unflip.theory.orthant import MAX_DIMENSION, orthant_probability
from unflip.theory.resolvent import bulk_gain
from unflip.theory.resolvent import h as variance_share

_ROUNDING = 1e-12  # a relative difference below this is rounding error
# Points of the search in `optimal_multi_lpc`. A choice: with 512, a test misses the best pair; 2048
# take a third longer and pass the same tests.
_N_STARTS = 1024


@dataclass(frozen=True, kw_only=True, eq=False)
class MulticlassPrediction:
    """Gaussian distribution of the c scores Wᵀx (+ b) of a new row, given its true class.

    Attributes
    ----------
    means : ndarray of shape (k, c)
        Mean scores of each class.
    covariance : ndarray of shape (c, c)
        Covariance of the scores within a class, the same for all classes.
    priors : ndarray of shape (k,)
        Proportions of the true classes.

    Examples
    --------
    >>> priors = np.full(2, 0.5)
    >>> law = MulticlassPrediction(means=np.eye(2), covariance=np.eye(2), priors=priors)
    >>> round(law.accuracy, 4)
    0.7602
    """

    means: FloatArray
    covariance: FloatArray
    priors: FloatArray

    @cached_property
    def class_accuracies(self) -> FloatArray:
        """Recall of each class when the largest score decides; the first of equal scores wins."""
        n_classes, n_scores = self.means.shape
        if n_scores != n_classes:
            raise ValueError(
                f"{n_scores} scores of {n_classes} classes do not match: give targets with "
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

        Class b has the discriminant m_bᵀV⁻¹s − ½m_bᵀV⁻¹m_b + log π_b. No k×k table of targets is
        more accurate with any thresholds, and all invertible tables are equally accurate.
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
        Number of training rows.
    noise : NoiseModel
        Transition matrix and priors of the k classes.
    targets : {"naive", "unbiased", "optimized"} or array-like of shape (k, c)
        Regression targets of the observed classes (rows): the one-hot label, the inverse of the
        transition matrix, the posterior P(true class | observed label), or a table.
    reg : float
        Regularization strength γ, finite.
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
    ...     law = predict_multiclass(
    ...         means=means, n=2000, noise=noise, targets=name, reg=10.0, fit_intercept=True
    ...     )
    ...     print(name, round(law.accuracy, 3), round(law.readout_accuracy, 3))
    naive 0.381 0.761
    unbiased 0.656 0.761
    optimized 0.403 0.761
    """
    law = _one_hot_law(means, n, noise, reg, fit_intercept)
    return law.regressed_on(target_values.resolve_table(targets, noise))


def multiclass_bayes_accuracy(*, means: ArrayLike, noise: NoiseModel) -> float:
    """Return the accuracy of the Bayes classifier, the limit of infinitely many rows.

    Given the means, x enters the Bayes rule through the scores Mx alone, whose class means and
    covariance are K = MMᵀ.

    Examples
    --------
    >>> noise = NoiseModel.none(3).with_priors([0.3, 0.3, 0.4])
    >>> means = np.outer([-2.0, 0.0, 2.0], np.eye(5)[0])
    >>> round(multiclass_bayes_accuracy(means=means, noise=noise), 3)
    0.795
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
    """Return (α, β) of the paper's Multi-LPC family with the best or worst predicted accuracy.

    Adding one number to all of α and β adds it to all scores, and a common positive factor scales
    them: neither changes the argmax. The returned pair has Σβ = 0 and ‖α‖² + ‖β‖² = k, as do the
    naive targets (1, …, 1) and (0, …, 0).

    Parameters
    ----------
    means, n, noise, reg, fit_intercept
        As in `predict_multiclass`.
    worst : bool
        Whether to minimise the accuracy instead.

    Returns
    -------
    alpha, beta : ndarray of shape (k,)
        For `unflip.targets.multi_lpc`. The search is deterministic. It returns the best of several
        local optima, which need not be the global one.

    Examples
    --------
    >>> noise = NoiseModel.none(2).with_priors([0.5, 0.5])
    >>> alpha, beta = optimal_multi_lpc(means=[[1.0], [-1.0]], n=10, noise=noise, reg=1.0)
    >>> alpha.shape, beta.shape
    ((2,), (2,))
    """
    law = _one_hot_law(means, n, noise, reg, fit_intercept)
    as_flag(worst, "worst")

    def objective(scores: FloatArray, coarse: bool = False) -> float:
        alpha, beta = _pair(law, scores)
        prediction = law.regressed_on(target_values.multi_lpc(alpha, beta))
        accuracies = _argmax_accuracies(prediction.means, prediction.covariance, coarse=coarse)
        accuracy = float(law.priors @ accuracies)
        return accuracy if worst else -accuracy

    def polish(scores: FloatArray, coarse: bool = False) -> FloatArray:
        return np.asarray(
            minimize(objective, scores, args=(coarse,), options={"gtol": 1e-4, "maxiter": 30}).x
        )

    starts = sorted(_starts(noise.n_classes), key=lambda scores: objective(scores, coarse=True))
    best = min((polish(start, coarse=True) for start in starts[:10]), key=objective)
    alpha, beta = _pair(law, polish(best))
    level = beta.mean()
    scale = np.sqrt(noise.n_classes / np.sum((alpha - level) ** 2 + (beta - level) ** 2))
    return scale * (alpha - level), scale * (beta - level)


@dataclass(frozen=True)
class _OneHotLaw:
    """Distribution (G, B) of the scores of one-hot targets; that of any table follows from it."""

    means: FloatArray  # G
    root: FloatArray  # B = rootᵀroot; the root keeps the digits of small variances
    priors: FloatArray

    def regressed_on(self, table: FloatArray) -> MulticlassPrediction:
        """Return the distribution for a table of targets; constant scores get variance zero."""
        spread = self.root @ table
        largest = np.max(np.abs(self.root) @ np.abs(table), axis=0)
        spread[np.abs(spread) <= _ROUNDING * largest] = 0.0
        return MulticlassPrediction(
            means=self.means @ table, covariance=spread.T @ spread, priors=self.priors
        )


def _one_hot_law(
    means: ArrayLike, n: int, noise: NoiseModel, reg: float, fit_intercept: bool
) -> _OneHotLaw:
    centres, gamma = _checked(means, n, noise, reg)
    as_flag(fit_intercept, "fit_intercept")
    priors = noise.known_priors
    expected = noise.transition
    label_spread = _root_of_label_covariance(priors, expected)
    offset = np.zeros_like(noise.observed)
    if fit_intercept:
        offset = noise.observed
        centres = centres - priors @ centres
        expected = expected - offset
    aspect = centres.shape[1] / n
    gain = float(bulk_gain(aspect, gamma))
    share = float(variance_share(aspect, gamma))
    if share == 0:
        raise ValueError(
            "reg = 0 at p = n has no finite variance: use a positive reg or another n."
        )
    root = np.sqrt(priors)[:, None]
    axes, lengths, _ = np.linalg.svd(root * centres, full_matrices=len(root) > centres.shape[1])
    lengths = np.pad(lengths, (0, len(root) - len(lengths)))[:, None]
    # √Π(C − G) = (I + q√ΠK√Π)⁻¹√ΠC along these axes; the difference would cancel if classes are far
    # apart.
    missed = axes.T @ (root * expected) / (1 + gain * lengths**2)
    weights = gain * lengths * missed  # the mean of W along its directions
    scores = axes @ (lengths * weights) / root
    errors = np.sqrt(aspect) * gain * np.vstack([label_spread, missed])  # 1 − h = ηq²
    parts = np.vstack([weights, errors])
    return _OneHotLaw(scores + offset, parts / np.sqrt(share), priors)


def _root_of_label_covariance(priors: FloatArray, transition: FloatArray) -> FloatArray:
    """Return the Cholesky factor of D − CᵀΠC, the covariance of the labels within classes.

    The matrix is Σ wᵢⱼ(eᵢ − eⱼ)(eᵢ − eⱼ)ᵀ over pairs of labels, with weights wᵢⱼ = Σ_b π_bC_biC_bj.
    Eliminating a label adds to the weights of the remaining pairs. Nothing is subtracted, so small
    noise rates keep their digits.
    """
    pair_weights = (transition.T * priors) @ transition
    root = np.zeros_like(pair_weights)
    for label in range(len(priors) - 1):
        rest = slice(label + 1, None)
        weights = pair_weights[label, rest]
        if total := float(weights.sum()):
            root[label, label] = np.sqrt(total)
            root[label, rest] = -weights / np.sqrt(total)
            pair_weights[rest, rest] += np.outer(weights / total, weights)
    return root


def _argmax_accuracies(
    means: FloatArray, covariance: FloatArray, *, coarse: bool = False
) -> FloatArray:
    """P(score b is the largest | class b) for every class b."""
    k = len(means)
    if k > MAX_DIMENSION + 1:
        raise ValueError(
            f"Accuracies are available for up to {MAX_DIMENSION + 1} classes; this mixture has {k}."
        )
    accuracies = np.empty(k)
    for b in range(k):
        rivals = np.delete(np.arange(k), b)
        leads = np.eye(k)[b] - np.eye(k)[rivals]
        lead = leads @ means[b]
        spread = leads @ covariance @ leads.T
        # The scale of the leads, not of the scores: a common offset cancels.
        scale = max(np.abs(lead).max(), np.sqrt(max(spread.diagonal().max(), 0.0)))
        certain = spread.diagonal() <= _ROUNDING * scale**2
        spread[certain] = spread[:, certain] = 0.0
        tied = certain & (np.abs(lead) <= np.sqrt(_ROUNDING) * scale)
        lead[tied] = rivals[tied] - b  # the first of equal scores wins
        accuracies[b] = orthant_probability(lead, spread, coarse=coarse)
    return accuracies


def _whitened(means: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the class means in coordinates where the covariance is the identity.

    Directions without variance are dropped: the weights vanish there, so the classes do not differ
    (with an intercept, one-hot scores sum to 1 in every class).
    """
    means = means - means.mean(axis=0)  # a large common shift would cost digits
    std = np.sqrt(covariance.diagonal())
    unit = np.where(std > 0, std, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    kept = values > _ROUNDING * len(values)
    return np.asarray((means / unit) @ vectors[:, kept] / np.sqrt(values[kept]))


def _starts(k: int) -> list[FloatArray]:
    """Return slopes and intercepts to start from, with scores of very different sizes."""
    points = qmc.Halton(3 * k, scramble=False).random(_N_STARTS + 1)[1:]  # the first is the origin
    sizes = 10.0 ** (-3 * points[:, :k])
    starts = np.tile(sizes, 2) * ndtri(points[:, k:])
    return list(starts / np.linalg.norm(starts, axis=1, keepdims=True))


def _pair(law: _OneHotLaw, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (α, β) such that score j is intercept + slope · the standardised one-hot score j."""
    slopes, intercepts = np.split(scores, 2)
    centre = law.priors @ law.means
    std = np.sqrt(np.sum(law.root**2, axis=0) + law.priors @ (law.means - centre) ** 2)
    beta = intercepts - slopes * centre / std
    return beta + slopes / std, beta


def _checked(means: ArrayLike, n: int, noise: NoiseModel, reg: float) -> tuple[FloatArray, float]:
    check_noise(noise)
    centres = as_floats(means, "means")
    gamma = as_number(reg, "reg")
    if centres.ndim != 2 or len(centres) != noise.n_classes or not centres.shape[1]:
        raise ValueError(
            f"means has shape {centres.shape}: give one row of p features for each of the noise "
            f"model's {noise.n_classes} classes."
        )
    if not np.isfinite(centres).all():
        raise ValueError("means hold a value that is not finite: give finite numbers.")
    check_mean_size(centres, "means")
    as_count(n, "n", least=1)
    if not 0 <= gamma < np.inf:
        raise ValueError(
            f"reg = {shown(reg)} must be zero or positive and finite: it is the regularization "
            "strength γ."
        )
    return centres, gamma
