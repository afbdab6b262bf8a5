"""The arguments of `evaluate` and `compare`: scores, labels and checks, validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.arrays import as_numpy, is_foreign
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_array, as_floats, improper_row, shown
from unflip.auditing.evaluation.soft_metrics import ScoredModel
from unflip.auditing.score_calibration import true_class_probabilities
from unflip.calibration.labelled_scores import LabelledScores, ModelScores
from unflip.labels.classes import encode, inclusion_probabilities, is_missing, true_codes


@dataclass(frozen=True, eq=False)
class CheckedLabels:
    """Noisy labels, and the true classes of the checked rows.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        The observed classes, sorted.
    codes : ndarray of shape (n,)
        Observed class of each row.
    truth : ndarray of shape (n,)
        True class of the checked rows, `UNCHECKED` for the others.
    inclusion : ndarray of shape (n,) or None
        Probability with which each row was chosen for a check, if known.
    """

    classes: NDArray[Any]
    codes: IntArray
    truth: IntArray
    inclusion: FloatArray | None

    @classmethod
    def of(
        cls,
        labels: ArrayLike,
        trusted: ArrayLike | None,
        inclusion: ArrayLike | None,
        owner: str,
    ) -> CheckedLabels:
        """Validate the arguments of `owner`."""
        observed = as_array(as_numpy(labels) if is_foreign(labels) else labels, "labels")
        if observed.ndim != 1:
            raise ValueError(f"labels has shape {observed.shape}: pass one label for each row.")
        if observed.dtype.kind in "Of":
            _check_complete(observed, "labels", "leave such rows out")
        classes, codes = encode(observed, owner, name="labels")
        n = len(codes)
        truth = true_codes(trusted, n, np.arange(n), classes, "trusted")
        chances = inclusion_probabilities(inclusion, n, np.arange(n), truth)
        return cls(classes, codes, truth, chances)

    def scored(self, scores: ArrayLike, name: str) -> ScoredModel:
        """Return the predictions of a model, and its probabilities if the scores have them.

        Parameters
        ----------
        scores : array-like of shape (n, k) or (n,)
            Probabilities, predicted labels, or for two classes probabilities of the second class.
        name : str
            Name of the argument, for errors.
        """
        _check_columns(scores, self.classes, name)
        table = as_array(as_numpy(scores) if is_foreign(scores) else scores, name)
        n = len(self.codes)
        if table.ndim not in (1, 2) or len(table) != n:
            raise ValueError(
                f"{name} has shape {table.shape} but there are {n} labels: pass one row of "
                "probabilities, or one predicted label, for each label."
            )
        k = len(self.classes)
        if table.ndim == 2:
            probabilities = _checked_probabilities(table, self.classes, name)
            return ScoredModel(probabilities.argmax(axis=1), k, probabilities)
        if self._is_probability(table):
            positive = table.astype(float)
            pair = np.column_stack([1 - positive, positive])
            return ScoredModel(pair.argmax(axis=1), k, pair)
        return ScoredModel(self._predicted(table, name), k)

    def _is_probability(self, values: NDArray[Any]) -> bool:
        """Whether these are probabilities of the second of two classes, not labels."""
        if len(self.classes) != 2 or values.dtype.kind != "f":
            return False
        if not ((values >= 0) & (values <= 1)).all():
            return False
        known = set(self.classes.tolist())
        return any(value not in known for value in np.unique(values).tolist())

    def _predicted(self, labels: NDArray[Any], name: str) -> IntArray:
        """Return the class index of each predicted label."""
        if labels.dtype.kind in "Of":
            _check_complete(labels, name, "pass a prediction for every row")
        index = {label: code for code, label in enumerate(self.classes.tolist())}
        values = labels.tolist()
        codes = [_code(value, index) for value in values]
        unknown = [row for row, code in enumerate(codes) if code is None]
        if unknown:
            # Among probabilities, the mistake is a value that is no probability.
            row = min(unknown, key=lambda row: _is_share(values[row]))
            raise ValueError(
                f"{name}[{row}] = {shown(values[row])} is not among the observed classes "
                f"{list(index)}: pass predictions of these classes, or probabilities of shape "
                f"({len(labels)}, {len(index)})."
            )
        return np.array(codes, dtype=np.intp)

    def with_scores(self, *models: ScoredModel) -> LabelledScores:
        """Return labels and scores of some models for the model of the true class.

        Probabilities are calibrated for the true class first.
        """
        scores = tuple(self._model_scores(model) for model in models)
        return LabelledScores(scores, self.codes, len(self.classes))

    def _model_scores(self, model: ScoredModel) -> ModelScores:
        if model.probabilities is None:
            return ModelScores(None, model.predicted)
        calibrated = true_class_probabilities(model.probabilities, self.codes)
        return ModelScores.of(calibrated, model.predicted)


def _check_columns(scores: object, classes: NDArray[Any], name: str) -> None:
    """Raise ValueError if the columns of a DataFrame are the classes in another order.

    Numbers that were read from a file may be strings.
    """
    columns = list(getattr(scores, "columns", ()))
    labels = classes.tolist()
    if _is_reordered(columns, labels) or _is_reordered([*map(str, columns)], [*map(str, labels)]):
        raise ValueError(
            f"The columns of {name} are {columns}: pass them in sorted order of the classes, "
            f"{labels}."
        )


def _is_reordered(columns: list[Any], labels: list[Any]) -> bool:
    return columns != labels and set(columns) == set(labels)


def _check_complete(values: NDArray[Any], name: str, remedy: str) -> None:
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            raise ValueError(f"{name}[{row}] is missing: {remedy}.")


def _code(label: Any, index: dict[Any, int]) -> int | None:
    try:
        return index.get(label)
    except TypeError:  # such as a list
        return None


def _is_share(value: Any) -> bool:
    return isinstance(value, float) and 0 <= value <= 1


def _checked_probabilities(values: NDArray[Any], classes: NDArray[Any], name: str) -> FloatArray:
    """Return the probabilities as they are: to normalize them could break ties of a column."""
    table = as_floats(values, name)
    if table.shape[1] != len(classes):
        raise ValueError(
            f"{name} has {table.shape[1]} columns but labels has {len(classes)} classes: pass one "
            f"column for each of {classes.tolist()}, in that order."
        )
    row = improper_row(table)
    if row is not None:
        raise ValueError(
            f"{name}[{row}] = {table[row].round(4).tolist()} is not a probability distribution: "
            "entries must be non-negative and sum to 1."
        )
    return table
