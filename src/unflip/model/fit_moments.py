r"""Fit `LPClassifier` from `Moments`: no rows, no second pass.

The fit, the regularization strength and the calibration follow from class means and products of
leave-one-out scores (`unflip.ridge.score_sums`). Inverting the noise gives the score distribution
of each true class (`unflip.model.score_law`). The log-odds are Fisher's linear discriminants. For
Gaussian scores the mean probability of a class is its prior, and the accuracy is a normal integral.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device

from unflip import targets as target_values
from unflip._utils.arrays import as_numpy
from unflip._utils.typing import FloatArray
from unflip._utils.validation import check_squares
from unflip.calibration.accuracy import ExpectedAccuracy
from unflip.calibration.decision import Decision, Rule
from unflip.calibration.log_odds import SMALLEST_SLOPE, LogOddsModel
from unflip.labels.classes import contrasts
from unflip.labels.noise import NoiseModel
from unflip.model.noise_sources import resolve_noise, with_inferred_priors
from unflip.model.options import Options
from unflip.model.score_law import ScoreLaw, expected_accuracy
from unflip.ridge.moments import Moments
from unflip.ridge.score_sums import ClassScores, ScoreSums
from unflip.ridge.selection import candidate_regs, fixed_reg
from unflip.ridge.spectrum.gram import GramSpectrum


@dataclass(frozen=True, eq=False)
class ClosedFormFit:
    """A fit from sums; attributes are those of `LPClassifier` without the trailing underscore."""

    noise: NoiseModel
    targets: FloatArray
    reg: float
    decision: Decision
    coef: FloatArray
    intercept: FloatArray
    n_effective: float
    expected: ExpectedAccuracy


def fit_moments(moments: Moments, options: Options) -> ClosedFormFit:
    """Fit from sums over the rows; `options` are validated."""
    if len(moments.classes) < 2:
        raise ValueError(
            "LPClassifier needs at least two classes, but the only class is "
            f"{moments.classes.tolist()}."
        )
    if not moments.n:
        raise ValueError("These Moments have no rows of positive weight: add rows.")
    check_squares(float(np.abs(as_numpy(moments.class_means)).max()), 1)
    model = resolve_noise(options.noise, options.priors, moments.classes)
    observed = as_numpy(moments.counts) / moments.n
    noise = with_inferred_priors(
        model, observed, moments.n_effective, moments.classes, tolerant=True
    )
    values = target_values.resolve_classes(options.targets, noise)
    table = values.reshape(noise.n_classes, -1)
    if options.in_contrasts(noise.n_classes):
        table = table @ contrasts(noise.n_classes)
    spectrum = GramSpectrum.from_moments(moments, fit_intercept=options.fit_intercept)
    reg, scores = _reg_and_scores(moments, spectrum, table, options)
    law = ScoreLaw.of(scores, noise)
    rule = Rule.of(noise, options.deployment_priors, options.costs)
    if options.readout == "gaussian":
        decision = _by_log_odds(law, noise, rule)
    else:
        decision = _by_scores(scores, law, noise)
    scatter = moments.scatter
    device_table = array_namespace(scatter).asarray(table, device=device(scatter))
    path = spectrum.solve(moments, device_table, [reg])
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


def _reg_and_scores(
    moments: Moments, spectrum: GramSpectrum, table: FloatArray, options: Options
) -> tuple[float, ClassScores]:
    """Return the given or selected regularization strength, and the scores under it."""
    if not options.searches:
        regs = fixed_reg(options.reg, spectrum, readout=options.readout)
        return float(regs[0]), ScoreSums.of(moments, spectrum, table, regs).scores(0)
    regs = candidate_regs(spectrum)
    sums = ScoreSums.of(moments, spectrum, table, regs)
    criterion = sums.criterion_values(scale_free=options.scale_free)
    best = int(np.argmax(np.where(sums.usable, criterion, -np.inf)))
    return float(regs[best]), sums.scores(best)


def _by_log_odds(law: ScoreLaw, noise: NoiseModel, rule: Rule) -> Decision:
    """Return the decision rule by Fisher's discriminants of the true classes."""
    directions = np.linalg.solve(law.within, (law.means - law.means[0]).T)
    if law.rank == 1 and noise.n_classes == 2:  # log-odds rise with the score
        directions = np.maximum(directions, [0.0, SMALLEST_SLOPE])
    middle = np.einsum("ar,ra->a", law.means + law.means[0], directions) / 2
    intercepts = np.log(noise.known_priors / noise.known_priors[0]) - middle
    slopes = law.basis @ directions
    model = LogOddsModel(slopes, intercepts - law.centre @ slopes)
    model = model.with_priors(rule.priors, noise.known_priors)
    return Decision.by_log_odds(model.slopes, model.intercepts, rule)


def _by_scores(scores: ClassScores, law: ScoreLaw, noise: NoiseModel) -> Decision:
    """Return the decision rule by the scores themselves.

    The slope of the log-odds assumes that classes lie symmetrically about 0: the score of the true
    class exceeds the mean of all scores by m(1 − 1/k) on average, and all scores have the same
    variance. The one score of two classes is the difference of two such scores.
    """
    k = noise.n_classes
    leads = np.array([[-0.5, 0.5]]) if k == 2 else np.eye(k) - 1 / k
    gap = float(noise.known_priors @ np.diag(law.mean_scores @ leads)) / (1 - 1 / k)
    second_moments = scores.total + np.outer(scores.centre, scores.centre)
    power = max(float(np.trace(leads.T @ second_moments @ leads)), 0.0)  # a rounding error below 0
    variance = max(power - gap**2 * (1 - 1 / k), power / scores.n_effective) / (k - 1)
    spread = np.sqrt(power / (k - 1))
    slope = max(gap / variance, SMALLEST_SLOPE / spread) if spread > 0 else 1.0
    return Decision(np.eye(leads.shape[0]), np.zeros(leads.shape[0]), slope=slope)
