"""Access to the last step of a fitted pipeline."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from unflip._utils.validation import shown


def last_step(estimator: object, *kinds: type) -> Any:
    """Return the fitted estimator, or the last step of a pipeline, if it is of one of the kinds."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"from_estimator draws a fitted {names}, or a Pipeline that ends in one: estimator = "
            f"{shown(last)} is neither."
        )
    check_is_fitted(last)
    return last


def rows_of_last_step(estimator: object, X: ArrayLike) -> Any:
    """Return the rows transformed by all steps of a pipeline before the last one."""
    if not isinstance(estimator, Pipeline) or len(estimator) == 1:
        return X
    return estimator[:-1].transform(X)
