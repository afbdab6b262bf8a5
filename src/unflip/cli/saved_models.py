"""Classifiers in files: fitted to one file, saved without pickle, asked about another."""

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
#: All types of this package that a model may hold. Others are refused, whatever the file says.
_TRUSTED = [
    "unflip.model.classifier.LPClassifier",
    "unflip.calibration.decision.Decision",
    "unflip.calibration.decision.Rule",
    "unflip.estimation.automatic.Automatic",
    "unflip.estimation.isotropy.MixtureEvidence",
    "unflip.estimation.given_rates.GivenRates",
    "unflip.estimation.strata.Urgency",
    "unflip.estimation.trusted.TrustedSubset",
    "unflip.labels.noise.NoiseModel",
    "unflip.labels.annotators.Annotators",
]


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted classifier, with what it needs of a file.

    Attributes
    ----------
    label : str
        Column that it was fitted to, or columns.
    features : Features
        Columns that it looks at.
    recipe : Pipeline
        What makes features of them.
    classifier : LPClassifier
        Fitted.
    """

    label: str
    features: Features
    recipe: Pipeline
    classifier: LPClassifier

    def predict(self, table: Table) -> tuple[NDArray[Any], FloatArray]:
        """Return the class predicted for each row of a file, and the probability of each class."""
        rows = self.recipe.transform(feature_columns.values(self.features, table))
        if rows.shape[1] != self.classifier.n_features_in_:
            raise ValueError(
                f"{table.name} has {rows.shape[1]} features in {self.features}, but the model was "
                f"fitted to {self.classifier.n_features_in_}: give the same embedding."
            )
        rows = rows.astype(float)
        return self.classifier.predict(rows), self.classifier.predict_proba(rows)


def saved(model: Model) -> bytes:
    """Return a model as a file's content."""
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
    """Read a model that `saved` made; types that no such model holds are refused before anything is built."""
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    data = read_content(path)
    try:
        content = skops.io.loads(data, trusted=_TRUSTED)
    except UntrustedTypesFoundException as error:
        raise ValueError(
            f"{path} holds types that no model of unflip has, and is not opened ({error})."
        ) from None
    except Exception:  # a damaged file can lead its reader to any error
        raise ValueError(
            f"{path} is no model, or a damaged one: give a file that unflip fit wrote."
        ) from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(
            f"{path} is no model that this version can read: give a file that unflip fit wrote."
        )
    try:
        return _tried(content)
    except Exception:  # what was changed within a model shows in whatever it breaks
        raise ValueError(
            f"{path} is a damaged model: give a file as unflip fit wrote it."
        ) from None


def _tried(content: Mapping[str, Any]) -> Model:
    """Return the model that a file holds, once it has predicted a row."""
    features = Features(kind=content["kind"], columns=tuple(content["columns"]))
    model = Model(content["label"], features, content["recipe"], content["classifier"])
    if not isinstance(model.classifier, LPClassifier) or not all(
        isinstance(name, str) for name in features.columns
    ):
        raise TypeError(features)
    given = ["word"] if features.kind == "text" else np.zeros((1, model.classifier.n_features_in_))
    model.classifier.predict_proba(model.recipe.transform(given).astype(float))
    return model


def prediction_rows(
    predicted: NDArray[Any], probabilities: FloatArray, names: list[str] | None
) -> list[list[str | int | float]]:
    """Return the lines of a table of predictions: row, name if any, class, its probability, and that of each class."""
    best = probabilities.max(axis=1)
    rows: list[list[str | int | float]] = []
    for row, label in enumerate(predicted.tolist()):
        name = [] if names is None else [names[row]]
        rows.append(
            [
                row,
                *name,
                label,
                round(float(best[row]), 4),
                *np.round(probabilities[row], 4).tolist(),
            ]
        )
    return rows
