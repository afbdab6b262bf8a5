r"""Test whether the features predict the labels better than chance.

With an intercept, leave-one-out scores are linear in the targets, s − t̄ = N(t − t̄), and N has a
zero diagonal. So if labels are independent of the features, the agreement
A = Σᵢ wᵢ(tᵢ − t̄)ᵀ(sᵢ − t̄) has mean 0 and a variance of at most

.. math:: \operatorname{Var} A \le 2 \lVert V \rVert_F^2 \sum_i w_i^2 (N N^\top)_{ii},

where V is the covariance of the targets and N is in coordinates that weight rows by √w. Without an
intercept s − t̄N1 takes the place of s − t̄. The correlation of scores and labels is no
substitute: if scores hardly vary except for the effect of leaving out the row itself, it can be 1
by chance. A is a quadratic form, so with few features, or few that dominate, its distribution is
skewed. It is approximated by a chi-square distribution of the same skewness, 8/ν = γ₁², and
transformed to a normal variable by the cube root of Wilson and Hilferty (1931).

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

#: Standard errors beyond chance above which the features do predict the labels. Of 4,169
#: simulated draws without signal 9 exceeded 3, and none exceeded 4.
SURE = 4.0
#: Standard errors beyond chance below which there is no evidence that the features predict the
#: labels. Of 1,919 simulated draws without signal a tenth exceeded 1.5.
UNSURE = 1.5
#: Midpoint of the two.
PROBABLE = (SURE + UNSURE) / 2


def association(
    spectrum: Spectrum,
    rows: DistinctRows,
    targets: Array,
    scores: Array,
    reg: float,
    constant: Array | None = None,
) -> float:
    """Return the agreement of leave-one-out scores and targets beyond chance, as normal quantile.

    Parameters
    ----------
    spectrum : Spectrum
        Spectrum of the distinct rows.
    rows : DistinctRows
        The rows.
    targets : array of shape (n_positive, n_scores)
        Targets of the members.
    scores : array of shape (m, n_scores)
        Leakage-corrected leave-one-out scores of the distinct rows for these targets.
    reg : float
        Regularization strength γ of the squared loss.
    constant : array of shape (m,), optional
        Such scores for a target of 1 in each row. Needed without an intercept, where scores follow
        the mean target.

    Examples
    --------
    >>> from unflip.ridge import corrected_score_parts, decompose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> targets = np.sign(X[:, :1] + rng.normal(size=(100, 1)))
    >>> spectrum, rows = decompose(X), DistinctRows.of(X)
    >>> scores = corrected_score_parts(spectrum, rows, targets, [0.1])(slice(None))[:, 0, :]
    >>> association(spectrum, rows, targets, scores, 0.1) > SURE
    True
    """
    return _as_normal(*standardised_agreement(spectrum, rows, targets, scores, reg, constant))


def standardised_agreement(
    spectrum: Spectrum,
    rows: DistinctRows,
    targets: Array,
    scores: Array,
    reg: float,
    constant: Array | None = None,
) -> tuple[float, float]:
    """Return the agreement beyond chance in standard errors, and its skewness without signal.

    Parameters are those of `association`.
    """
    xp = array_namespace(scores)
    share = rows.member_weights / xp.sum(rows.member_weights)
    centre = share @ targets
    own, power = loo_operator_diagonals(spectrum, rows, reg)
    baseline = centre if constant is None else constant[:, None] * centre
    # Where a row of N is zero up to rounding, so is the score.
    weights = xp.where(power > 0, rows.weights, 0.0)
    deviations = rows.average(targets) - centre
    agreement = float(xp.sum(weights[:, None] * deviations * (scores - baseline)))
    covariance = ((targets - centre).T * share) @ (targets - centre)
    label_weights = rows.label_weights
    expected = float(xp.linalg.trace(covariance)) * float(label_weights @ own)
    variance = 2 * float(xp.sum(covariance**2)) * float(label_weights**2 @ power)
    if variance <= 0:
        return 0.0, 0.0
    eigenvalues = np.linalg.eigvalsh(as_numpy(covariance))
    skewness = 8**0.5 * _loo_operator_skewness(spectrum, reg) * _spectral_skewness(eigenvalues)
    return (agreement - expected) / float(np.sqrt(variance)), skewness


def certainty(associated: float) -> float:
    """Return the share of fitted log-odds to report, given the `association` of their scores.

    It is 0 up to `UNSURE`, 1 from `SURE` on, and grows with the cube in between.

    Examples
    --------
    >>> [certainty(z) for z in (1.5, 2.75, 4.0)]
    [0.0, 0.125, 1.0]
    """
    return float(np.clip((associated - UNSURE) / (SURE - UNSURE), 0.0, 1.0)) ** 3


def loo_operator_diagonals(
    spectrum: Spectrum, rows: DistinctRows, reg: float
) -> tuple[Array, Array]:
    """Return the diagonals of N and of NNᵀ, (m,) each.

    The diagonal of N is 0 for rows that leave with their whole weight. Entries of the diagonal of
    NNᵀ that are rounding errors are set to 0.
    """
    xp = array_namespace(rows.weights)
    regs = np.array([reg])
    hat, hat_squared = (column[:, 0] for column in spectrum.hat_diagonals([regs], [regs, regs]))
    slack, slack_squared = (
        column[:, 0] for column in spectrum.residual_diagonals([regs], [regs, regs])
    )
    leaving = rows.leaving_share
    unfitted = spectrum.unfitted(slice(None))
    remaining = 1 - leaving * (1 - slack)
    scale = 1 / (1 - leaving * (1 - unfitted))
    fitted = hat / remaining
    # Two forms of one sum of squares: the first is exact for small leverages, the second for small
    # slack.
    by_leverage = hat_squared / remaining**2 - scale * leaving * fitted**2 * (
        2 - scale * leaving * unfitted
    )
    by_slack = slack_squared / remaining**2 + scale * (scale * unfitted - 2 * slack / remaining)
    power = xp.where(hat < remaining, by_leverage, by_slack)
    # Slack that is found by subtraction has lost digits.
    lost_digits = 1.0 if spectrum.has_exact_slack else 1 / remaining**2
    subtracted = xp.where(hat < remaining, hat_squared / remaining**2, lost_digits)
    # Rounding error of a sum of squares relative to the terms subtracted, with a margin of 1000.
    rounding = 1e3 * float(np.finfo(float).eps) * subtracted
    own = fitted * (1 - scale * leaving * unfitted)
    return own, xp.where(power > rounding, power, xp.zeros_like(power))


def _loo_operator_skewness(spectrum: Spectrum, reg: float) -> float:
    """Return Σλ³/(Σλ²)^1.5 over the eigenvalues λ of N, as if all leverages were equal.

    These are the eigenvalues of H minus their mean.
    """
    first, second, third = spectrum.power_sums(reg)
    mean = first / spectrum.n_rows
    squares = second - mean * first
    cubes = third - 3 * mean * second + 2 * mean**2 * first
    return cubes / squares**1.5 if squares > 0 else 0.0


def _spectral_skewness(eigenvalues: FloatArray) -> float:
    """Return Σλ³/(Σλ²)^1.5."""
    squares = float((eigenvalues**2).sum())
    return float((eigenvalues**3).sum()) / squares**1.5 if squares > 0 else 0.0


def _as_normal(value: float, skewness: float) -> float:
    """Transform a standardised chi-square variable of this skewness to a standard normal one."""
    if skewness < 1e-6:  # normal up to rounding
        return value
    n_squares = 8 / skewness**2
    root = max(1 + value * (2 / n_squares) ** 0.5, 0.0) ** (1 / 3)
    error = 2 / (9 * n_squares)
    return float((root - (1 - error)) / error**0.5)
