r"""Noise rates in closed form, from the covariance of labels and leave-one-out scores.

Regress ỹ = ±1 on the centred rows (ridge γ) and take exact leave-one-out scores sᵢ. They do not
depend on the label of row i, so labels and scores correlate through the true class only. With
c = Cov(ỹ, y), u = ‖μ‖², v = 4π₁π₂ and the bulk gain q = 1/(1 + γ(1 + δ)),

.. math:: F = \mathrm{Cov}(\tilde y_i, s_i) = \frac{c^2\, u q}{1 + v u q}.

Since c = v(1 − ε₊ − ε₋) > 0, c is the positive root. With P = P(ỹ = +), it gives both rates:

.. math:: \varepsilon_+ = 1 - P - \pi_1 c / v, \qquad \varepsilon_- = P - \pi_2 c / v.

Standard errors follow from the influence of each row on P, on F (a jackknife, for which exact
leave-one-out scores need no refit) and on π if it is estimated.
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
from unflip.data.input_rows import validated
from unflip.data.rows import check_magnitude
from unflip.data.training_set import TrainingSet
from unflip.estimation.anchors import LARGEST_RATE_SUM
from unflip.estimation.clusters import (
    SMALLEST_P_VALUE,
    Clusters,
    fit_clusters,
    label_association,
    prior_influence,
    standard_errors,
)
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.estimation.spectral import Spikes, check_has_spike
from unflip.labels.classes import encode
from unflip.labels.noise import NoiseModel
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose
from unflip.ridge.spectrum.left_out import LeaveOneOut
from unflip.theory.resolvent import bulk_gain, delta

#: Smallest ‖μ‖, and the reciprocal of the largest: fourth powers must not overflow float64.
_SHORTEST = 1e-50


class CrossMoment(NoiseEstimator):
    """Noise rates of an isotropic mixture from leave-one-out scores, in closed form.

    The model: x = mean of the class + N(0, σ²I), with the same σ for all classes. σ and the origin
    may be unknown. ‖μ‖ and π are estimated from the spectrum if they are None. If ‖μ‖ is None, or
    there are more than two classes, rates and geometry are fitted together by maximum likelihood
    (see `unflip.estimation.clusters`).

    Parameters
    ----------
    mean_norm : float, optional
        ‖μ‖, half the distance between the two class means in units of σ. None: estimated.
    pi_neg : float, optional
        Proportion of the true negative class. None: estimated.
    reg : float
        Regularization strength γ of the scores, in units of σ². The rates are consistent for
        every γ > 0; large values are most precise.

    Attributes
    ----------
    classes_, noise_, noise_std_
        See `NoiseEstimator`.
    mean_norm_ : float
        ‖μ‖, as passed or estimated; NaN for more than two classes.

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
    source_ = "mixture"
    n_features_in_: int

    def __init__(
        self, *, mean_norm: float | None = None, pi_neg: float | None = None, reg: float = 10.0
    ) -> None:
        self.mean_norm = mean_norm
        self.pi_neg = pi_neg
        self.reg = reg

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Estimate the rates from rows X, dense or sparse, with observed labels y."""
        rows, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=4)
        check_magnitude(rows)
        self.classes_, codes = encode(labels, "CrossMoment")
        return self.fit_spectrum(decompose(rows), codes)

    def fit_from_spectrum(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate from rows that stay on their device, without weights and duplicates."""
        if data.rows.spectrum_weights is not None:
            return super().fit_from_spectrum(data, spectrum)
        return self.fit_spectrum(spectrum, as_numpy(data.codes))

    def fit_spectrum(
        self, spectrum: Spectrum, codes: IntArray, clusters: Clusters | None = None
    ) -> Self:
        """Estimate from the spectrum of centred rows.

        Parameters
        ----------
        spectrum : Spectrum
            Spectrum of the centred rows, all of weight 1.
        codes : ndarray of shape (n,)
            Observed class of each row.
        clusters : Clusters, optional
            Clusters along the spikes, fitted without known priors. None: they are fitted.
        """
        n = len(codes)
        n_classes = int(codes.max()) + 1
        self._check_options(n_classes)
        if self.mean_norm is not None and self.pi_neg is not None:
            proportion = _Statistic.constant(self.pi_neg, n)
        else:
            spikes = Spikes.of(spectrum)
            check_has_spike(spikes)
            priors = None if self.pi_neg is None else np.array([self.pi_neg, 1 - self.pi_neg])
            if clusters is None:
                clusters = fit_clusters(spikes.coordinates, codes, n_classes, priors)
            if self.mean_norm is None:
                return self._keep_clusters(clusters, spikes, codes)
            influence = prior_influence(clusters, spikes.coordinates, codes)[:, 0]
            proportion = _Statistic(float(clusters.priors[0]), influence)
        length = _Statistic.constant(self.mean_norm**2, n)
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
                "must exist."
            )
        if n_classes > 2 and (self.mean_norm is not None or self.pi_neg is not None):
            raise ValueError(
                f"mean_norm and pi_neg describe two classes, but y has {n_classes}: pass neither."
            )

    def _keep_clusters(self, clusters: Clusters, spikes: Spikes, codes: IntArray) -> Self:
        self.noise_ = clusters.noise
        self.noise_std_ = standard_errors(
            clusters, spikes.coordinates, known_priors=self.pi_neg is not None
        )
        if label_association(clusters, spikes.coordinates, codes) > SMALLEST_P_VALUE:
            _warn_of_chance()
        priors = clusters.priors
        self.mean_norm_ = np.nan
        if len(priors) == 2:
            self.mean_norm_ = float(np.sqrt(spikes.strengths[0] / (4 * priors[0] * priors[1])))
        return self

    def _keep_closed_form(self, statistics: _Statistics) -> Self:
        rates = np.maximum(statistics.rates(), 0)
        errors = statistics.standard_errors()
        if statistics.agreement.value < 3 * statistics.agreement.error:
            _warn_of_chance()
        eps_pos, eps_neg = rates * (LARGEST_RATE_SUM / max(rates.sum(), LARGEST_RATE_SUM))
        self.noise_ = NoiseModel.binary(
            eps_pos=eps_pos, eps_neg=eps_neg, pi_neg=statistics.proportion.value
        )
        # Row = true class, negative first.
        self.noise_std_ = np.repeat(errors[::-1, None], 2, axis=1)
        self.mean_norm_ = float(np.sqrt(statistics.length.value))
        return self


def _warn_of_chance() -> None:
    warn_caller(
        "The features predict the labels no better than chance, so the noise rates are uncertain "
        "(see noise_std_): check that the rows of X and y belong together.",
    )


@dataclass(frozen=True, eq=False)
class _Statistic:
    """A statistic, and the influence of each row on it: n times the change by one row."""

    value: float
    influence: FloatArray

    @classmethod
    def constant(cls, value: float, n: int) -> _Statistic:
        """Return a known number, without influence of any row."""
        return cls(float(value), np.zeros(n))

    @property
    def error(self) -> float:
        """Standard error."""
        return float(np.sqrt(np.mean(self.influence**2) / len(self.influence)))


@dataclass(frozen=True, eq=False)
class _Statistics:
    """Statistics that the rates depend on."""

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
        """Return the statistics of rows with this spectrum and these observed classes."""
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
    def estimated(self) -> tuple[_Statistic, ...]:
        return self.share, self.agreement, self.length, self.proportion

    def rates(self) -> FloatArray:
        """Return (ε₊, ε₋), not limited to [0, 1]."""
        return _rates(*(statistic.value for statistic in self.estimated), gain=self.gain)

    def standard_errors(self) -> FloatArray:
        """Return the standard errors of (ε₊, ε₋).

        Derivatives are differences over one standard error, so that they stay finite at F = 0,
        where the derivative of the root is infinite.
        """
        values = [statistic.value for statistic in self.estimated]
        influence = np.zeros((2, len(self.share.influence)))
        for position, statistic in enumerate(self.estimated):
            step = statistic.error
            if statistic is self.proportion and statistic.value + step >= 1:
                step = -step  # a proportion of 1 leaves no positive class
            if step != 0:
                moved = values.copy()
                moved[position] += step
                slope = (_rates(*moved, gain=self.gain) - self.rates()) / step
                influence += np.outer(slope, statistic.influence)
        with np.errstate(over="ignore"):  # the error of a nearly empty class may be infinite
            return np.asarray(np.sqrt(np.mean(influence**2, axis=1) / influence.shape[1]))


def _rates(
    share: float, agreement: float, length: float, pi_neg: float, *, gain: float
) -> FloatArray:
    """Return (ε₊, ε₋), see the module."""
    label_power = 4 * pi_neg * (1 - pi_neg)
    reach = length * gain
    signal = np.sqrt(max(agreement, 0.0) * (1 + label_power * reach) / reach) / label_power  # c/v
    return np.array([1 - share - pi_neg * signal, share - (1 - pi_neg) * signal])


def _agreement(left_out: LeaveOneOut, aspect: float, reg: float) -> _Statistic:
    r"""Return F and the influence of the rows on it.

    Up to a factor 1 + δ and a term of the leverages, nF is the quadratic form tᵀHt = Σt² − J, with
    the minimum J of the regularized sum of squares. Without row i, Σt² falls by tᵢ² and J by
    (1 − Hᵢ)(tᵢ − sᵢ)², exactly.
    """
    scores = left_out.corrected_scores[:, 0, 0]
    targets = left_out.targets[:, 0]
    centred = targets - targets.mean()
    bulk = float(delta(aspect, reg))
    residuals = targets - left_out.scores[:, 0, 0]
    moved = (1 + bulk) * (centred**2 - left_out.slack[:, 0] * residuals**2) - bulk * centred**2
    value = float(np.mean(centred * (scores - scores.mean())))
    return _Statistic(value, moved - moved.mean())
