"""Classifiers of a file: fitted to its labels or with decisions on them, each with the accuracy to expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._typing import IntArray
from unflip.auditing import audit
from unflip.classifier import LPClassifier
from unflip.estimation.given import GivenRates
from unflip.files.auditing import Prepared
from unflip.files.decisions import NO_SINGLE_LABEL, Decision
from unflip.files.label_column import LabelColumn
from unflip.votes import Votes


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted classifier, with the accuracy to expect on clean labels and its standard error."""

    classifier: LPClassifier
    accuracy: float
    error: float


def fit_labels(prepared: Prepared) -> Fit:
    """Fit to the labels or votes of a file as they are."""
    return _fit(prepared, prepared.classifier(), prepared.audited, prepared.observed)


def fit_decided(prepared: Prepared, before: Fit, decisions: Mapping[int, Decision]) -> Fit:
    """Fit with the decided rows as certain.

    The rates of the fit before serve this one, too: the worst rows that were decided are no fair sample of all, and
    what is still wrong cannot be told from labels of which the worst are put right.

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


def _fit(prepared: Prepared, unfitted: LPClassifier, rows: IntArray, labels: NDArray[Any] | Votes) -> Fit:
    """Fit; where rows have groups, rates and accuracy are those of an audit that judges each by other groups.

    Of votes only the accuracy is: the audit tells the rates of majority labels, not those of each worker.
    """
    X = prepared.rows[rows]
    if prepared.groups is None:
        fitted = unfitted.fit(X, labels)
        return Fit(fitted, fitted.expected_accuracy_, fitted.expected_accuracy_std_)
    found = audit(X, labels, noise=unfitted.noise, priors=unfitted.priors, groups=prepared.groups[rows])
    if not isinstance(labels, Votes):
        source = GivenRates(found.noise, found.noise_std, getattr(unfitted.noise, "y_trusted", None))
        unfitted = LPClassifier(source)
    return Fit(unfitted.fit(X, labels), found.expected_accuracy, found.expected_accuracy_std)
