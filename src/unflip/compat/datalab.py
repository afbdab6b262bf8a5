"""Wrong labels, outliers and near-duplicates of a data set, with the interface of cleanlab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.optional import import_optional
from unflip._utils.typing import IntArray
from unflip._utils.validation import shown
from unflip.auditing.from_rows import audit
from unflip.auditing.from_scores import audit_scores
from unflip.auditing.outliers import UnusualRows, distance_deviations, unusual_rows
from unflip.compat.issue_columns import columns_of_audit

_ROW_ISSUES = ("label", "outlier", "near_duplicate")
_ISSUES = (*_ROW_ISSUES, "non_iid")
# Level of the test for the order of the rows, and other rows of a near-duplicate set that are
# listed. Both are cleanlab's.
_LEVEL = 0.05
_MOST_LISTED = 10


class Datalab:
    """Find issues in a data set: wrong labels, outliers, near-duplicates, and ordered rows.

    Parameters
    ----------
    data : dict, DataFrame, list of dict, or datasets.Dataset
        Data set with a column of labels.
    task : "classification"
        Other tasks are not available.
    label_name : str, optional
        Name of the column of labels. Without it, labels are not checked.
    verbosity : int
        Not used: only `report` prints.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(300, 20, mean_norm=3.0, random_state=0)
    >>> y[:20] = 1 - y[:20]
    >>> X[200] = X[100]
    >>> lab = Datalab({"y": y}, label_name="y")
    >>> lab.find_issues(features=X)
    >>> found = lab.get_info()
    >>> [int(found[name][f"is_{name}_issue"].sum()) for name in ("label", "near_duplicate")]
    [20, 2]
    """

    def __init__(
        self,
        data: Any,
        task: str = "classification",
        label_name: str | None = None,
        image_key: str | None = None,
        verbosity: int = 1,
    ) -> None:
        if task != "classification":
            raise ValueError(f"task={shown(task)} is not available: use task='classification'.")
        if image_key is not None:
            raise ValueError(
                f"image_key={shown(image_key)} is not available: pass features= to find_issues, "
                "such as embeddings of the images."
            )
        self.data = data
        self.label_name = label_name
        self.labels = None if label_name is None else _column(data, label_name)
        self._columns: dict[str, dict[str, Any]] = {}
        self._p_value = np.nan

    @property
    def has_labels(self) -> bool:
        """Whether the data set has labels."""
        return self.labels is not None

    @property
    def class_names(self) -> list[Any]:
        """The classes, sorted."""
        return [] if self.labels is None else np.unique(self.labels).tolist()

    def find_issues(
        self,
        *,
        pred_probs: ArrayLike | None = None,
        features: ArrayLike | None = None,
        knn_graph: Any = None,
        issue_types: dict[str, Any] | None = None,
    ) -> None:
        """Find the issues that the arguments allow to find.

        Parameters
        ----------
        pred_probs : array-like of shape (n, k), optional
            Out-of-sample probabilities of the classes, for wrong labels. Without them, labels are
            checked by a fit to the features.
        features : array-like of shape (n, p), optional
            Numeric features, for all issues.
        knn_graph : sparse matrix of shape (n, n), optional
            Distances to the nearest rows, for outliers and near-duplicates; not used if there are
            features.
        issue_types : dict, optional
            Names of issues to find, each with an empty dict: "label", "outlier", "near_duplicate"
            or "non_iid". By default all that the arguments allow.
        """
        wanted = _checked_types(issue_types)
        if pred_probs is None and features is None and knn_graph is None:
            raise ValueError("Nothing to check: pass pred_probs=, features= or knn_graph=.")
        if "label" in wanted and self.labels is not None:
            if pred_probs is not None:
                result = audit_scores(pred_probs, self.labels)
                self._columns["label"] = columns_of_audit(result, "label_score")
            elif features is not None:
                self._columns["label"] = columns_of_audit(
                    audit(features, self.labels), "label_score"
                )
        if {"outlier", "near_duplicate", "non_iid"}.isdisjoint(wanted):
            return
        if features is not None:
            self._keep(unusual_rows(features, self.labels), wanted)
        elif knn_graph is not None:
            self._keep(_unusual_by_graph(knn_graph), wanted)

    def get_issues(self, issue_name: str | None = None) -> Any:
        """Return a DataFrame with a row for each row of the data.

        Columns of each issue: ``is_<issue>_issue`` and ``<issue>_score`` (between 0 and 1, low for
        issues). Labels also have ``given_label`` and ``predicted_label``, and near-duplicates
        ``near_duplicate_sets``: up to ten other rows of the group.

        Parameters
        ----------
        issue_name : str, optional
            "label", "outlier" or "near_duplicate"; by default all that were checked.
        """
        pandas = import_optional("pandas", "get_issues")
        if issue_name is not None:
            return pandas.DataFrame(self._checked(issue_name))
        parts = [pandas.DataFrame(columns) for columns in self._columns.values()]
        return pandas.concat(parts, axis=1) if parts else pandas.DataFrame()

    @property
    def issues(self) -> Any:
        """All of `get_issues`."""
        return self.get_issues()

    def get_issue_summary(self, issue_name: str | None = None) -> Any:
        """Return a DataFrame with a row for each issue.

        Columns: ``issue_type``, ``score`` (the mean score of all rows; for ``non_iid`` the p-value
        of the order of the rows) and ``num_issues``.
        """
        pandas = import_optional("pandas", "get_issue_summary")
        lines = [
            (name, float(columns[f"{name}_score"].mean()), int(columns[f"is_{name}_issue"].sum()))
            for name, columns in self._columns.items()
        ]
        if not np.isnan(self._p_value):
            lines.append(("non_iid", self._p_value, int(self._p_value < _LEVEL)))
        if issue_name is not None:
            lines = [line for line in lines if line[0] == issue_name]
            if not lines:
                raise _not_checked(issue_name)
        return pandas.DataFrame(lines, columns=["issue_type", "score", "num_issues"])

    @property
    def issue_summary(self) -> Any:
        """All of `get_issue_summary`."""
        return self.get_issue_summary()

    def get_info(self, issue_name: str | None = None) -> dict[str, Any]:
        """Return the results as a dict: columns by name, or ``p-value`` for "non_iid"."""
        if issue_name is None:
            names = [*self._columns, *(["non_iid"] if not np.isnan(self._p_value) else [])]
            return {name: self.get_info(name) for name in names}
        if issue_name == "non_iid" and not np.isnan(self._p_value):
            return {"p-value": self._p_value}
        return dict(self._checked(issue_name))

    @property
    def info(self) -> dict[str, Any]:
        """All of `get_info`."""
        return self.get_info()

    def report(self, *, num_examples: int = 5, write: Callable[[str], object] = print) -> None:
        """Print a summary, and the rows with the lowest scores of each issue."""
        write(self.get_issue_summary().to_string(index=False))
        for name in self._columns:
            issues = self.get_issues(name)
            found = issues[issues[f"is_{name}_issue"]].sort_values(f"{name}_score", kind="stable")
            write(f"\n{name}: {len(found)} of {len(issues)} rows, lowest scores first")
            if len(found):
                write(found.head(num_examples).to_string())

    def _keep(self, unusual: UnusualRows, wanted: set[str]) -> None:
        if "outlier" in wanted:
            self._columns["outlier"] = {
                "is_outlier_issue": unusual.is_outlier,
                "outlier_score": unusual.outlier_score,
            }
        if "near_duplicate" in wanted:
            self._columns["near_duplicate"] = {
                "is_near_duplicate_issue": unusual.is_near_duplicate,
                "near_duplicate_score": unusual.near_duplicate_score,
                "near_duplicate_sets": _others_of_group(unusual.duplicate_groups),
            }
        if "non_iid" in wanted:
            self._p_value = unusual.order_p_value

    def _checked(self, issue_name: str) -> dict[str, Any]:
        if issue_name not in self._columns:
            raise _not_checked(issue_name)
        return self._columns[issue_name]


def _not_checked(issue_name: str) -> ValueError:
    return ValueError(
        f"{shown(issue_name)} was not checked: pass find_issues what it needs, features= for "
        f"outliers and near-duplicates. Available are {', '.join(_ISSUES)}."
    )


def _column(data: Any, name: str) -> NDArray[Any]:
    """Return a column of a dict, a DataFrame, a list of dicts or a datasets.Dataset."""
    if isinstance(data, str):
        raise ValueError(f"data={shown(data)} is a path: read the file, and pass its columns.")
    try:
        column = [row[name] for row in data] if isinstance(data, list) else data[name]
    except KeyError:
        raise ValueError(f"label_name={shown(name)} is not a column of data.") from None
    return np.asarray(column)


def _checked_types(issue_types: dict[str, Any] | None) -> set[str]:
    """Return the names of the issues to find."""
    if issue_types is None:
        return set(_ISSUES)
    for name, options in issue_types.items():
        if name not in _ISSUES:
            raise ValueError(
                f"issue type {shown(name)} is not available: use {', '.join(_ISSUES)}."
            )
        if options:
            raise ValueError(f"issue_types[{name!r}]={shown(options)} is not available: pass {{}}.")
    return set(issue_types)


def _unusual_by_graph(knn_graph: Any) -> UnusualRows:
    """Return outliers and near-duplicates by the distances of a graph of nearest rows."""
    graph = knn_graph.tocsr()
    n = graph.shape[0]
    counts = np.diff(graph.indptr)
    if counts.min() < 1 or counts.min() != counts.max():
        raise ValueError(
            "knn_graph must have the same number of nearest rows in each row: build it by "
            "NearestNeighbors.kneighbors_graph(mode='distance')."
        )
    distances = graph.data.reshape(n, -1)
    position = distances.argmin(axis=1)
    nearest = graph.indices.reshape(n, -1)[np.arange(n), position].astype(np.intp)
    usual = np.maximum(distances.mean(axis=1), np.median(distances.mean(axis=1)) / 2)
    ratios = distances.min(axis=1) / np.where(usual > 0, usual, 1.0)
    return UnusualRows.of(distance_deviations((distances**2).mean(axis=1)), nearest, ratios)


def _others_of_group(groups: IntArray) -> NDArray[Any]:
    """Return up to ten other rows of the group of each row; none for rows without a group."""
    sets = np.empty(len(groups), dtype=object)
    sets[:] = [np.empty(0, dtype=np.intp)] * len(groups)
    members = np.flatnonzero(groups >= 0)
    members = members[np.argsort(groups[members], kind="stable")]
    starts = np.flatnonzero(np.diff(groups[members])) + 1
    half = _MOST_LISTED // 2
    for group in np.split(members, starts):
        for i, row in enumerate(group):
            sets[row] = np.concatenate([group[max(0, i - half) : i], group[i + 1 : i + 1 + half]])
    return sets
