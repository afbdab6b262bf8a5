r"""Do the features predict the labels better than chance? The test that everything reported has to pass.

With an intercept leave-one-out scores are linear in the targets, s − t̄ = N(t − t̄), and N has no
diagonal. So where labels have nothing to do with features, the agreement A = Σᵢ wᵢ(tᵢ − t̄)ᵀ(sᵢ −
t̄) has mean 0 and a variance of at most

.. math:: \operatorname{Var} A \le 2 \lVert V \rVert_F^2 \sum_i w_i^2 (N N^\top)_{ii},

V the covariance of the targets and N in coordinates that weigh rows by √w. Without an intercept s −
t̄N1 stands in the place of s − t̄. The correlation of scores and labels is no such test: where
scores hardly vary but for what leaving out the row itself does to them, it can be 1 by chance. A is
a quadratic form, so with few features, or few that dominate, its distribution is skewed: it is
taken to be a chi-square one of the same skewness, 8/ν = γ₁², and made normal by the cube root of
Wilson and Hilferty (1931).

With the centring P, the hat matrix H without the intercept's share, the residual maker R = P − H, d
its diagonal and eᵢ = 1 − σᵢ(1 − dᵢ) the slack of a row that leaves with a share σᵢ of its weight
wᵢ, N = cP − R/e, where cᵢ = n/(n − σᵢwᵢ) with an intercept and 1 without.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.arrays import as_numpy
from unflip._utils.typing import Array, FloatArray
from unflip.data.duplicates import DistinctRows
from unflip.ridge.spectrum.base import Spectrum

#: Standard errors beyond chance from which on features surely predict the labels, and up to which they may as well not.
#: Of 1,919 draws without signal a tenth went beyond 1.5; of 4,169 draws 9 went beyond 3, and none beyond 4.
SURE, UNSURE = 4.0, 1.5
PROBABLE = (SURE + UNSURE) / 2
_LEAST_SKEWNESS = 1e-6  # a chi-square distribution of less is normal to rounding
_ROUNDING = 1e3 * float(
    np.finfo(float).eps
)  # of sums of squares of N, relative to the terms that are subtracted


def association(
    spectrum: Spectrum,
    rows: DistinctRows,
    targets: Array,
    scores: Array,
    reg: float,
    constant: Array | None = None,
) -> float:
    """Return by how many standard errors leave-one-out scores agree with the targets beyond chance, as normal quantile.

    Parameters
    ----------
    spectrum : Spectrum
        Of the distinct rows.
    rows : DistinctRows
        The rows.
    targets : array of shape (n_positive, n_scores)
        Targets of the members.
    scores : array of shape (m, n_scores)
        Label-free leave-one-out scores of the distinct rows for these targets.
    reg : float
        Penalty γ of the squared loss.
    constant : array of shape (m,), optional
        Such scores for a target of 1 in each row; needed without an intercept, where scores follow
        the mean target.
    """
    return _normal(*standardised(spectrum, rows, targets, scores, reg, constant))


def standardised(
    spectrum: Spectrum,
    rows: DistinctRows,
    targets: Array,
    scores: Array,
    reg: float,
    constant: Array | None = None,
) -> tuple[float, float]:
    """Return the agreement beyond chance in standard errors, and the skewness of its distribution without signal.

    Parameters are those of `association`.
    """
    xp = array_namespace(scores)
    share = rows.member_weights / xp.sum(rows.member_weights)
    centre = share @ targets
    own, power = own_and_power(spectrum, rows, reg)
    beyond = scores - centre if constant is None else scores - constant[:, None] * centre
    weights = xp.where(power > 0, rows.weights, 0.0)  # other rows' scores are rounding errors
    agreement = float(xp.sum(weights[:, None] * (rows.average(targets) - centre) * beyond))
    covariance = ((targets - centre).T * share) @ (targets - centre)
    each = rows.label_weights
    expected = float(xp.linalg.trace(covariance)) * float(each @ own)
    variance = 2 * float(xp.sum(covariance**2)) * float(each**2 @ power)
    if variance <= 0:
        return 0.0, 0.0
    skewness = (
        8**0.5 * _skewness(spectrum, reg) * _skewness_of(np.linalg.eigvalsh(as_numpy(covariance)))
    )
    return (agreement - expected) / float(np.sqrt(variance)), skewness


def _skewness(spectrum: Spectrum, reg: float) -> float:
    """Return Σλ³/(Σλ²)^1.5 over the eigenvalues of N, those of H less their mean, as if all hat values were equal."""
    first, second, third = spectrum.power_sums(reg)
    mean = first / spectrum.n_rows
    squares = second - mean * first
    cubes = third - 3 * mean * second + 2 * mean**2 * first
    return cubes / squares**1.5 if squares > 0 else 0.0


def _skewness_of(eigenvalues: FloatArray) -> float:
    squares = float((eigenvalues**2).sum())
    return float((eigenvalues**3).sum()) / squares**1.5 if squares > 0 else 0.0


def certainty(associated: float) -> float:
    """Return the share of fitted log-odds to report, by the `association` of the scores they were fitted to."""
    return float(np.clip((associated - UNSURE) / (SURE - UNSURE), 0.0, 1.0)) ** 3


def _normal(value: float, skewness: float) -> float:
    """Return a standardised chi-square variable of this skewness as a standard normal one."""
    if skewness < _LEAST_SKEWNESS:
        return value
    n_squares = 8 / skewness**2
    root = max(1 + value * (2 / n_squares) ** 0.5, 0.0) ** (1 / 3)
    error = 2 / (9 * n_squares)
    return float((root - (1 - error)) / error**0.5)


def own_and_power(spectrum: Spectrum, rows: DistinctRows, reg: float) -> tuple[Array, Array]:
    """Return the diagonals of N, which is 0 where rows leave whole, and of NNᵀ, 0 where it is rounding, (m,) each."""
    xp, regs = array_namespace(rows.weights), np.array([reg])
    hat, hat_squared = (column[:, 0] for column in spectrum.hat_diagonals([regs], [regs, regs]))
    slack, slack_squared = (
        column[:, 0] for column in spectrum.residual_diagonals([regs], [regs, regs])
    )
    leaving, unfitted = rows.leaving_share, spectrum.unfitted(slice(None))
    left = 1 - leaving * (1 - slack)
    scale = 1 / (1 - leaving * (1 - unfitted))
    fitted = hat / left
    # Two forms of one sum of squares: the first is exact for small hat values, the second for small
    # slack.
    by_hat = hat_squared / left**2 - scale * leaving * fitted**2 * (2 - scale * leaving * unfitted)
    by_slack = slack_squared / left**2 + scale * (scale * unfitted - 2 * slack / left)
    power = xp.where(hat < left, by_hat, by_slack)
    lost = (
        1.0 if spectrum.has_exact_slack else 1 / left**2
    )  # digits, where slack is found by subtraction
    rounding = _ROUNDING * xp.where(hat < left, hat_squared / left**2, lost)
    own = fitted * (1 - scale * leaving * unfitted)
    return own, xp.where(power > rounding, power, xp.zeros_like(power))
