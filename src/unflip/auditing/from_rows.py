"""The audit of rows with observed labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import log_softmax
from sklearn.model_selection import GroupKFold
from sklearn.utils import column_or_1d

from unflip._utils.arrays import as_numpy, is_foreign
from unflip._utils.namespaces import check_reachable, takes_as_it_is
from unflip._utils.sparse import canonical
from unflip._utils.typing import FloatArray, IntArray, Rows
from unflip._utils.validation import as_array, check_unmasked
from unflip._utils.warnings import warn_caller
from unflip.auditing.evidence import Evidence, LogOddsReader, Noise, guessed_noise, shares
from unflip.auditing.outlook import effective_dimension
from unflip.auditing.report import Audit, checked_rate
from unflip.calibration.accuracy import (
    ExpectedAccuracy,
    expected_accuracy,
)
from unflip.calibration.log_odds import calibrate
from unflip.calibration.observations import Observations
from unflip.data.duplicates import chosen
from unflip.data.lazy import as_rows, in_memory, opened
from unflip.estimation.given_rates import GivenRates
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.trusted import TrustedSubset
from unflip.labels.classes import is_missing, true_codes
from unflip.labels.moved_noise import channels_one_error_away
from unflip.labels.noise import Channel, NoiseModel
from unflip.labels.votes import UNLABELLED, Votes
from unflip.model.classifier import LPClassifier
from unflip.model.options import gives_priors
from unflip.ridge.label_association import certainty

_N_FOLDS = 8


def audit(
    X: ArrayLike,
    y: ArrayLike | Votes,
    *,
    noise: NoiseModel | NoiseEstimator | ArrayLike | Literal["estimate"] | None = "estimate",
    priors: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    false_discovery_rate: float = 0.1,
) -> Audit:
    """Find labels that look wrong, and tell what that costs and what to do.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Rows, or what they are read from, as in `LPClassifier.fit`. Scale the features first, as for
        any penalised linear model. Rows on a device stay there; their log-odds are brought to the
        host, where the audit is NumPy's.
    y : array-like of shape (n,) or Votes
        Observed labels, or votes on the rows. Suspects then are labels that most votes of a row
        favour, and rows without any are listed in ``unlabelled``.
    noise, priors
        As in `LPClassifier`.
    trusted : array-like of shape (n,), optional
        True labels of rows that were checked, missing for the others. The rates are then read from
        them (`TrustedSubset`), unless `noise` gives them; that takes rows that were checked at
        random or as `TrustedSubset` suggests. Give ``noise=`` too where suspects were checked,
        which are no fair sample.
    groups : array-like of shape (n,), optional
        Group of each row. Rows of one group, such as near-copies or rows of one patient, do not
        vouch for each other's labels: each is scored by fits to other groups.
    false_discovery_rate : float
        Share of right labels that is accepted among the first ``n_suspects`` suspects.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(800, 50, mean_norm=2.0, random_state=0)
    >>> observed = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1).flip(y, random_state=0)
    >>> found = audit(X, observed)
    >>> found.noise_source, found.n_suspects
    ('mixture', 111)
    >>> print(f"{(observed != y)[found.suspects.row[:found.n_suspects]].mean():.2f}")
    0.97
    """
    rate = checked_rate(false_discovery_rate)
    estimated = isinstance(noise, str) and noise == "estimate"
    wanted = TrustedSubset(trusted) if estimated and trusted is not None else noise
    check_reachable(X=X, y=y)
    check_unmasked(X=X, y=y)
    labels = (
        y
        if isinstance(y, Votes)
        else np.asarray(column_or_1d(as_numpy(y) if is_foreign(y) else in_memory(y)))
    )
    X = opened(X)
    folds = _group_folds(groups, (len(labels),))
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", AssumedNoiseWarning
        )  # said below, of the rates that are used in the end
        fitted = LPClassifier(wanted, priors=priors).fit(X, labels)
    rows = X if takes_as_it_is(X) else canonical(X) if issparse(X) else as_rows(X)
    codes = _observed(labels, fitted)
    scored = _scored_alone(fitted, _noise(fitted, labels, codes, gives_priors(noise, priors)))
    if folds:
        held_out = _held_out(rows, labels, folds, fitted, scored.noise)
        n_rows = _n_independent(np.asarray(groups))
        scored = _scored_by_others(held_out, codes, scored.noise, priors, n_rows, scored.certainty)
    if scored.noise.assumption:
        warn_caller(scored.noise.assumption, AssumedNoiseWarning)
    truth = true_codes(trusted, len(labels), np.arange(len(labels)), fitted.classes_, "trusted")
    return Audit(_evidence(scored, rows, codes, fitted.classes_, truth), rate)


def _observed(labels: NDArray[Any] | Votes, fitted: LPClassifier) -> IntArray:
    """Class of each row's label, or of that which most votes favour; `UNLABELLED` without any."""
    if isinstance(labels, Votes) and fitted.annotators_ is not None:
        return labels.majority(fitted.annotators_.channel(labels).transition.T)
    return np.searchsorted(fitted.classes_, np.asarray(labels))


@dataclass(frozen=True, eq=False)
class _Scored:
    """Log-odds of each class against the first, honest, with what they were read by and what they promise."""

    log_odds: FloatArray  # (n, k − 1)
    noise: Noise
    accuracy: ExpectedAccuracy
    n_rows: float
    certainty: float


def _evidence(
    scored: _Scored, rows: Rows, codes: IntArray, classes: NDArray[Any], truth: IntArray
) -> Evidence:
    log_odds, noise = scored.log_odds, scored.noise
    logits = np.column_stack([np.zeros(len(log_odds)), log_odds])
    log_scores = log_softmax(logits, axis=1)
    observed = Observations(
        _columns(noise, codes), np.ones(len(codes)), scored.n_rows, noise.priors_given
    )
    return Evidence(
        classes=classes,
        codes=codes,
        truth=truth,
        probabilities=np.exp(log_scores),
        log_scores=log_scores,
        noise=noise,
        accuracy=scored.accuracy.value,
        accuracy_std=scored.accuracy.error,
        dimension=effective_dimension(rows),
        n_rows=scored.n_rows,
        read=LogOddsReader(logits, observed, noise.model.known_priors, scored.certainty == 1),
        has_signal=scored.certainty > 0,
    )


def _columns(noise: Noise, codes: IntArray) -> IntArray:
    """Column of ``noise.channel`` that tells of each row."""
    return codes if noise.votes is None else np.arange(len(codes))


def _scored_alone(fitted: LPClassifier, noise: Noise) -> _Scored:
    """Each row by the fit to all others."""
    accuracy = ExpectedAccuracy(fitted.expected_accuracy_, fitted.expected_accuracy_std_)
    log_odds = as_numpy(fitted.loo_log_odds_).reshape(fitted.label_posterior_.shape[0], -1)
    return _Scored(log_odds, noise, accuracy, fitted.n_effective_, certainty(fitted.association_))


def _scored_by_others(
    held_out: FloatArray,
    codes: IntArray,
    noise: Noise,
    priors: ArrayLike | None,
    n_rows: float,
    believed: float,
) -> _Scored:
    """Each row by fits to other groups; read anew, because the folds' own read-outs trust near-copies."""
    if noise.assumption and noise.votes is None:
        noise = guessed_noise(held_out, codes, priors)
    rows = Observations(_columns(noise, codes), np.ones(len(codes)), n_rows, noise.priors_given)
    channel = noise.channel
    contrasts = held_out[:, 1:] - held_out[:, :1]
    reading = calibrate(contrasts, rows, channel)
    if believed < 1:
        reading = reading.shrunk(believed, channel.known_priors)
    moved = _noise_one_error_away(noise, codes) if believed == 1 else [channel]
    accuracy = expected_accuracy(
        rows,
        reading,
        channel,
        base=moved[0],
        others=moved[1:],
        deployed=noise.model.known_priors,
        predicted=reading.log_odds.argmax(axis=1),
    )
    return _Scored(reading.log_odds[:, 1:], noise, accuracy, n_rows, believed)


def _noise_one_error_away(noise: Noise, codes: IntArray) -> list[Channel]:
    """Return the noise, then the noise with each rate moved by its standard error."""
    votes = noise.votes
    return channels_one_error_away(
        noise.model,
        noise.errors,
        observed=None if noise.priors_known else shares(codes[codes != UNLABELLED]),
        votes=votes,
        annotators=None if votes is None or votes.single else noise.annotators,
    )


def _noise(
    fitted: LPClassifier, labels: NDArray[Any] | Votes, codes: IntArray, priors_given: bool
) -> Noise:
    estimator = fitted.noise_estimator_
    found = Noise(
        model=fitted.noise_,
        errors=as_numpy(fitted.noise_std_),
        source="given" if estimator is None else estimator.source_,
        assumption="" if estimator is None else estimator.assumption_,
        priors_given=priors_given,
    )
    if not isinstance(labels, Votes):
        return found
    found = replace(found, votes=labels, annotators=fitted.annotators_)
    by_agreement = estimator is None or estimator.from_trusted_labels
    if by_agreement and fitted.noise_std_.any():
        found = replace(found, source="votes")
    if labels.single:
        return found
    return replace(found, model=_of_majority(fitted, codes))


def _of_majority(fitted: LPClassifier, codes: IntArray) -> NoiseModel:
    """How the labels that most votes favour differ from the true ones."""
    k, voted = len(fitted.classes_), codes != UNLABELLED
    joint = fitted.label_posterior_[voted].T @ np.eye(k)[codes[voted]]
    mass = joint.sum(axis=1, keepdims=True)
    transition = np.where(mass > 0, joint / np.where(mass > 0, mass, 1.0), np.eye(k))
    return NoiseModel(transition / transition.sum(axis=1, keepdims=True), fitted.noise_.priors)


Folds = list[tuple[IntArray, IntArray]]


def _group_folds(groups: ArrayLike | None, shape: tuple[int, ...]) -> Folds:
    """Return training and held-out rows of each fold; none where no two rows share a group."""
    if groups is None:
        return []
    ids = as_array(groups, "groups")
    if ids.shape != shape:
        raise ValueError(
            f"groups has shape {ids.shape} but y has {shape}: give one group for each row."
        )
    if any(is_missing(group) for group in ids.tolist()):
        raise ValueError(
            "groups has missing entries: give each row that stands alone a group of its own."
        )
    n_groups = len(np.unique(ids))
    if n_groups < 2:
        raise ValueError(
            "groups holds one group only, so no other rows can judge its labels: give more, or "
            "none."
        )
    if n_groups == len(ids):
        return []
    return list(GroupKFold(min(_N_FOLDS, n_groups)).split(ids, groups=ids))


def _held_out(
    rows: Rows, labels: NDArray[Any] | Votes, folds: Folds, fitted: LPClassifier, noise: Noise
) -> FloatArray:
    """Log-odds of each class, (n, k), by a fit to the other groups, whose true labels count where they are known."""
    scores = np.empty((len(labels), len(fitted.classes_)))
    estimator = fitted.noise_estimator_
    checked = None if estimator is None else estimator.y_trusted
    for train, test in folds:
        others = labels[train]
        n_classes = len(others.classes if isinstance(others, Votes) else np.unique(others))
        if n_classes < len(fitted.classes_):
            raise ValueError(
                "A class lies in so few groups that the other groups lack it: give finer groups, "
                "or none."
            )
        known: Any = "estimate" if noise.source == "votes" else fitted.noise_
        if checked is not None and not isinstance(labels, Votes):
            known = GivenRates(
                fitted.noise_, y_trusted=np.asanyarray(checked)[train]
            )  # which keeps a mask
        values = as_numpy(
            LPClassifier(known)
            .fit(chosen(rows, train), others)
            .decision_function(chosen(rows, test))
        )
        scores[test] = np.column_stack([-values / 2, values / 2]) if values.ndim == 1 else values
    return scores


def _n_independent(groups: NDArray[Any]) -> float:
    """How many groups of equal size stand for as much (Kish)."""
    _, sizes = np.unique(groups, return_counts=True)
    return float(sizes.sum() ** 2 / (sizes**2).sum())
