"""One round: a fit of given targets, corrected leave-one-out scores, and their calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.arrays import like, pick
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.coupling import Coupling, uncoupled
from unflip.calibration.likeliest_noise import RatePrior, likeliest_noise
from unflip.calibration.log_odds import Calibration, calibrate, likeliest_priors
from unflip.calibration.observations import Observations
from unflip.data.duplicates import DistinctRows
from unflip.labels.noise import Channel, NoiseModel
from unflip.model.refinement.ridge_coupling import ridge_coupling
from unflip.ridge.contradictions import projection_onto_agreeing
from unflip.ridge.label_association import PROBABLE, UNSURE, association, certainty
from unflip.ridge.selection import (
    constant_scores,
    corrected_score_parts,
    loo_alignment,
    second_moments,
    select_reg,
    without_duplicates,
)
from unflip.ridge.solvers.convex_fits import ConvexFits
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.left_out import CannotLeaveOutError

# Smallest mean curvature of the loss at the scores, relative to that at larger γ. Below it, scores
# have diverged, and depend mostly on the correction for the intercept.
_MIN_CURVATURE = 0.1
# Successive values of γ without improvement after which the search stops.
_PATIENCE = 4


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Observed labels of the distinct rows, and what is known about their noise.

    Attributes
    ----------
    rows : DistinctRows
        The rows.
    codes : array of shape (n_positive,)
        Column of the noise's transition matrix for each member: its observed label, or its votes.
    noise : Channel
        Noise with priors.
    truth : array of shape (n_positive,), optional
        True class of each member, `UNCHECKED` if unknown.
    infer_priors : bool
        Whether the priors only explain the observed proportions, so that scores may correct them.
    priors_known : bool
        Whether the priors are known independently of the labels.
    rate_prior : RatePrior, optional
        Prior of the noise rates, which scores and labels then correct. None: the rates are fixed.
    is_local : bool
        Whether the fits are local, as those of kernels: a score depends most on rows like its own.
    """

    rows: DistinctRows
    codes: Array
    noise: Channel
    truth: Array | None = None
    infer_priors: bool = False
    priors_known: bool = False
    rate_prior: RatePrior | None = None
    is_local: bool = False

    @property
    def observations(self) -> Observations:
        """The labels that scores are calibrated against."""
        rows = self.rows
        return Observations(self.codes, rows.member_weights, rows.n_effective, self.priors_known)

    @property
    def shares(self) -> Array:
        """Share of each member in the total weight, (n_positive,)."""
        weights = self.rows.member_weights
        return weights / array_namespace(weights).sum(weights)


@dataclass(frozen=True, eq=False)
class Round:
    """The result of one fit.

    Attributes
    ----------
    targets : array of shape (n_positive, n_scores)
        Targets of the members.
    reg : float
        Regularization strength γ.
    scores : array of shape (m, n_scores)
        Leakage-corrected leave-one-out scores of the distinct rows.
    calibration : Calibration
        Calibration of the members' scores.
    leakage : array of shape (m, n_scores)
        Label leakage that was subtracted from the plain leave-one-out scores.
    index : int
        Number of rounds before this one.
    alignment : float
        Correlation of the scores with the observed labels; NaN if rounds are not compared.
    noise : Channel
        Noise of the calibration, with priors.
    rate_covariance : ndarray of shape (k, k) or None
        Covariance of the noise rates, if scores and labels corrected them.
    association : float
        Standard errors by which the scores of the first round agree with the labels beyond chance.
    support : float
        The same for this round: `association` times the growth of the correlation since the first.
    """

    targets: Array
    reg: float
    scores: Array
    calibration: Calibration
    leakage: Array
    index: int
    alignment: float
    noise: Channel
    rate_covariance: FloatArray | None
    association: float
    support: float

    @property
    def certainty(self) -> float:
        """Share of the log-odds to report, from 0 (no association with the labels) to 1."""
        return certainty(self.association)

    @property
    def has_support(self) -> bool:
        """Whether predictions use the scores, rather than the class priors alone."""
        return self.support > UNSURE


def fit_table(
    fits: Spectrum | ConvexFits,
    labels: NoisyLabels,
    regs: FloatArray,
    *,
    table: FloatArray,
    scale_free: bool,
) -> Round:
    """Fit one row of targets per observed class, (k, n_scores), without refinement.

    Parameters are those of `refine`.
    """
    rows = labels.rows
    targets = pick(table, labels.codes)
    means = rows.average(targets)
    reg = _select_table_reg(fits, rows, means, regs, scale_free)
    left_out = without_duplicates(fits.leave_one_out(means, [reg]), rows.leaving_share)
    scores = left_out.corrected_scores[:, 0, :]
    associated = _association(fits, rows, targets, scores, reg)
    scores = drop_contradictions(scores, means, rows.weights)
    coupling = uncoupled(rows, scores)
    if isinstance(fits, Spectrum):
        coupling = ridge_coupling(fits, rows, targets - labels.shares @ targets, reg)
    calibration, noise, rate_covariance = calibrate_members(scores, labels, coupling, associated)
    return Round(
        targets=targets,
        reg=reg,
        scores=scores,
        calibration=calibration,
        leakage=array_namespace(scores).zeros_like(scores),
        index=0,
        alignment=np.nan,
        noise=noise,
        rate_covariance=rate_covariance,
        association=associated,
        support=associated,
    )


def _association(
    fits: Spectrum | ConvexFits, rows: DistinctRows, targets: Array, scores: Array, reg: float
) -> float:
    """Return the `association` of scores; for other losses, that of the closest ridge fit."""
    if isinstance(fits, Spectrum):
        spectrum = fits
        regs = np.array([reg])
    else:
        spectrum = fits.spectrum
        regs = np.array([reg / fits.stiffness(targets.shape[1])])
        scores_of = corrected_score_parts(spectrum, rows, rows.average(targets), regs)
        scores = scores_of(slice(None))[:, 0, :]
    constant = constant_scores(spectrum, rows, regs)
    return association(spectrum, rows, targets, scores, float(regs[0]), constant)


def drop_contradictions(scores: Array, labels: Array, weights: Array) -> Array:
    """Drop directions of scores (m, r) that are negatively correlated with the labels (m, r).

    See `unflip.ridge.contradictions`.
    """
    if scores.shape[1] == 1:
        return scores
    share = weights / array_namespace(weights).sum(weights)
    projection = projection_onto_agreeing(
        second_moments(scores, scores, share, centred=True),
        second_moments(scores, labels, share, centred=True),
        second_moments(labels, labels, share, centred=True),
        1 / float(share @ share),
    )
    return scores if projection is None else scores @ like(projection, scores)


def calibrate_members(
    scores: Array, labels: NoisyLabels, coupling: Coupling, associated: float
) -> tuple[Calibration, Channel, FloatArray | None]:
    """Calibrate scores of the distinct rows.

    Scores whose `association` with the labels is probable may correct noise rates that have a
    prior, and class priors that only explain the observed proportions.

    Returns
    -------
    calibration : Calibration
        Calibration of the members.
    noise : Channel
        Noise that it was fitted with.
    rate_covariance : ndarray of shape (k, k) or None
        Covariance of the noise rates, if they were corrected.
    """
    member_scores = labels.rows.of_members(scores)
    observations = labels.observations
    noise = labels.noise
    is_probable = associated >= PROBABLE
    rate_covariance = None
    if labels.rate_prior is not None and is_probable and isinstance(noise, NoiseModel):
        rough = calibrate(member_scores, observations, noise, coupling=coupling)
        likeliest = likeliest_noise(rough.logits, observations, noise, labels.rate_prior)
        noise = likeliest.noise
        rate_covariance = likeliest.covariance
    if labels.infer_priors and is_probable:
        noise = likeliest_priors(member_scores, observations, noise)
    calibration = calibrate(member_scores, observations, noise, coupling=coupling)
    return calibration, noise, rate_covariance


def _select_table_reg(
    fits: Spectrum | ConvexFits,
    rows: DistinctRows,
    means: Array,
    regs: FloatArray,
    scale_free: bool,
) -> float:
    """Return the regularization strength whose leave-one-out scores are best."""
    if isinstance(fits, Spectrum):
        return float(select_reg(fits, rows, means, regs, scale_free=scale_free)[0])
    if len(regs) == 1:
        return float(regs[0])

    def corrected_scores(compared: ConvexFits, reg: float) -> FloatArray:
        left_out = without_duplicates(compared.leave_one_out(means, [reg]), rows.leaving_share)
        return np.asarray(left_out.corrected_scores)

    return best_convex_reg(fits, means, regs, corrected_scores, means, rows.weights, scale_free)


def best_convex_reg(
    fits: ConvexFits,
    means: FloatArray,
    regs: FloatArray,
    corrected_scores: Callable[[ConvexFits, float], FloatArray],
    labels: FloatArray,
    weights: FloatArray,
    scale_free: bool,
) -> float:
    """Return the γ whose corrected scores agree most with the labels, or have the smallest loss.

    Values are tried from the largest down, each starting from the fit before. The search stops if
    fits no longer converge, scores diverge, a row cannot be left out, or several values in a row
    are no better than the best: fits with small γ take longest.

    Parameters
    ----------
    fits : ConvexFits
        Fits of the loss.
    means : ndarray of shape (m, n_scores)
        Targets of the distinct rows.
    regs : ndarray
        Regularization strengths, in any order.
    corrected_scores : callable
        Returns corrected leave-one-out scores, (m, 1, n_scores), for approximate fits that are fast
        to compare and a regularization strength.
    labels : ndarray of shape (m, n_scores)
        Labels to compare the scores with.
    weights : ndarray of shape (m,)
        Weights of the distinct rows.
    scale_free : bool
        Whether to compare by correlation rather than by the loss, as in
        `unflip.ridge.selection.best_reg_index`.
    """
    compared = fits.with_common_curvature()
    best_reg = float(np.max(regs))
    best_merit = -np.inf
    n_worse = 0
    for reg, scores in _usable(compared, means, regs, partial(corrected_scores, compared)):
        merit = float(_merits(fits, means, scores, labels, weights, scale_free)[0])
        if merit > best_merit:
            best_reg = reg
            best_merit = merit
            n_worse = 0
        else:
            n_worse += 1
        if n_worse == _PATIENCE:
            break
    return best_reg


def _usable(
    fits: ConvexFits,
    means: FloatArray,
    regs: FloatArray,
    corrected_scores: Callable[[float], FloatArray],
) -> Iterator[tuple[float, FloatArray]]:
    """Yield regularization strengths and scores from the largest down, while scores are usable."""
    largest_curvature = 0.0
    for index, reg in enumerate(map(float, np.sort(regs)[::-1])):
        try:
            scores = corrected_scores(reg)
        except CannotLeaveOutError:
            if index == 0:
                raise
            return
        fit = fits.fit(means, [reg])
        curvature = float(np.trace(fit.leave_one_out.mean_curvature[0]))
        largest_curvature = max(largest_curvature, curvature)
        is_flat = curvature < _MIN_CURVATURE * largest_curvature
        has_diverged = fits.spectrum.fit_intercept and is_flat
        if index and (has_diverged or not fit.converged.all()):
            return
        yield reg, scores


def _merits(
    fits: ConvexFits,
    means: FloatArray,
    scores: FloatArray,
    labels: FloatArray,
    weights: FloatArray,
    scale_free: bool,
) -> FloatArray:
    """Return the correlation of scores with the labels, or minus their loss, for each γ."""
    if not scale_free:
        return -fits.mean_loss(means, scores)
    return loo_alignment(scores.__getitem__, labels, weights, centred=fits.spectrum.fit_intercept)
