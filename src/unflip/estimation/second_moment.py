r"""The paper's estimate of the flip rates, from two second moments of leave-one-out scores.

For targets t = s(d + ỹ) the theory's second moment of a new row's score (without intercept) is
linear in E[t·y]² and E[t²], with coefficients A and B that depend on ‖μ‖, p/n and γ alone. Write ȳ
= E[y], a = E[ỹy] and b = E[ỹ]:

.. math::
    \frac{\nu}{s^2} = A\,(a + d\bar y)^2 + B\,(1 + d^2 + 2db), \qquad
    \varepsilon_\pm = \frac12 - \frac{a \pm b}{4\pi_\pm}.

Subtract what is known, n = ν/s² − A d²ȳ² − B(1 + d²) = A a² + 2d(A ȳ a + B b). Two targets with
different d give two linear equations for A a² and A ȳ a + B b, so the paper's system has exactly
two solutions, in closed form:

.. math::
    A a^2 = \frac{d_2 n_1 - d_1 n_2}{d_2 - d_1}, \qquad
    A \bar y a + B b = \frac{n_2 - n_1}{2 (d_2 - d_1)}.

They differ in the sign of a: labels that are right more often than not, or less often. The second
can have ε₊ + ε₋ < 1 too, but never where the classes are balanced, because a = 1 − ε₊ − ε₋ there.
The determinant of the system is 4ABa(d₂ − d₁): it cannot tell the rates where labels agree with the
truth half of the time (a = 0), nor where 1 + ‖μ‖² = 2ηq(1 + q‖μ‖²), q = 1/(1 + γ(1 + δ)), at which
A = 0. Equal d, that is equal ρ₊ − ρ₋, gives the same equation twice.
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
from unflip.data.centred import check_magnitude
from unflip.data.lazy import validated
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.labels.classes import encode
from unflip.labels.noise import NoiseModel
from unflip.ridge.selection import given_reg
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose
from unflip.ridge.spectrum.left_out import LeaveOneOut
from unflip.theory.isotropic import TargetMoments, predict_from_moments
from unflip.theory.model import Mixture

_MARGIN = 1e-6  # by which ε₊ + ε₋ stays below 1
_ROUNDING = 1e-9  # a root this little outside is one on the edge
_SAME_DIFFERENCE = 1e-9
_WIDEST = 1.0  # the range of a rate: no standard error says more than this
_STARTS = [(total, share) for total in (0.2, 0.5, 0.8) for share in (0.1, 0.5, 0.9)]
_ROWS_LEFT_OUT = 250  # by the jackknife: so many give its standard errors to about 5%


class SecondMomentMatching(NoiseEstimator):
    r"""Flip rates that explain two second moments of the scores: the paper's estimator.

    It solves ν̂(ρ¹) = ν(ρ¹; ε₊, ε₋) and ν̂(ρ²) = ν(ρ²; ε₊, ε₋), where the left-hand sides average
    the squares of exact leave-one-out scores of a ridge fit without intercept, and ν is the
    theory's for rows ±μ + N(0, I):

    .. math:: \hat\nu(\rho) = \frac1n \sum_i \bigl(x_i^\top w_\rho^{(-i)}\bigr)^2.

    It is here as the reference. `CrossMoment` uses the observed proportions of the labels as well,
    which this one does not, and errs less.

    Parameters
    ----------
    mean_norm : float
        ‖μ‖, half the distance between the class means, known beforehand.
    pi_neg : float
        π₁, the true proportion of the negative class (the first in sorted order), known beforehand.
    reg : float
        Ridge penalty γ of (1/n)Σ(t − wᵀx)² + γ‖w‖². Strong penalties make the two equations nearly
        the same.
    rho_pairs : pair of (rho_pos, rho_neg)
        The two pairs (ρ₊, ρ₋); their differences ρ₊ − ρ₋ must differ.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels, sorted.
    noise_ : NoiseModel
        The estimated rates, with the given proportions. Where two solutions are possible rates, the
        one is taken that agrees better with the observed proportion of positive labels, P(ỹ=+) =
        π₂(1 − ε₊) + π₁ε₋; it is used for nothing else.
    noise_std_ : ndarray of shape (2, 2)
        Standard errors of ``noise_.transition``, by the delta method from a jackknife of the two
        moments. They err on the large side (the jackknife counts what rows do together more than
        once), are at most 1, and mean little where they are not small against the rates.
    root_inside_ : bool
        Whether some possible rates reproduce both moments; if not, ``noise_`` holds those that come
        nearest.
    residual_ : float
        Root mean square of the two relative misfits ν/ν̂ − 1; 0 where ``root_inside_``, up to
        rounding.
    second_moments_ : ndarray of shape (2,)
        ν̂ for each pair.
    mean_norm_ : float
        ‖μ‖ as given.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    It lives on high dimension. Only B, which falls with p/n, tells ε₊ from ε₋: with p fixed, the
    errors of the single rates *grow* with the number of rows, like √n/p.

    The origin has to be the midpoint of the class means and the noise has to be isotropic with
    variance 1: centre and whiten the rows first. Scores share one fit, so that their squares are
    far from independent: taking them to be so would understate the spread of the two moments, by a
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
            Observed labels of two classes; the later in sorted order is positive.
        """
        rows, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_magnitude(rows)
        self.classes_, codes = encode(labels, "SecondMomentMatching")
        if len(self.classes_) > 2:
            raise ValueError(
                f"SecondMomentMatching takes two classes, but y holds {len(self.classes_)}: keep "
                "the rows of two, or use TrustedSubset."
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
            system.targets.T[codes], given_reg(self.reg, spectrum, readout="plain")
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
        self.root_inside_, self.residual_ = match.inside, match.residual
        if not match.inside:
            warn(
                "No flip rates reproduce both second moments, so noise_ holds those that come "
                f"nearest (relative misfit {match.residual:.2g}): use CrossMoment, or another reg "
                "or other rho_pairs.",
                UserWarning,
                stacklevel=3,
            )


@dataclass(frozen=True, eq=False)
class MomentSystem:
    """Second moments of the scores as a function of the flip rates; the symbols are those of the module."""

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
        """P(ỹ=+) = π₂(1 − ε₊) + π₁ε₋."""
        return (1 - self.pi_neg) * (1 - eps_pos) + self.pi_neg * eps_neg

    def second_moments(self, eps_pos: float, eps_neg: float) -> FloatArray:
        """ν of both pairs."""
        agreement = 1 - 2 * (1 - self.pi_neg) * eps_pos - 2 * self.pi_neg * eps_neg
        balance = self.label_mean - 2 * (1 - self.pi_neg) * eps_pos + 2 * self.pi_neg * eps_neg
        aligned = self.alignment_gain * (agreement + self.shifts * self.label_mean) ** 2
        power = self.power_gain * (1 + self.shifts**2 + 2 * self.shifts * balance)
        moments: FloatArray = self.scales**2 * (aligned + power)
        return moments

    def jacobian(self, eps_pos: float, eps_neg: float) -> FloatArray:
        """Differentiate ν: row = pair, columns ε₊ and ε₋."""
        agreement = 1 - 2 * (1 - self.pi_neg) * eps_pos - 2 * self.pi_neg * eps_neg
        by_agreement = 2 * self.alignment_gain * (agreement + self.shifts * self.label_mean)
        by_balance = 2 * self.power_gain * self.shifts
        by_rates = np.column_stack([by_agreement + by_balance, by_agreement - by_balance])
        table: FloatArray = (
            self.scales[:, None] ** 2 * by_rates * [-2 * (1 - self.pi_neg), -2 * self.pi_neg]
        )
        return table

    def roots(self, moments: FloatArray) -> list[tuple[float, float]]:
        """Both pairs (ε₊, ε₋) that have these second moments, probabilities or not; none where they are not real."""
        d, y_mean = self.shifts, self.label_mean
        known = self.alignment_gain * (d * y_mean) ** 2 + self.power_gain * (1 + d**2)
        n = moments / self.scales**2 - known
        with np.errstate(divide="ignore", invalid="ignore"):  # what is not finite is no root
            squared_agreement = (
                (d[1] * n[0] - d[0] * n[1]) / (d[1] - d[0]) / np.float64(self.alignment_gain)
            )
        if not 0 <= squared_agreement < np.inf:
            return []
        return [
            self._rates(agreement, (n[1] - n[0]) / (2 * (d[1] - d[0])))
            for agreement in (np.sqrt(squared_agreement), -np.sqrt(squared_agreement))
        ]

    def _rates(self, agreement: float, mixed: float) -> tuple[float, float]:
        """(ε₊, ε₋) from a and A ȳ a + B b."""
        balance = (mixed - self.alignment_gain * self.label_mean * agreement) / self.power_gain
        eps_pos = 0.5 - (agreement + balance) / (4 * (1 - self.pi_neg))
        eps_neg = 0.5 - (agreement - balance) / (4 * self.pi_neg)
        return float(eps_pos), float(eps_neg)


@dataclass(frozen=True)
class Match:
    """The flip rates that explain two second moments, or come nearest."""

    eps_pos: float
    eps_neg: float
    inside: bool
    residual: float


def moment_system(
    *, mean_norm: float, pi_neg: float, aspect: float, reg: float, rho_pairs: ArrayLike
) -> MomentSystem:
    """Return the equations for checked parameters; see `SecondMomentMatching`."""
    length = _checked_positive(
        mean_norm, "mean_norm", "‖μ‖, half the distance between the class means"
    )
    penalty = _checked_positive(reg, "reg", "the ridge penalty γ, for example 0.1")
    prior = as_number(pi_neg, "pi_neg")
    if not 0 < prior < 1:
        raise ValueError(
            f"pi_neg = {shown(pi_neg)} must lie strictly between 0 and 1: give the negative "
            "class's proportion."
        )
    alignment_gain, power_gain = _gains(length, aspect, penalty)
    return MomentSystem(alignment_gain, power_gain, prior, _checked_targets(rho_pairs))


def match_moments(moments: FloatArray, system: MomentSystem, *, positive_share: float) -> Match:
    """Solve for the flip rates.

    Parameters
    ----------
    moments : ndarray of shape (2,)
        ν̂ of both pairs.
    system : MomentSystem
        The equations.
    positive_share : float
        Observed P(ỹ=+), which chooses between two roots inside.
    """
    inside = [_clipped(root) for root in system.roots(moments) if _possible(*root)]
    if inside:
        eps_pos, eps_neg = min(
            inside, key=lambda root: abs(system.positive_share(*root) - positive_share)
        )
    else:
        eps_pos, eps_neg = _nearest(moments, system)
    misfit = system.second_moments(eps_pos, eps_neg) / moments - 1
    return Match(eps_pos, eps_neg, bool(inside), float(np.sqrt(np.mean(misfit**2))))


def jackknife_covariance(left_out: LeaveOneOut, residual_maker: FloatArray) -> FloatArray:
    r"""Covariance of the two second moments, from leaving out every row in turn (or an even sample of the rows).

    With R = I − H, the fit without rows i and j gives row i the score

    .. math:: t_i - \frac{R_{jj} r_i - R_{ij} r_j}{R_{ii} R_{jj} - R_{ij}^2}, \qquad r = Rt.

    Parameters
    ----------
    left_out : LeaveOneOut
        The fits without one row.
    residual_maker : ndarray of shape (n, n_left_out)
        Columns of R that belong to the rows `left_out_rows`.
    """
    n, others = len(residual_maker), left_out_rows(len(residual_maker))
    slack, residuals = left_out.slack[:, 0], left_out.residuals[:, 0, :]
    determinant = slack[:, None] * slack[others] - residual_maker**2
    determinant[others, np.arange(len(others))] = (
        np.inf
    )  # no pair; what it leaves is taken off below
    without = np.empty((2, len(others)))
    with np.errstate(
        all="ignore"
    ):  # two rows that alone determine a direction leave the error undefined
        for pair in range(2):
            gap = (
                slack[others] * residuals[:, [pair]] - residual_maker * residuals[others, pair]
            ) / determinant
            squares = (left_out.targets[:, [pair]] - gap) ** 2
            without[pair] = (squares.sum(axis=0) - left_out.targets[others, pair] ** 2) / (n - 1)
        return np.asarray((n - 1) ** 2 / n * np.cov(without))


def left_out_rows(n: int) -> IntArray:
    """Rows that the jackknife leaves out."""
    return np.unique(np.linspace(0, n - 1, min(n, _ROWS_LEFT_OUT)).astype(np.intp))


def standard_errors(jacobian: FloatArray, covariance: FloatArray) -> FloatArray:
    """Delta method, capped at the range of a rate; a system that does not tell the rates gives that range."""
    cofactors = np.array([[jacobian[1, 1], -jacobian[0, 1]], [-jacobian[1, 0], jacobian[0, 0]]])
    with np.errstate(all="ignore"):  # what is not finite is the widest
        inverse = cofactors / (jacobian[0, 0] * jacobian[1, 1] - jacobian[0, 1] * jacobian[1, 0])
        errors = np.sqrt(np.diag(inverse @ covariance @ inverse.T))
    return np.minimum(np.where(np.isfinite(errors), errors, _WIDEST), _WIDEST)


def _gains(mean_norm: float, aspect: float, reg: float) -> tuple[float, float]:
    """Read A and B off the theory, at (E[t·y], E[t²]) = (1, 1) and (0, 1)."""
    # Without an intercept the priors enter through these two moments only; any will do.
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
    moments: FloatArray = np.mean(left_out.scores[:, 0, :] ** 2, axis=0)
    if not (np.isfinite(moments) & (moments > 0)).all():
        raise ValueError(
            f"The second moments of the scores are {moments.tolist()}, which no mixture has: scale "
            "the rows so that their noise has variance 1, or use another reg."
        )
    return moments


def _residual_maker(spectrum: Spectrum, n: int, reg: float) -> FloatArray:
    """Columns of I − H: the residuals of unit targets."""
    units = np.zeros((n, len(left_out_rows(n))))
    units[left_out_rows(n), np.arange(units.shape[1])] = 1
    return np.asarray(spectrum.leave_one_out(units, [reg]).residuals[:, 0, :])


def _nearest(moments: FloatArray, system: MomentSystem) -> tuple[float, float]:
    """Least relative misfit over the triangle, in (ε₊ + ε₋, share of ε₊ in it), which make it a box."""

    def misfit(point: FloatArray) -> FloatArray:
        relative: FloatArray = system.second_moments(*_unpacked(point)) / moments - 1
        return relative

    bounds = ([0.0, 0.0], [1 - _MARGIN, 1.0])
    solutions = [least_squares(misfit, start, bounds=bounds) for start in _STARTS]
    return _unpacked(min(solutions, key=lambda solution: float(solution.cost)).x)


def _unpacked(point: FloatArray) -> tuple[float, float]:
    total, share = map(float, point)
    return total * share, total * (1 - share)


def _possible(eps_pos: float, eps_neg: float) -> bool:
    return min(eps_pos, eps_neg) >= -_ROUNDING and eps_pos + eps_neg <= 1 - _MARGIN


def _clipped(root: tuple[float, float]) -> tuple[float, float]:
    return max(root[0], 0.0), max(root[1], 0.0)


def _checked_positive(value: float, name: str, meaning: str) -> float:
    number = as_number(value, name)
    if not 0 < number < np.inf:
        raise ValueError(f"{name} = {shown(value)} must be a positive number: give {meaning}.")
    return number


def _checked_targets(rho_pairs: ArrayLike) -> FloatArray:
    """Targets of both pairs, or an error where they do not give two equations."""
    pairs = as_floats(rho_pairs, "rho_pairs")
    if pairs.shape != (2, 2):
        raise ValueError(
            f"rho_pairs = {shown(rho_pairs)} must be two pairs (rho_pos, rho_neg), for example "
            "((0, 0.1), (0, 0.4))."
        )
    table = np.array([target_values.from_rho(*pair) for pair in pairs])
    differences = pairs[:, 0] - pairs[:, 1]
    if abs(differences[1] - differences[0]) <= _SAME_DIFFERENCE * np.abs(pairs).max(initial=1.0):
        raise ValueError(
            f"rho_pairs = {rho_pairs!r} have the same difference rho_pos - rho_neg = "
            f"{differences[0]:g}, so that their targets are multiples of each other and give one "
            "equation for two rates: change one of the pairs."
        )
    return table
