"""The audit of any model's probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.arrays import as_numpy, is_foreign
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_array, as_floats, as_number, shown
from unflip._utils.warnings import warn_caller
from unflip.auditing.evidence import Evidence, Noise, ProbabilityReader, guessed_noise
from unflip.auditing.report import Audit, checked_rate
from unflip.data.duplicates import DistinctRows
from unflip.data.training_set import TrainingSet
from unflip.estimation.automatic import Automatic
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.trusted import TrustedSubset
from unflip.labels.classes import encode, true_codes
from unflip.labels.noise import NoiseModel
from unflip.model.noise_sources import noise_source
from unflip.model.options import gives_priors
from unflip.ridge.spectrum.decomposition import decompose

_SUM_TOLERANCE = 1e-3


def audit_scores(
    pred_probs: ArrayLike,
    y: ArrayLike,
    *,
    noise: NoiseModel | ArrayLike | Literal["estimate"] | None = "estimate",
    priors: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    false_discovery_rate: float = 0.1,
    effective_dimension: float | None = None,
) -> Audit:
    """Find labels that look wrong with the probabilities of any model.

    The model predicts observed labels, so P(observed | x) = P(true | x)·T is read backwards,
    clipped to probabilities, and joined with the observed label.

    Parameters
    ----------
    pred_probs : array-like of shape (n, k)
        P(observed label | row), one column per class in sorted order, OUT OF SAMPLE: of a model
        that has not seen the row, for example from ``cross_val_predict(model, X, y,
        method="predict_proba")``. What is on a device is brought to the host.
    y : array-like of shape (n,)
        Observed labels.
    noise : NoiseModel, array-like of shape (k, k), "estimate" or None
        How labels were flipped, as in `LPClassifier`; "estimate" is a guess from the surest rows.
    priors : array-like of shape (k,), optional
        ClassProportions of the true classes, where known.
    trusted : array-like of shape (n,), optional
        True labels of rows that were checked, as in `audit`.
    false_discovery_rate : float
        Share of right labels that is accepted among the first ``n_suspects`` suspects.
    effective_dimension : float, optional
        Number of directions that the model has to learn, for ``accuracy_after`` and ``plan``, which
        are NaN without it.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)
    >>> found = audit_scores([[0.2, 0.8], [0.8, 0.2], [0.7, 0.3], [0.3, 0.7]], [0, 0, 1, 1], noise=noise)
    >>> found.label_posterior.round(2)
    array([[0.  , 1.  ],
           [0.96, 0.04],
           [0.24, 0.76],
           [0.02, 0.98]])
    """
    rate = checked_rate(false_discovery_rate)
    labels = as_array(as_numpy(y) if is_foreign(y) else y, "y")
    observed = _checked_probabilities(pred_probs, labels.shape)
    classes, codes = encode(labels, "audit_scores")
    if observed.shape[1] != len(classes):
        raise ValueError(
            f"pred_probs has {observed.shape[1]} columns but y has {len(classes)} classes: give "
            f"one for each of {classes.tolist()}, in that order."
        )
    data = TrainingSet(
        observed, labels, np.ones(len(labels)), classes, DistinctRows.of(observed), codes
    )
    found = _noise(noise, priors, trusted, data)
    read = ProbabilityReader(observed)
    probabilities = read(found.model)
    right = probabilities.max(axis=1)
    evidence = Evidence(
        classes=classes,
        codes=codes,
        truth=true_codes(trusted, len(labels), np.arange(len(labels)), classes, "trusted"),
        probabilities=probabilities,
        log_scores=np.log(np.maximum(observed, 1 / (10 * len(labels)))),
        noise=found,
        accuracy=float(right.mean()),
        accuracy_std=float(right.std() / np.sqrt(len(right))),
        dimension=np.nan
        if effective_dimension is None
        else _checked_dimension(effective_dimension),
        n_rows=float(len(labels)),
        read=read,
    )
    return Audit(replace(evidence, accuracy_std=_accuracy_error(evidence)), rate)


def _noise(
    noise: object, priors: ArrayLike | None, trusted: ArrayLike | None, data: TrainingSet
) -> Noise:
    """Return what is known of the noise; where that is nothing, guess and warn."""
    if isinstance(noise, str) and noise == "estimate":
        if trusted is None:
            guess = guessed_noise(data.X, data.codes, priors)
            warn_caller(guess.assumption, AssumedNoiseWarning)
            return guess
        noise = TrustedSubset(trusted)
    if isinstance(noise, NoiseEstimator) and not noise.from_trusted_labels:
        raise ValueError(
            f"noise={noise!r} needs rows, not probabilities: give a NoiseModel or trusted labels."
        )
    given = gives_priors(noise, priors)
    wanted = NoiseModel.none(len(data.classes)) if noise is None else noise
    spectrum = decompose(data.rows.X, data.rows.spectrum_weights)
    found = noise_source(wanted, priors, data, spectrum, Automatic(priors=priors))
    source = "given" if found.estimator is None else found.estimator.source_
    return Noise(
        model=found.noise, errors=found.errors, source=source, assumption="", priors_given=given
    )


def _accuracy_error(evidence: Evidence) -> float:
    """Return the standard error of the expected accuracy, from the rows and from the rates."""
    others = map(evidence.under, evidence.noise_one_error_away())
    unmoved, *moved = (
        float(each.probabilities.max(axis=1).mean()) for each in (evidence.unmoved, *others)
    )
    return float(np.hypot(evidence.accuracy_std, np.linalg.norm(np.array(moved) - unmoved)))


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
            f"pred_probs has shape {table.shape} but y has {shape}: give one row for each label "
            "and one column for each class."
        )
    if not np.isfinite(table).all():
        raise ValueError(
            "pred_probs holds NaN or infinite values: give a probability for every row and class."
        )
    sums = table.sum(axis=1)
    if (table < 0).any() or (np.abs(sums - 1) > _SUM_TOLERANCE).any():
        worst = int(np.argmax(np.abs(sums - 1) + (table < 0).any(axis=1)))
        raise ValueError(
            f"pred_probs[{worst}] = {table[worst].round(4).tolist()} is no set of probabilities: "
            "entries must be non-negative and sum to 1."
        )
    return np.asarray(table / sums[:, None])
