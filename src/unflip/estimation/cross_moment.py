r"""Noise rates from the agreement of labels with scores that never saw them, in closed form.

Regress ỹ = ±1 on the centred rows (ridge γ) and take exact leave-one-out scores sᵢ. Row i's label
has no part in sᵢ, so labels and scores agree only through the true class: with c = Cov(ỹ, y), u =
‖μ‖², v = 4π₁π₂ and the bulk gain q = 1/(1 + γ(1 + δ)),

.. math:: F = \mathrm{Cov}(\tilde y_i, s_i) = \frac{c^2\, u q}{1 + v u q}.

Since c = v(1 − ε₊ − ε₋) > 0, the root is the positive one, and with P = P(ỹ = +) it gives both
rates:

.. math:: \varepsilon_+ = 1 - P - \pi_1 c / v, \qquad \varepsilon_- = P - \pi_2 c / v.

Standard errors come from the influence of each row on P, on F (the jackknife, which exact
leave-one-out scores give without refitting) and on π where that was estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.arrays import as_numpy
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_number, shown
from unflip._utils.warnings import warn_caller
from unflip.data.centred import check_magnitude
from unflip.data.lazy import validated
from unflip.data.training_set import TrainingSet
from unflip.estimation.clusters import (
    Clusters,
    fit_clusters,
    label_association,
    prior_influence,
    standard_errors,
)
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.estimation.spectral import Spikes, check_visible
from unflip.labels.classes import encode
from unflip.labels.noise import NoiseModel
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose
from unflip.ridge.spectrum.left_out import LeaveOneOut
from unflip.theory.resolvent import bulk_gain, delta

_LARGEST_SUM = 0.999  # of ε₊ + ε₋: a NoiseModel needs labels that say something
_SHORTEST = 1e-50  # ‖μ‖, and one over the longest: their fourth powers are numbers
_CLEAR_SIGNAL = 3.0  # standard errors by which labels and scores must agree
_CHANCE = 0.001  # p-value of labels that follow the clusters


class CrossMoment(NoiseEstimator):
    """Noise rates of an isotropic mixture from leave-one-out scores, in closed form.

    Rows must come from classes with means of their own and the same isotropic noise: x = mean of
    the class + N(0, σ²I). Neither σ nor the origin need be known. What is not given of ‖μ‖ and π
    must show in the rows' spectrum. Where ‖μ‖ is not given, or there are more than two classes,
    rates and geometry are fitted together, by the likelihood of the labels and of the rows'
    coordinates along the directions that stand out (see `unflip.estimation.clusters`).

    Parameters
    ----------
    mean_norm : float, optional
        ‖μ‖, half the distance between the two class means in units of σ. None: from the spectrum.
    pi_neg : float, optional
        Proportion of the true negative class. None: from the spectrum, told from 1 − π by the
        labels.
    reg : float
        Ridge penalty γ of the scores, in units of σ². The rates are right for every γ > 0; large
        ones are most precise.

    Attributes
    ----------
    classes_, noise_, noise_std_
        See `NoiseEstimator`.
    mean_norm_ : float
        ‖μ‖, as given or estimated; NaN for more than two classes.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(2000, 200, mean_norm=2.0, priors=[0.3, 0.7], random_state=0)
    >>> labels = NoiseModel.binary(eps_pos=0.4, eps_neg=0.1).flip(y, random_state=0)
    >>> estimate = CrossMoment().fit(X, labels)
    >>> print(f"{estimate.noise_.eps_pos:.2f} ± {estimate.noise_std_[1, 0]:.2f}")
    0.40 ± 0.01
    """

    mean_norm_: float
    n_features_in_: int

    def __init__(
        self, *, mean_norm: float | None = None, pi_neg: float | None = None, reg: float = 10.0
    ) -> None:
        self.mean_norm = mean_norm
        self.pi_neg = pi_neg
        self.reg = reg

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Estimate from rows X, an array or a sparse matrix, with observed labels y."""
        rows, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=4)
        check_magnitude(rows)
        self.classes_, codes = encode(labels, "CrossMoment")
        return self.fit_spectrum(decompose(rows), codes)

    def fit_from_spectrum(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate from rows that stay on their device; neither weights nor duplicates."""
        if data.rows.spectrum_weights is not None:
            return super().fit_from_spectrum(data, spectrum)
        return self.fit_spectrum(spectrum, as_numpy(data.codes))

    def fit_spectrum(
        self, spectrum: Spectrum, codes: IntArray, clusters: Clusters | None = None
    ) -> Self:
        """Estimate from the spectrum of centred rows, all of weight 1, and class indices.

        `clusters` are those along the spikes, where they were fitted before without known
        proportions.
        """
        n, n_classes = len(codes), int(codes.max()) + 1
        self._check_options(n_classes)
        if self.mean_norm is not None and self.pi_neg is not None:
            proportion = _Statistic.given(self.pi_neg, n)
        else:
            spikes = Spikes.of(spectrum)
            check_visible(spikes)
            priors = None if self.pi_neg is None else np.array([self.pi_neg, 1 - self.pi_neg])
            if clusters is None:
                clusters = fit_clusters(spikes.coordinates, codes, n_classes, priors)
            if self.mean_norm is None:
                return self._keep_clusters(clusters, spikes, codes)
            influence = prior_influence(clusters, spikes.coordinates, codes)[:, 0]
            proportion = _Statistic(float(clusters.priors[0]), influence)
        length = _Statistic.given(self.mean_norm**2, n)
        return self._keep_closed_form(_Statistics.of(spectrum, codes, length, proportion, self.reg))

    def _check_options(self, n_classes: int) -> None:
        if not 0 < as_number(self.reg, "reg") < np.inf:
            raise ValueError(f"reg = {shown(self.reg)} must be a positive finite number.")
        if (
            self.mean_norm is not None
            and not _SHORTEST < as_number(self.mean_norm, "mean_norm") < 1 / _SHORTEST
        ):
            raise ValueError(
                f"mean_norm = {shown(self.mean_norm)} must be a positive finite number, at most "
                "1e50."
            )
        if self.pi_neg is not None and not 0 < as_number(self.pi_neg, "pi_neg") < 1:
            raise ValueError(
                f"pi_neg = {shown(self.pi_neg)} must lie strictly between 0 and 1: both classes "
                "have to exist."
            )
        if n_classes > 2 and (self.mean_norm is not None or self.pi_neg is not None):
            raise ValueError(
                f"mean_norm and pi_neg describe two classes, but y has {n_classes}: leave both out."
            )

    def _keep_clusters(self, clusters: Clusters, spikes: Spikes, codes: IntArray) -> Self:
        self.noise_ = clusters.noise
        self.noise_std_ = standard_errors(
            clusters, spikes.coordinates, known_priors=self.pi_neg is not None
        )
        if label_association(clusters, spikes.coordinates, codes) > _CHANCE:
            _warn_of_chance()
        priors = clusters.priors
        self.mean_norm_ = (
            float(np.sqrt(spikes.strengths[0] / (4 * priors[0] * priors[1])))
            if len(priors) == 2
            else np.nan
        )
        return self

    def _keep_closed_form(self, statistics: _Statistics) -> Self:
        rates, errors = np.maximum(statistics.rates(), 0), statistics.standard_errors()
        if statistics.agreement.value < _CLEAR_SIGNAL * statistics.agreement.error:
            _warn_of_chance()
        eps_pos, eps_neg = rates * (_LARGEST_SUM / max(rates.sum(), _LARGEST_SUM))
        self.noise_ = NoiseModel.binary(
            eps_pos=eps_pos, eps_neg=eps_neg, pi_neg=statistics.proportion.value
        )
        self.noise_std_ = np.repeat(
            errors[::-1, None], 2, axis=1
        )  # row = true class, negative first
        self.mean_norm_ = float(np.sqrt(statistics.length.value))
        return self


def _warn_of_chance() -> None:
    warn_caller(
        "The labels agree with the rows no better than by chance, so the rates are hardly known: "
        "see noise_std_; check that y belongs to X.",
    )


@dataclass(frozen=True, eq=False)
class _Statistic:
    """A number found from the rows, and the influence of each of them on it (n times what one row moves it by)."""

    value: float
    influence: FloatArray

    @classmethod
    def given(cls, value: float, n: int) -> _Statistic:
        """Take a number that no row has a part in."""
        return cls(float(value), np.zeros(n))

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.sqrt(np.mean(self.influence**2) / len(self.influence)))


@dataclass(frozen=True, eq=False)
class _Statistics:
    """All that the rates depend on."""

    share: _Statistic  # P
    agreement: _Statistic  # F
    length: _Statistic  # u
    proportion: _Statistic  # π₁
    gain: float  # q

    @classmethod
    def of(
        cls,
        spectrum: Spectrum,
        codes: IntArray,
        length: _Statistic,
        proportion: _Statistic,
        reg: float,
    ) -> _Statistics:
        total = float(np.asarray(spectrum.variances).sum())
        label_power = 4 * proportion.value * (1 - proportion.value)
        noise_variance = total / (spectrum.n_varying + label_power * length.value)
        aspect = spectrum.n_varying / spectrum.n
        left_out = spectrum.leave_one_out(2.0 * codes - 1, [reg * noise_variance])
        share = float(codes.mean())
        return cls(
            share=_Statistic(share, np.asarray(codes - share, dtype=float)),
            agreement=_agreement(left_out, aspect, reg),
            length=length,
            proportion=proportion,
            gain=float(bulk_gain(aspect, reg)),
        )

    @property
    def all(self) -> tuple[_Statistic, ...]:
        return self.share, self.agreement, self.length, self.proportion

    def rates(self) -> FloatArray:
        """(ε₊, ε₋), unbounded."""
        return _rates(*(statistic.value for statistic in self.all), gain=self.gain)

    def standard_errors(self) -> FloatArray:
        """Return those of (ε₊, ε₋).

        Derivatives are differences over one standard error, so that they stay finite where F and
        its root vanish.
        """
        values = [statistic.value for statistic in self.all]
        influence = np.zeros((2, len(self.share.influence)))
        for position, statistic in enumerate(self.all):
            if (step := statistic.error) > 0:
                moved = [value + step * (place == position) for place, value in enumerate(values)]
                slope = (_rates(*moved, gain=self.gain) - self.rates()) / step
                influence += np.outer(slope, statistic.influence)
        with np.errstate(over="ignore"):  # a class of next to no row: nothing is known of its rate
            return np.asarray(np.sqrt(np.mean(influence**2, axis=1) / influence.shape[1]))


def _rates(
    share: float, agreement: float, length: float, pi_neg: float, *, gain: float
) -> FloatArray:
    label_power = 4 * pi_neg * (1 - pi_neg)
    reach = length * gain
    signal = np.sqrt(max(agreement, 0.0) * (1 + label_power * reach) / reach) / label_power  # c/v
    return np.array([1 - share - pi_neg * signal, share - (1 - pi_neg) * signal])


def _agreement(left_out: LeaveOneOut, aspect: float, reg: float) -> _Statistic:
    r"""F and the rows' influence on it.

    Up to a factor 1 + δ and the part of the hat values, nF is the quadratic form tᵀHt = Σt² − J,
    with J the least penalised sum of squares. Without row i, Σt² falls by tᵢ² and J by (1 − Hᵢ)(tᵢ
    − sᵢ)², exactly.
    """
    scores = left_out.corrected_scores[:, 0, 0]
    targets = left_out.targets[:, 0]
    centred = targets - targets.mean()
    bulk = float(delta(aspect, reg))
    residuals = targets - left_out.scores[:, 0, 0]
    moved = (1 + bulk) * (centred**2 - left_out.slack[:, 0] * residuals**2) - bulk * centred**2
    value = float(np.mean(centred * (scores - scores.mean())))
    return _Statistic(value, moved - moved.mean())
