"""A classifier for tables: the features of a DataFrame and the fit to its noisy labels, saved."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.atomic_files import write_atomically
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_path
from unflip._utils.version import __version__
from unflip.estimation.given_rates import GivenRates
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.estimation.trusted import TrustedSubset
from unflip.features.table_features import TableFeatures
from unflip.labels.class_values import ByClass
from unflip.labels.noise import NoiseModel
from unflip.model.classifier import LPClassifier
from unflip.model.options import is_estimate
from unflip.model.table_data import read_table_data

_FORMAT = "unflip model 2"
#: The types, besides those that skops trusts, that a model file may hold; a file with other types
#: is not loaded.
_TRUSTED = [
    "unflip.model.classifier.LPClassifier",
    "unflip.calibration.decision.Decision",
    "unflip.calibration.decision.Rule",
    "unflip.calibration.interval.Interval",
    "unflip.estimation.automatic.Automatic",
    "unflip.features.kernel_features.KernelFeatures",
    "unflip.features.table_columns.TableColumn",
    "unflip.features.table_features.TableFeatures",
    "unflip.estimation.isotropy.MixtureEvidence",
    "unflip.estimation.given_rates.GivenRates",
    "unflip.estimation.strata.Urgency",
    "unflip.estimation.trusted.TrustedSubset",
    "unflip.labels.noise.NoiseModel",
    "unflip.labels.annotator_groups.AnnotatorGroups",
    "unflip.labels.annotators.Annotators",
    "unflip.labels.shared_difficulty.SharedDifficulty",
    "scipy.sparse._csr.csr_array",
    "numpy.dtype",  # of the imputers
]
_WRITERS = "use a file written by TableModel.save or unflip fit"


@dataclass(frozen=True, eq=False)
class TableModel:
    """A classifier for the rows of a table; made by `fit_table`, `load_model` and ``unflip fit``.

    Attributes
    ----------
    label : str
        Column or columns of labels that it was fitted to.
    features : TableFeatures
        Fitted transformer of the other columns.
    classifier : LPClassifier
        Fitted classifier of these features.
    expected_accuracy_, expected_accuracy_std_ : float
        Expected accuracy on clean labels, and its standard error.
    """

    label: str
    features: TableFeatures
    classifier: LPClassifier
    expected_accuracy_: float
    expected_accuracy_std_: float

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, in sorted order."""
        return np.asarray(self.classifier.classes_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class predicted for each row of a DataFrame."""
        return np.asarray(self.classifier.predict(self.features.transform(X)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each true class for each row of a DataFrame."""
        return np.asarray(self.classifier.predict_proba(self.features.transform(X)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file (.skops), without pickle; needs skops.

        An existing file is replaced only after the new one is complete.
        """
        write_atomically(as_path(path, "path"), self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the content of a model file."""
        content = {
            "format": _FORMAT,
            "version": __version__,
            "label": self.label,
            "features": self.features,
            "classifier": self.classifier,
            "expected_accuracy": [self.expected_accuracy_, self.expected_accuracy_std_],
        }
        return bytes(_skops().dumps(content, compression=zipfile.ZIP_DEFLATED))


def fit_table(
    X: Any,
    label: str,
    *,
    text: str | Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    use: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    noise: Any = "estimate",
    priors: ByClass | ArrayLike | None = None,
    trusted: str | None = None,
    features: Any = "linear",
) -> TableModel:
    """Fit a classifier to the noisy labels in a column of a table.

    Parameters
    ----------
    X : DataFrame
        The table. Rows without a label have no weight.
    label : str
        Column of labels.
    text, embedding, use, ignore
        As in `TableFeatures`, which makes the features.
    noise, priors, features
        As in `LPClassifier`.
    trusted : str, optional
        Column of true labels of checked rows, missing for the others. The noise rates are estimated
        from them unless `noise` gives them.

    Returns
    -------
    TableModel
        The classifier, with the features.

    Examples
    --------
    >>> import pandas as pd
    >>> from unflip import fit_table
    >>> from unflip.datasets import make_messages
    >>> texts, y = make_messages(600, random_state=0)
    >>> frame = pd.DataFrame({"message": texts, "topic": y})
    >>> frame["topic"] = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    >>> model = fit_table(frame, "topic", text="message")
    >>> model.predict(frame.head(3))
    array([0, 1, 1])
    """
    data = read_table_data(
        X,
        label,
        text=text,
        embedding=embedding,
        use=use,
        ignore=ignore,
        roles={"trusted": trusted},
    )
    source = noise if trusted is None else _with_trusted(noise, data.columns["trusted"])
    fitted = LPClassifier(source, priors=priors, features=features).fit(data.rows, data.labels)
    return TableModel(
        label=str(label),
        features=data.features,
        classifier=fitted,
        expected_accuracy_=float(fitted.expected_accuracy_),
        expected_accuracy_std_=float(fitted.expected_accuracy_std_),
    )


def _with_trusted(noise: Any, checked: NDArray[Any]) -> NoiseEstimator:
    """Return the source of the noise rates for checked rows."""
    if is_estimate(noise):
        return TrustedSubset(checked)
    if isinstance(noise, NoiseModel):
        return GivenRates(noise, y_trusted=checked)
    raise ValueError(
        f"trusted= with noise={noise!r} is not supported: pass a NoiseModel, or omit noise=."
    )


def load_model(path: str | PathLike[str]) -> TableModel:
    """Load a model that `TableModel.save` or ``unflip fit`` wrote; this executes no code.

    Parameters
    ----------
    path : str or path
        The file (.skops). ValueError if it is damaged, or holds types that no model has.
    """
    file = as_path(path, "path")
    return read_model(file.read_bytes(), str(file))


def read_model(data: bytes, name: str) -> TableModel:
    """Return the model of a file with this content; `name` is the file, for errors."""
    skops = _skops()
    untrusted = import_module("skops.io.exceptions").UntrustedTypesFoundException
    try:
        content = skops.loads(data, trusted=_TRUSTED)
    except untrusted as error:
        raise ValueError(
            f"{name} holds types that no model of unflip has, and is not loaded ({error})."
        ) from None
    except Exception:  # a damaged file can raise any error
        raise ValueError(f"{name} is not a model, or is damaged: {_WRITERS}.") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"{name} is not a model that this version can read: {_WRITERS}.")
    try:
        return _tested_model(content)
    except Exception:  # a changed model can raise any error
        raise ValueError(f"{name} is a damaged model: {_WRITERS}.") from None


def _skops() -> Any:
    """Return the module that saves and loads."""
    try:
        return import_module("skops.io")
    except ImportError:
        raise ImportError(
            'Models are saved by skops: install it with pip install "unflip[tables]".'
        ) from None


def _tested_model(content: Mapping[str, Any]) -> TableModel:
    """Return the model of a file after a test prediction."""
    accuracy, error = map(float, content["expected_accuracy"])
    model = TableModel(
        content["label"], content["features"], content["classifier"], accuracy, error
    )
    if not isinstance(model.classifier, LPClassifier) or not isinstance(
        model.features, TableFeatures
    ):
        raise TypeError(content)
    model.predict_proba(model.features.example())
    return model
