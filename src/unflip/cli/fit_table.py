"""Fit classifiers to the labels of a file, with or without decisions on suspects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import IntArray
from unflip.auditing import prose
from unflip.auditing.from_rows import audit
from unflip.cli.files.decision_files import NO_SINGLE_LABEL, Decision
from unflip.cli.files.request import Prepared, collect_warnings
from unflip.estimation.given_rates import GivenRates
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.estimation.trusted import TrustedSubset
from unflip.labels.votes import Votes
from unflip.model.classifier import LPClassifier
from unflip.model.table_model import TableModel
from unflip.ridge.label_association import certainty


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted classifier, with its expected accuracy on clean labels and the standard error.

    Attributes
    ----------
    classifier : LPClassifier
        The classifier.
    accuracy, error : float
        Expected accuracy and its standard error.
    notes : list of str
        Sentences on noise rates that are not reliable.
    """

    classifier: LPClassifier
    accuracy: float
    error: float
    notes: list[str]


def fit_labels(prepared: Prepared) -> Fit:
    """Fit to the original labels or votes of a file."""
    return _fit(prepared, unfitted_classifier(prepared), prepared.audited, prepared.observed)


def unfitted_classifier(prepared: Prepared) -> LPClassifier:
    """Return the classifier for the audited items, not yet fitted."""
    priors = None if prepared.noise is not None else prepared.priors
    features = prepared.feature_map
    if prepared.trusted is None:
        source = "estimate" if prepared.noise is None else prepared.noise
        return LPClassifier(source, priors=priors, features=features)
    checked = prepared.trusted[prepared.audited]
    source = (
        TrustedSubset(checked)
        if prepared.noise is None
        else GivenRates(prepared.noise, y_trusted=checked)
    )
    return LPClassifier(source, priors=priors, features=features)


def fit_decided(prepared: Prepared, before: Fit, decisions: Mapping[int, Decision]) -> Fit:
    """Fit with the decisions as trusted labels, and with the noise rates of the fit before.

    New rates cannot be estimated: decided rows are not a random sample, and corrected labels would
    bias the estimate.

    Parameters
    ----------
    prepared : Prepared
        The file.
    before : Fit
        The fit to the original labels.
    decisions : mapping of int to Decision
        Decisions by row of the file.
    """
    if prepared.votes is not None:
        raise ValueError(NO_SINGLE_LABEL)
    texts = np.full(len(prepared.items), "", dtype=object)
    texts[prepared.audited] = prepared.observed
    truth = np.full(len(texts), None) if prepared.trusted is None else prepared.trusted.copy()
    for row, decision in decisions.items():
        texts[row] = texts[row] or decision.label
        truth[row] = decision.label or None
    rows = np.flatnonzero(texts != "")
    source = GivenRates(before.classifier.noise_, before.classifier.noise_std_, truth[rows])
    unfitted = LPClassifier(source, features=prepared.feature_map)
    return _fit(prepared, unfitted, rows, texts[rows].astype(str))


def _fit(
    prepared: Prepared, unfitted: LPClassifier, rows: IntArray, labels: NDArray[Any] | Votes
) -> Fit:
    """Fit; if rows have groups, use the noise rates and the accuracy of an audit by groups.

    With votes, only the accuracy comes from the audit: its noise rates are those of the majority
    labels, not those of each annotator.
    """
    X = prepared.rows[rows]
    if prepared.groups is None:
        fitted = unfitted.fit(X, labels)
        estimator = fitted.noise_estimator_
        notes = _notes(
            is_assumed=estimator is not None and bool(estimator.assumption_),
            has_signal=certainty(fitted.association_) > 0,
        )
        return Fit(fitted, fitted.expected_accuracy_, fitted.expected_accuracy_std_, notes)
    result = audit(
        X,
        labels,
        noise=unfitted.noise,
        priors=unfitted.priors,
        groups=prepared.groups[rows],
        features=prepared.feature_map,
    )
    if not isinstance(labels, Votes):
        noise = unfitted.noise
        y_trusted = noise.y_trusted if isinstance(noise, NoiseEstimator) else None
        rates = GivenRates(result.noise, result.noise_std, y_trusted)
        unfitted = LPClassifier(rates, features=prepared.feature_map)
    fitted = unfitted.fit(X, labels)
    notes = _notes(bool(result.assumption), result.evidence.has_signal)
    return Fit(fitted, result.expected_accuracy, result.expected_accuracy_std, notes)


def _notes(is_assumed: bool, has_signal: bool) -> list[str]:
    if not has_signal:
        return [prose.NO_SIGNAL]
    if is_assumed:
        return [f"{prose.UNCERTAIN_RATES} unflip audit says how to improve them."]
    return []


def fit_model(
    prepared: Prepared, decisions: Mapping[int, Decision] | None = None
) -> tuple[TableModel, Fit, list[str]]:
    """Fit to the labels or votes of a file; return the model, its fit and notes to print.

    Parameters
    ----------
    prepared : Prepared
        The file.
    decisions : mapping of int to Decision, optional
        Decisions on some rows, used as trusted labels.
    """
    with collect_warnings(prepared.table.name, hints=prepared.notes) as notes:
        fit = fit_labels(prepared)
        notes += fit.notes
        if decisions is not None:
            fit = fit_decided(prepared, fit, decisions)
    notes += prepared.notes
    names = ", ".join(prepared.labels.names)
    model = TableModel(names, prepared.recipe, fit.classifier, fit.accuracy, fit.error)
    return model, fit, notes
