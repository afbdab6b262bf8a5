r"""The paper's estimator of the noise rates, from two second moments of leave-one-out scores.

For targets t = s(d + ỹ), the second moment ν of the score of a new row (without intercept) is
linear in E[t·y]² and E[t²], with coefficients A and B that depend on ‖μ‖, p/n and γ only. Write ȳ
= E[y], a = E[ỹy] and b = E[ỹ]:

.. math::
    \frac{\nu}{s^2} = A\,(a + d\bar y)^2 + B\,(1 + d^2 + 2db), \qquad
    \varepsilon_\pm = \frac12 - \frac{a \pm b}{4\pi_\pm}.

Subtract the known terms: n = ν/s² − A d²ȳ² − B(1 + d²) = A a² + 2d(A ȳ a + B b). Two targets with
different d give two linear equations for A a² and A ȳ a + B b, so the paper's system has exactly
two solutions, in closed form:

.. math::
    A a^2 = \frac{d_2 n_1 - d_1 n_2}{d_2 - d_1}, \qquad
    A \bar y a + B b = \frac{n_2 - n_1}{2 (d_2 - d_1)}.

They differ in the sign of a: more than half of the labels are right, or less than half. The second
solution can have ε₊ + ε₋ < 1 too, but never with balanced classes, where a = 1 − ε₊ − ε₋.

The determinant of the system is 4ABa(d₂ − d₁). The rates are not identifiable if half of the labels
are right (a = 0), or if 1 + ‖μ‖² = 2ηq(1 + q‖μ‖²) with q = 1/(1 + γ(1 + δ)), where A = 0. Equal d,
that is equal ρ₊ − ρ₋, give the same equation twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from unflip import targets as target_values
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_floats, as_number, shown
from unflip.data.input_rows import validated
from unflip.data.rows import check_magnitude
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.labels.classes import encode
from unflip.labels.noise import NoiseModel
from unflip.ridge.selection import fixed_reg
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose
from unflip.ridge.spectrum.left_out import LeaveOneOut
from unflip.theory.isotropic import TargetMoments, predict_from_moments
from unflip.theory.model import Mixture

#: ε₊ + ε₋ is at most 1 minus this, because labels carry no information at 1. Even 1e-3 changes no
#: test of the module, and rates of simulated data by less than 1e-10.
_MARGIN = 1e-6
#: Tolerance for rounding: of negative rates, and of equal differences ρ₊ − ρ₋. Half and double
#: change nothing on simulated data.
_ROUNDING = 1e-9
#: Starting values of (ε₊ + ε₋, share of ε₊ in it), a grid over the possible rates: safety against
#: local minima. On simulated data a single start, or 35, lead to the same rates.
_STARTS = [(total, share) for total in (0.2, 0.5, 0.8) for share in (0.1, 0.5, 0.9)]
#: Rows left out by the jackknife, which gives its standard errors to about 5%: 1/√(2·250).
_ROWS_LEFT_OUT = 250


class SecondMomentMatching(NoiseEstimator):
    r"""Noise rates that match two second moments of the scores: the paper's estimator.

    It solves ν̂(ρ¹) = ν(ρ¹; ε₊, ε₋) and ν̂(ρ²) = ν(ρ²; ε₊, ε₋). ν̂ is the mean square of exact
    leave-one-out scores of a ridge fit without intercept, and ν its value in theory for rows
    ±μ + N(0, I):

    .. math:: \hat\nu(\rho) = \frac1n \sum_i \bigl(x_i^\top w_\rho^{(-i)}\bigr)^2.

    It is provided for reference. `CrossMoment` uses the observed class proportions too, and has
    smaller errors.

    Parameters
    ----------
    mean_norm : float
        ‖μ‖, half the distance between the class means.
    pi_neg : float
        π₁, the true proportion of the negative class (the first in sorted order).
    reg : float
        Regularization strength γ of (1/n)Σ(t − wᵀx)² + γ‖w‖². With a large γ, the two equations
        are nearly the same.
    rho_pairs : pair of (rho_pos, rho_neg)
        The two pairs (ρ₊, ρ₋), with different ρ₊ − ρ₋.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels, sorted.
    noise_ : NoiseModel
        Estimated rates, with priors from `pi_neg`. If both solutions are valid, the one that
        agrees better with the observed proportion of positive labels is taken, P(ỹ=+) =
        π₂(1 − ε₊) + π₁ε₋.
    noise_std_ : ndarray of shape (2, 2)
        Standard errors of ``noise_.transition``, by the delta method from a jackknife of the two
        moments. They are conservative (the jackknife counts joint effects of rows more than once),
        at most 1, and unreliable unless they are small compared with the rates.
    root_inside_ : bool
        Whether valid rates reproduce both moments. If not, ``noise_`` holds the nearest ones.
    residual_ : float
        Root mean square of the two relative misfits ν/ν̂ − 1; 0 up to rounding if
        ``root_inside_``.
    second_moments_ : ndarray of shape (2,)
        ν̂ for each pair.
    mean_norm_ : float
        ‖μ‖ as passed.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    The estimator requires high dimension. Only B, which decreases with p/n, separates ε₊ and ε₋:
    with p fixed, the errors of the single rates *grow* with the number of rows, like √n/p.

    The origin must be the midpoint of the class means, and the noise isotropic with variance 1:
    centre and whiten the rows first. Squared scores of different rows are not independent.
    Treating them as independent would understate the standard errors of the two moments, by a
    factor of 1.5 to 12 at n = 1000, p = 100.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(4000, 400, mean_norm=2.0, priors=[1 / 3, 2 / 3], random_state=0)
    >>> observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2).flip(y, random_state=0)
    >>> estimator = SecondMomentMatching(mean_norm=2.0, pi_neg=1 / 3).fit(X, observed)
    >>> print(f"{estimator.noise_.eps_pos:.2f} {estimator.noise_.eps_neg:.2f}")
    0.29 0.22
    """

    source_ = "mixture"

    def __init__(
        self,
        *,
        mean_norm: float,
        pi_neg: float,
        reg: float = 0.1,
        rho_pairs: ArrayLike = ((0.0, 0.1), (0.0, 0.4)),
    ) -> None:
        self.mean_norm = mean_norm
        self.pi_neg = pi_neg
        self.reg = reg
        self.rho_pairs = rho_pairs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Estimate the rates.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Rows, with the origin at the midpoint of the class means.
        y : array-like of shape (n,)
            Observed labels of two classes; the last in sorted order is positive.
        """
        rows, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_magnitude(rows)
        self.classes_, codes = encode(labels, "SecondMomentMatching")
        if len(self.classes_) > 2:
            raise ValueError(
                f"SecondMomentMatching requires two classes, but y holds {len(self.classes_)}: "
                "keep the rows of two classes, or use TrustedSubset."
            )
        system = moment_system(
            mean_norm=self.mean_norm,
            pi_neg=self.pi_neg,
            aspect=rows.shape[1] / len(codes),
            reg=self.reg,
            rho_pairs=self.rho_pairs,
        )
        spectrum = decompose(rows, fit_intercept=False)
        left_out = spectrum.leave_one_out(
            system.targets.T[codes], fixed_reg(self.reg, spectrum, readout="plain")
        )
        self.second_moments_ = _second_moments(left_out)
        match = match_moments(self.second_moments_, system, positive_share=float(codes.mean()))
        covariance = jackknife_covariance(
            left_out, _residual_maker(spectrum, len(codes), float(self.reg))
        )
        self._store(match, system, covariance)
        return self

    def _store(self, match: Match, system: MomentSystem, covariance: FloatArray) -> None:
        self.mean_norm_ = float(self.mean_norm)
        self.noise_ = NoiseModel.binary(
            eps_pos=match.eps_pos, eps_neg=match.eps_neg, pi_neg=float(self.pi_neg)
        )
        std_pos, std_neg = standard_errors(
            system.jacobian(match.eps_pos, match.eps_neg), covariance
        )
        self.noise_std_ = np.array([[std_neg, std_neg], [std_pos, std_pos]])
        self.root_inside_ = match.inside
        self.residual_ = match.residual
        if not match.inside:
            warn(
                "No noise rates reproduce both second moments, so noise_ holds the nearest ones "
                f"(relative misfit {match.residual:.2g}): use CrossMoment, or another reg or other "
                "rho_pairs.",
                UserWarning,
                stacklevel=3,
            )


@dataclass(frozen=True, eq=False)
class MomentSystem:
    """Second moments of the scores as a function of the rates; for symbols see the module."""

    alignment_gain: float  # A
    power_gain: float  # B
    pi_neg: float
    targets: FloatArray  # row = pair, columns t₋ and t₊

    @property
    def scales(self) -> FloatArray:
        """Half the distance s between the two targets."""
        half: FloatArray = (self.targets[:, 1] - self.targets[:, 0]) / 2
        return half

    @property
    def shifts(self) -> FloatArray:
        """Middle d of the two targets in units of s: ρ₊ − ρ₋."""
        middle: FloatArray = (self.targets[:, 1] + self.targets[:, 0]) / 2 / self.scales
        return middle

    @property
    def label_mean(self) -> float:
        """ȳ = π₂ − π₁."""
        return 1 - 2 * self.pi_neg

    def positive_share(self, eps_pos: float, eps_neg: float) -> float:
        """Return P(ỹ=+) = π₂(1 − ε₊) + π₁ε₋."""
        return (1 - self.pi_neg) * (1 - eps_pos) + self.pi_neg * eps_neg

    def second_moments(self, eps_pos: float, eps_neg: float) -> FloatArray:
        """Return ν of both pairs."""
        agreement = 1 - 2 * (1 - self.pi_neg) * eps_pos - 2 * self.pi_neg * eps_neg
        balance = self.label_mean - 2 * (1 - self.pi_neg) * eps_pos + 2 * self.pi_neg * eps_neg
        aligned = self.alignment_gain * (agreement + self.shifts * self.label_mean) ** 2
        power = self.power_gain * (1 + self.shifts**2 + 2 * self.shifts * balance)
        moments: FloatArray = self.scales**2 * (aligned + power)
        return moments

    def jacobian(self, eps_pos: float, eps_neg: float) -> FloatArray:
        """Return the derivatives of ν: row = pair, columns ε₊ and ε₋."""
        agreement = 1 - 2 * (1 - self.pi_neg) * eps_pos - 2 * self.pi_neg * eps_neg
        by_agreement = 2 * self.alignment_gain * (agreement + self.shifts * self.label_mean)
        by_balance = 2 * self.power_gain * self.shifts
        by_rates = np.column_stack([by_agreement + by_balance, by_agreement - by_balance])
        jacobian: FloatArray = (
            self.scales[:, None] ** 2 * by_rates * [-2 * (1 - self.pi_neg), -2 * self.pi_neg]
        )
        return jacobian

    def roots(self, moments: FloatArray) -> list[tuple[float, float]]:
        """Return both solutions (ε₊, ε₋), valid rates or not; empty if they are complex."""
        d = self.shifts
        known_terms = self.alignment_gain * (d * self.label_mean) ** 2 + self.power_gain * (
            1 + d**2
        )
        n = moments / self.scales**2 - known_terms
        with np.errstate(divide="ignore", invalid="ignore"):  # checked below
            squared_agreement = (
                (d[1] * n[0] - d[0] * n[1]) / (d[1] - d[0]) / np.float64(self.alignment_gain)
            )
        if not 0 <= squared_agreement < np.inf:
            return []
        mixed = (n[1] - n[0]) / (2 * (d[1] - d[0]))
        agreement = np.sqrt(squared_agreement)
        return [self._rates(agreement, mixed), self._rates(-agreement, mixed)]

    def _rates(self, agreement: float, mixed: float) -> tuple[float, float]:
        """Return (ε₊, ε₋) from a and A ȳ a + B b."""
        balance = (mixed - self.alignment_gain * self.label_mean * agreement) / self.power_gain
        eps_pos = 0.5 - (agreement + balance) / (4 * (1 - self.pi_neg))
        eps_neg = 0.5 - (agreement - balance) / (4 * self.pi_neg)
        return float(eps_pos), float(eps_neg)


@dataclass(frozen=True)
class Match:
    """Noise rates that match two second moments, or the nearest ones."""

    eps_pos: float
    eps_neg: float
    inside: bool
    residual: float


def moment_system(
    *, mean_norm: float, pi_neg: float, aspect: float, reg: float, rho_pairs: ArrayLike
) -> MomentSystem:
    """Return the equations after validating the parameters of `SecondMomentMatching`."""
    length = _checked_positive(
        mean_norm, "mean_norm", "‖μ‖, half the distance between the class means"
    )
    gamma = _checked_positive(reg, "reg", "the regularization strength γ, for example 0.1")
    prior = as_number(pi_neg, "pi_neg")
    if not 0 < prior < 1:
        raise ValueError(
            f"pi_neg = {shown(pi_neg)} must lie strictly between 0 and 1: pass the proportion of "
            "the negative class."
        )
    alignment_gain, power_gain = _gains(length, aspect, gamma)
    return MomentSystem(alignment_gain, power_gain, prior, _checked_targets(rho_pairs))


def match_moments(moments: FloatArray, system: MomentSystem, *, positive_share: float) -> Match:
    """Solve for the noise rates.

    Parameters
    ----------
    moments : ndarray of shape (2,)
        ν̂ of both pairs.
    system : MomentSystem
        The equations.
    positive_share : float
        Observed P(ỹ=+), which decides between two valid solutions.
    """
    inside = [_clipped(root) for root in system.roots(moments) if _is_valid(*root)]
    if inside:
        eps_pos, eps_neg = min(
            inside, key=lambda root: abs(system.positive_share(*root) - positive_share)
        )
    else:
        eps_pos, eps_neg = _nearest(moments, system)
    misfit = system.second_moments(eps_pos, eps_neg) / moments - 1
    return Match(eps_pos, eps_neg, bool(inside), float(np.sqrt(np.mean(misfit**2))))


def jackknife_covariance(left_out: LeaveOneOut, residual_maker: FloatArray) -> FloatArray:
    r"""Return the jackknife covariance of the two second moments.

    With R = I − H, the fit without rows i and j gives row i the score

    .. math:: t_i - \frac{R_{jj} r_i - R_{ij} r_j}{R_{ii} R_{jj} - R_{ij}^2}, \qquad r = Rt.

    Parameters
    ----------
    left_out : LeaveOneOut
        The fits without one row.
    residual_maker : ndarray of shape (n, n_left_out)
        Columns of R for the rows `left_out_rows`.
    """
    n = len(residual_maker)
    rows = left_out_rows(n)
    slack = left_out.slack[:, 0]
    residuals = left_out.residuals[:, 0, :]
    determinant = slack[:, None] * slack[rows] - residual_maker**2
    # No pair with itself: its term is t_j², which is subtracted below.
    determinant[rows, np.arange(len(rows))] = np.inf
    moments = np.empty((2, len(rows)))
    with np.errstate(all="ignore"):  # undefined if two rows alone determine a direction
        for pair in range(2):
            targets = left_out.targets[:, pair]
            gap = (
                slack[rows] * residuals[:, [pair]] - residual_maker * residuals[rows, pair]
            ) / determinant
            squares = (targets[:, None] - gap) ** 2
            moments[pair] = (squares.sum(axis=0) - targets[rows] ** 2) / (n - 1)
        return np.asarray((n - 1) ** 2 / n * np.cov(moments))


def left_out_rows(n: int) -> IntArray:
    """Return the rows that the jackknife leaves out, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, _ROWS_LEFT_OUT)).astype(np.intp))


def standard_errors(jacobian: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return standard errors of the rates by the delta method, at most 1, the range of a rate."""
    cofactors = np.array([[jacobian[1, 1], -jacobian[0, 1]], [-jacobian[1, 0], jacobian[0, 0]]])
    with np.errstate(all="ignore"):  # a singular system gives errors of 1
        inverse = cofactors / (jacobian[0, 0] * jacobian[1, 1] - jacobian[0, 1] * jacobian[1, 0])
        errors = np.sqrt(np.diag(inverse @ covariance @ inverse.T))
    return np.minimum(np.where(np.isfinite(errors), errors, 1.0), 1.0)


def _gains(mean_norm: float, aspect: float, reg: float) -> tuple[float, float]:
    """Return A and B from the theory at (E[t·y], E[t²]) = (1, 1) and (0, 1)."""
    # Without an intercept, the priors enter through these two moments only: their value is free.
    mixture = Mixture(
        mean_norm=mean_norm, aspect=aspect, noise=NoiseModel.none().with_priors([0.5, 0.5])
    )
    both, power_only = (
        predict_from_moments(
            TargetMoments(alignment=alignment, misfit=1 - alignment**2, label_power=1.0, mean=0.0),
            mixture,
            reg,
            fit_intercept=False,
        ).second_moment
        for alignment in (1.0, 0.0)
    )
    return float(both - power_only), float(power_only)


def _second_moments(left_out: LeaveOneOut) -> FloatArray:
    """Return ν̂ of both pairs."""
    moments: FloatArray = np.mean(left_out.scores[:, 0, :] ** 2, axis=0)
    if not (np.isfinite(moments) & (moments > 0)).all():
        raise ValueError(
            f"The second moments of the scores are {moments.tolist()}, but they must be positive "
            "and finite: scale the rows so that their noise has variance 1, or use another reg."
        )
    return moments


def _residual_maker(spectrum: Spectrum, n: int, reg: float) -> FloatArray:
    """Return columns of I − H, the residuals of unit targets, for `left_out_rows`."""
    rows = left_out_rows(n)
    units = np.zeros((n, len(rows)))
    units[rows, np.arange(len(rows))] = 1
    return np.asarray(spectrum.leave_one_out(units, [reg]).residuals[:, 0, :])


def _nearest(moments: FloatArray, system: MomentSystem) -> tuple[float, float]:
    """Return the rates with the smallest relative misfit.

    The valid rates form a triangle. In (ε₊ + ε₋, share of ε₊ in it) they form a box.
    """

    def misfit(point: FloatArray) -> FloatArray:
        relative: FloatArray = system.second_moments(*_unpacked(point)) / moments - 1
        return relative

    bounds = ([0.0, 0.0], [1 - _MARGIN, 1.0])
    solutions = [least_squares(misfit, start, bounds=bounds) for start in _STARTS]
    return _unpacked(min(solutions, key=lambda solution: float(solution.cost)).x)


def _unpacked(point: FloatArray) -> tuple[float, float]:
    total, share = map(float, point)
    return total * share, total * (1 - share)


def _is_valid(eps_pos: float, eps_neg: float) -> bool:
    return min(eps_pos, eps_neg) >= -_ROUNDING and eps_pos + eps_neg <= 1 - _MARGIN


def _clipped(root: tuple[float, float]) -> tuple[float, float]:
    return max(root[0], 0.0), max(root[1], 0.0)


def _checked_positive(value: float, name: str, meaning: str) -> float:
    number = as_number(value, name)
    if not 0 < number < np.inf:
        raise ValueError(f"{name} = {shown(value)} must be a positive number: pass {meaning}.")
    return number


def _checked_targets(rho_pairs: ArrayLike) -> FloatArray:
    """Return the targets of both pairs; raises `ValueError` unless they give two equations."""
    pairs = as_floats(rho_pairs, "rho_pairs")
    if pairs.shape != (2, 2):
        raise ValueError(
            f"rho_pairs = {shown(rho_pairs)} must be two pairs (rho_pos, rho_neg), for example "
            "((0, 0.1), (0, 0.4))."
        )
    targets = np.array([target_values.from_rho(*pair) for pair in pairs])
    differences = pairs[:, 0] - pairs[:, 1]
    if abs(differences[1] - differences[0]) <= _ROUNDING * np.abs(pairs).max(initial=1.0):
        raise ValueError(
            f"rho_pairs = {rho_pairs!r} have the same difference rho_pos - rho_neg = "
            f"{differences[0]:g}, so their targets are multiples of each other and give one "
            "equation for two rates: change one of the pairs."
        )
    return targets
