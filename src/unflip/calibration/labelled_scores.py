r"""Features of a row's true class: the scores of models, the observed label, and votes.

They are the features of the log-linear model of `unflip.calibration.true_class`, with the normal
prior of each parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.codes import UNLABELLED

# Smallest probability of a class by a score: no score excludes a class.
_LEAST_PROBABILITY = 1e-4
# Log-likelihood of the votes relative to that of the likeliest class, at least.
_LEAST_VOTES = -15.0

#: Indices or a mask of rows.
Rows = IntArray | NDArray[np.bool_]


@dataclass(frozen=True)
class ParameterPrior:
    """Mean and standard deviation of a parameter's normal prior."""

    mean: float
    std: float


# What the labels of 19 public data sets from 8 sources needed (people, crowds, rules and language
# models), rounded. Coverage with the priors of the other sources: 0.96 without checked rows, 0.97
# with 50.
_PRIORS = {
    "beta": ParameterPrior(1.0, 0.7),
    "beta_d": ParameterPrior(-0.15, 0.25),
    "gamma": ParameterPrior(1.2, 1.5),
    "delta": ParameterPrior(0.0, 0.5),
    "zeta": ParameterPrior(0.0, 0.5),
    "c": ParameterPrior(0.0, 0.7),
}
# The same if several votes add their log-likelihood: on 5 sets from 5 sources, ω was between 0.1
# and 0.9. Coverage with the priors of the other sources: 5 of 5 without checked rows.
_VOTE_PRIORS = {
    **_PRIORS,
    "beta": ParameterPrior(0.7, 0.5),
    "gamma": ParameterPrior(0.6, 1.5),
    "omega": ParameterPrior(0.45, 0.4),
}
# The same if a model gives predictions without probabilities: only δ and ζ can describe it.
_PREDICTION_PRIORS = {
    **_PRIORS,
    "delta": ParameterPrior(1.5, 2.0),
    "zeta": ParameterPrior(0.0, 1.5),
}


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores and predictions of one model, out-of-sample.

    Attributes
    ----------
    log_scores : ndarray of shape (n, k) or None
        Log-probabilities of the true class, floored and centred; None if only predictions are
        known.
    predicted : ndarray of shape (n,)
        Predicted class.
    claimed : ndarray of shape (n,) or None
        Probability of the predicted class by the scores.
    """

    log_scores: FloatArray | None
    predicted: IntArray
    claimed: FloatArray | None = None

    @classmethod
    def of(cls, probabilities: FloatArray, predicted: IntArray | None = None) -> ModelScores:
        """Return scores of probabilities of the true class, (n, k)."""
        logs = np.log(np.maximum(probabilities, _LEAST_PROBABILITY))
        if predicted is None:
            predicted = np.asarray(probabilities.argmax(axis=1))
        claimed = probabilities[np.arange(len(logs)), predicted]
        return cls(logs - logs.mean(axis=1, keepdims=True), predicted, claimed)

    def claimed_by_rules(self, by_votes: FloatArray, voted: NDArray[np.bool_]) -> ModelScores:
        """Return the scores with what the votes of rules claim, instead of the scores themselves.

        A fit to the votes of rules learns the rules back, from the features that they look at, so
        it agrees with them, right or wrong. If the rules that voted on a row are left out of the
        fit, its scores no longer predict these votes.

        Parameters
        ----------
        by_votes : ndarray of shape (n, k)
            P(true class | votes), without scores.
        voted : ndarray of shape (n,)
            Whether each row has a vote; the others claim the mean of these.
        """
        claimed = by_votes[np.arange(len(voted)), self.predicted]
        return replace(self, claimed=np.where(voted, claimed, claimed[voted].mean()))

    def subset(self, rows: Rows) -> ModelScores:
        """Return the scores of some rows."""
        log_scores = None if self.log_scores is None else self.log_scores[rows]
        claimed = None if self.claimed is None else self.claimed[rows]
        return ModelScores(log_scores, self.predicted[rows], claimed)


@dataclass(frozen=True, eq=False)
class LabelledScores:
    """Rows with the scores of one or more models and their observed labels.

    Attributes
    ----------
    models : tuple of ModelScores
        The models; the first one defines the cells of rows.
    observed : ndarray of shape (n,)
        Observed class, `UNLABELLED` for rows without one.
    n_classes : int
        Number of classes k.
    vote_logs : ndarray of shape (n, k), optional
        Log-likelihood of the votes on each row, given its true class. None: single labels.
    """

    models: tuple[ModelScores, ...]
    observed: IntArray
    n_classes: int
    vote_logs: FloatArray | None = None

    @property
    def predicted(self) -> IntArray:
        """Predicted class of the first model, (n,)."""
        return self.models[0].predicted

    @cached_property
    def cells(self) -> IntArray:
        """Cell of each row, (n,): 0 if label and prediction agree, 1 if not, 2 without label."""
        cells = np.where(self.observed == self.predicted, 0, 1)
        return np.where(self.observed == UNLABELLED, 2, cells)

    @cached_property
    def strata(self) -> IntArray:
        """Number that tells, for all models, whether label and prediction agree, (n,)."""
        strata = np.zeros(len(self.observed), dtype=np.intp)
        for model in self.models:
            strata = 2 * strata + (self.observed != model.predicted)
        return strata

    @cached_property
    def _columns(self) -> list[_Column]:
        """One column of the design for each parameter but the intercepts."""
        labelled = self.observed != UNLABELLED
        columns = []
        for model in self.models:
            differs = labelled & (self.observed != model.predicted)
            if model.log_scores is not None:
                columns.append(_Column("beta", values=model.log_scores))
                columns.append(_Column("beta_d", values=model.log_scores * differs[:, None]))
            columns.append(_Column("delta", classes=model.predicted))
            if self.n_classes > 2 and self.vote_logs is None:
                both = np.where(labelled & ~differs, model.predicted, UNLABELLED)
                columns.append(_Column("zeta", classes=both))
        if self.vote_logs is not None:
            relative = self.vote_logs - self.vote_logs.max(axis=1, keepdims=True)
            columns.append(_Column("omega", values=np.maximum(relative, _LEAST_VOTES)))
        return [*columns, _Column("gamma", classes=self.observed)]

    @property
    def names(self) -> list[str]:
        """Names of the parameters, in their order."""
        return [column.name for column in self._columns] + ["c"] * self.n_classes

    @property
    def prior(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the prior of each parameter, (d,) each."""
        priors = dict(_PRIORS if self.vote_logs is None else _VOTE_PRIORS)
        if all(model.log_scores is None for model in self.models):
            priors |= {name: _PREDICTION_PRIORS[name] for name in ("delta", "zeta")}
        mean = np.array([priors[name].mean for name in self.names])
        std = np.array([priors[name].std for name in self.names])
        names = np.array(self.names)
        # Scores of several models repeat each other: together they count as one.
        is_score = np.isin(names, ["beta", "beta_d"])
        n_scored = max(sum(model.log_scores is not None for model in self.models), 1)
        mean[is_score] /= n_scored
        std[is_score] /= np.sqrt(n_scored)
        return mean, std

    def subset(self, rows: Rows) -> LabelledScores:
        """Return some of the rows."""
        return replace(
            self,
            models=tuple(model.subset(rows) for model in self.models),
            observed=self.observed[rows],
            vote_logs=None if self.vote_logs is None else self.vote_logs[rows],
        )

    def logits(self, parameters: FloatArray) -> FloatArray:
        """Return log q up to a constant in each row, (n, k)."""
        n = len(self.observed)
        logits = np.tile(parameters[len(self._columns) :], (n, 1))
        for column, parameter in zip(self._columns, parameters, strict=False):
            column.add_to(logits, float(parameter))
        return logits

    def features_of(self, classes: IntArray) -> FloatArray:
        """Return the features of one class of each row, (n, d)."""
        own = np.eye(self.n_classes)[classes]
        return np.column_stack([*(column.of(classes) for column in self._columns), own])

    def mean_features(self, posterior: FloatArray) -> FloatArray:
        """Return the mean features under class probabilities q, (n, d)."""
        means = (column.mean(posterior) for column in self._columns)
        return np.column_stack([*means, posterior])

    def posterior(self, parameters: FloatArray) -> FloatArray:
        """Return P(true class | score, label), (n, k)."""
        return np.asarray(softmax(self.logits(parameters), axis=1))

    def share(self, parameters: FloatArray, classes: IntArray, weights: FloatArray) -> float:
        """Return the weighted mean of q(class) of each row; the weights (n,) sum to 1."""
        return float(weights @ self.posterior(parameters)[np.arange(len(classes)), classes])

    def gradients(self, posterior: FloatArray, classes: IntArray) -> FloatArray:
        """Return the derivatives of q(class) of each row by the parameters, (n, d)."""
        own = posterior[np.arange(len(classes)), classes]
        centred = self.features_of(classes) - self.mean_features(posterior)
        return np.asarray(own[:, None] * centred)

    def design(self, rows: IntArray) -> FloatArray:
        """Return the features of all classes of some rows, (m, k, d)."""
        k = self.n_classes
        columns = [column.table(rows, k) for column in self._columns]
        intercepts = np.broadcast_to(np.eye(k), (len(rows), k, k))
        return np.concatenate([np.stack(columns, axis=-1), intercepts], axis=-1)


@dataclass(frozen=True, eq=False)
class _Column:
    """A feature of each class of each row: values (n, k), or 1 for one class of a row.

    Rows whose class is `UNLABELLED` have no such class.
    """

    name: str
    values: FloatArray | None = None
    classes: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def add_to(self, logits: FloatArray, parameter: float) -> None:
        if self.values is not None:
            logits += parameter * self.values
            return
        rows = np.flatnonzero(self.classes != UNLABELLED)
        logits[rows, self.classes[rows]] += parameter

    def of(self, classes: IntArray) -> FloatArray:
        if self.values is not None:
            return np.asarray(self.values[np.arange(len(classes)), classes])
        return np.asarray(self.classes == classes, dtype=float)

    def mean(self, posterior: FloatArray) -> FloatArray:
        if self.values is not None:
            return np.asarray((posterior * self.values).sum(axis=1))
        own = posterior[np.arange(len(posterior)), self.classes]
        return np.asarray(np.where(self.classes == UNLABELLED, 0.0, own))

    def table(self, rows: IntArray, n_classes: int) -> FloatArray:
        if self.values is not None:
            return np.asarray(self.values[rows])
        return np.asarray(self.classes[rows, None] == np.arange(n_classes), dtype=float)
