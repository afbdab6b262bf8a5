"""The audit of rows with observed labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import log_softmax
from sklearn.model_selection import GroupKFold
from sklearn.utils import column_or_1d

from unflip._sparse import canonical
from unflip._typing import FloatArray, IntArray, Rows
from unflip._warning import warn_caller
from unflip.auditing.evidence import Evidence, Noise, ScoreReader, guessed_noise, shares
from unflip.auditing.outlook import effective_dimension
from unflip.auditing.report import Audit, checked_rate
from unflip.classifier import LPClassifier
from unflip.estimation.automatic import AssumedNoiseWarning, Automatic
from unflip.estimation.base import NoiseEstimator
from unflip.estimation.trusted import TrustedSubset
from unflip.expected import ExpectedAccuracy, ScoredRows, expected_accuracy, other_noise
from unflip.labels import is_missing, true_codes
from unflip.lazy import as_rows
from unflip.noise import NoiseModel

_N_FOLDS = 8


def audit(
    X: ArrayLike,
    y: ArrayLike,
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
        Rows, or what they are read from, as in `LPClassifier.fit`. Scale the features first, as for any penalised
        linear model.
    y : array-like of shape (n,)
        Observed labels.
    noise, priors
        As in `LPClassifier`.
    trusted : array-like of shape (n,), optional
        True labels of rows that were checked, missing for the others. The rates are then read from them
        (`TrustedSubset`), unless `noise` gives them; that takes rows that were checked at random or as `TrustedSubset`
        suggests. Give ``noise=`` too where suspects were checked, which are no fair sample.
    groups : array-like of shape (n,), optional
        Group of each row. Rows of one group, such as near-copies or rows of one patient, do not vouch for each other's
        labels: each is scored by fits to other groups.
    false_discovery_rate : float
        Share of right labels that is accepted among the first ``n_suspects`` suspects.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(800, 50, mean_norm=2.0, random_state=0)
    >>> observed = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1).flip(y, random_state=0)
    >>> found = audit(X, observed)
    >>> found.noise_source, found.n_suspects
    ('mixture', 118)
    >>> print(f"{(observed != y)[found.suspects.row[:found.n_suspects]].mean():.2f}")
    0.93
    """
    rate = checked_rate(false_discovery_rate)
    estimated = isinstance(noise, str) and noise == "estimate"
    wanted = TrustedSubset(trusted) if estimated and trusted is not None else noise
    y = column_or_1d(y)
    folds = _group_folds(groups, np.shape(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)  # said below, of the rates that are used in the end
        fitted = LPClassifier(wanted, priors=priors).fit(X, y)
    rows, labels = canonical(X) if issparse(X) else as_rows(X), np.asarray(y)
    codes = np.searchsorted(fitted.classes_, labels)
    scored = _scored_alone(fitted, priors is not None or (isinstance(noise, NoiseModel) and noise.priors is not None))
    if folds:
        held_out = _held_out(rows, labels, folds, scored.noise.model)
        scored = _scored_by_others(held_out, codes, scored.noise, priors, _n_independent(np.asarray(groups)))
    if scored.noise.assumption:
        warn_caller(scored.noise.assumption, AssumedNoiseWarning)
    truth = true_codes(trusted, len(labels), np.arange(len(labels)), fitted.classes_, "trusted")
    return Audit(_evidence(scored, rows, codes, fitted.classes_, truth), rate)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Log-odds of each class against the first, honest, with what they were read by and what they promise."""

    log_odds: FloatArray  # (n, k − 1)
    noise: Noise
    accuracy: ExpectedAccuracy
    n_rows: float


def _evidence(scored: _Scored, rows: Rows, codes: IntArray, classes: NDArray[Any], truth: IntArray) -> Evidence:
    log_odds = scored.log_odds
    log_scores = log_softmax(np.column_stack([np.zeros(len(log_odds)), log_odds]), axis=1)
    return Evidence(
        classes=classes,
        codes=codes,
        truth=truth,
        probabilities=np.exp(log_scores),
        log_scores=log_scores,
        noise=scored.noise,
        accuracy=scored.accuracy.value,
        accuracy_std=scored.accuracy.error,
        dimension=effective_dimension(rows),
        n_rows=scored.n_rows,
        read=ScoreReader(log_odds, codes, scored.n_rows),
    )


def _scored_alone(fitted: LPClassifier, priors_known: bool) -> _Scored:
    """Each row by the fit to all others."""
    accuracy = ExpectedAccuracy(fitted.expected_accuracy_, fitted.expected_accuracy_std_)
    noise = _noise(fitted, priors_known)
    log_odds = fitted.label_free_log_odds_.reshape(len(fitted.label_posterior_), -1)
    return _Scored(log_odds, noise, accuracy, fitted.n_effective_)


def _scored_by_others(
    held_out: FloatArray, codes: IntArray, noise: Noise, priors: ArrayLike | None, n_rows: float
) -> _Scored:
    """Each row by fits to other groups; read anew, because the folds' own read-outs trust near-copies."""
    if noise.assumption:
        noise = guessed_noise(held_out, codes, priors)
    rows = ScoredRows(held_out, codes, np.ones(len(codes)), n_rows, np.eye(held_out.shape[1]))
    reading = rows.read(noise.model)
    accuracy = expected_accuracy(
        rows,
        reading,
        noise.model,
        others=other_noise(noise.model, noise.errors, None if noise.priors_known else shares(codes)),
        deployed=noise.model.known_priors,
        predicted=reading.log_odds.argmax(axis=1),
    )
    return _Scored(reading.log_odds[:, 1:], noise, accuracy, n_rows)


def _noise(fitted: LPClassifier, priors_known: bool) -> Noise:
    estimator = fitted.noise_estimator_
    source = "given" if estimator is None else "mixture"
    if isinstance(estimator, TrustedSubset):
        source = "trusted rows"
    elif isinstance(estimator, Automatic):
        source = estimator.source_
    return Noise(
        model=fitted.noise_,
        errors=fitted.noise_std_,
        source=source,
        assumption=getattr(estimator, "assumption_", ""),
        priors_known=priors_known,
    )


Folds = list[tuple[IntArray, IntArray]]


def _group_folds(groups: ArrayLike | None, shape: tuple[int, ...]) -> Folds:
    """Return training and held-out rows of each fold; none where no two rows share a group."""
    if groups is None:
        return []
    ids = np.asarray(groups)
    if ids.shape != shape:
        raise ValueError(f"groups has shape {ids.shape} but y has {shape}: give one group for each row.")
    if any(is_missing(group) for group in ids.tolist()):
        raise ValueError("groups has missing entries: give each row that stands alone a group of its own.")
    n_groups = len(np.unique(ids))
    if n_groups < 2:
        raise ValueError("groups holds one group only, so no other rows can judge its labels: give more, or none.")
    if n_groups == len(ids):
        return []
    return list(GroupKFold(min(_N_FOLDS, n_groups)).split(ids, groups=ids))


def _held_out(rows: Rows, labels: NDArray[Any], folds: Folds, noise: NoiseModel) -> FloatArray:
    """Log-odds of each class, (n, k), by a fit to the other groups."""
    scores = np.empty((len(labels), noise.n_classes))
    for train, test in folds:
        if len(np.unique(labels[train])) < noise.n_classes:
            raise ValueError("A class lies in so few groups that the other groups lack it: give finer groups, or none.")
        values = LPClassifier(noise).fit(rows[train], labels[train]).decision_function(rows[test])
        scores[test] = np.column_stack([-values / 2, values / 2]) if values.ndim == 1 else values
    return scores


def _n_independent(groups: NDArray[Any]) -> float:
    """How many groups of equal size stand for as much (Kish)."""
    _, sizes = np.unique(groups, return_counts=True)
    return float(sizes.sum() ** 2 / (sizes**2).sum())
