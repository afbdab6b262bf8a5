"""One fit of given targets: the penalty chosen, scores without a trace of the rows' own labels, and their read-out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.arrays import like, pick
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.coupling import Coupling, uncoupled
from unflip.calibration.log_odds import Calibration, calibrate, likeliest_priors
from unflip.calibration.observations import Observations
from unflip.data.duplicates import DistinctRows
from unflip.labels.noise import Channel
from unflip.model.refinement.ridge_coupling import ridge_coupling
from unflip.ridge.contradictions import projection_onto_agreeing
from unflip.ridge.label_association import PROBABLE, UNSURE, association, certainty
from unflip.ridge.selection import (
    constant_scores,
    corrected_score_parts,
    loo_alignment,
    searched_reg,
    second_moments,
    without_copies,
)
from unflip.ridge.solvers.convex_fits import ConvexFits
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.left_out import CannotLeaveOutError

_LEAST_BENT = 0.1  # mean curvature of the loss at the scores, relative to that of larger penalties
_MOST_WORSE = 4  # penalties in a row that are no better than a larger one


@dataclass(frozen=True, eq=False)
class Round:
    """One fit of the loop.

    Attributes
    ----------
    targets : array of shape (n_positive, n_scores)
        Targets of the members.
    reg : float
        Penalty γ.
    scores : array of shape (m, n_scores)
        Leave-one-out scores of the distinct rows, in which a row's own label has no part.
    reading : Calibration
        What the scores say of the members.
    leak : array of shape (m, n_scores)
        What was subtracted from plain leave-one-out scores to that end.
    index : int
        How many rounds came before.
    alignment : float
        Agreement of the scores with the observed labels; NaN where rounds are not compared.
    noise : Channel
        With the priors that the read-out was fitted with.
    association : float
        Standard errors by which the scores of the first round agree with the labels beyond chance.
    support : float
        The same, times what the scores of this round agree more with the labels than those of the
        first.
    """

    targets: Array
    reg: float
    scores: Array
    reading: Calibration
    leak: Array
    index: int
    alignment: float
    noise: Channel
    association: float
    support: float

    @property
    def certainty(self) -> float:
        """Share of the log-odds to report: 1 where the features surely predict the labels, 0 where they may not."""
        return certainty(self.association)

    @property
    def has_support(self) -> bool:
        """Whether to predict by the scores, rather than by the class priors alone."""
        return self.support > UNSURE


def fit_table(
    fits: Spectrum | ConvexFits,
    rows: DistinctRows,
    codes: Array,
    noise: Channel,
    regs: FloatArray,
    *,
    table: FloatArray,
    scale_free: bool,
    infer_priors: bool = False,
    priors_known: bool = False,
) -> Round:
    """Fit one row of targets per observed class, (k, n_scores), with nothing to refine.

    Parameters are those of `refine`; `scale_free` is that of `unflip.ridge.selection.best_reg`.
    """
    targets = pick(table, codes)
    means = rows.average(targets)
    reg = _best_for_table(fits, rows, means, regs, scale_free)
    scores = without_copies(fits.leave_one_out(means, [reg]), rows.leaving_share).corrected_scores[
        :, 0, :
    ]
    associated = _association(fits, rows, targets, scores, reg)
    scores = without_contradictions(scores, means, rows.weights)
    coupling = uncoupled(rows, scores)
    if isinstance(fits, Spectrum):
        share = rows.member_weights / array_namespace(scores).sum(rows.member_weights)
        coupling = ridge_coupling(fits, rows, targets - share @ targets, reg)
    infer_priors = infer_priors and associated >= PROBABLE
    observations = Observations(codes, rows.member_weights, rows.n_effective, priors_known)
    reading, noise = calibrated(
        scores, rows, coupling, observations, noise, infer_priors=infer_priors
    )
    leak = array_namespace(scores).zeros_like(scores)
    return Round(
        targets=targets,
        reg=reg,
        scores=scores,
        reading=reading,
        leak=leak,
        index=0,
        alignment=np.nan,
        noise=noise,
        association=associated,
        support=associated,
    )


def _association(
    fits: Spectrum | ConvexFits, rows: DistinctRows, targets: Array, scores: Array, reg: float
) -> float:
    """Return the `association` of scores of the squared loss; other losses take the ridge fit that is nearest."""
    if isinstance(fits, Spectrum):
        spectrum = fits
    else:
        spectrum, reg = fits.spectrum, reg / fits.stiffness(targets.shape[1])
        scores = corrected_score_parts(spectrum, rows, rows.average(targets), np.array([reg]))(
            slice(None)
        )[:, 0, :]
    return association(
        spectrum, rows, targets, scores, reg, constant_scores(spectrum, rows, np.array([reg]))
    )


def without_contradictions(scores: Array, labels: Array, weights: Array) -> Array:
    """Drop directions of scores (m, r) that contradict the labels (m, r).

    See `unflip.ridge.contradictions`.
    """
    if scores.shape[1] == 1:
        return scores
    share = weights / array_namespace(weights).sum(weights)
    onto = projection_onto_agreeing(
        second_moments(scores, scores, share, centred=True),
        second_moments(scores, labels, share, centred=True),
        second_moments(labels, labels, share, centred=True),
        1 / float(share @ share),
    )
    return scores if onto is None else scores @ like(onto, scores)


def calibrated(
    scores: Array,
    rows: DistinctRows,
    coupling: Coupling,
    observations: Observations,
    noise: Channel,
    *,
    infer_priors: bool,
) -> tuple[Calibration, Channel]:
    """Calibrate the scores of the distinct rows, and return the noise with the priors that were used.

    If these merely explain the observed proportions, scores that do predict the labels may correct
    them (`infer_priors`). Other parameters are those of `calibrate`.
    """
    of_members = rows.of_members(scores)
    if infer_priors:
        noise = likeliest_priors(of_members, observations, noise)
    return calibrate(of_members, observations, noise, coupling=coupling), noise


def _best_for_table(
    fits: Spectrum | ConvexFits,
    rows: DistinctRows,
    means: Array,
    regs: FloatArray,
    scale_free: bool,
) -> float:
    if isinstance(fits, Spectrum):
        return float(searched_reg(fits, rows, means, regs, scale_free=scale_free)[0])
    if len(regs) == 1:
        return float(regs[0])

    def label_free(compared: ConvexFits, reg: float) -> FloatArray:
        return np.asarray(
            without_copies(
                compared.leave_one_out(means, [reg]), rows.leaving_share
            ).corrected_scores
        )

    return best_convex_reg(fits, means, regs, label_free, means, rows.weights, scale_free)


def best_convex_reg(
    fits: ConvexFits,
    means: FloatArray,
    regs: FloatArray,
    label_free: Callable[[ConvexFits, float], FloatArray],
    labels: FloatArray,
    weights: FloatArray,
    scale_free: bool,
) -> float:
    """Return the penalty whose leave-one-out scores agree most with the labels, or, where scale counts, lose least.

    Penalties are tried from the largest down, each from the fit before, until fits no longer
    converge, scores run off, a row cannot be left out, or several in a row are no better than the
    best: fits of small penalties take longest.

    Parameters
    ----------
    fits : ConvexFits
        Of the loss.
    means : ndarray of shape (m, n_scores)
        Targets of the distinct rows.
    regs : ndarray
        Penalties, in any order.
    label_free : callable
        Label-free scores, (m, 1, n_scores), by fits that are cheap to compare and a penalty.
    labels : ndarray of shape (m, n_scores)
        What scores are to agree with.
    weights : ndarray of shape (m,)
        Weights of the distinct rows.
    scale_free : bool
        That of `unflip.ridge.selection.best_reg`.
    """
    compared = fits.comparing()
    best, merit, n_worse = float(np.max(regs)), -np.inf, 0
    for reg, scores in _usable(compared, means, regs, partial(label_free, compared)):
        found = float(_merits(fits, means, scores, labels, weights, scale_free)[0])
        if found > merit:
            best, merit, n_worse = reg, found, 0
        else:
            n_worse += 1
        if n_worse == _MOST_WORSE:
            break
    return best


def _usable(
    fits: ConvexFits, means: FloatArray, regs: FloatArray, label_free: Callable[[float], FloatArray]
) -> Iterator[tuple[float, FloatArray]]:
    """Penalties and scores from the largest down, to where fits do not converge, scores run off or rows hang on one."""
    bent = 0.0
    for index, reg in enumerate(map(float, np.sort(regs)[::-1])):
        try:
            scores = label_free(reg)
        except CannotLeaveOutError:
            if index == 0:
                raise
            return
        fit = fits.fit(means, [reg])
        curvature = float(np.trace(fit.leave_one_out.mean_curvature[0]))
        bent = max(bent, curvature)
        # Scores that have run off to where the loss hardly bends owe much to what is added back for
        # the intercept.
        run_off = fits.spectrum.fit_intercept and curvature < _LEAST_BENT * bent
        if index and (run_off or not fit.converged.all()):
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
    """Agreement with the labels of each penalty's scores, or minus their loss."""
    if not scale_free:
        return -fits.mean_loss(means, scores)
    return loo_alignment(scores.__getitem__, labels, weights, centred=fits.spectrum.fit_intercept)
