r"""Noise rates from trusted labels of some rows.

Rows may be checked at random, by observed label, or as `TrustedSubset.suggest` proposes. So
estimates are made within strata: the observed class and, within it, up to four equal bins of the
leave-one-out score for that class. With the share wₛ of the rows in stratum s and the proportions
θₛ of the true classes in it,

.. math:: P(y = a, \tilde y = b) = \sum_{s \in b} w_s \theta_{s,a}, \qquad
          \varepsilon_{ab} = P(y = a, \tilde y = b) / P(y = a).

Only θₛ requires trusted labels; `unflip.estimation.strata` computes its posterior.
"""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unflip._utils.arrays import as_numpy, own_entries
from unflip._utils.namespaces import checked_weights
from unflip._utils.randomness import RandomState, generator
from unflip._utils.typing import Array, FloatArray, IntArray
from unflip._utils.validation import as_count, as_flag
from unflip._utils.warnings import warn_caller
from unflip.data.duplicates import DistinctRows, relative_weights
from unflip.data.input_rows import validated
from unflip.data.training_set import TrainingSet
from unflip.estimation.loo_scores import class_scores
from unflip.estimation.mean_norm import mean_norm_from_trusted, rescaled
from unflip.estimation.noise_estimator import TRUSTED_ROWS, NoiseEstimator, checked_confidence
from unflip.estimation.strata import (
    N_BINS,
    Posterior,
    Tally,
    Urgency,
    better_than_chance,
    draw_posterior,
)
from unflip.labels.classes import encode, true_codes
from unflip.labels.codes import UNCHECKED
from unflip.labels.noise import NoiseModel
from unflip.ridge.spectrum.base import Spectrum

_NO_TRUSTED_LABEL = (
    "No row has a trusted label: {}. The noise rates come from a default assumption, not from "
    "data. Check some rows, for example those that suggest(20) returns."
)


class TrustedSubset(NoiseEstimator):
    """Estimate noise rates from trusted labels of some rows.

    Parameters
    ----------
    y_trusted : array-like of shape (n,), optional
        True labels of checked rows; None, NaN, pandas.NA or a mask for the others. None: no row
        was checked yet, and the rates come from a default assumption (the prior), not from data.
        `suggest` then returns the first rows to check.
    inclusion : array-like of shape (n,), optional
        Probability with which each row was chosen for a check, if rows were not chosen at random
        among those of the same label and prediction. `LPClassifier` then weights checked rows
        by 1/probability. The noise rates do not use it.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    noise_ : NoiseModel
        Estimated rates and priors; its ``posterior`` is the posterior mean of P(true | observed).
    noise_std_ : ndarray of shape (k, k)
        Posterior standard deviation of each entry of ``noise_.transition``.
    mean_norm_ : float
        ‖μ‖ of two classes, half the distance between their means in units of the standard
        deviation within a class; NaN for more classes, or if fewer than two rows of each were
        checked. See `mean_norm_from_rows`.
    n_trusted_ : int
        Number of checked rows of positive weight.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    With two classes, the labels are assumed to be better than chance, ε₊ + ε₋ < 1. `fit` raises
    `ValueError` if the posterior probability of that is below 2.5%.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(1000, 100, mean_norm=2.0, random_state=0)
    >>> observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    >>> to_check = TrustedSubset().fit(X, observed).suggest(100, random_state=0)
    >>> y_trusted = np.full(1000, np.nan)
    >>> y_trusted[to_check] = y[to_check]
    >>> estimator = TrustedSubset(y_trusted).fit(X, observed)
    >>> low, high = estimator.interval(0.95)
    >>> bool(low[1, 0] < 0.3 < high[1, 0]), bool(low[0, 1] < 0.1 < high[0, 1])
    (True, True)
    """

    mean_norm_: float
    n_trusted_: int
    n_features_in_: int
    source_ = TRUSTED_ROWS
    from_trusted_labels: ClassVar[bool] = True

    def __init__(
        self, y_trusted: ArrayLike | None = None, inclusion: ArrayLike | None = None
    ) -> None:
        self.y_trusted = y_trusted
        self.inclusion = inclusion

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates from rows X with observed labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Observed labels of two or more classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. Weight 2 equals a duplicate (both are checked, or neither), weight
            0 leaves the row out.
        """
        checked_X, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=2)
        weights = checked_weights(sample_weight, checked_X)
        if not weights.any():
            raise ValueError("sample_weight is 0 for every row: pass at least one non-zero weight.")
        weights = relative_weights(weights)
        members = np.flatnonzero(weights > 0)
        all_rows = len(members) == len(weights)
        classes, codes = encode(labels[members], "TrustedSubset", all_rows=all_rows)
        true = true_codes(self.y_trusted, len(weights), members, classes, "y_trusted")
        rows = DistinctRows.of(rescaled(checked_X[members]), weights[members])
        return self.fit_members(rows, codes, members=members, classes=classes, true=true)

    def fit_training_set(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate for a classifier, and warn if no row was checked."""
        if self.y_trusted is None:
            warn_caller(_NO_TRUSTED_LABEL.format("y_trusted is None"))
        return super().fit_training_set(data, spectrum)

    def fit_from_spectrum(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate from rows that stay on their device."""
        members = as_numpy(data.rows.members)
        true = true_codes(self.y_trusted, data.n_rows, members, data.classes, "y_trusted")
        return self.fit_members(
            data.rows, data.codes, members=members, classes=data.classes, true=true
        )

    def fit_members(
        self,
        rows: DistinctRows,
        codes: Array,
        *,
        members: IntArray,
        classes: NDArray[Any],
        true: IntArray,
    ) -> Self:
        """Estimate from the rows of positive weight, which stay on their device.

        Scores, classes and weights are moved to the host.

        Parameters
        ----------
        rows : DistinctRows
            The rows, whose squares must not over- or underflow float64.
        codes : array of shape (n_positive,)
            Observed class of each member, on the device of the rows.
        members : ndarray of shape (n_positive,)
            Their indices among all rows.
        classes : ndarray of shape (k,)
            Labels, sorted.
        true : ndarray of shape (n_positive,)
            True class of each member, `UNCHECKED` if it is unknown.
        """
        self._rows = members
        self.classes_ = classes
        k = len(classes)
        self._counts = as_numpy(rows.counts)
        observed = as_numpy(codes)
        own_scores = as_numpy(own_entries(class_scores(rows, codes, k)[0], codes))
        self._strata = _strata(own_scores, observed, self._counts, k)
        posterior = self._estimate(true)
        self.mean_norm_ = float("nan")
        if k == 2:
            self.mean_norm_ = mean_norm_from_trusted(rows, observed, true, posterior)
        return self

    def with_trusted(self, y_trusted: ArrayLike, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Return an estimator that is fitted to the same samples with other trusted labels.

        The strata are the same. ``mean_norm_`` is that of all trusted labels.
        """
        other = copy(self)
        other.y_trusted = y_trusted
        other._estimate(true_codes(y_trusted, data.n_rows, self._rows, self.classes_, "y_trusted"))
        return other

    def _estimate(self, true: IntArray) -> Posterior:
        """Set the rates by the true classes of the members, and return their posterior."""
        self._true = true
        self.n_trusted_ = int((true != UNCHECKED).sum())
        self._warn_of_unseen_classes()
        k = len(self.classes_)
        tally = Tally.of(self._strata, true, self._counts, k)
        posterior = better_than_chance(draw_posterior(tally, np.random.default_rng(0)))
        self._transitions = posterior.transitions
        self._confusion = tally.confusion
        self.noise_ = _noise_model(posterior.true_given_observed.mean(axis=0), tally.observed)
        self.noise_std_ = posterior.transitions.std(axis=0)
        n_rows = np.bincount(self._strata, minlength=tally.sizes.size)
        self._urgency = Urgency.of(posterior, tally.sizes, n_rows, self.noise_)
        return posterior

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits of credible intervals of the transition matrix.

        The limits are quantiles of the posterior. The lower limit is 0 if no checked row has that
        true and observed class, and the upper limit is 1 if no checked row of that true class has
        another label.

        Parameters
        ----------
        confidence : float
            Probability of each interval, strictly between 0 and 1.

        Returns
        -------
        low, high : ndarray of shape (k, k)
            Limits for each entry of ``noise_.transition``.
        """
        check_is_fitted(self)
        tail = (1 - checked_confidence(confidence)) / 2
        low, high = np.quantile(self._transitions, [tail, 1 - tail], axis=0)
        elsewhere = self._confusion.sum(axis=1, keepdims=True) - self._confusion
        return np.where(self._confusion == 0, 0.0, low), np.where(elsewhere == 0, 1.0, high)

    def suggest(
        self, m: int, *, at_random: bool = False, random_state: RandomState = None
    ) -> IntArray:
        """Return the rows to check next, so that the standard errors decrease fastest.

        Each row is taken from the stratum where it lowers the summed posterior variance of the
        transition most. Within a stratum rows are drawn at random, so the choice does not bias the
        estimate. The first rows of the list are the best choice for a smaller number of rows.

        Parameters
        ----------
        m : int
            Number of rows.
        at_random : bool
            Draw from all unchecked rows with equal probability instead.
        random_state : int, Generator, RandomState or None
            Source of the draws.

        Returns
        -------
        ndarray of int, shape (m,)
            Distinct indices of unchecked rows of positive weight, in the order to check them.
        """
        check_is_fitted(self)
        unchecked = np.flatnonzero(self._true == UNCHECKED)
        n_suggested = _checked_count(m, len(unchecked))
        shuffled = generator(random_state).permutation(unchecked)
        if as_flag(at_random, "at_random"):
            return np.asarray(self._rows[shuffled[:n_suggested]])
        strata = self._strata[shuffled]
        queues = [iter(shuffled[strata == s]) for s in range(self._urgency.n_strata)]
        order = self._urgency.allocate(
            n_suggested, np.bincount(strata, minlength=self._urgency.n_strata)
        )
        return np.array([self._rows[next(queues[s])] for s in order], dtype=np.intp)

    def _warn_of_unseen_classes(self) -> None:
        unseen = np.setdiff1d(np.arange(len(self.classes_)), self._true)
        if self.y_trusted is not None and not self.n_trusted_:
            warn_caller(
                _NO_TRUSTED_LABEL.format("all of y_trusted is missing, or on rows of weight 0")
            )
        elif self.n_trusted_ and len(unseen):
            warn_caller(
                f"No trusted label is {' or '.join(map(repr, self.classes_[unseen].tolist()))}, so "
                "its noise rates come from a default assumption, not from data. Check more rows, "
                "for example those that suggest(20) returns.",
            )


def _strata(scores: FloatArray, codes: IntArray, weights: FloatArray, k: int) -> IntArray:
    """Return the stratum of each row, numbered from a·`N_BINS` for class a."""
    strata = np.empty(len(codes), dtype=np.intp)
    for a in range(k):
        in_class = codes == a
        n_bins = int(np.clip(weights[in_class].sum() // 10, 1, N_BINS))  # of ten rows or more
        ranks = _mid_ranks(scores[in_class], weights[in_class])
        strata[in_class] = a * N_BINS + (n_bins * ranks).astype(np.intp)
    return strata


def _mid_ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the share of the weight below each value plus half of that at it.

    Values that are equal up to rounding errors have the same rank.
    """
    unit = np.abs(values).max(initial=0.0) or 1.0
    _, position = np.unique(np.round(values / unit, 9), return_inverse=True)
    pooled = np.bincount(position, weights)
    ranks: FloatArray = ((np.cumsum(pooled) - pooled / 2) / pooled.sum())[position]
    return ranks


def _noise_model(true_given_observed: FloatArray, observed: FloatArray) -> NoiseModel:
    joint = (observed[:, None] * true_given_observed).T
    priors = joint.sum(axis=1)
    return NoiseModel(joint / priors[:, None], priors / priors.sum())


def _checked_count(m: int, available: int) -> int:
    count = as_count(m, "m", least=1)
    if count > available:
        raise ValueError(
            f"m = {count} is larger than the number of unchecked rows, {available}: pass a smaller "
            "m."
        )
    return count
