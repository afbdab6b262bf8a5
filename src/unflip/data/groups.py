"""Groups of samples, such as those of the same person, that are left out together."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold

from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_array
from unflip.labels.classes import is_missing
from unflip.labels.votes import Votes

_N_FOLDS = 8  # of groups; the speed is that of as many fits

#: Training and held-out rows of each fold.
Folds: TypeAlias = list[tuple[IntArray, IntArray]]


def group_folds(groups: ArrayLike | None, shape: tuple[int, ...]) -> Folds:
    """Return training and held-out rows of each fold; no folds if no two rows share a group."""
    if groups is None:
        return []
    ids = as_array(groups, "groups")
    if ids.shape != shape:
        raise ValueError(
            f"groups has shape {ids.shape} but y has {shape}: pass one group for each row."
        )
    if any(is_missing(group) for group in ids.tolist()):
        raise ValueError("groups has missing entries: give each row without a group its own group.")
    n_groups = len(np.unique(ids))
    if n_groups < 2:
        raise ValueError(
            "groups has one group only, so there are no other groups to fit to: pass at least two "
            "groups, or groups=None."
        )
    if n_groups == len(ids):
        return []
    return list(GroupKFold(min(_N_FOLDS, n_groups)).split(ids, groups=ids))


def check_classes_of_groups(train_labels: NDArray[Any] | Votes, n_classes: int) -> None:
    """Raise ValueError if the training groups of a fold lack a class."""
    present = train_labels.classes if isinstance(train_labels, Votes) else np.unique(train_labels)
    if len(present) < n_classes:
        raise ValueError(
            "A class occurs in so few groups that the other groups lack it: pass finer groups, or "
            "groups=None."
        )


def n_effective_of(groups: NDArray[Any], weights: FloatArray | None = None) -> float:
    """Return Kish's effective sample size: the number of groups if they are of equal weight."""
    _, group_of = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group_of, weights)
    return float(sizes.sum() ** 2 / (sizes**2).sum())
