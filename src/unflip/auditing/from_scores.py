"""The audit of the probabilities of any model."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.alignment import check_aligned
from unflip._utils.arrays import as_numpy, is_foreign
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_array, as_floats, as_number, shown
from unflip._utils.warnings import warn_caller
from unflip.auditing.checks_file import CheckedRows
from unflip.auditing.evidence import (
    Evidence,
    ModelCalibration,
    Noise,
    ScoredRows,
)
from unflip.auditing.report import Audit, checked_rate, warn_of_assumptions
from unflip.auditing.score_calibration import noise_from_scores
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.log_odds import Calibration, recalibration
from unflip.calibration.observations import Observations
from unflip.calibration.reported_scores import ReportedScores
from unflip.data.duplicates import DistinctRows
from unflip.data.training_set import TrainingSet
from unflip.estimation.automatic import Automatic
from unflip.estimation.noise_estimator import TRUSTED_ROWS, AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.score_rates import log_scores_of, score_association
from unflip.labels.class_values import ByClass, noise_in_order, priors_in_order
from unflip.labels.classes import (
    encode,
    inclusion_probabilities,
    split_missing,
    true_codes,
)
from unflip.labels.codes import UNCHECKED, UNLABELLED
from unflip.labels.noise import Channel, NoiseModel
from unflip.model.noise_sources import noise_source
from unflip.model.options import gives_priors, is_estimate
from unflip.ridge.label_association import certainty
from unflip.ridge.spectrum.decomposition import decompose

_MOST_LABELS_WRONG = (
    "Most labels come out as wrong. Check that pred_probs are out-of-sample, that their columns "
    "are in sorted order of the classes, and that the noise rates are right."
)


def audit_scores(
    pred_probs: ArrayLike,
    y: ArrayLike,
    *,
    noise: NoiseModel
    | NoiseEstimator
    | ByClass
    | ArrayLike
    | Literal["estimate"]
    | None = "estimate",
    priors: ByClass | ArrayLike | None = None,
    trusted: ArrayLike | str | PathLike[str] | None = None,
    inclusion: ArrayLike | None = None,
    false_discovery_rate: float = 0.1,
    effective_dimension: float | None = None,
) -> Audit:
    """Find labels that are probably wrong with the probabilities of any model.

    The model was trained on noisy labels, so its probabilities are not those of the true class.
    They are calibrated: P(true class | x) = softmax(τ log P + b), with the slope τ and the
    intercepts b under which the observed labels are likeliest, and the noise rates too if these are
    not known. Bayes' rule adds the observed label.

    Parameters
    ----------
    pred_probs : array-like of shape (n, k)
        P(observed label | sample), one column per class in sorted order. They must be
        out-of-sample, for example from ``cross_val_predict(model, X, y, method="predict_proba")``.
        An array on a device is copied to the host.
    y : array-like of shape (n,)
        Observed labels; None, NaN, pandas.NA or an empty string if missing.
    noise : "estimate", dict, NoiseModel, array-like of shape (k, k) or None
        Label noise, as in `LPClassifier`; "estimate" maximises the likelihood of the labels.
    priors : dict or array-like of shape (k,), optional
        Class priors, if known, by class or in sorted order of the classes.
    trusted : array-like of shape (n,), str or path, optional
        True labels of checked samples, or the file of checked rows, as in `audit`.
    inclusion : array-like of shape (n,), optional
        Probability with which each sample was chosen for a check, as in `audit`.
    false_discovery_rate : float
        Maximum expected false discovery rate: share of correct labels among the first
        ``n_suspects`` suspects.
    effective_dimension : float, optional
        Effective number of features of the model, for ``accuracy_after`` and ``plan``; both are NaN
        without it.

    Returns
    -------
    Audit
        Suspects, noise rates, expected accuracy and advice; ``print`` shows a summary.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.beta(0.3, 0.3, size=1000)  # P(class 1), by any model
    >>> y = (rng.random(1000) < positive).astype(int)
    >>> observed = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1).flip(y, random_state=0)
    >>> report = audit_scores(np.column_stack([1 - positive, positive]), observed)
    >>> rows = report.suspects.row[:report.n_suspects]
    >>> print(f"{len(rows)} suspects, {np.mean(observed[rows] != y[rows]):.0%} of them wrong")
    51 suspects, 90% of them wrong
    """
    rate = checked_rate(false_discovery_rate)
    check_aligned(pred_probs=pred_probs, y=y, trusted=trusted, inclusion=inclusion)
    filled, missing = split_missing(y)
    labels = as_array(as_numpy(filled) if is_foreign(filled) else filled, "y")
    checked = CheckedRows.of(trusted, labels)
    y_trusted = checked.labels
    all_observed = _checked_probabilities(pred_probs, labels.shape)
    weights = np.ones(len(labels)) if missing is None else (~missing).astype(float)
    labelled = np.flatnonzero(weights)
    observed = all_observed[labelled]
    classes, codes = encode(labels[labelled], "audit_scores", all_rows=missing is None)
    if observed.shape[1] != len(classes):
        raise ValueError(
            f"pred_probs has {observed.shape[1]} columns but y has {len(classes)} classes: pass "
            f"one column for each of {classes.tolist()}, in that order."
        )
    noise = noise_in_order(noise, classes)
    known_priors = priors_in_order(priors, classes)
    is_sample = is_estimate(noise) and y_trusted is not None
    if isinstance(noise, NoiseEstimator) and noise.uses_trusted_labels:
        y_trusted = noise.y_trusted
        inclusion = noise.inclusion
        is_sample = True
    elif isinstance(noise, NoiseEstimator) and y_trusted is None:
        y_trusted = noise.y_trusted
    _warn_of_swapped_columns(observed, codes, classes)
    distinct = DistinctRows.of(all_observed, weights)
    data = TrainingSet(all_observed, labels, weights, classes, distinct, codes)
    n = len(labelled)
    all_truth = true_codes(y_trusted, len(labels), np.arange(len(labels)), classes, "trusted")
    truth = all_truth[labelled]
    log_scores = log_scores_of(observed)
    rows = Observations(codes, np.ones(n), float(n), gives_priors(noise, known_priors))
    share = certainty(score_association(log_scores, rows))
    estimate = None
    if is_sample:  # checked rows calibrate the posterior, so rates are needed for scores alone
        estimate = noise_from_scores(observed, log_scores, rows, known_priors, has_signal=share > 0)
        noise_model = replace(estimate, source=TRUSTED_ROWS, assumption="")
    else:
        noise_model = _noise(noise, known_priors, data, observed, rows, share > 0)
    channel = noise_model.channel
    fitted = recalibration(log_scores, rows, channel)
    scores = ReportedScores(fitted, rows, channel, noise_model.covariance, share)
    accuracy = scores.expected_accuracy(scores.predicted, channel.known_priors)
    reported = scores.calibration
    dimension = np.nan if effective_dimension is None else _checked_dimension(effective_dimension)
    evidence = Evidence(
        classes=classes,
        codes=codes,
        truth=truth,
        probabilities=reported.probabilities,
        log_scores=log_scores,
        noise=noise_model,
        class_conditional_accuracy=accuracy.value,
        class_conditional_accuracy_std=accuracy.error,
        dimension=dimension,
        n_effective=float(n),
        scored=ScoredRows(reported.log_odds, rows, channel.known_priors, share),
        has_signal=share > 0,
        model_calibration=_model_calibration(fitted, log_scores, codes, channel),
        is_sample=is_sample,
        inclusion=inclusion_probabilities(inclusion, len(labels), labelled, truth),
    )
    if missing is not None:
        evidence = _with_unlabelled(evidence, labelled, all_observed, all_truth, scores)
    before = None
    if estimate is not None:
        nothing_checked = np.full(len(evidence.codes), UNCHECKED)
        unchecked = replace(evidence, truth=nothing_checked, is_sample=False, inclusion=None)
        before = Audit(replace(unchecked, noise=estimate), rate)
    result = Audit(evidence, rate, before_checks=before, n_unsure=checked.n_unsure)
    warn_of_assumptions(result)
    if result.n_suspects > n / 2:
        warn_caller(_MOST_LABELS_WRONG)
    return result


def _with_unlabelled(
    evidence: Evidence,
    labelled: IntArray,
    observed: FloatArray,
    truth: IntArray,
    scores: ReportedScores,
) -> Evidence:
    """Return the evidence of all rows from that of the labelled ones.

    Parameters
    ----------
    evidence : Evidence
        Evidence of the labelled rows.
    labelled : ndarray of int
        Their indices among all rows.
    observed : ndarray of shape (n, k)
        Probabilities of the model for all rows.
    truth : ndarray of shape (n,)
        True class of the checked ones among all rows.
    scores : ReportedScores
        Calibration of the labelled rows.
    """
    log_scores = log_scores_of(observed)
    log_odds = scores.log_odds_of(log_scores)
    log_odds[labelled] = evidence.scored.log_odds
    codes = np.full(len(observed), UNLABELLED)
    codes[labelled] = evidence.codes
    inclusion = None
    if evidence.inclusion is not None:
        inclusion = np.ones(len(observed))
        inclusion[labelled] = evidence.inclusion
    # Rows without a label are left out before these are used (`Evidence.counted`).
    rows = replace(evidence.scored.rows, codes=codes, weights=np.ones(len(observed)))
    return replace(
        evidence,
        codes=codes,
        truth=truth,
        probabilities=class_probabilities(log_odds),
        log_scores=log_scores,
        scored=replace(evidence.scored, log_odds=log_odds, rows=rows),
        inclusion=inclusion,
    )


def _model_calibration(
    calibration: Calibration, log_scores: FloatArray, codes: IntArray, noise: Channel
) -> ModelCalibration:
    likelihoods = (calibration.probabilities * noise.transition.T[codes]).sum(axis=1)
    return ModelCalibration(
        slope=float(calibration.model.slopes[1, 1]),
        log_loss_before=float(-log_scores[np.arange(len(codes)), codes].mean()),
        log_loss_after=float(-np.log(likelihoods).mean()),
    )


def _warn_of_swapped_columns(observed: FloatArray, codes: IntArray, classes: NDArray[Any]) -> None:
    """Warn if the labels of two classes are likelier with the columns of the two swapped."""
    logs = np.log(np.maximum(observed, 1 / (10 * len(codes))))
    gains = logs - logs[np.arange(len(codes)), codes][:, None]
    by_label = np.eye(len(classes))[:, codes]
    total = by_label @ gains
    squares = by_label @ gains**2
    # Four standard errors, so that uninformative probabilities do not warn.
    is_likelier = total + total.T > 4 * np.sqrt(squares + squares.T)
    for a, b in np.argwhere(is_likelier).tolist():
        warn_caller(
            f"The labels {classes.tolist()[a]!r} and {classes.tolist()[b]!r} are likelier if their "
            "columns of pred_probs are swapped: pass the columns in sorted order of the classes."
        )
        return


def _noise(
    noise: object,
    priors: ArrayLike | None,
    data: TrainingSet,
    observed: FloatArray,
    rows: Observations,
    has_signal: bool,
) -> Noise:
    """Return the noise model; without any information, the likeliest one."""
    if is_estimate(noise):
        log_scores = log_scores_of(observed)
        estimate = noise_from_scores(observed, log_scores, rows, priors, has_signal=has_signal)
        if estimate.assumption:
            warn_caller(estimate.assumption, AssumedNoiseWarning)
        return estimate
    if isinstance(noise, NoiseEstimator) and not noise.from_trusted_labels:
        raise ValueError(
            f"noise={noise!r} needs features, not probabilities: pass a NoiseModel, or trusted=."
        )
    priors_given = gives_priors(noise, priors)
    noise = NoiseModel.none(len(data.classes)) if noise is None else noise
    spectrum = decompose(data.rows.X, data.rows.spectrum_weights)
    resolved = noise_source(noise, priors, data, spectrum, Automatic(priors=priors))
    return Noise(
        model=resolved.noise,
        errors=resolved.errors,
        source="given" if resolved.estimator is None else resolved.estimator.source_,
        assumption="",
        priors_given=priors_given,
    )


def _checked_dimension(effective_dimension: float) -> float:
    dimension = as_number(effective_dimension, "effective_dimension")
    if not 0 < dimension < np.inf:
        raise ValueError(
            f"effective_dimension = {shown(effective_dimension)} must be positive and finite, or "
            "None."
        )
    return dimension


def _checked_probabilities(pred_probs: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    table = as_floats(as_numpy(pred_probs) if is_foreign(pred_probs) else pred_probs, "pred_probs")
    if table.ndim != 2 or table.shape[:1] != shape:
        raise ValueError(
            f"pred_probs has shape {table.shape} but y has {shape}: pass one row for each label "
            "and one column for each class."
        )
    if not np.isfinite(table).all():
        raise ValueError(
            "pred_probs has NaN or infinite values: pass a probability for every row and class."
        )
    sums = table.sum(axis=1)
    if (table < 0).any() or (np.abs(sums - 1) > 1e-3).any():  # smaller deviations are rounding
        worst = int(np.argmax(np.abs(sums - 1) + (table < 0).any(axis=1)))
        raise ValueError(
            f"pred_probs[{worst}] = {table[worst].round(4).tolist()} is not a probability "
            "distribution: entries must be non-negative and sum to 1."
        )
    return np.asarray(table / sums[:, None])
