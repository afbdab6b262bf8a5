"""Labels of Hugging Face datasets, and the findings of an audit as columns of a dataset.

The functions take a `datasets.Dataset`, and use its methods alone: this module does not need the
datasets package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip.auditing.report import Audit
from unflip.labels import UNLABELLED


def labels(dataset: Any, column: str) -> NDArray[Any]:
    """Return a column of labels, as `unflip.audit` and `LPClassifier.fit` take it.

    Parameters
    ----------
    dataset : datasets.Dataset
        The dataset.
    column : str
        Column of labels. Those of a `ClassLabel` become the names of the classes.

    Returns
    -------
    ndarray of shape (n,)
        Labels; None for a missing one, which `ClassLabel` writes as −1.
    """
    if column not in dataset.features:
        raise ValueError(
            f"The dataset has no column {column!r}: name one of {list(dataset.features)}."
        )
    values = list(dataset.with_format(None)[column])
    names = getattr(dataset.features[column], "names", None)
    if names is not None:
        values = [None if code in (None, UNLABELLED) else names[code] for code in values]
    if all(isinstance(value, int | float) for value in values):
        return np.array(values)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def with_findings(dataset: Any, audit: Audit, *, prefix: str = "unflip_") -> Any:
    """Return the dataset with the findings of an audit of its rows as columns.

    The columns are ``likeliest_label`` (the most likely class given the features and the label),
    ``probability_wrong`` of the observed label (None without one), ``is_suspect``, and
    ``label_posterior`` (the probability of each class, in sorted order of the classes).

    Parameters
    ----------
    dataset : datasets.Dataset
        The dataset that was audited, with all its rows in the same order.
    audit : Audit
        Its audit.
    prefix : str
        Start of the names of the columns.

    Returns
    -------
    datasets.Dataset
    """
    n = len(audit.evidence.codes)
    if len(dataset) != n:
        raise ValueError(
            f"The dataset has {len(dataset)} rows but the audit has {n}: pass the dataset that was "
            "audited."
        )
    posterior = audit.label_posterior
    wrong = audit.evidence.wrong.tolist()
    labelled = audit.evidence.labelled.tolist()
    is_suspect = np.zeros(n, dtype=bool)
    is_suspect[np.asarray(audit.suspects.row)[: audit.n_suspects]] = True
    columns = {
        "likeliest_label": audit.classes[posterior.argmax(axis=1)].tolist(),
        "probability_wrong": [
            share if known else None for share, known in zip(wrong, labelled, strict=True)
        ],
        "is_suspect": is_suspect.tolist(),
        "label_posterior": posterior.tolist(),
    }
    for name, values in columns.items():
        if prefix + name in dataset.features:
            raise ValueError(
                f"The dataset has a column {prefix + name!r} already: pass another prefix=."
            )
        dataset = dataset.add_column(prefix + name, values)
    return dataset
