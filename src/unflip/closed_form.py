r"""Everything that `LPClassifier` needs to fit from `Moments`: no rows, no second pass.

The fit, the penalty and the read-out follow from class means and products of leave-one-out scores
(`unflip.score_sums`). Flips mix the true classes: undoing that gives the law of each one's scores
(`unflip.score_law`). Log-odds then are Fisher's; under Gaussian scores the mean probability of a class is its prior,
and the accuracy is a normal integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike

from unflip import losses
from unflip import targets as target_values
from unflip._arrays import as_numpy
from unflip._typing import Array, FloatArray
from unflip._validation import check_squares
from unflip.decisions import Decision, Rule
from unflip.decoder import SMALLEST_SLOPE, Readout
from unflip.estimation.base import NoiseEstimator
from unflip.estimation.source import given_model, with_some_priors
from unflip.expected import ExpectedAccuracy
from unflip.labels import contrasts
from unflip.moments import Moments
from unflip.noise import NoiseModel
from unflip.score_law import ScoreLaw, expected_accuracy
from unflip.score_sums import ClassScores, ScoreSums
from unflip.selection import candidate_regs, given_reg
from unflip.spectrum import GramSpectrum


@dataclass(frozen=True, eq=False)
class ClosedFormFit:
    """A fit from sums; attributes are those of `LPClassifier` without their underscores."""

    noise: NoiseModel
    targets: FloatArray
    reg: float
    decision: Decision
    coef: FloatArray
    intercept: FloatArray
    n_effective: float
    expected: ExpectedAccuracy


def refusal(options: dict[str, Any]) -> str | None:
    """Say why sums are not enough for these options of `LPClassifier`, or None where they are."""
    noise, targets, reg, loss = (options[name] for name in ("noise", "targets", "reg", "loss"))
    if isinstance(targets, str) and targets == "refined":
        return "targets='refined' need a second pass over the rows: use 'optimized', 'unbiased', 'naive' or values."
    if isinstance(noise, NoiseEstimator) or (isinstance(noise, str) and noise == "estimate"):
        return (
            f"noise={noise!r} needs rows: give a NoiseModel, a transition matrix or None; an estimator of "
            "unflip.estimation finds it from a sample of rows."
        )
    if loss is not losses.SQUARED and loss != "squared":
        return f"loss={loss!r} needs rows in every step: use loss='squared'."
    if isinstance(reg, str) and reg == "theory":
        return "reg='theory' needs rows to see whether they fit the theory: use reg='loo' or a number."
    return None


def fit_moments(
    moments: Moments,
    *,
    noise: Any,
    priors: ArrayLike | None,
    targets: str | ArrayLike,
    readout: str,
    reg: Any,
    fit_intercept: bool,
    deployment_priors: ArrayLike | str | None,
    costs: ArrayLike | None,
) -> ClosedFormFit:
    """Fit from sums; parameters are those of `LPClassifier`, checked."""
    if len(moments.classes) < 2:
        raise ValueError(f"LPClassifier needs at least two classes, but there is only {moments.classes.tolist()}.")
    if not moments.n:
        raise ValueError("These Moments are of no rows, or of rows without weight: add some.")
    check_squares(float(np.abs(as_numpy(moments.class_means)).max()), 1)
    model = given_model(noise, priors, moments.classes)
    observed = as_numpy(moments.counts) / moments.n
    known = with_some_priors(model, observed, moments.n_effective, moments.classes, tolerant=True)
    values = target_values.resolve_classes(targets, known)
    table = values.reshape(known.n_classes, -1)
    if known.n_classes > 2 and readout == "gaussian":  # what k scores sum to tells no class from another
        table = table @ contrasts(known.n_classes)
    spectrum = GramSpectrum.from_moments(moments, fit_intercept=fit_intercept)
    scale_free = readout == "gaussian" or not fit_intercept
    chosen, scores = _scores(moments, spectrum, table, reg, readout=readout, scale_free=scale_free)
    law = ScoreLaw.of(scores, known)
    rule = Rule.of(known, deployment_priors, costs)
    decision = _by_log_odds(law, known, rule) if readout == "gaussian" else _by_scores(scores, law, known)
    path = spectrum.solve(moments, _like(table, moments), [chosen])
    return ClosedFormFit(
        noise=known,
        targets=values,
        reg=chosen,
        decision=decision,
        coef=(as_numpy(path.coef)[:, 0, :] @ decision.slopes).T,
        intercept=decision.values(as_numpy(path.intercept)[0, :]),
        n_effective=moments.n_effective,
        expected=expected_accuracy(law, decision, rule.priors, counted=model.priors is None),
    )


def _scores(
    moments: Moments, spectrum: GramSpectrum, table: FloatArray, reg: Any, *, readout: str, scale_free: bool
) -> tuple[float, ClassScores]:
    """Return the penalty given or chosen, and the scores under it."""
    searching = isinstance(reg, str)
    regs = candidate_regs(spectrum) if searching else given_reg(reg, spectrum, readout=readout)
    sums = ScoreSums.of(moments, spectrum, table, regs)
    best = int(np.argmax(np.where(sums.usable, sums.merits(scale_free=scale_free), -np.inf))) if searching else 0
    return float(regs[best]), sums.scores(best)


def _by_log_odds(law: ScoreLaw, noise: NoiseModel, rule: Rule) -> Decision:
    """Decide by Fisher's discriminants of the true classes."""
    directions = np.linalg.solve(law.within, (law.means - law.means[0]).T)
    if law.rank == 1 and noise.n_classes == 2:  # no log-odds fall with the score
        directions = np.maximum(directions, [0.0, SMALLEST_SLOPE])
    midway = np.einsum("ar,ra->a", law.means + law.means[0], directions) / 2
    offsets = np.log(noise.known_priors / noise.known_priors[0]) - midway
    slopes = law.basis @ directions
    readout = Readout(slopes, offsets - law.centre @ slopes).under(rule.priors, noise.known_priors)
    return Decision.by_log_odds(readout.slopes, readout.offsets, rule)


def _by_scores(scores: ClassScores, law: ScoreLaw, noise: NoiseModel) -> Decision:
    """Decide by the scores as they are.

    Log-odds per unit are those of classes that lie evenly about 0: a class's own score is m above the mean of all,
    m(1 − 1/k), in the mean, and all vary alike. (The one score of two classes is the difference of theirs.)
    """
    k = noise.n_classes
    leads = np.array([[-0.5, 0.5]]) if k == 2 else np.eye(k) - 1 / k
    apart = float(noise.known_priors @ np.diag(law.mean_scores @ leads)) / (1 - 1 / k)
    second = float(np.trace(leads.T @ (scores.total + np.outer(scores.centre, scores.centre)) @ leads))
    variance = max(second - apart**2 * (1 - 1 / k), second / scores.n_rows) / (k - 1)
    spread = np.sqrt(second / (k - 1))
    slope = max(apart / variance, SMALLEST_SLOPE / spread) if spread > 0 else 1.0
    return Decision(np.eye(leads.shape[0]), np.zeros(leads.shape[0]), steepness=slope)


def _like(table: FloatArray, moments: Moments) -> Array:
    return array_namespace(moments.scatter).asarray(table, device=device(moments.scatter))
