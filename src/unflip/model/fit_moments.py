r"""Everything that `LPClassifier` needs to fit from `Moments`: no rows, no second pass.

The fit, the penalty and the read-out follow from class means and products of leave-one-out scores
(`unflip.ridge.score_sums`). Flips mix the true classes: undoing that gives the law of each one's
scores (`unflip.model.score_law`). Log-odds then are Fisher's; under Gaussian scores the mean
probability of a class is its prior, and the accuracy is a normal integral.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device

from unflip import targets as target_values
from unflip._utils.arrays import as_numpy
from unflip._utils.typing import Array, FloatArray
from unflip._utils.validation import check_squares
from unflip.calibration.accuracy import ExpectedAccuracy
from unflip.calibration.decision import Decision, Rule
from unflip.calibration.log_odds import SMALLEST_SLOPE, LogOddsModel
from unflip.labels.classes import contrasts
from unflip.labels.noise import NoiseModel
from unflip.model.noise_sources import given_model, with_some_priors
from unflip.model.options import Options
from unflip.model.score_law import ScoreLaw, expected_accuracy
from unflip.ridge.moments import Moments
from unflip.ridge.score_sums import ClassScores, ScoreSums
from unflip.ridge.selection import candidate_regs, given_reg
from unflip.ridge.spectrum.gram import GramSpectrum


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


def fit_moments(moments: Moments, options: Options) -> ClosedFormFit:
    """Fit from sums over the samples; options are checked."""
    if len(moments.classes) < 2:
        raise ValueError(
            "LPClassifier needs at least two classes, but there is only "
            f"{moments.classes.tolist()}."
        )
    if not moments.n:
        raise ValueError("These Moments are of no rows, or of rows without weight: add some.")
    check_squares(float(np.abs(as_numpy(moments.class_means)).max()), 1)
    model = given_model(options.noise, options.priors, moments.classes)
    observed = as_numpy(moments.counts) / moments.n
    noise = with_some_priors(model, observed, moments.n_effective, moments.classes, tolerant=True)
    values = target_values.resolve_classes(options.targets, noise)
    table = values.reshape(noise.n_classes, -1)
    if options.in_contrasts(noise.n_classes):
        table = table @ contrasts(noise.n_classes)
    spectrum = GramSpectrum.from_moments(moments, fit_intercept=options.fit_intercept)
    reg, scores = _scores(moments, spectrum, table, options)
    law = ScoreLaw.of(scores, noise)
    rule = Rule.of(noise, options.deployment_priors, options.costs)
    if options.readout == "gaussian":
        decision = _by_log_odds(law, noise, rule)
    else:
        decision = _by_scores(scores, law, noise)
    path = spectrum.solve(moments, _like(table, moments), [reg])
    return ClosedFormFit(
        noise=noise,
        targets=values,
        reg=reg,
        decision=decision,
        coef=(as_numpy(path.coef)[:, 0, :] @ decision.slopes).T,
        intercept=decision.values(as_numpy(path.intercept)[0, :]),
        n_effective=moments.n_effective,
        expected=expected_accuracy(law, decision, rule.priors, counted=model.priors is None),
    )


def _scores(
    moments: Moments, spectrum: GramSpectrum, table: FloatArray, options: Options
) -> tuple[float, ClassScores]:
    """Return the regularization strength, given or chosen, and the scores under it."""
    if not options.searches:
        regs = given_reg(options.reg, spectrum, readout=options.readout)
        return float(regs[0]), ScoreSums.of(moments, spectrum, table, regs).scores(0)
    regs = candidate_regs(spectrum)
    sums = ScoreSums.of(moments, spectrum, table, regs)
    merits = sums.merits(scale_free=options.scale_free)
    best = int(np.argmax(np.where(sums.usable, merits, -np.inf)))
    return float(regs[best]), sums.scores(best)


def _by_log_odds(law: ScoreLaw, noise: NoiseModel, rule: Rule) -> Decision:
    """Decide by Fisher's discriminants of the true classes."""
    directions = np.linalg.solve(law.within, (law.means - law.means[0]).T)
    if law.rank == 1 and noise.n_classes == 2:  # no log-odds fall with the score
        directions = np.maximum(directions, [0.0, SMALLEST_SLOPE])
    midway = np.einsum("ar,ra->a", law.means + law.means[0], directions) / 2
    intercepts = np.log(noise.known_priors / noise.known_priors[0]) - midway
    slopes = law.basis @ directions
    readout = LogOddsModel(slopes, intercepts - law.centre @ slopes).under(
        rule.priors, noise.known_priors
    )
    return Decision.by_log_odds(readout.slopes, readout.intercepts, rule)


def _by_scores(scores: ClassScores, law: ScoreLaw, noise: NoiseModel) -> Decision:
    """Decide by the scores as they are.

    Log-odds per unit are those of classes that lie evenly about 0: a class's own score is m above
    the mean of all, m(1 − 1/k), in the mean, and all vary alike. (The one score of two classes is
    the difference of theirs.)
    """
    k = noise.n_classes
    leads = np.array([[-0.5, 0.5]]) if k == 2 else np.eye(k) - 1 / k
    apart = float(noise.known_priors @ np.diag(law.mean_scores @ leads)) / (1 - 1 / k)
    second = float(
        np.trace(leads.T @ (scores.total + np.outer(scores.centre, scores.centre)) @ leads)
    )
    variance = max(second - apart**2 * (1 - 1 / k), second / scores.n_rows) / (k - 1)
    spread = np.sqrt(second / (k - 1))
    slope = max(apart / variance, SMALLEST_SLOPE / spread) if spread > 0 else 1.0
    return Decision(np.eye(leads.shape[0]), np.zeros(leads.shape[0]), slope=slope)


def _like(table: FloatArray, moments: Moments) -> Array:
    return array_namespace(moments.scatter).asarray(table, device=device(moments.scatter))
