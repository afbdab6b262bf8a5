r"""Select the regularization strength from noisy labels alone, by leave-one-out scores.

Leave-one-out scores of the squared loss are exact. Other losses have approximate ones
(`unflip.ridge.solvers`). They are compared by the same alignment, and where the scale of the
scores matters by their own loss instead of the squared error (`unflip.model.refinement.rounds`).

There are two criteria, because the best score depends on its use. Both are valid under
class-conditional label noise, because row i's label does not enter its leave-one-out score sᵢ and
label noise depends on the true class only.

**Alignment**, if the scale of the scores does not matter (a threshold fitted to them, or the
sign without an intercept): the correlation of sᵢ with the targets tᵢ. With class means m± and
variance σ² of the scores,

.. math:: \mathrm{Cov}(t, s) = \tfrac12 \mathrm{Cov}(t, y)\,(m_+ - m_-), \qquad
          \mathrm{Var}(s) = \sigma^2 + \pi_- \pi_+ (m_+ - m_-)^2:

for any noise rates, it grows with (m₊ − m₋)/σ and with nothing else that γ changes. The γ that
maximises it maximises the accuracy on CLEAN labels. (The leave-one-out error rate on the noisy
labels is less sensitive: noise adds to it.) Without an intercept the origin is the midpoint of the
class means, and the same holds for the uncentred cosine, E[t·y]·m/√(ν·E[t²]).

**Squared error**, if the sign of the score plus an intercept decides, so that the scale matters:
the mean of (tᵢ − sᵢ)². Label noise adds only Var(t | x) to it, which no γ changes, so the minimum
is that of the distance to E[t | x].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

import numpy as np
from array_api_compat import array_namespace, device

from unflip._utils.arrays import LARGE_BLOCK, TINY, as_numpy, is_numpy
from unflip._utils.typing import Array, FloatArray
from unflip.data.duplicates import DistinctRows
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.gram import GramSpectrum
from unflip.ridge.spectrum.left_out import LeftOut

AnyLeftOut = TypeVar("AnyLeftOut", bound=LeftOut)

#: Scores of the rows in a slice, (m, n_regs, n_targets).
ScoreParts: TypeAlias = Callable[[slice], Array]

#: Candidate regularization strengths, in units of the typical eigenvalue of the covariance. A
#: choice: on simulated data, label posteriors move by up to 0.14 with 25 candidates, and by up to
#: 0.04 with 100. A range of 1e-2 to 1e2 excludes strengths that are selected otherwise.
RELATIVE_REGS = np.logspace(-4, 4, 50)
# Bounds of a regularization strength that the user sets, in the same unit. Below the square of
# float64's rounding error, only rounding errors would be fitted. At the largest, scores are about
# 1e-12 of the targets, of which float64 has four digits.
_SMALLEST_RELATIVE_REG = 1e-30
_LARGEST_RELATIVE_REG = 1e12
# Candidates on either side of the best guess that are compared by exact leave-one-out scores. A
# choice between time and safety: on simulated data, 2 and 10 select the same strengths.
_NEARBY = 5
# Error of the guessed criterion above which a few rows dominate, so that all candidates are
# compared. On 19 real data sets the error was below 0.1.
_LARGEST_GUESS_ERROR = 0.2
# Rows whose scores are computed at a time, for all regularization strengths.
_PART = 2**11


def candidate_regs(spectrum: Spectrum | GramSpectrum) -> FloatArray:
    """Return the regularization strengths to compare, where leave-one-out scores are reliable.

    Examples
    --------
    >>> from unflip.ridge import decompose
    >>> candidate_regs(decompose(np.eye(4))).shape
    (50,)
    """
    regs = spectrum.scale * RELATIVE_REGS
    return np.asarray(regs[regs >= min(spectrum.least_reg, regs[-1])])


def coarse_regs(spectrum: Spectrum) -> FloatArray:
    """Return every fourth of the `candidate_regs`, for losses that need a fit for each."""
    return candidate_regs(spectrum)[::4]


def fixed_reg(reg: float, spectrum: Spectrum | GramSpectrum, *, readout: str) -> FloatArray:
    """Return a regularization strength set by the user as an array of one.

    Raises ValueError if it, or the scores of the Gaussian calibration, would be lost in rounding.

    Examples
    --------
    >>> from unflip.ridge import decompose
    >>> fixed_reg(0.5, decompose(np.eye(4)), readout="plain")
    array([0.5])
    """
    if 0 < reg < _SMALLEST_RELATIVE_REG * spectrum.scale:
        raise ValueError(
            f"reg={reg!r} is below {_SMALLEST_RELATIVE_REG:g} times the variance of the features "
            f"({spectrum.scale:.2g}), where it is lost in rounding: raise reg or rescale X."
        )
    if readout == "gaussian" and reg > _LARGEST_RELATIVE_REG * spectrum.scale:
        raise ValueError(
            f"reg={reg!r} is above {_LARGEST_RELATIVE_REG:g} times the variance of the features "
            f"({spectrum.scale:.2g}), where scores are lost in rounding: lower reg or rescale X."
        )
    return np.array([float(reg)])


def without_duplicates(left_out: AnyLeftOut, share: Array) -> AnyLeftOut:
    """Leave duplicates of a row out together, with a share of their weight (`leaving_share`)."""
    xp = array_namespace(share)
    if bool(xp.all(share == 1)):
        return left_out
    return left_out.of_duplicates(
        xp.arange(share.shape[0], device=device(share)), left_out.targets, share
    )


def corrected_score_parts(
    spectrum: Spectrum, rows: DistinctRows, targets: Array, regs: FloatArray
) -> ScoreParts:
    """Return a function from a slice of the rows to their leakage-corrected scores.

    The scores are leave-one-out scores of shape (m, n_regs, n_targets); duplicates are left out
    together.
    """
    left_out = spectrum.leave_one_out_parts(targets, regs)
    if not rows.has_duplicates:
        return lambda part: left_out(part).corrected_scores
    share = rows.leaving_share
    return lambda part: without_duplicates(left_out(part), share[part]).corrected_scores


def constant_scores(spectrum: Spectrum, rows: DistinctRows, regs: FloatArray) -> Array | None:
    """Return leave-one-out scores for a target of 1 in each row, (m,); None with an intercept."""
    if spectrum.fit_intercept:
        return None
    ones = array_namespace(rows.weights).ones_like(rows.weights)[:, None]
    return corrected_score_parts(spectrum, rows, ones, regs)(slice(None))[:, 0, 0]


def select_reg(
    spectrum: Spectrum,
    rows: DistinctRows,
    targets: Array,
    regs: FloatArray,
    *,
    labels: Array | None = None,
    scale_free: bool = True,
) -> FloatArray:
    """Return the regularization strength with the best leave-one-out scores, as an array of one.

    Parameters are those of `best_reg`.

    Examples
    --------
    >>> from unflip.ridge import decompose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> targets = np.sign(X[:, :1] + rng.normal(size=(100, 1)))
    >>> spectrum = decompose(X)
    >>> reg = select_reg(spectrum, DistinctRows.of(X), targets, candidate_regs(spectrum))
    >>> reg.shape
    (1,)
    """
    if len(regs) == 1:
        return regs
    reg, _ = best_reg(spectrum, rows, targets, regs, labels=labels, scale_free=scale_free)
    return np.array([reg])


def best_reg(
    spectrum: Spectrum,
    rows: DistinctRows,
    targets: Array,
    regs: FloatArray,
    *,
    labels: Array | None = None,
    scale_free: bool = True,
) -> tuple[float, float]:
    """Return the regularization strength with the best leave-one-out scores, and its criterion.

    Scores are compared near the guess of generalised cross-validation, which needs sums over the
    rows only. All regularization strengths are compared if the best is at an end of that range, or
    if a few rows mislead the guess.

    Parameters
    ----------
    spectrum : Spectrum
        Spectrum of the distinct rows.
    rows : DistinctRows
        The rows.
    targets : array of shape (m, n_targets)
        Targets of each distinct row.
    regs : ndarray
        Regularization strengths, in ascending order.
    labels : array of shape (m, n_targets), optional
        Values to compare the scores with, instead of the targets.
    scale_free : bool
        As in `best_reg_index`.
    """

    def search(part: slice) -> tuple[int, float]:
        """Return the index of the best regularization strength in a part, and its criterion."""
        values = criterion_values(
            corrected_score_parts(spectrum, rows, targets, regs[part]),
            targets if labels is None else labels,
            rows.weights,
            scale_free=scale_free,
            centred=spectrum.fit_intercept,
        )
        return part.start + int(np.argmax(values)), float(values.max())

    guess = _guessed_criterion_values(spectrum, rows, targets, regs, scale_free)
    if guess is not None:
        centre = int(np.argmax(guess))
        nearby = slice(max(centre - _NEARBY, 0), min(centre + _NEARBY + 1, len(regs)))
        best, value = search(nearby)
        open_ends = {nearby.start, nearby.stop - 1} - {0, len(regs) - 1}
        if best not in open_ends and abs(value - guess[best]) < _LARGEST_GUESS_ERROR:
            return float(regs[best]), value
    best, value = search(slice(0, len(regs)))
    return float(regs[best]), value


def _guessed_criterion_values(
    spectrum: Spectrum, rows: DistinctRows, targets: Array, regs: FloatArray, scale_free: bool
) -> FloatArray | None:
    """Return the `criterion_values` if all rows had the same leverage h; None if not available.

    Leakage-corrected leave-one-out scores then are t̂/(1 − h) − ct about their mean, with
    c = h/(1 − h), minus 1/(n − 1) with an intercept. So their products follow from sums over the
    principal directions.
    """
    target_powers = None if rows.has_duplicates else spectrum.target_powers(targets)
    if target_powers is None:
        return None
    powers, total = target_powers
    total = max(total, TINY)
    shrinkage = spectrum.shrinkage(regs)
    n = spectrum.n_rows
    degrees_of_freedom = as_numpy(array_namespace(shrinkage).sum(shrinkage, axis=0))
    leverage = (degrees_of_freedom + spectrum.fit_intercept) / n
    slack = np.maximum(1 - leverage, TINY)
    own = leverage / slack - (1 / (n - 1) if spectrum.fit_intercept else 0.0)
    fitted = as_numpy(powers @ shrinkage) / total / slack
    squared = as_numpy(powers @ shrinkage**2) / total / slack**2
    agreement = fitted - own
    power = np.maximum(squared - 2 * own * fitted + own**2, TINY)
    if scale_free:
        return np.asarray(agreement / np.sqrt(power))
    return np.asarray(2 * agreement - power - 1)


def best_reg_index(
    scores: ScoreParts, targets: Array, weights: Array, *, scale_free: bool, centred: bool
) -> int:
    """Return the index of the regularization strength with the best leave-one-out scores.

    Parameters
    ----------
    scores : callable
        Leakage-corrected leave-one-out scores, (m, n_regs, n_targets), of the distinct rows in a
        slice, so that the scores of all rows need not be in memory at a time.
    targets : array of shape (m, n_targets)
        Targets of each distinct row.
    weights : array of shape (m,)
        Weight of each distinct row.
    scale_free : bool
        Whether the scale of the scores does not matter: compare by alignment, else by squared
        error.
    centred : bool
        Whether alignment is about the means (with an intercept) or about the origin.
    """
    values = criterion_values(scores, targets, weights, scale_free=scale_free, centred=centred)
    return int(np.argmax(values))


def criterion_values(
    scores: ScoreParts, targets: Array, weights: Array, *, scale_free: bool, centred: bool
) -> FloatArray:
    """Return alignment, or minus the squared error relative to the power of the targets.

    There is a value for each regularization strength. Parameters are those of `best_reg_index`.
    """
    if scale_free:
        return loo_alignment(scores, targets, weights, centred=centred)
    xp = array_namespace(targets)
    share = weights / xp.sum(weights)
    origin = share @ targets if centred else 0.0
    power = float(xp.sum(share @ (targets - origin) ** 2))
    return -loo_squared_error(scores, targets, weights) / (power or 1.0)


def loo_alignment(
    scores: ScoreParts, targets: Array, weights: Array, *, centred: bool
) -> FloatArray:
    """Return the correlation (cosine if not centred) of scores and targets, for each strength.

    For several targets the covariances and the variances are summed over them, so that a rotation
    of the targets changes nothing. Parameters are those of `best_reg_index`.
    """
    xp = array_namespace(targets)
    share = weights / xp.sum(weights)
    if centred:
        targets = targets - share @ targets
    origin: Array = None
    agreement: Array = 0.0
    power: Array = 0.0
    mean: Array = 0.0
    for rows in _parts(targets):
        part = scores(rows)
        weight = share[rows]
        if centred:
            # Sums about the mean of the first rows lose no digits: it is close to that of all.
            if origin is None:
                origin = xp.tensordot(weight / xp.sum(weight), part, axes=1)
            part = part - origin
            mean = mean + xp.tensordot(weight, part, axes=1)
        agreement = agreement + xp.tensordot(
            weight[:, None] * targets[rows, :], part, axes=((0, 1), (0, 2))
        )
        power = power + _powers(weight, part)
    power = as_numpy(power)
    if centred:
        power = np.maximum(power - (as_numpy(mean) ** 2).sum(axis=-1), 0.0)
    norms = np.sqrt(power * float(xp.sum(share @ targets**2)))
    return np.asarray(as_numpy(agreement) / np.where(norms > 0, norms, 1.0))


def loo_squared_error(scores: ScoreParts, targets: Array, weights: Array) -> FloatArray:
    """Return the mean squared distance of scores and targets, for each regularization strength.

    Parameters are those of `best_reg_index`.
    """
    xp = array_namespace(targets)
    share = weights / xp.sum(weights)
    errors = [
        xp.sum(
            xp.tensordot(share[rows], (targets[rows, None, :] - scores(rows)) ** 2, axes=1), axis=-1
        )
        for rows in _parts(targets)
    ]
    return np.asarray(sum(map(as_numpy, errors)))


def _powers(weights: Array, scores: Array) -> Array:
    """Return the weighted sum of squares over rows and targets, for each strength."""
    if is_numpy(scores):
        return np.einsum("m,mgt,mgt->g", weights, scores, scores)
    xp = array_namespace(scores)
    return xp.sum(xp.tensordot(weights, scores**2, axes=1), axis=-1)


def canonical_correlation(scores: Array, labels: Array, weights: Array, *, centred: bool) -> float:
    """Return the root mean square of the canonical correlations of scores and labels.

    Both have shape (m, r). This compares fits to different targets: unlike `loo_alignment`, it does
    not change with linear maps of the scores, and label noise among several classes is such a map
    of the scores for clean labels.
    """
    share = weights / array_namespace(weights).sum(weights)
    score_whitening = _whitening(second_moments(scores, scores, share, centred=centred))
    label_whitening = _whitening(second_moments(labels, labels, share, centred=centred))
    common = second_moments(scores, labels, share, centred=centred)
    correlations = score_whitening.T @ common @ label_whitening
    return float(np.sqrt((correlations**2).sum() / labels.shape[1]))


def second_moments(first: Array, second: Array, share: Array, *, centred: bool) -> FloatArray:
    """Return mean products of the columns of (m, r) and (m, s), about their means or 0, (r, s)."""
    # Means are subtracted before the product: scores may vary by far less than their mean.
    first_origin = share @ first if centred else 0.0
    second_origin = share @ second if centred else 0.0
    products = (
        ((first[rows, :] - first_origin).T * share[rows]) @ (second[rows, :] - second_origin)
        for rows in _parts(first)
    )
    return as_numpy(sum(products))


def _whitening(moments: FloatArray) -> FloatArray:
    """Return mixtures of columns that are uncorrelated with power 1; drop those without power."""
    powers, axes = np.linalg.eigh(moments)
    kept = powers > 1e-10 * powers[-1]  # others are rounding errors
    return np.asarray(axes[:, kept] / np.sqrt(powers[kept]))


def _parts(targets: Array) -> Iterator[slice]:
    """Cut the rows into parts, on the CPU so small that their scores fit into its cache."""
    n_rows, n_targets = targets.shape
    height = _PART
    if not is_numpy(targets):
        height = max(LARGE_BLOCK // (len(RELATIVE_REGS) * n_targets), _PART)
    for start in range(0, n_rows, height):
        yield slice(start, min(start + height, n_rows))
