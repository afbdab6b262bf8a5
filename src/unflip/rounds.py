"""One fit of given targets: the penalty chosen, scores without a trace of the rows' own labels, and their read-out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert

from unflip._typing import FloatArray, IntArray
from unflip.decoder import Readout, gaussian_readout, likeliest_priors
from unflip.noise import NoiseModel
from unflip.rows import DistinctRows
from unflip.selection import best_reg, loo_alignment, without_copies
from unflip.solvers import ConvexFits
from unflip.spectrum import CannotLeaveOutError, Spectrum


@dataclass(frozen=True, eq=False)
class Round:
    """One fit of the loop.

    Attributes
    ----------
    targets : ndarray of shape (n_positive, n_scores)
        Targets of the members.
    reg : float
        Penalty γ.
    scores : ndarray of shape (m, n_scores)
        Leave-one-out scores of the distinct rows, in which a row's own label has no part.
    readout : Readout
        Read-out of the scores.
    leak : ndarray of shape (m, n_scores)
        What was subtracted from plain leave-one-out scores to that end.
    index : int
        How many rounds came before.
    alignment : float
        Agreement of the scores with the observed labels; NaN where rounds are not compared.
    noise : NoiseModel
        With the priors that the read-out was fitted with.
    """

    targets: FloatArray
    reg: float
    scores: FloatArray
    readout: Readout
    leak: FloatArray
    index: int
    alignment: float
    noise: NoiseModel


def contrasts(n_classes: int) -> FloatArray:
    """Return k × (k − 1) values that tell classes apart: −1 and +1 for two, orthonormal contrasts for more."""
    return np.array([[-1.0], [1.0]]) if n_classes == 2 else np.asarray(helmert(n_classes).T)


def fit_table(
    fits: Spectrum | ConvexFits,
    rows: DistinctRows,
    codes: IntArray,
    noise: NoiseModel,
    regs: FloatArray,
    *,
    table: FloatArray,
    scale_free: bool,
    infer_priors: bool = False,
) -> Round:
    """Fit one row of targets per observed class, (k, n_scores), with nothing to refine.

    Parameters are those of `refine`; `scale_free` is that of `unflip.selection.best_reg`.
    """
    targets = table[codes]
    means = rows.average(targets)
    reg = _best_for_table(fits, rows, means, regs, scale_free)
    scores = without_copies(fits.leave_one_out(means, [reg]), rows).label_free_scores[:, 0, :]
    readout, noise = read(scores, rows, codes, noise, infer_priors=infer_priors)
    return Round(targets, reg, scores, readout, np.zeros_like(scores), index=0, alignment=np.nan, noise=noise)


def read(
    scores: FloatArray, rows: DistinctRows, codes: IntArray, noise: NoiseModel, *, infer_priors: bool
) -> tuple[Readout, NoiseModel]:
    """Read the scores of the distinct rows, and return the noise with the priors that were used.

    Where these merely explain the observed proportions (`infer_priors`), the scores may correct them.
    """
    members, weights, n_rows = scores[rows.owner], rows.member_weights, rows.n_effective
    if infer_priors:
        noise = likeliest_priors(members, codes, weights, noise, n_rows=n_rows)
    return gaussian_readout(members, codes, weights, noise, n_rows=n_rows), noise


def _best_for_table(
    fits: Spectrum | ConvexFits, rows: DistinctRows, means: FloatArray, regs: FloatArray, scale_free: bool
) -> float:
    if len(regs) == 1:
        return float(regs[0])
    if isinstance(fits, Spectrum):
        scores = without_copies(fits.leave_one_out(means, regs), rows).label_free_scores
        best = best_reg(scores, means, rows.weights, scale_free=scale_free, centred=fits.fit_intercept)
        return float(regs[best])
    compared = fits.comparing()

    def label_free(reg: float) -> FloatArray:
        return np.asarray(without_copies(compared.leave_one_out(means, [reg]), rows).label_free_scores)

    usable, scores = usable_regs(compared, means, regs, label_free)
    return float(usable[best_convex(fits, means, scores, means, rows.weights, scale_free)])


def usable_regs(
    fits: ConvexFits, means: FloatArray, regs: FloatArray, label_free: Callable[[float], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return penalties and their scores, from the largest down to where fits no longer converge or rows hang on one."""
    found: list[FloatArray] = []
    falling = np.sort(regs)[::-1]
    for reg in falling:
        try:
            scores = label_free(float(reg))
        except CannotLeaveOutError:
            if not found:
                raise
            break
        if found and not fits.fit(means, [reg]).converged.all():
            break
        found.append(scores)
    return falling[: len(found)], np.concatenate(found, axis=1)


def best_convex(
    fits: ConvexFits, means: FloatArray, scores: FloatArray, labels: FloatArray, weights: FloatArray, scale_free: bool
) -> int:
    """Return the index of the scores that agree most with the labels, or, where scale counts, have the lowest loss."""
    if not scale_free:
        return int(np.argmin(fits.mean_loss(means, scores)))
    return int(np.argmax(loo_alignment(scores, labels, weights, centred=fits.spectrum.fit_intercept)))
