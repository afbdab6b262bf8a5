"""Everything that `LPClassifier` needs to fit to rows: from prepared rows and options to what it keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace, device

from unflip import losses
from unflip import targets as target_values
from unflip._utils.arrays import as_numpy, like, sums_by_code
from unflip._utils.typing import Array, FloatArray
from unflip._utils.warnings import warn_caller
from unflip.calibration.accuracy import (
    ExpectedAccuracy,
    expected_accuracy,
)
from unflip.calibration.decision import Decision, Rule
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.log_odds import SMALLEST_SLOPE, Calibration, common_slope, symmetric_slope
from unflip.calibration.observations import Observations
from unflip.data.centred import product
from unflip.data.duplicates import chosen
from unflip.data.training_set import TrainingSet
from unflip.estimation.isotropy import mixture_evidence
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.labels.annotators import Annotators
from unflip.labels.classes import contrasts
from unflip.labels.moved_noise import channels_one_error_away
from unflip.labels.noise import Channel, NoiseModel
from unflip.model.noise_sources import NoiseSource, centred, noise_source
from unflip.model.options import Options
from unflip.model.predicted_reg import predicted_reg
from unflip.model.refinement.refine import known_rows, refine
from unflip.model.refinement.rounds import Round, fit_table
from unflip.ridge.selection import candidate_regs, coarse_regs, given_reg
from unflip.ridge.solvers.convex_fits import ConvexFits
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose

_ROWS_PER_SLOPE = 2.0  # fewer make chance look like evidence
_ONE_SIDED = 0.02  # share of scores on the rarer side of 0 that makes a plain read-out pointless


@dataclass(frozen=True, eq=False)
class RowFit:
    """A fit to rows; attributes are those of `LPClassifier` without their underscores, of two classes in columns.

    Arrays are where the rows are.
    """

    noise: NoiseModel
    noise_std: Array
    noise_estimator: NoiseEstimator | None
    annotators: Annotators | None
    targets: Array
    reg: float
    decision: Decision
    coef: Array
    intercept: Array
    loo_decision: Array
    label_posterior: Array
    loo_log_odds: Array
    n_effective: float
    association: float
    expected: ExpectedAccuracy


def fit_rows(data: TrainingSet, options: Options, default: NoiseEstimator) -> RowFit:
    """Fit to a prepared training set.

    Parameters
    ----------
    data : TrainingSet
        The training set.
    options : Options
        Parameters of `LPClassifier`, checked.
    default : NoiseEstimator
        What estimates the noise rates for ``noise="estimate"``.
    """
    rows, k = data.rows, len(data.classes)
    shares = rows.memberships(data.codes, k) if data.votes is None else None
    spectrum = decompose(
        rows.X, rows.spectrum_weights, fit_intercept=options.fit_intercept, shares=shares
    )
    if not spectrum.n_varying:
        raise ValueError(
            "The rows of X are alike but for rounding errors, so no feature tells the classes "
            "apart: give rows that vary."
        )
    fits = _fits(spectrum, options, k)
    source = noise_source(options.noise, options.priors, data, spectrum, default)
    table = None if options.refines else _table(source.noise, options)
    found = _rounds(fits, spectrum, data, source, options, table)
    if (
        source.crowd is not None
    ):  # what the scores say of the rows tells more of those who voted on them
        source = source.with_features(found.reading.log_odds)
        found = _rounds(fits, spectrum, data, source, options, table)
    noise = source.noise.with_priors(found.noise.known_priors)
    rule = Rule.of(noise, options.deployment_priors, options.costs)
    decision = _decision(found, data, noise, rule, options)

    means = rows.average(found.targets)
    path = fits.path(means, [found.reg])
    coef, intercept = path.coef[:, 0, :], path.intercept[0, :]
    if options.refines and options.readout == "plain":
        _warn_of_one_sided_scores(
            decision.classes(decision.values(product(data.X, coef) + intercept)), k
        )
    _warn_of_few_rows(rows.n_effective, k)
    absent = _fitted(data, coef, intercept)
    label_posterior, log_odds = _posteriors(found, data, source, absent)
    return RowFit(
        noise=noise,
        noise_std=like(source.errors, coef),
        noise_estimator=source.estimator,
        annotators=source.annotators,
        targets=_refined_targets(found, data, absent) if table is None else like(table, coef),
        reg=found.reg,
        decision=decision,
        coef=(coef @ like(decision.slopes, coef)).T,
        intercept=decision.values(intercept),
        loo_decision=decision.values(_left_out(fits, found, data, means, absent, options)),
        label_posterior=label_posterior,
        loo_log_odds=log_odds[:, 1:],
        n_effective=rows.n_effective,
        association=found.association,
        expected=_expected(found, data, source, noise, decision, rule, options),
    )


def warn_of_one_sided_targets(targets: FloatArray, options: Options) -> None:
    """Warn where a plain read-out with an intercept would predict one class alone."""
    if (
        targets.ndim == 1
        and options.readout == "plain"
        and options.fit_intercept
        and targets.prod() > 0
    ):
        t_neg, t_pos = targets
        warn_caller(
            f"Both targets ({t_neg:.3g}, {t_pos:.3g}) have the same sign, so with an intercept "
            "nearly all scores do: use readout='gaussian', which finds the threshold, or "
            "fit_intercept=False at a known origin."
        )


def _fits(spectrum: Spectrum, options: Options, n_classes: int) -> Spectrum | ConvexFits:
    """Return who fits the loss: the spectrum itself for the squared one."""
    if options.is_squared:
        return spectrum
    return ConvexFits(
        spectrum, losses.resolve(options.loss) if n_classes == 2 else losses.SoftmaxLoss
    )


def _table(noise: NoiseModel, options: Options) -> FloatArray:
    """Return the target values of each observed class, checked."""
    table = target_values.resolve_classes(options.targets, noise)
    warn_of_one_sided_targets(table, options)
    if not options.is_squared and table.ndim == 2 and not np.allclose(table.sum(axis=1), 1):
        # Of the softmax loss only contrasts of the shares matter.
        raise ValueError(
            "loss='logistic' takes targets as shares of the classes: make each row sum to 1."
        )
    return table


def _rounds(
    fits: Spectrum | ConvexFits,
    spectrum: Spectrum,
    data: TrainingSet,
    source: NoiseSource,
    options: Options,
    table: FloatArray | None,
) -> Round:
    """Fit the targets, and read nothing off scores that may as well not predict the labels."""
    found = _fitted_targets(fits, spectrum, data, source, options, table)
    if found.has_support:
        return found
    flat = found.reading.without_signal(found.noise.known_priors, _relative_spread(found, data))
    return replace(found, reading=flat)


def _believed(found: Round) -> Calibration:
    """Return what is reported of the rows: as much of the log-odds as the scores surely tell."""
    if found.certainty == 1 or not found.has_support:
        return found.reading
    return found.reading.shrunk(found.certainty, found.noise.known_priors)


def _relative_spread(found: Round, data: TrainingSet) -> float:
    """Return the standard deviation of the scores relative to that of the targets."""
    share = data.rows.member_weights / array_namespace(data.codes).sum(data.rows.member_weights)
    scores, targets = (
        _spread(columns, share) for columns in (data.rows.of_members(found.scores), found.targets)
    )
    return scores / (targets or 1.0)


def _spread(columns: Array, share: Array) -> float:
    return float(
        np.sqrt(float(array_namespace(columns).sum(share @ (columns - share @ columns) ** 2)))
    )


def _fitted_targets(
    fits: Spectrum | ConvexFits,
    spectrum: Spectrum,
    data: TrainingSet,
    source: NoiseSource,
    options: Options,
    table: FloatArray | None,
) -> Round:
    """Fit the targets, refining them where there is no table, at the penalty given or chosen."""
    noise = source.noise
    regs = _candidates(fits, spectrum, data, noise, options)
    infer_priors = source.counted and noise.n_classes > 2
    if table is None:
        found = refine(
            fits,
            data.rows,
            data.codes,
            source.channel(data),
            regs,
            search=options.searches,
            scale_free=options.scale_free,
            truth=data.trusted_codes(source.y_trusted),
            infer_priors=infer_priors,
            priors_known=options.knows_priors,
        )
        return replace(
            found, reg=found.reg if options.searches else float(regs[0])
        )  # free of rounding
    columns = table.reshape(noise.n_classes, -1)
    if options.in_contrasts(noise.n_classes):
        columns = columns @ contrasts(noise.n_classes)
    how = {
        "scale_free": options.scale_free,
        "infer_priors": infer_priors,
        "priors_known": options.knows_priors,
    }
    return fit_table(fits, data.rows, data.codes, noise, regs, table=columns, **how)


def _candidates(
    fits: Spectrum | ConvexFits,
    spectrum: Spectrum,
    data: TrainingSet,
    noise: NoiseModel,
    options: Options,
) -> FloatArray:
    """Return the penalties to choose from: one where it is given."""
    candidates = candidate_regs(spectrum)
    if isinstance(fits, ConvexFits):
        candidates = fits.stiffness(len(data.classes) - 1) * coarse_regs(spectrum)
    if options.searches:
        return candidates
    if isinstance(options.reg, str):
        predicted = _predicted_reg(centred(spectrum, data), data, noise, options)
        return np.array([min(predicted, float(candidates[-1]))])
    return given_reg(
        options.reg, spectrum, readout="gaussian"
    )  # which reads label_posterior_ off the scores


def _predicted_reg(
    spectrum: Spectrum, data: TrainingSet, noise: NoiseModel, options: Options
) -> float:
    """Return γ* of the isotropic mixture behind the rows; it may be infinite."""
    if data.rows.spectrum_weights is not None:
        raise ValueError("reg='theory' needs distinct rows without weights: use reg='loo'.")
    codes = as_numpy(data.codes)
    evidence = mixture_evidence(spectrum, codes, noise.n_classes)
    if not evidence.supported:
        raise ValueError(f"reg='theory' does not fit these data ({evidence}): use reg='loo'.")
    return predicted_reg(
        spectrum,
        codes,
        noise,
        targets="optimized" if options.refines else options.targets,
        loss=losses.resolve(options.loss),
        plain=options.readout == "plain",
        fit_intercept=options.fit_intercept,
    )


def _refined_targets(found: Round, data: TrainingSet, absent: Array) -> Array:
    """Return targets of all rows as values of y = ±1 (two classes), or as rows of class probabilities (more)."""
    targets, k = data.rows.to_all_rows(found.targets, 0 * absent), len(data.classes)
    return targets[:, 0] if k == 2 else targets @ like(contrasts(k).T, targets) + 1 / k


def _decision(
    found: Round, data: TrainingSet, noise: NoiseModel, rule: Rule, options: Options
) -> Decision:
    """Decide by log-odds, or, with the plain read-out, by the scores as they are."""
    if options.readout == "gaussian":
        log_odds = found.reading.model.under(rule.priors, noise.known_priors)
        return Decision.by_log_odds(log_odds.slopes, log_odds.intercepts, rule)
    k = noise.n_classes
    scores = data.rows.of_members(found.scores)
    observations = _observations(data, options)
    kept = 1.0 if found.has_support else SMALLEST_SLOPE * min(_relative_spread(found, data), 1.0)
    if k == 2:
        slope = symmetric_slope(scores[:, 0], observations, found.noise)
        return Decision(np.eye(1), np.zeros(1), slope=kept * slope)
    per_class = contrasts(k).T if options.in_contrasts(k) else np.eye(k)
    slope = common_slope(scores @ like(per_class, scores), observations, found.noise)
    return Decision(per_class, np.zeros(k), slope=kept * slope)


def _observations(data: TrainingSet, options: Options) -> Observations:
    rows = data.rows
    return Observations(data.codes, rows.member_weights, rows.n_effective, options.knows_priors)


def _fitted(data: TrainingSet, coef: Array, intercept: Array) -> Array:
    """Return the fitted scores of the rows of no weight."""
    absent, xp = data.rows.zero_weight, array_namespace(coef)
    if not absent.shape[0]:
        return xp.zeros((0, coef.shape[1]), dtype=coef.dtype, device=device(coef))
    return product(chosen(data.X, absent), coef) + intercept


def _posteriors(
    found: Round, data: TrainingSet, source: NoiseSource, absent: Array
) -> tuple[Array, Array]:
    """Return label posteriors and log-odds, from scores that are free of the row's own label.

    Copies of a row leave together, so that none vouches for another; rows of no weight have their
    fitted scores.
    """
    reading = _believed(found)
    posterior = known_rows(
        reading.posterior(data.codes, found.noise), data.trusted_codes(source.y_trusted)
    )
    neutral = np.log(found.noise.known_priors / found.noise.known_priors[0])
    fitted, share = reading.model.log_odds(absent), found.certainty if found.has_support else 1.0
    of_absent = like((1 - share) * neutral, fitted) + share * fitted
    return (
        data.rows.to_all_rows(posterior, class_probabilities(of_absent)),
        data.rows.to_all_rows(reading.log_odds, of_absent),
    )


def _left_out(
    fits: Spectrum | ConvexFits,
    found: Round,
    data: TrainingSet,
    means: Array,
    absent: Array,
    options: Options,
) -> Array:
    """Return leave-one-out scores of all rows, those of no weight as fitted."""
    rows = data.rows
    left_out = fits.leave_one_out(means, [found.reg])
    if rows.has_copies:
        share = rows.member_weights / rows.of_members(rows.weights)
        left_out = left_out.of_copies(rows.owner, found.targets, share)
    if options.readout == "plain":
        return data.rows.to_all_rows(left_out.scores[:, 0, :], absent)
    # A read-out fitted to the others would move with their mean target: it needs the scores without
    # that move.
    return data.rows.to_all_rows(
        left_out.corrected_scores[:, 0, :] - rows.of_members(found.leak), absent
    )


def _expected(
    found: Round,
    data: TrainingSet,
    source: NoiseSource,
    noise: NoiseModel,
    decision: Decision,
    rule: Rule,
    options: Options,
) -> ExpectedAccuracy:
    rows = data.rows
    if options.readout == "plain":
        predicted = decision.classes(decision.values(rows.of_members(found.scores)))
    else:
        predicted = _predicted(found.reading, noise, rule)
    certain = found.certainty == 1
    moved = (
        _noise_one_error_away(data, source, noise, priors_known=options.knows_priors)
        if certain
        else [found.noise]
    )
    return expected_accuracy(
        _observations(data, options),
        _believed(found),
        found.noise,
        base=moved[0],
        others=moved[1:],
        deployed=rule.priors,
        predicted=predicted,
    )


def _noise_one_error_away(
    data: TrainingSet, source: NoiseSource, noise: NoiseModel, *, priors_known: bool
) -> list[Channel]:
    """Return the noise, then the noise with each rate moved by its standard error."""
    votes, weights = data.votes, data.rows.member_weights
    observed = data.observed if votes is None else votes.shares(weights)
    return channels_one_error_away(
        noise,
        source.errors,
        observed=None if priors_known else observed,
        votes=votes,
        annotators=None if source.crowd is None else source.annotators,
    )


def _predicted(reading: Calibration, noise: NoiseModel, rule: Rule) -> Array:
    """Return what is predicted of rows by a read-out in which their own labels have no part."""
    shift = np.log(rule.priors / noise.known_priors)
    by_log_odds = Decision.by_log_odds(np.eye(len(shift)), shift - shift[0], rule)
    return by_log_odds.classes(by_log_odds.values(reading.log_odds))


def _warn_of_one_sided_scores(predicted: Array, n_classes: int) -> None:
    xp = array_namespace(predicted)
    counts = sums_by_code(
        predicted,
        xp.ones(predicted.shape[0], dtype=xp.float64, device=device(predicted)),
        n_classes,
    )
    most = float(counts.max() / counts.sum())
    if most > 1 - _ONE_SIDED:
        warn_caller(
            f"{most:.0%} of the fitted scores favour one class, so the plain read-out predicts it "
            "almost everywhere: use readout='gaussian', which finds the threshold."
        )


def _warn_of_few_rows(n_rows: float, n_classes: int) -> None:
    n_slopes = (n_classes - 1) ** 2
    if n_rows < _ROWS_PER_SLOPE * n_slopes and n_slopes > 1:
        warn_caller(
            f"{n_rows:.0f} rows are few for {n_classes} classes, whose read-out has {n_slopes} "
            "slopes: probabilities, label_posterior_ and expected_accuracy_ are too sure. Merge "
            "classes or add rows."
        )
