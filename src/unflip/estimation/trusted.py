r"""Noise rates from a few rows whose true label is known.

Rows are checked at random, by observed label, or as `TrustedSubset.suggest` says, so nothing is
assumed of how often a kind of row is checked. The rows are cut into strata by what is known of all
of them: the observed class, and within it four equal bins of the leave-one-out score for that
class, in which a row's own label has no part. With wₛ the share of the rows in stratum s and θₛ the
proportions of the true classes in it,

.. math:: P(y = a, \tilde y = b) = \sum_{s \in b} w_s \theta_{s,a}, \qquad
          \varepsilon_{ab} = P(y = a, \tilde y = b) / P(y = a).

Only θₛ needs true labels; `unflip.estimation.strata` has its posterior.
"""

from __future__ import annotations

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
from unflip.data.lazy import validated
from unflip.data.training_set import TrainingSet
from unflip.estimation.loo_scores import class_scores
from unflip.estimation.mean_norm import mean_norm_of, rescaled
from unflip.estimation.noise_estimator import NoiseEstimator, checked_confidence
from unflip.estimation.strata import N_BINS, Tally, Urgency, better_than_chance, draw_posterior
from unflip.labels.classes import UNCHECKED, encode, true_codes
from unflip.labels.noise import NoiseModel
from unflip.ridge.spectrum.base import Spectrum

_FEWEST_ROWS_PER_BIN = 10


class TrustedSubset(NoiseEstimator):
    """Estimate flip rates from rows whose true label was checked.

    Parameters
    ----------
    y_trusted : array-like of shape (n,), optional
        True label of the rows that were checked; None, NaN, pandas.NA or a mask for the others.
        None: no row was checked yet, and the rates are those of the prior.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    noise_ : NoiseModel
        The estimated rates and true class proportions: P(true | observed) is its posterior mean.
    noise_std_ : ndarray of shape (k, k)
        Posterior standard deviation of each entry of ``noise_.transition``.
    mean_norm_ : float
        For two classes ‖μ‖, half the distance between their means in units of the standard
        deviation within a class; NaN for more classes, or where fewer than two rows of each were
        checked. See `mean_norm_from_rows`.
    n_trusted_ : int
        Number of checked rows of positive weight.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    With two classes the labels are taken to be better than chance, ε₊ + ε₋ < 1, which keeps the
    estimate inside even where a few rows happen to contradict it. Where the posterior probability
    of that is below 2.5%, `fit` refuses.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(1000, 100, mean_norm=2.0, random_state=0)
    >>> observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    >>> ask = TrustedSubset().fit(X, observed).suggest(100, random_state=0)
    >>> y_trusted = np.full(1000, np.nan)
    >>> y_trusted[ask] = y[ask]
    >>> estimator = TrustedSubset(y_trusted).fit(X, observed)
    >>> low, high = estimator.interval(0.95)
    >>> bool(low[1, 0] < 0.3 < high[1, 0]), bool(low[0, 1] < 0.1 < high[0, 1])
    (True, True)
    """

    mean_norm_: float
    n_trusted_: int
    n_features_in_: int
    source_ = "trusted rows"
    from_trusted_labels: ClassVar[bool] = True

    def __init__(self, y_trusted: ArrayLike | None = None) -> None:
        self.y_trusted = y_trusted

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates from rows X with observed labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Observed labels of two or more classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two copies (both checked, if it was
            checked), one of weight 0 as absent.
        """
        given, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=2)
        weights = checked_weights(sample_weight, given)
        if not weights.any():
            raise ValueError("sample_weight is 0 for every row: give at least one non-zero weight.")
        weights = relative_weights(weights)
        members = np.flatnonzero(weights > 0)
        classes, codes = encode(labels[members], "TrustedSubset")
        true = true_codes(self.y_trusted, len(weights), members, classes, "y_trusted")
        rows = DistinctRows.of(rescaled(given[members]), weights[members])
        return self.fit_members(rows, codes, members=members, classes=classes, true=true)

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
        """Estimate from the rows of positive weight, which may be on a device and stay there.

        What is as long as they are (scores, classes and weights) is brought to the host.

        Parameters
        ----------
        rows : DistinctRows
            The rows, neither so large nor so small that squares of them are no numbers.
        codes : array of shape (n_positive,)
            Observed class of each member, where the rows are.
        members : ndarray of shape (n_positive,)
            Their indices among all rows.
        classes : ndarray of shape (k,)
            Labels, sorted.
        true : ndarray of shape (n_positive,)
            True class of each member, `UNCHECKED` where it is not known.
        """
        self._rows, self.classes_, self._true = members, classes, true
        self.n_trusted_ = int((self._true != UNCHECKED).sum())
        self._warn_of_unseen_classes()
        k, counts, observed = len(classes), as_numpy(rows.counts), as_numpy(codes)
        own_scores = as_numpy(own_entries(class_scores(rows, codes, k), codes))
        self._strata = _strata(own_scores, observed, counts, k)
        tally = Tally.of(self._strata, self._true, counts, k)
        posterior = better_than_chance(draw_posterior(tally, np.random.default_rng(0)))
        self._transitions, self._seen = posterior.transitions, tally.seen
        self.noise_ = _noise_model(posterior.true_given_observed.mean(axis=0), tally.observed)
        self.noise_std_ = posterior.transitions.std(axis=0)
        n_rows = np.bincount(self._strata, minlength=tally.sizes.size)
        self._urgency = Urgency.of(posterior, tally.sizes, n_rows, self.noise_)
        self.mean_norm_ = (
            mean_norm_of(rows, observed, self._true, posterior) if k == 2 else float("nan")
        )
        return self

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of intervals that hold each entry of the transition with this confidence.

        Quantiles of the posterior. An interval reaches to 0 where no checked row shows that flip,
        and to 1 where no checked row of that true class shows another label.
        """
        check_is_fitted(self)
        tail = (1 - checked_confidence(confidence)) / 2
        low, high = np.quantile(self._transitions, [tail, 1 - tail], axis=0)
        elsewhere = self._seen.sum(axis=1, keepdims=True) - self._seen
        return np.where(self._seen == 0, 0.0, low), np.where(elsewhere == 0, 1.0, high)

    def suggest(
        self, m: int, *, at_random: bool = False, random_state: RandomState = None
    ) -> IntArray:
        """Return the rows to check next, so that the intervals shrink fastest.

        Each further row goes to the stratum where it lowers the summed posterior variance of the
        transition most; within a stratum rows are drawn at random, so the choice does not bias the
        estimate. Checking the first few of them only is as good a plan for that number of rows.

        Parameters
        ----------
        m : int
            Number of rows.
        at_random : bool
            Draw from all unchecked rows alike instead: a sample that is fair without any strata.
        random_state : int, Generator, RandomState or None
            Source of the draws.

        Returns
        -------
        ndarray of int, shape (m,)
            Distinct indices of rows of positive weight that are not trusted yet, in the order to
            check them.
        """
        check_is_fitted(self)
        unchecked = np.flatnonzero(self._true == UNCHECKED)
        wanted = _checked_count(m, len(unchecked))
        shuffled = generator(random_state).permutation(unchecked)
        if as_flag(at_random, "at_random"):
            return np.asarray(self._rows[shuffled[:wanted]])
        strata = self._strata[shuffled]
        queues = [iter(shuffled[strata == s]) for s in range(self._urgency.n_strata)]
        order = self._urgency.allocate(
            wanted, np.bincount(strata, minlength=self._urgency.n_strata)
        )
        return np.array([self._rows[next(queues[s])] for s in order], dtype=np.intp)

    def _warn_of_unseen_classes(self) -> None:
        unseen = np.setdiff1d(np.arange(len(self.classes_)), self._true)
        if self.y_trusted is not None and not self.n_trusted_:
            warn_caller(
                "No row is trusted, as every true label given is missing or of a row without "
                "weight, so the flip rates are guesses: check some rows, for example those of "
                "suggest(20).",
            )
        elif self.n_trusted_ and len(unseen):
            warn_caller(
                "No trusted row is truly of class "
                f"{', '.join(map(repr, self.classes_[unseen].tolist()))}: its flip rates rest on "
                "the prior alone; check more rows, for example those of suggest(20).",
            )


def _strata(scores: FloatArray, codes: IntArray, weights: FloatArray, k: int) -> IntArray:
    """Return the stratum of each row, numbered class by class; a small class leaves some of its numbers empty."""
    strata = np.empty(len(codes), dtype=np.intp)
    for a in range(k):
        mine = codes == a
        n_bins = int(np.clip(weights[mine].sum() // _FEWEST_ROWS_PER_BIN, 1, N_BINS))
        strata[mine] = a * N_BINS + (n_bins * _middle_ranks(scores[mine], weights[mine])).astype(
            np.intp
        )
    return strata


def _middle_ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Share of the weight below each value plus half of that at it, so that equal values stay together."""
    _, position = np.unique(values, return_inverse=True)
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
            f"m = {count} rows were asked for, but only {available} are not trusted yet: ask for "
            "fewer."
        )
    return count
