"""Classifiers of a file: fitted to its labels or with decisions on them, each with the accuracy to expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import IntArray
from unflip.auditing.from_rows import audit
from unflip.cli.files.decision_files import NO_SINGLE_LABEL, Decision
from unflip.cli.files.label_column import LabelColumn, lookalikes
from unflip.cli.files.request import Prepared, noted
from unflip.cli.saved_models import Model
from unflip.estimation.given_rates import GivenRates
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.estimation.trusted import TrustedSubset
from unflip.labels.votes import Votes
from unflip.model.classifier import LPClassifier


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted classifier, with the accuracy to expect on clean labels and its standard error."""

    classifier: LPClassifier
    accuracy: float
    error: float


def fit_labels(prepared: Prepared) -> Fit:
    """Fit to the labels or votes of a file as they are."""
    return _fit(prepared, unfitted_classifier(prepared), prepared.audited, prepared.observed)


def unfitted_classifier(prepared: Prepared) -> LPClassifier:
    """Return the classifier for the audited items, not yet fitted."""
    priors = None if prepared.noise is not None else prepared.priors
    if prepared.trusted is None:
        return LPClassifier("estimate" if prepared.noise is None else prepared.noise, priors=priors)
    checked = prepared.trusted[prepared.audited]
    source = (
        TrustedSubset(checked)
        if prepared.noise is None
        else GivenRates(prepared.noise, y_trusted=checked)
    )
    return LPClassifier(source, priors=priors)


def fit_decided(prepared: Prepared, before: Fit, decisions: Mapping[int, Decision]) -> Fit:
    """Fit with the decided rows as certain.

    The rates of the fit before serve this one, too: the worst rows that were decided are no fair
    sample of all, and what is still wrong cannot be told from labels of which the worst are put
    right.

    Parameters
    ----------
    prepared : Prepared
        The file.
    before : Fit
        To its labels as they are.
    decisions : mapping of int to Decision
        By row of the file.
    """
    labels = prepared.labels
    if not isinstance(labels, LabelColumn):
        raise ValueError(NO_SINGLE_LABEL)
    texts = labels.texts.astype(object)
    truth = np.full(len(texts), None) if prepared.trusted is None else prepared.trusted.copy()
    for row, decision in decisions.items():
        texts[row] = texts[row] or decision.label
        truth[row] = decision.label or None
    rows = np.flatnonzero(texts != "")
    known = before.classifier
    source = GivenRates(known.noise_, known.noise_std_, truth[rows])
    return _fit(prepared, LPClassifier(source), rows, texts[rows].astype(str))


def _fit(
    prepared: Prepared, unfitted: LPClassifier, rows: IntArray, labels: NDArray[Any] | Votes
) -> Fit:
    """Fit; where rows have groups, rates and accuracy are those of an audit that judges each by other groups.

    Of votes only the accuracy is: the audit tells the rates of majority labels, not those of each
    annotator.
    """
    X = prepared.rows[rows]
    if prepared.groups is None:
        fitted = unfitted.fit(X, labels)
        return Fit(fitted, fitted.expected_accuracy_, fitted.expected_accuracy_std_)
    found = audit(
        X, labels, noise=unfitted.noise, priors=unfitted.priors, groups=prepared.groups[rows]
    )
    if not isinstance(labels, Votes):
        noise = unfitted.noise
        y_trusted = noise.y_trusted if isinstance(noise, NoiseEstimator) else None
        source = GivenRates(found.noise, found.noise_std, y_trusted)
        unfitted = LPClassifier(source)
    return Fit(unfitted.fit(X, labels), found.expected_accuracy, found.expected_accuracy_std)


def fit_model(
    prepared: Prepared, decisions: Mapping[int, Decision] | None = None
) -> tuple[Model, Fit, list[str]]:
    """Fit to the labels or votes of a file; return the model, its fit and sentences to pass on.

    Parameters
    ----------
    prepared : Prepared
        The file.
    decisions : mapping of int to Decision, optional
        What was decided of some rows, which is taken as certain.
    """
    labels = prepared.labels
    with noted(prepared.table.name) as notes:
        found = fit_labels(prepared)
        if decisions is not None:
            found = fit_decided(prepared, found, decisions)
    if isinstance(labels, LabelColumn):
        notes += lookalikes(labels)
    return (
        Model(", ".join(labels.names), prepared.features, prepared.recipe, found.classifier),
        found,
        notes,
    )
