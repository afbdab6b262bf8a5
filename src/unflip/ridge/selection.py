r"""Choosing the ridge penalty from noisy labels alone, by leave-one-out scores.

Those of the squared loss are exact. Other losses have approximate ones (`unflip.ridge.solvers`),
are judged by the same alignment, and where the scale counts by their own loss instead of the
squared error (`unflip.model.refinement.rounds`).

Which score is best depends on how it is read, so there are two criteria. Both are right under
class-conditional label noise because row i's label has no part in its leave-one-out score sᵢ and
flips depend on the true class only.

**Alignment**, where the scale of the scores does not matter (a threshold fitted to them, or the
sign without an intercept): the correlation of sᵢ with the targets tᵢ. With class means m± and
variance σ² of the scores,

.. math:: \mathrm{Cov}(t, s) = \tfrac12 \mathrm{Cov}(t, y)\,(m_+ - m_-), \qquad
          \mathrm{Var}(s) = \sigma^2 + \pi_- \pi_+ (m_+ - m_-)^2:

whatever the flip rates, it grows with (m₊ − m₋)/σ and with nothing else that γ changes. The γ that
maximises it maximises the accuracy on CLEAN labels. (The leave-one-out error rate on the observed
labels is blurred by a floor of flips.) Without an intercept the origin is the midpoint of the class
means, and the same holds for the uncentred cosine, E[t·y]·m/√(ν·E[t²]).

**Squared error**, where the sign of the score plus an intercept decides, so that its scale counts:
the mean of (tᵢ − sᵢ)². Flips add to it only Var(t | x), which no γ changes, so the minimum is that
of the distance to E[t | x].
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

#: Penalties tried, in units of the typical eigenvalue of the covariance.
RELATIVE_REGS = np.logspace(-4, 4, 50)
_COARSENESS = 4
_LARGEST_RELATIVE_REG = 1e12
_SMALLEST_RELATIVE_REG = (
    1e-30  # the square of float64's rounding: below it, rounding errors are all that is fitted
)
_SMALLEST_POWER = 1e-10
_NEARBY = 5  # penalties on either side of the guessed one
# error of the guessed merit from which on a few rows decide; it was below 0.1 on 19 sets of real
# data
_MISLED = 0.2
_PART = 2**11  # rows whose scores are found for all penalties at a time


def candidate_regs(spectrum: Spectrum | GramSpectrum) -> FloatArray:
    """Penalties worth trying for these rows: none at which leave-one-out scores cannot be relied on."""
    regs = spectrum.scale * RELATIVE_REGS
    return np.asarray(regs[regs >= min(spectrum.least_reg, regs[-1])])


def given_reg(reg: float, spectrum: Spectrum | GramSpectrum, *, readout: str) -> FloatArray:
    """Return the one penalty that was given, or an error where it, or the gaussian read-out's scores, are rounding."""
    if 0 < reg < _SMALLEST_RELATIVE_REG * spectrum.scale:
        raise ValueError(
            f"reg={reg!r} is below {_SMALLEST_RELATIVE_REG:g} times the variance of the features "
            f"({spectrum.scale:.2g}), where it is lost in rounding: raise reg or rescale X."
        )
    if readout == "gaussian" and reg > _LARGEST_RELATIVE_REG * spectrum.scale:
        raise ValueError(
            f"reg={reg!r} is beyond {_LARGEST_RELATIVE_REG:g} times the variance of the features "
            f"({spectrum.scale:.2g}), where scores vanish in rounding: lower reg or rescale X."
        )
    return np.array([float(reg)])


def coarse_regs(spectrum: Spectrum) -> FloatArray:
    """Every fourth of the penalties worth trying, over the same range: for losses of which each costs a fit."""
    return candidate_regs(spectrum)[::_COARSENESS]


def without_copies(left_out: AnyLeftOut, share: Array) -> AnyLeftOut:
    """Leave copies of a row out together, as far as they should: with a share of their weight (`leaving_share`)."""
    xp = array_namespace(share)
    if bool(xp.all(share == 1)):
        return left_out
    return left_out.of_copies(
        xp.arange(share.shape[0], device=device(share)), left_out.targets, share
    )


def corrected_score_parts(
    spectrum: Spectrum, rows: DistinctRows, targets: Array, regs: FloatArray
) -> ScoreParts:
    """Return label-free leave-one-out scores, (m, n_regs, n_targets), as a function of which rows, copies apart."""
    left_out = spectrum.leave_one_out_parts(targets, regs)
    if not rows.has_copies:
        return lambda part: left_out(part).corrected_scores
    share = rows.leaving_share
    return lambda part: without_copies(left_out(part), share[part]).corrected_scores


def constant_scores(spectrum: Spectrum, rows: DistinctRows, regs: FloatArray) -> Array | None:
    """Return leave-one-out scores of the distinct rows for a target of 1 in each, (m,); None with an intercept."""
    if spectrum.fit_intercept:
        return None
    ones = array_namespace(rows.weights).ones_like(rows.weights)[:, None]
    return corrected_score_parts(spectrum, rows, ones, regs)(slice(None))[:, 0, 0]


def searched_reg(
    spectrum: Spectrum,
    rows: DistinctRows,
    targets: Array,
    regs: FloatArray,
    *,
    labels: Array | None = None,
    scale_free: bool = True,
) -> FloatArray:
    """Return the one of ascending penalties with the best leave-one-out scores, in an array.

    Scores are compared near the penalty that generalised cross-validation favours, which takes sums
    over the rows alone; and for all penalties where the best is none between these, or a few rows
    mislead the guess.

    Parameters
    ----------
    spectrum : Spectrum
        Of the distinct rows.
    rows : DistinctRows
        The rows.
    targets : array of shape (m, n_targets)
        Targets of each distinct row.
    regs : ndarray
        Penalties.
    labels : array of shape (m, n_targets), optional
        What scores are to agree with, instead of the targets.
    scale_free : bool
        That of `best_reg`.
    """
    if len(regs) == 1:
        return regs
    wanted = targets if labels is None else labels
    guess = _guessed_merits(spectrum, rows, targets, regs, scale_free)
    everywhere = slice(0, len(regs))
    nearby = everywhere if guess is None else _around(int(np.argmax(guess)), len(regs))
    for part in (nearby, everywhere):
        scores = corrected_score_parts(spectrum, rows, targets, regs[part])
        found = merits(
            scores, wanted, rows.weights, scale_free=scale_free, centred=spectrum.fit_intercept
        )
        best = part.start + int(np.argmax(found))
        is_inside = best not in {part.start, part.stop - 1} - {0, len(regs) - 1}
        if (
            guess is None
            or part == everywhere
            or (is_inside and abs(float(found.max()) - guess[best]) < _MISLED)
        ):
            break
    return regs[[best]]


def _around(index: int, n_regs: int) -> slice:
    return slice(max(index - _NEARBY, 0), min(index + _NEARBY + 1, n_regs))


def _guessed_merits(
    spectrum: Spectrum, rows: DistinctRows, targets: Array, regs: FloatArray, scale_free: bool
) -> FloatArray | None:
    """Return the `merits` of each penalty if all rows had the same hat value h; None where that is not to be had.

    Label-free leave-one-out scores then are t̂/(1 − h) − ct about their mean, with c = h/(1 − h),
    less 1/(n − 1) with an intercept, so that their products follow from sums over the principal
    directions.
    """
    known = None if rows.has_copies else spectrum.target_powers(targets)
    if known is None:
        return None
    (powers, total), kept = known, spectrum.shrinkage(regs)
    sums = array_namespace(kept).sum(kept, axis=0), powers @ kept, powers @ kept**2
    hat, fitted, squared = (as_numpy(values) for values in sums)
    n, total = spectrum.n_rows, max(total, TINY)
    hat = (hat + spectrum.fit_intercept) / n
    slack = np.maximum(1 - hat, TINY)
    own = hat / slack - (1 / (n - 1) if spectrum.fit_intercept else 0.0)
    fitted, squared = fitted / total / slack, squared / total / slack**2
    agreement, power = fitted - own, np.maximum(squared - 2 * own * fitted + own**2, TINY)
    return np.asarray(agreement / np.sqrt(power) if scale_free else 2 * agreement - power - 1)


def best_reg(
    scores: ScoreParts, targets: Array, weights: Array, *, scale_free: bool, centred: bool
) -> int:
    """Return the index of the penalty with the best leave-one-out scores.

    Parameters
    ----------
    scores : callable
        Label-free leave-one-out scores, (m, n_regs, n_targets), of the distinct rows in a slice:
        those of all rows and penalties need not be in memory at a time.
    targets : array of shape (m, n_targets)
        Targets of each distinct row.
    weights : array of shape (m,)
        Weight of each distinct row.
    scale_free : bool
        Whether the scores are read in a way that their scale does not change: judge alignment, else
        squared error.
    centred : bool
        Whether alignment is about the means (with an intercept) or about the origin.
    """
    return int(np.argmax(merits(scores, targets, weights, scale_free=scale_free, centred=centred)))


def merits(
    scores: ScoreParts, targets: Array, weights: Array, *, scale_free: bool, centred: bool
) -> FloatArray:
    """Return what `best_reg` maximises: alignment, or minus the squared error relative to the targets' power."""
    if scale_free:
        return loo_alignment(scores, targets, weights, centred=centred)
    xp, share = array_namespace(targets), weights / array_namespace(weights).sum(weights)
    about = share @ targets if centred else 0.0
    power = float(xp.sum(share @ (targets - about) ** 2))
    return -loo_squared_error(scores, targets, weights) / (power or 1.0)


def loo_alignment(
    scores: ScoreParts, targets: Array, weights: Array, *, centred: bool
) -> FloatArray:
    """Correlation (or, not centred, cosine) of scores and targets for each penalty, all targets taken together.

    For several targets the covariances and the variances are summed over them, which no rotation of
    them changes. Parameters are those of `best_reg`.
    """
    xp = array_namespace(targets)
    share = weights / xp.sum(weights)
    targets = targets - share @ targets if centred else targets
    origin: Array = None
    agreement: Array = 0.0
    power: Array = 0.0
    mean: Array = 0.0
    for rows in _parts(targets):
        some, weight = scores(rows), share[rows]
        if centred:
            # Sums about the mean of the first rows lose no digits: it is near that of all.
            origin = (
                xp.tensordot(weight / xp.sum(weight), some, axes=1) if origin is None else origin
            )
            some = some - origin
            mean = mean + xp.tensordot(weight, some, axes=1)
        agreement = agreement + xp.tensordot(
            weight[:, None] * targets[rows, :], some, axes=((0, 1), (0, 2))
        )
        power = power + _powers(weight, some)
    agreement, power, total = (
        as_numpy(agreement),
        as_numpy(power),
        float(xp.sum(share @ targets**2)),
    )
    if centred:
        power = np.maximum(power - (as_numpy(mean) ** 2).sum(axis=-1), 0.0)
    norms = np.sqrt(power * total)
    return np.asarray(agreement / np.where(norms > 0, norms, 1.0))


def _powers(weights: Array, scores: Array) -> Array:
    """Weighted sum of squares for each penalty, over rows and targets."""
    if is_numpy(scores):
        return np.einsum("m,mgt,mgt->g", weights, scores, scores)
    xp = array_namespace(scores)
    return xp.sum(xp.tensordot(weights, scores**2, axes=1), axis=-1)


def canonical_correlation(scores: Array, labels: Array, weights: Array, *, centred: bool) -> float:
    """Root mean square of the canonical correlations of scores and labels, (m, r) each.

    It compares fits to different targets: unlike `loo_alignment`, it does not change with linear
    maps of the scores, and flips among several classes are such a map of what the scores of true
    labels would be.
    """
    share = weights / array_namespace(weights).sum(weights)
    of_scores, common, of_labels = (
        second_moments(*both, share, centred=centred)
        for both in ((scores, scores), (scores, labels), (labels, labels))
    )
    common = _whitening(of_scores).T @ common @ _whitening(of_labels)
    return float(np.sqrt((common**2).sum() / labels.shape[1]))


def second_moments(first: Array, second: Array, share: Array, *, centred: bool) -> FloatArray:
    """Mean products of the columns of (m, r) and (m, s), about their means or about 0, (r, s)."""
    # Means are taken off before the product: scores may vary by far less than that.
    of_first, of_second = (share @ first, share @ second) if centred else (0.0, 0.0)
    products = (
        ((first[rows, :] - of_first).T * share[rows]) @ (second[rows, :] - of_second)
        for rows in _parts(first)
    )
    return as_numpy(sum(products))


def _whitening(moments: FloatArray) -> FloatArray:
    """Return the mixtures of columns that are uncorrelated with power 1; those without power are dropped."""
    powers, axes = np.linalg.eigh(moments)
    kept = powers > _SMALLEST_POWER * powers[-1]
    return np.asarray(axes[:, kept] / np.sqrt(powers[kept]))


def loo_squared_error(scores: ScoreParts, targets: Array, weights: Array) -> FloatArray:
    """Mean squared distance of the scores to the targets, for each penalty; parameters are those of `best_reg`."""
    xp = array_namespace(targets)
    share = weights / xp.sum(weights)
    errors = [
        xp.sum(
            xp.tensordot(share[rows], (targets[rows, None, :] - scores(rows)) ** 2, axes=1), axis=-1
        )
        for rows in _parts(targets)
    ]
    return np.asarray(sum(map(as_numpy, errors)))


def _parts(targets: Array) -> Iterator[slice]:
    """Cut the rows into parts: on the CPU so small that their scores for all penalties are in the processor's cache."""
    n_rows, n_targets = targets.shape
    height = (
        _PART if is_numpy(targets) else max(LARGE_BLOCK // (len(RELATIVE_REGS) * n_targets), _PART)
    )
    for start in range(0, n_rows, height):
        yield slice(start, min(start + height, n_rows))
