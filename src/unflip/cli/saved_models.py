"""Models saved without pickle: loading a model executes no code."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from unflip._utils.typing import FloatArray
from unflip._utils.version import __version__
from unflip.cli.files import feature_columns
from unflip.cli.files.feature_columns import Features
from unflip.cli.files.tables import Table, read_content
from unflip.model.classifier import LPClassifier

_FORMAT = "unflip model 1"
#: The types, besides those that skops trusts, that a model file may hold; a file with other types
#: is not loaded.
_TRUSTED = [
    "unflip.model.classifier.LPClassifier",
    "unflip.calibration.decision.Decision",
    "unflip.calibration.decision.Rule",
    "unflip.calibration.interval.Interval",
    "unflip.estimation.automatic.Automatic",
    "unflip.features.kernel_features.KernelFeatures",
    "unflip.estimation.isotropy.MixtureEvidence",
    "unflip.estimation.given_rates.GivenRates",
    "unflip.estimation.strata.Urgency",
    "unflip.estimation.trusted.TrustedSubset",
    "unflip.labels.noise.NoiseModel",
    "unflip.labels.annotator_groups.AnnotatorGroups",
    "unflip.labels.annotators.Annotators",
    "unflip.labels.shared_difficulty.SharedDifficulty",
    "scipy.sparse._csr.csr_array",
]


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted classifier, with the columns and the transformer of its features.

    Attributes
    ----------
    label : str
        Column or columns of labels that it was fitted to.
    features : Features
        Columns of the features.
    recipe : Pipeline
        Transformer of these columns.
    classifier : LPClassifier
        The fitted classifier.
    """

    label: str
    features: Features
    recipe: Pipeline
    classifier: LPClassifier

    def predict(
        self, table: Table, embedding: NDArray[Any] | None = None
    ) -> tuple[NDArray[Any], FloatArray]:
        """Return the class predicted for each row of a file, and the probability of each class.

        Parameters
        ----------
        table : Table
            The file.
        embedding : ndarray of shape (n_rows, p), optional
            The features, if they are not columns of the file.
        """
        values = feature_columns.values(self.features, table) if embedding is None else embedding
        rows = self.recipe.transform(values)
        if rows.shape[1] != self.classifier.n_features_in_:
            raise ValueError(
                f"{table.name} has {rows.shape[1]} features in {self.features}, but the model was "
                f"fitted to {self.classifier.n_features_in_}: use the same embedding."
            )
        rows = rows.astype(float)
        return self.classifier.predict(rows), self.classifier.predict_proba(rows)


def saved(model: Model) -> bytes:
    """Return the content of a model file."""
    import skops.io

    content = {
        "format": _FORMAT,
        "version": __version__,
        "label": model.label,
        "kind": model.features.kind,
        "columns": list(model.features.columns),
        "recipe": model.recipe,
        "classifier": model.classifier,
    }
    return bytes(skops.io.dumps(content, compression=zipfile.ZIP_DEFLATED))


def load_model(path: Path) -> Model:
    """Load a model file; raise ValueError if it holds types that no model has."""
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    data = read_content(path)
    try:
        content = skops.io.loads(data, trusted=_TRUSTED)
    except UntrustedTypesFoundException as error:
        raise ValueError(
            f"{path} holds types that no model of unflip has, and is not loaded ({error})."
        ) from None
    except Exception:  # a damaged file can raise any error
        raise ValueError(
            f"{path} is not a model, or is damaged: use a file written by unflip fit."
        ) from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(
            f"{path} is not a model that this version can read: use a file written by unflip fit."
        )
    try:
        return _tested_model(content)
    except Exception:  # a changed model can raise any error
        raise ValueError(f"{path} is a damaged model: use a file written by unflip fit.") from None


def _tested_model(content: Mapping[str, Any]) -> Model:
    """Return the model of a file after a test prediction."""
    features = Features(kind=content["kind"], columns=tuple(content["columns"]))
    model = Model(content["label"], features, content["recipe"], content["classifier"])
    if not isinstance(model.classifier, LPClassifier) or not all(
        isinstance(name, str) for name in features.columns
    ):
        raise TypeError(features)
    row = ["word"] if features.kind == "text" else np.zeros((1, model.classifier.n_features_in_))
    model.classifier.predict_proba(model.recipe.transform(row).astype(float))
    return model


def prediction_rows(
    predicted: NDArray[Any], probabilities: FloatArray, ids: list[str] | None
) -> list[list[str | int | float]]:
    """Return the table of predictions: row, id if any, class, and probabilities."""
    best = probabilities.max(axis=1)
    rows: list[list[str | int | float]] = []
    for row, label in enumerate(predicted.tolist()):
        row_id = [] if ids is None else [ids[row]]
        each = np.round(probabilities[row], 4).tolist()
        rows.append([row, *row_id, label, round(float(best[row]), 4), *each])
    return rows
