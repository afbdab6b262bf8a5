"""The audit of features with observed labels or votes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import log_softmax
from sklearn.utils import column_or_1d

from unflip._utils.alignment import check_aligned
from unflip._utils.arrays import as_numpy, is_foreign
from unflip._utils.namespaces import check_reachable, is_dispatched
from unflip._utils.sparse import canonical
from unflip._utils.typing import FloatArray, IntArray, Rows
from unflip._utils.validation import check_unmasked
from unflip._utils.warnings import warn_caller
from unflip.auditing.checks_file import CheckedRows
from unflip.auditing.evidence import Evidence, Noise, ScoredRows
from unflip.auditing.from_tables import check_no_texts, read_table
from unflip.auditing.outlook import effective_dimension
from unflip.auditing.reasons import FittedRows
from unflip.auditing.report import Audit, checked_rate, warn_of_assumptions
from unflip.auditing.score_calibration import noise_from_scores
from unflip.auditing.shown_rows import ShownRows
from unflip.calibration.accuracy import ExpectedAccuracy
from unflip.calibration.log_odds import calibrate
from unflip.calibration.observations import Observations
from unflip.calibration.reported_scores import ReportedScores
from unflip.data.duplicates import take_rows
from unflip.data.groups import group_folds, n_effective_of
from unflip.data.input_rows import as_rows, in_memory, open_dask
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.score_rates import score_association
from unflip.estimation.trusted import TrustedSubset
from unflip.features.transformed_rows import transformed_rows
from unflip.labels.class_values import ByClass, priors_in_order
from unflip.labels.classes import inclusion_probabilities, split_missing, true_codes
from unflip.labels.codes import UNCHECKED, UNLABELLED
from unflip.labels.noise import NoiseModel
from unflip.labels.votes import Votes
from unflip.model.classifier import LPClassifier
from unflip.model.held_out import held_out_log_odds
from unflip.model.noisy_label_classifier import NoisyLabelClassifier
from unflip.model.options import gives_priors, is_estimate
from unflip.ridge.label_association import certainty


def audit(
    X: ArrayLike,
    y: ArrayLike | Votes | None = None,
    *,
    label: str | None = None,
    text: str | Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    use: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    id: str | None = None,
    noise: NoiseModel
    | NoiseEstimator
    | ByClass
    | ArrayLike
    | Literal["estimate"]
    | None = "estimate",
    priors: ByClass | ArrayLike | None = None,
    trusted: ArrayLike | str | PathLike[str] | None = None,
    inclusion: ArrayLike | str | None = None,
    groups: ArrayLike | str | None = None,
    features: Any = None,
    estimator: Any = None,
    false_discovery_rate: float = 0.1,
) -> Audit:
    """Find labels that are probably wrong, what they cost, and what to do next.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Samples, as in `LPClassifier.fit`. Scale the features first, as for any regularized linear
        model. Samples on a device stay there; their log-odds are copied to the host, and the rest
        of the audit uses NumPy. With `label`, a DataFrame with columns of any kind.
    y : array-like of shape (n,) or Votes
        Observed labels; None, NaN, pandas.NA or an empty string if missing. Or votes on the
        samples: then the majority labels are audited. ``unlabelled`` lists the samples without a
        label or votes, with the most likely class.
    label : str, optional
        Column of labels, instead of `y`. The other columns are turned into features by
        `TableFeatures`.
    text, embedding, use, ignore : str or sequence of str, optional
        Columns of the table, as in `TableFeatures`.
    id : str, optional
        Column of names of the rows, to show in reports. It is not a feature.
    noise, priors
        As in `LPClassifier`.
    trusted : array-like of shape (n,), str or path, optional
        True labels of checked samples, missing for the others; or the file of checked rows that
        the page of an audit exports. They calibrate all probabilities and intervals, for noise that
        may depend on the sample, unless `noise` gives the rates. Check the samples of
        `Audit.check_next`, or samples at random. If suspects were checked, pass ``noise=`` too:
        suspects are not a random sample. By default they are those of a `NoiseEstimator` that is
        passed as `noise`. With `label`, this, `inclusion` and `groups` can be columns of the table.
        They are not features.
    inclusion : array-like of shape (n,), optional
        Probability with which each sample was chosen for a check, if samples were not chosen at
        random among those of the same label and prediction.
    groups : array-like of shape (n,), optional
        Group of each sample, for example near-duplicates or samples of one patient. Each sample is
        scored by fits to other groups.
    features : str or transformer, optional
        Features in which the classes are separated linearly, as in `LPClassifier`: "linear", the
        default, or for example "auto" for boundaries that are not linear. With `estimator`, those
        of `NoisyLabelClassifier`.
    estimator : classifier, optional
        Audit with a `NoisyLabelClassifier` of this classifier, instead of `LPClassifier`. Then
        ``accuracy_after``, and ``plan`` after its first row, are NaN.
    false_discovery_rate : float
        Maximum expected false discovery rate: share of correct labels among the first
        ``n_suspects`` suspects.

    Returns
    -------
    Audit
        Suspects, noise rates, expected accuracy and advice; ``print`` shows a summary.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(800, 50, mean_norm=2.0, random_state=0)
    >>> observed = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1).flip(y, random_state=0)
    >>> report = audit(X, observed)
    >>> report.noise_source, report.n_suspects
    ('mixture', 112)
    >>> rows = report.suspects.row[:report.n_suspects]
    >>> print(f"{(observed != y)[rows].mean():.2f}")  # share of the suspects that are wrong
    0.96
    """
    rate = checked_rate(false_discovery_rate)
    check_aligned(X=X, y=y, trusted=trusted, inclusion=inclusion, groups=groups)
    table = read_table(
        X,
        y,
        label,
        {"text": text, "embedding": embedding, "use": use, "ignore": ignore},
        {"id": id, "trusted": trusted, "inclusion": inclusion, "groups": groups},
    )
    if table is not None:
        data = table.data
        X, y = data.rows, data.labels
        trusted = data.columns.get("trusted", trusted)
        inclusion = data.columns.get("inclusion", inclusion)
        groups = data.columns.get("groups", groups)
    check_reachable(X=X, y=y)
    check_unmasked(X=X, y=y)
    if estimator is None:
        check_no_texts(X)
    labels, missing = (y, None) if isinstance(y, Votes) else split_missing(in_memory(y))
    if not isinstance(labels, Votes):
        labels = _as_labels(labels)
    checked = CheckedRows.of(trusted, labels)
    y_trusted = checked.labels
    source = noise
    is_sample = is_estimate(noise) and y_trusted is not None
    if is_sample:
        source = TrustedSubset(y_trusted, inclusion)
    X = open_dask(X)
    if features is None:
        features = "linear" if estimator is None else "auto"
    if estimator is None:
        scores = _scores_of_fit(X, labels, missing, source, priors, groups, features)
    elif isinstance(labels, Votes):
        raise ValueError("Votes need LPClassifier: omit estimator, or pass one label per sample.")
    else:
        model = NoisyLabelClassifier(estimator, source, priors=priors, features=features)
        scores = _scores_of_model(X, labels, missing, model, groups)
    if scores.noise.assumption:
        warn_caller(scores.noise.assumption, AssumedNoiseWarning)
    rates = scores.estimator
    if y_trusted is None and rates is not None:
        y_trusted = rates.y_trusted
    n = len(labels)
    truth = true_codes(y_trusted, n, np.arange(n), scores.classes, "trusted")
    evidence = _evidence(scores, truth)
    if rates is not None and rates.uses_trusted_labels:
        counted = np.where(evidence.labelled, truth, UNCHECKED) if missing is not None else truth
        chosen = inclusion_probabilities(rates.inclusion, n, np.arange(n), counted)
        evidence = replace(evidence, is_sample=True, inclusion=chosen)
    before = None
    if is_sample:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were for the audit before the checks
            before = audit(
                X,
                y,
                priors=priors,
                groups=groups,
                features=features,
                estimator=estimator,
                false_discovery_rate=rate,
            )
    result = Audit(
        evidence,
        rate,
        shown=ShownRows() if table is None else table.shown,
        before_checks=before,
        n_unsure=checked.n_unsure,
        fitted_rows=replace(scores.fitted_rows, groups=groups),
    )
    warn_of_assumptions(result)
    return result if table is None else result.explained_by(table.data.features, table.data.frame)


def _as_labels(y: Any) -> NDArray[Any]:
    return np.asarray(column_or_1d(as_numpy(y) if is_foreign(y) else in_memory(y)))


def _as_rows(X: Any) -> Rows:
    if is_dispatched(X):
        return X
    return canonical(X) if issparse(X) else as_rows(X)


def _observed(
    labels: NDArray[Any] | Votes, missing: NDArray[np.bool_] | None, fitted: LPClassifier
) -> IntArray:
    """Return the class of each label, or majority label; `UNLABELLED` for rows without any."""
    if isinstance(labels, Votes) and fitted.annotators_ is not None:
        return labels.majority(fitted.annotators_.channel(labels).transition.T)
    return _codes_of(np.asarray(labels), missing, fitted.classes_)


def _codes_of(
    labels: NDArray[Any], missing: NDArray[np.bool_] | None, classes: NDArray[Any]
) -> IntArray:
    """Return the class index of each label, `UNLABELLED` where it is missing."""
    codes = np.searchsorted(classes, labels)
    return codes if missing is None else np.where(missing, UNLABELLED, codes)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Scores:
    """Out-of-sample log-odds of each class against the first, and the noise behind them."""

    classes: NDArray[Any]
    codes: IntArray
    log_odds: FloatArray  # (n, k − 1)
    noise: Noise
    accuracy: ExpectedAccuracy
    n_effective: float
    certainty: float  # that the features predict the labels, 0 to 1: log-odds are shrunk by it
    dimension: float  # effective dimension of the features; NaN if it is not known
    estimator: NoiseEstimator | None
    features: Any  # transformer of the samples; None if linear
    fitted_rows: FittedRows

    def subset(self, rows: IntArray) -> _Scores:
        """Return the scores of some rows."""
        return replace(self, codes=self.codes[rows], log_odds=self.log_odds[rows])


def _scores_of_fit(
    X: Rows,
    labels: NDArray[Any] | Votes,
    missing: NDArray[np.bool_] | None,
    noise: Any,
    priors: ByClass | ArrayLike | None,
    groups: ArrayLike | None,
    features: Any,
) -> _Scores:
    """Return the scores of an `LPClassifier`: leave-one-out, or by fits to other groups."""
    n = len(labels)
    group_folds(groups, (n,))  # raises ValueError for invalid groups
    present = np.arange(n) if missing is None else np.flatnonzero(~missing)
    weights = None if missing is None else (~missing).astype(float)
    with warnings.catch_warnings():
        # The warning comes later, about the rates that are used in the end.
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        fitted = LPClassifier(noise, priors=priors, features=features).fit(X, labels, weights)
    rows = _as_rows(X)
    codes = _observed(labels, missing, fitted)
    transformed = rows if missing is None else take_rows(rows, present)
    if fitted.features_ is not None:
        transformed = transformed_rows(fitted.features_, transformed)
    scores = _Scores(
        classes=fitted.classes_,
        codes=codes,
        log_odds=as_numpy(fitted.loo_log_odds_).reshape(len(codes), -1),
        noise=_noise(fitted, labels, codes, gives_priors(noise, priors)),
        accuracy=ExpectedAccuracy(fitted.expected_accuracy_, fitted.expected_accuracy_std_),
        n_effective=fitted.n_effective_,
        certainty=certainty(fitted.association_),
        dimension=effective_dimension(transformed),
        estimator=fitted.noise_estimator_,
        features=fitted.features_,
        fitted_rows=_linear_fit(X, fitted),
    )
    if groups is None:
        return scores
    group_of = np.asarray(groups)[present]
    folds_of_present = group_folds(group_of, present.shape)
    if not folds_of_present:
        return scores
    folds = [(present[train], present[test]) for train, test in folds_of_present]
    is_from_votes = scores.noise.source == "votes"
    held_out = held_out_log_odds(rows, labels, folds, fitted, from_votes=is_from_votes)[present]
    known_priors = priors_in_order(priors, scores.classes)
    by_groups = _group_scores(
        held_out, scores.subset(present), known_priors, n_effective_of(group_of)
    )
    log_odds = scores.log_odds.copy()
    log_odds[present] = by_groups.log_odds
    return replace(by_groups, codes=codes, log_odds=log_odds)


def _linear_fit(X: Any, fitted: LPClassifier) -> FittedRows:
    """Return the samples with the fit to them; without its coefficients unless linear in X."""
    if fitted.features_ is not None:
        return FittedRows(X=X)
    return FittedRows(X=X, coef=as_numpy(fitted.coef_), intercept=as_numpy(fitted.intercept_))


def _scores_of_model(
    X: Any,
    labels: NDArray[Any],
    missing: NDArray[np.bool_] | None,
    model: NoisyLabelClassifier,
    groups: ArrayLike | None,
) -> _Scores:
    """Return the scores of a `NoisyLabelClassifier`."""
    present_labels = labels
    if missing is not None:
        present_labels = labels.astype(object)
        present_labels[missing] = None
    with warnings.catch_warnings():
        # The warning comes later, about the rates that are used in the end.
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        model.fit(X, present_labels, groups=groups)
    rates = model.rates_
    return _Scores(
        classes=model.classes_,
        codes=_codes_of(labels, missing, model.classes_),
        log_odds=model.log_odds_[:, 1:],
        noise=Noise(
            model=rates.noise,
            reported=rates.reported,
            errors=rates.errors,
            source=rates.source,
            assumption=rates.assumption,
            priors_given=gives_priors(model.noise, model.priors),
            from_labels=rates.source == "label likelihood",
            rate_covariance=rates.covariance,
        ),
        accuracy=ExpectedAccuracy(model.expected_accuracy_, model.expected_accuracy_std_),
        n_effective=model.n_effective_,
        certainty=certainty(model.association_),
        dimension=np.nan,
        estimator=None if model.label_fit_ is None else model.label_fit_.noise_estimator_,
        features=None if model.label_fit_ is None else model.label_fit_.features_,
        fitted_rows=FittedRows(X=X),
    )


def _evidence(scores: _Scores, truth: IntArray) -> Evidence:
    noise = scores.noise
    codes = scores.codes
    logits = np.column_stack([np.zeros(len(codes)), scores.log_odds])
    log_scores = log_softmax(logits, axis=1)
    # Rows without a label are left out before these are used (`Evidence.counted`).
    observed = Observations(
        _columns(noise, codes), np.ones(len(codes)), scores.n_effective, noise.priors_given
    )
    priors = noise.model.known_priors
    return Evidence(
        classes=scores.classes,
        codes=codes,
        truth=truth,
        probabilities=np.exp(log_scores),
        log_scores=log_scores,
        noise=noise,
        class_conditional_accuracy=scores.accuracy.value,
        class_conditional_accuracy_std=scores.accuracy.error,
        dimension=scores.dimension,
        n_effective=scores.n_effective,
        scored=ScoredRows(logits, observed, priors, scores.certainty),
        has_signal=scores.certainty > 0,
        features=scores.features,
    )


def _columns(noise: Noise, codes: IntArray) -> IntArray:
    """Return the column of ``noise.channel`` for each row."""
    return codes if noise.votes is None else np.arange(len(codes))


def _group_scores(
    held_out: FloatArray, scores: _Scores, priors: ArrayLike | None, n_effective: float
) -> _Scores:
    """Return scores by fits to other groups.

    They are calibrated again, because each fold's own calibration relies on near-duplicates. So
    does the evidence of a signal by leave-one-out scores: it is computed again, too.
    """
    noise = scores.noise
    contrasts = held_out[:, 1:] - held_out[:, :1]
    columns = _columns(noise, scores.codes)
    rows = Observations(columns, np.ones(len(columns)), n_effective, noise.priors_given)
    labelled = np.flatnonzero(scores.codes != UNLABELLED)
    labels = replace(rows, codes=scores.codes).subset(labelled)
    share = certainty(score_association(log_softmax(held_out[labelled], axis=1), labels))
    if noise.source == "label likelihood" and noise.votes is None:
        noise = noise_from_scores(held_out, held_out, rows, priors, has_signal=share > 0)
    channel = noise.channel
    fitted = calibrate(contrasts, rows, channel)
    reported = ReportedScores(fitted, rows, channel, noise.covariance, share)
    return replace(
        scores,
        certainty=share,
        log_odds=reported.calibration.log_odds[:, 1:],
        noise=noise,
        accuracy=reported.expected_accuracy(reported.predicted, noise.model.known_priors),
        n_effective=n_effective,
    )


def _noise(
    fitted: LPClassifier, labels: NDArray[Any] | Votes, codes: IntArray, priors_given: bool
) -> Noise:
    """Return the noise model of the fit; with several votes, that of the majority labels."""
    estimator = fitted.noise_estimator_
    calibration_noise = None if estimator is None else estimator.calibration_noise_
    noise = Noise(
        model=fitted.noise_ if calibration_noise is None else calibration_noise,
        reported=fitted.noise_,
        errors=as_numpy(fitted.noise_std_),
        source="given" if estimator is None else estimator.source_,
        assumption="" if estimator is None else estimator.assumption_,
        priors_given=priors_given,
        from_labels=estimator is not None and estimator.is_start_,
        rate_covariance=None if estimator is None else estimator.rate_covariance_,
    )
    if not isinstance(labels, Votes):
        return noise
    noise = replace(noise, votes=labels, annotators=fitted.annotators_)
    from_votes = estimator is None or estimator.from_trusted_labels
    if from_votes and fitted.noise_std_.any():
        noise = replace(noise, source="votes")
    if labels.single:
        return noise
    return replace(noise, model=_majority_noise(fitted, codes), reported=None)


def _majority_noise(fitted: LPClassifier, codes: IntArray) -> NoiseModel:
    """Return the noise model of the majority labels."""
    k = len(fitted.classes_)
    voted = codes != UNLABELLED
    joint = fitted.label_posterior_[voted].T @ np.eye(k)[codes[voted]]
    mass = joint.sum(axis=1, keepdims=True)
    transition = np.where(mass > 0, joint / np.where(mass > 0, mass, 1.0), np.eye(k))
    return NoiseModel(transition / transition.sum(axis=1, keepdims=True), fitted.noise_.priors)
