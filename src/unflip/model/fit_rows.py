"""Fit `LPClassifier` to rows: from a prepared training set to all fitted attributes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace, device

from unflip import losses
from unflip import targets as target_values
from unflip._utils.arrays import as_numpy, like, sums_by_code
from unflip._utils.typing import Array, FloatArray
from unflip._utils.warnings import warn_caller
from unflip.calibration.accuracy import ExpectedAccuracy, expected_accuracy
from unflip.calibration.decision import Decision, Rule
from unflip.calibration.information import calibration_covariance
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.likeliest_noise import expected_noise, is_determined, transition_errors
from unflip.calibration.log_odds import SMALLEST_SLOPE, Calibration, common_slope, symmetric_slope
from unflip.calibration.observations import Observations
from unflip.calibration.true_class import TrueClassModel
from unflip.data.duplicates import take_rows
from unflip.data.rows import product
from unflip.data.training_set import TrainingSet
from unflip.estimation.anchors import NOT_IDENTIFIABLE
from unflip.estimation.isotropy import mixture_evidence
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.labels.annotators import Annotators
from unflip.labels.classes import contrasts
from unflip.labels.codes import UNCHECKED
from unflip.labels.noise import NoiseModel
from unflip.model.noise_sources import (
    NoiseSource,
    centred,
    noise_source,
    with_hidden_labels,
)
from unflip.model.options import Options, is_estimate
from unflip.model.predicted_reg import predicted_reg
from unflip.model.refinement.refine import refine, with_trusted_labels
from unflip.model.refinement.rounds import NoisyLabels, Round, fit_table
from unflip.model.true_class_fit import true_class_model
from unflip.ridge.selection import candidate_regs, coarse_regs, fixed_reg
from unflip.ridge.solvers.convex_fits import ConvexFits
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose

# Fits that score the rows with trusted labels: each hides a quarter of these labels. A choice: more
# folds take longer, with fewer the fits know fewer trusted labels.
_FOLDS = 4
# Limit on the estimates of annotators by features, which depend on the slope of the scores, and the
# other way round. Five sets of votes need two to five.
_MOST_ANNOTATOR_FITS = 5
# Least gain in log-likelihood for which another estimate is kept.
_LEAST_GAIN = 1.0


@dataclass(frozen=True, eq=False)
class RowFit:
    """A fit to rows; attributes are those of `LPClassifier` without the trailing underscore.

    Attributes that have a value for each row or class are two-dimensional, for two classes too.
    Arrays have the namespace and device of the rows.
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


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is to be fitted, and how.

    Attributes
    ----------
    data : TrainingSet
        The training set.
    options : Options
        Parameters of `LPClassifier`, validated.
    spectrum : Spectrum
        Spectrum of the distinct rows.
    fits : Spectrum or ConvexFits
        Fits of the loss; for the squared loss the spectrum itself.
    """

    data: TrainingSet
    options: Options
    spectrum: Spectrum
    fits: Spectrum | ConvexFits

    @classmethod
    def of(cls, data: TrainingSet, options: Options) -> _Problem:
        rows = data.rows
        n_classes = len(data.classes)
        shares = rows.memberships(data.codes, n_classes) if data.votes is None else None
        spectrum = decompose(
            rows.X, rows.spectrum_weights, fit_intercept=options.fit_intercept, shares=shares
        )
        if not spectrum.n_varying:
            raise ValueError(
                "The rows of X are equal up to rounding errors, so no feature separates the "
                "classes: give rows that vary."
            )
        if options.is_squared:
            return cls(data, options, spectrum, spectrum)
        loss = losses.resolve(options.loss) if n_classes == 2 else losses.SoftmaxLoss
        return cls(data, options, spectrum, ConvexFits(spectrum, loss))

    @property
    def n_classes(self) -> int:
        return len(self.data.classes)

    @property
    def observations(self) -> Observations:
        """The observed labels that scores are calibrated against."""
        rows = self.data.rows
        return Observations(
            self.data.codes, rows.member_weights, rows.n_effective, self.options.priors_known
        )

    def labels(self, source: NoiseSource, truth: Array | None) -> NoisyLabels:
        """Return the labels with what is known about their noise, and about the true classes."""
        return NoisyLabels(
            self.data.rows,
            self.data.codes,
            source.channel(self.data),
            truth=truth,
            infer_priors=source.counted and self.n_classes > 2,
            priors_known=self.options.priors_known,
            rate_prior=source.rate_prior if self.data.votes is None else None,
            is_local=self.data.is_local,
        )


def fit_rows(data: TrainingSet, options: Options, default: NoiseEstimator) -> RowFit:
    """Fit to a prepared training set.

    Parameters
    ----------
    data : TrainingSet
        The training set.
    options : Options
        Parameters of `LPClassifier`, validated.
    default : NoiseEstimator
        Estimator of the noise rates for ``noise="estimate"``.
    """
    votes = data.votes
    has_labels = votes is not None and votes.single and len(votes.label) == data.n_rows
    if votes is not None and has_labels and is_estimate(options.noise):
        fit = fit_rows(data.with_single_votes(votes), options, default)
        return replace(fit, annotators=Annotators.from_noise(fit.noise, votes))
    problem = _Problem.of(data, options)
    source = _noise_source(problem, default)
    table = None if options.refines else _target_table(source.noise, options)
    truth = data.trusted_codes(source.y_trusted)
    source, last = _fit_targets(problem, source, table, truth)
    noise = source.noise.with_priors(last.noise.known_priors)
    rule = Rule.of(noise, options.deployment_priors, options.costs)
    decision = _decision(problem, last, noise, rule)

    mean_targets = data.rows.average(last.targets)
    path = problem.fits.path(mean_targets, [last.reg])
    coef = path.coef[:, 0, :]
    intercept = path.intercept[0, :]
    if options.refines and options.readout == "plain":
        fitted = product(data.X, coef) + intercept
        _warn_of_one_sided_scores(decision.classes(decision.values(fitted)), problem.n_classes)
    _warn_of_few_rows(data.rows.n_effective, problem.n_classes)
    zero_weight_scores = _zero_weight_scores(data, coef, intercept)
    reported = last
    if truth is not None and source.is_calibrated_by_truth:
        reported = _cross_fitted(problem, source, table, last, truth)
    predicted = _predicted(problem, reported, noise, decision, rule)
    probabilities = _reported_calibration(reported).probabilities
    checked = true_class_model(data, source, probabilities, predicted)
    label_posterior, log_odds = _label_posteriors(
        data, reported, source, zero_weight_scores, checked
    )
    if table is None:
        targets = _refined_targets(data, last, zero_weight_scores)
    else:
        targets = like(table, coef)
    loo_scores = _loo_scores(problem, last, mean_targets, zero_weight_scores)
    if checked is None:
        expected = _expected_accuracy(problem, last, source, rule, predicted)
    elif options.deployment_priors is None:
        expected = ExpectedAccuracy.from_interval(checked.expected_accuracy)
    else:
        expected = ExpectedAccuracy.from_interval(checked.accuracy_for(rule.priors))
    if last.rate_covariance is not None:
        source = _corrected(source, problem, last, last.rate_covariance)
        noise = source.noise
    return RowFit(
        noise=noise,
        noise_std=like(source.errors, coef),
        noise_estimator=source.estimator,
        annotators=source.annotators,
        targets=targets,
        reg=last.reg,
        decision=decision,
        coef=(coef @ like(decision.slopes, coef)).T,
        intercept=decision.values(intercept),
        loo_decision=decision.values(loo_scores),
        label_posterior=label_posterior,
        loo_log_odds=log_odds[:, 1:],
        n_effective=data.rows.n_effective,
        association=last.association,
        expected=expected,
    )


def _noise_source(problem: _Problem, default: NoiseEstimator) -> NoiseSource:
    """Return the noise that the parameters stand for."""
    data = problem.data
    options = problem.options
    votes = data.votes
    if votes is None or not votes.single or not is_estimate(options.noise):
        return noise_source(options.noise, options.priors, data, problem.spectrum, default)
    # At most one vote on each row: these are labels, some of them missing.
    fit = fit_rows(data.with_single_votes(votes), options, default)
    estimator = fit.noise_estimator
    noise = fit.noise
    if estimator is not None and estimator.calibration_noise_ is not None:
        noise = estimator.calibration_noise_
    annotators = Annotators.from_noise(noise, votes)
    return NoiseSource(noise, as_numpy(fit.noise_std), estimator, annotators=annotators)


def _corrected(
    source: NoiseSource, problem: _Problem, last: Round, covariance: FloatArray
) -> NoiseSource:
    """Return the noise of the training labels after the correction of its rates, with errors."""
    observations = problem.observations
    posterior = last.calibration.posterior(observations.codes, last.noise)
    fitted = NoiseModel(last.noise.transition, last.noise.priors)
    noise = expected_noise(posterior, observations, fitted)
    errors = transition_errors(last.noise, covariance, observations.n_effective)
    assumption = ""
    if not is_determined(last.noise, covariance):
        assumption = NOT_IDENTIFIABLE
    if source.estimator is not None:
        source.estimator.correct(noise, errors, covariance, fitted, assumption)
    return replace(source, noise=noise, errors=errors)


def warn_of_one_sided_targets(targets: FloatArray, options: Options) -> None:
    """Warn if readout="plain" with an intercept would nearly always predict the same class."""
    is_binary = targets.ndim == 1
    keeps_sign = options.readout == "plain" and options.fit_intercept
    if is_binary and keeps_sign and targets.prod() > 0:
        t_neg, t_pos = targets
        warn_caller(
            f"Both targets ({t_neg:.3g}, {t_pos:.3g}) have the same sign, so with an intercept "
            "nearly all scores have it, too: use readout='gaussian', which fits the threshold, or "
            "fit_intercept=False if the origin is known."
        )


def _target_table(noise: NoiseModel, options: Options) -> FloatArray:
    """Return the validated target values of each observed class."""
    table = target_values.resolve_classes(options.targets, noise)
    warn_of_one_sided_targets(table, options)
    # The softmax loss depends on contrasts of the targets alone.
    if not options.is_squared and table.ndim == 2 and not np.allclose(table.sum(axis=1), 1):
        raise ValueError(
            "loss='logistic' takes class proportions as targets: make each row sum to 1."
        )
    return table


def _fit_targets(
    problem: _Problem, source: NoiseSource, table: FloatArray | None, truth: Array | None
) -> tuple[NoiseSource, Round]:
    """Fit the targets; with votes again, while the votes become likelier given the features."""
    last = _last_round(problem, source, table, truth)
    if source.crowd is None:
        return source, last
    best = source, last
    likelihood = -np.inf
    for _ in range(_MOST_ANNOTATOR_FITS):
        source = source.with_features(last.calibration.log_odds)
        last = _last_round(problem, source, table, truth)
        previous, likelihood = likelihood, source.log_likelihood(last.calibration.log_odds)
        if likelihood < previous + _LEAST_GAIN:
            break
        best = source, last
    return best


def _cross_fitted(
    problem: _Problem, source: NoiseSource, table: FloatArray | None, last: Round, truth: Array
) -> Round:
    """Score each row with a trusted label by a fit in which its trusted label is hidden.

    Trusted labels are targets, which move the targets of other rows, and they determine the noise
    rates. Both ways they leak into the scores of their own rows, but not into those of unchecked
    rows.
    """
    rows = problem.data.rows
    owner = as_numpy(rows.owner)
    known = as_numpy(truth)
    checked_rows = np.unique(owner[known != UNCHECKED])  # duplicates share a fold
    xp = array_namespace(last.scores)
    scores = last.scores
    log_odds = last.calibration.log_odds
    for fold in range(min(_FOLDS, len(checked_rows))):
        is_held_out = np.zeros(scores.shape[0], dtype=bool)
        is_held_out[checked_rows[fold::_FOLDS]] = True
        others = np.where(is_held_out[owner], UNCHECKED, known)
        noise = with_hidden_labels(
            source, others, problem.options.priors, problem.data, problem.spectrum
        )
        _, fitted = _fit_targets(problem, noise, table, like(others, truth))
        replaced = like(is_held_out[:, None], truth)
        scores = xp.where(replaced, fitted.scores, scores)
        log_odds = xp.where(rows.of_members(replaced), fitted.calibration.log_odds, log_odds)
    logits = log_odds - like(last.calibration.intercepts, log_odds)
    return replace(last, scores=scores, calibration=replace(last.calibration, logits=logits))


def _last_round(
    problem: _Problem, source: NoiseSource, table: FloatArray | None, truth: Array | None
) -> Round:
    """Run all rounds; without support by the labels, flatten the calibration to the priors."""
    last = _run_rounds(problem, source, table, truth)
    if last.has_support:
        return last
    spread = _relative_spread(problem.data, last)
    flat = last.calibration.flattened(last.noise.known_priors, spread)
    return replace(last, calibration=flat)


def _run_rounds(
    problem: _Problem, source: NoiseSource, table: FloatArray | None, truth: Array | None
) -> Round:
    """Fit a table of targets, or refine the targets if there is none."""
    options = problem.options
    fits = problem.fits
    regs = _regs_to_try(problem, source.noise)
    labels = problem.labels(source, truth)
    if table is None:
        last = refine(fits, labels, regs, search=options.searches, scale_free=options.scale_free)
        # Without a search γ is the given one, free of the rounding errors of rescaling it.
        return last if options.searches else replace(last, reg=float(regs[0]))
    columns = table.reshape(problem.n_classes, -1)
    if options.in_contrasts(problem.n_classes):
        columns = columns @ contrasts(problem.n_classes)
    return fit_table(fits, labels, regs, table=columns, scale_free=options.scale_free)


def _regs_to_try(problem: _Problem, noise: NoiseModel) -> FloatArray:
    """Return the regularization strengths to choose from; a single one if `reg` sets it."""
    spectrum = problem.spectrum
    options = problem.options
    if isinstance(problem.fits, ConvexFits):
        candidates = problem.fits.stiffness(problem.n_classes - 1) * coarse_regs(spectrum)
    else:
        candidates = candidate_regs(spectrum)
    if options.searches:
        return candidates
    if isinstance(options.reg, str):
        predicted = _predicted_reg(problem, noise)
        return np.array([min(predicted, float(candidates[-1]))])
    # label_posterior_ uses the gaussian calibration with either readout.
    return fixed_reg(options.reg, spectrum, readout="gaussian")


def _predicted_reg(problem: _Problem, noise: NoiseModel) -> float:
    """Return the theory's optimal γ for an isotropic mixture like the rows; may be infinite."""
    data = problem.data
    options = problem.options
    if data.rows.spectrum_weights is not None:
        raise ValueError("reg='theory' needs distinct rows without weights: use reg='loo'.")
    spectrum = centred(problem.spectrum, data)
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


def _reported_calibration(last: Round) -> Calibration:
    """Return the calibration, shrunk towards the priors if the association is uncertain."""
    if last.certainty == 1 or not last.has_support:
        return last.calibration
    return last.calibration.shrunk(last.certainty, last.noise.known_priors)


def _relative_spread(data: TrainingSet, last: Round) -> float:
    """Return the standard deviation of the scores relative to that of the targets."""
    weights = data.rows.member_weights
    share = weights / array_namespace(data.codes).sum(weights)
    scores_std = _standard_deviation(data.rows.of_members(last.scores), share)
    targets_std = _standard_deviation(last.targets, share)
    return scores_std / (targets_std or 1.0)


def _standard_deviation(columns: Array, share: Array) -> float:
    variances = share @ (columns - share @ columns) ** 2
    return float(np.sqrt(float(array_namespace(columns).sum(variances))))


def _refined_targets(data: TrainingSet, last: Round, zero_weight_scores: Array) -> Array:
    """Return the targets of all rows: one value for two classes, class probabilities for more."""
    k = len(data.classes)
    targets = data.rows.to_all_rows(last.targets, 0 * zero_weight_scores)
    if k == 2:
        return targets[:, 0]
    return targets @ like(contrasts(k).T, targets) + 1 / k


def _decision(problem: _Problem, last: Round, noise: NoiseModel, rule: Rule) -> Decision:
    """Return the decision rule: by log-odds, or with readout="plain" by the scores themselves."""
    options = problem.options
    rows = problem.data.rows
    if options.readout == "gaussian":
        model = last.calibration.model.with_priors(rule.priors, noise.known_priors)
        return Decision.by_log_odds(model.slopes, model.intercepts, rule)
    k = noise.n_classes
    scores = rows.of_members(last.scores)
    observations = problem.observations
    factor = 1.0
    if not last.has_support:
        factor = SMALLEST_SLOPE * min(_relative_spread(problem.data, last), 1.0)
    if k == 2:
        slope = symmetric_slope(scores[:, 0], observations, last.noise)
        return Decision(np.eye(1), np.zeros(1), slope=factor * slope)
    per_class = contrasts(k).T if options.in_contrasts(k) else np.eye(k)
    slope = common_slope(scores @ like(per_class, scores), observations, last.noise)
    return Decision(per_class, np.zeros(k), slope=factor * slope)


def _zero_weight_scores(data: TrainingSet, coef: Array, intercept: Array) -> Array:
    """Return the fitted scores of the zero-weight rows."""
    zero_weight = data.rows.zero_weight
    if not zero_weight.shape[0]:
        shape = (0, coef.shape[1])
        return array_namespace(coef).zeros(shape, dtype=coef.dtype, device=device(coef))
    return product(take_rows(data.X, zero_weight), coef) + intercept


def _label_posteriors(
    data: TrainingSet,
    last: Round,
    source: NoiseSource,
    zero_weight_scores: Array,
    checked: TrueClassModel | None,
) -> tuple[Array, Array]:
    """Return label posteriors and log-odds of all rows, (n, k) each, from corrected scores.

    Duplicates are left out together. Zero-weight rows have fitted scores, and no label.
    """
    rows = data.rows
    calibration = _reported_calibration(last)
    if checked is None:
        posterior = calibration.posterior(data.codes, last.noise)
        posterior = with_trusted_labels(posterior, data.trusted_codes(source.y_trusted))
    else:
        posterior = like(checked.posterior, calibration.logits)
    share = last.certainty if last.has_support else 1.0
    priors = last.noise.known_priors
    neutral = np.log(priors / priors[0])
    log_odds = calibration.model.log_odds(zero_weight_scores)
    log_odds = like((1 - share) * neutral, log_odds) + share * log_odds
    return (
        rows.to_all_rows(posterior, class_probabilities(log_odds)),
        rows.to_all_rows(calibration.log_odds, log_odds),
    )


def _loo_scores(
    problem: _Problem, last: Round, mean_targets: Array, zero_weight_scores: Array
) -> Array:
    """Return leave-one-out scores of all rows; zero-weight rows have fitted scores."""
    rows = problem.data.rows
    left_out = problem.fits.leave_one_out(mean_targets, [last.reg])
    if rows.has_duplicates:
        share = rows.member_weights / rows.of_members(rows.weights)
        left_out = left_out.of_duplicates(rows.owner, last.targets, share)
    if problem.options.readout == "plain":
        return rows.to_all_rows(left_out.scores[:, 0, :], zero_weight_scores)
    # A calibration of the other rows' scores would move with their mean target, so the scores must
    # not contain that move.
    scores = left_out.corrected_scores[:, 0, :] - rows.of_members(last.leakage)
    return rows.to_all_rows(scores, zero_weight_scores)


def _predicted(
    problem: _Problem, last: Round, noise: NoiseModel, decision: Decision, rule: Rule
) -> Array:
    """Return the class that the decision rule predicts for each member."""
    if problem.options.readout == "plain":
        scores = problem.data.rows.of_members(last.scores)
        return decision.classes(decision.values(scores))
    return _predicted_classes(last.calibration, noise, rule)


def _expected_accuracy(
    problem: _Problem, last: Round, source: NoiseSource, rule: Rule, predicted: Array
) -> ExpectedAccuracy:
    """Return the expected accuracy of the decision rule, with its standard error."""
    covariance = calibration_covariance(
        last.calibration.probabilities,
        last.calibration.logits,
        problem.observations,
        last.noise,
        _rate_covariance(source, last),
    )
    if last.certainty < 1:  # the slope may be anything between that of the fit and 0
        covariance[0, 0] += np.log(last.calibration.shrinkage(last.certainty)) ** 2
    return expected_accuracy(
        problem.observations,
        _reported_calibration(last),
        last.noise,
        covariance=covariance,
        deployed=rule.priors,
        predicted=predicted,
    )


def _rate_covariance(source: NoiseSource, last: Round) -> FloatArray:
    """Return the covariance of the noise rates; those that were not corrected are independent."""
    if last.rate_covariance is not None:
        return last.rate_covariance
    if source.estimator is not None and source.estimator.rate_covariance_ is not None:
        return source.estimator.rate_covariance_
    return np.diag(np.diag(source.errors) ** 2)


def _predicted_classes(calibration: Calibration, noise: NoiseModel, rule: Rule) -> Array:
    """Return the predicted class of each training row by its corrected log-odds."""
    shift = np.log(rule.priors / noise.known_priors)
    decision = Decision.by_log_odds(np.eye(len(shift)), shift - shift[0], rule)
    return decision.classes(decision.values(calibration.log_odds))


def _warn_of_one_sided_scores(predicted: Array, n_classes: int) -> None:
    xp = array_namespace(predicted)
    ones = xp.ones(predicted.shape[0], dtype=xp.float64, device=device(predicted))
    counts = sums_by_code(predicted, ones, n_classes)
    largest_share = float(counts.max() / counts.sum())
    if largest_share > 0.98:
        warn_caller(
            f"{largest_share:.0%} of the fitted scores favour one class, so readout='plain' "
            "predicts it almost everywhere: use readout='gaussian', which fits the threshold."
        )


def _warn_of_few_rows(n_effective: float, n_classes: int) -> None:
    n_slopes = (n_classes - 1) ** 2
    # With fewer than two rows per slope, chance looks like evidence.
    if n_effective < 2.0 * n_slopes and n_slopes > 1:
        warn_caller(
            f"{n_effective:.0f} rows are few for {n_classes} classes, whose calibration has "
            f"{n_slopes} slopes: probabilities, label_posterior_ and expected_accuracy_ are "
            "overconfident. Merge classes or add rows."
        )
