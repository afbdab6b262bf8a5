"""Wrong labels by the probabilities of any model: functions with the interface of cleanlab."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.typing import FloatArray
from unflip._utils.validation import check_choice
from unflip.auditing.from_scores import audit_scores
from unflip.compat.issue_columns import check_options, quality_of

# Scores by which cleanlab ranks. Here there is one: the probability that the label is wrong.
_RANKINGS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def find_label_issues(
    labels: ArrayLike,
    pred_probs: ArrayLike,
    *,
    return_indices_ranked_by: str | None = None,
    noise: Any = "estimate",
    priors: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    false_discovery_rate: float = 0.1,
    **options: Any,
) -> NDArray[Any]:
    """Find labels that are probably wrong, with the probabilities of any model.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Observed labels.
    pred_probs : array-like of shape (n, k)
        Out-of-sample probabilities of the observed classes, in sorted order of the classes.
    return_indices_ranked_by : str, optional
        Any of cleanlab's names returns the rows most likely wrong first. By default the result is a
        mask.
    noise, priors, trusted, false_discovery_rate
        As in `unflip.audit_scores`.
    **options
        Other options of cleanlab, at values that change nothing. Otherwise an error names what to
        use.

    Returns
    -------
    ndarray of shape (n,) or (n_issues,)
        Whether each label is a suspect, or the rows of the suspects.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.beta(0.3, 0.3, size=1000)  # P(class 1), by any model
    >>> labels = (rng.random(1000) < positive).astype(int)
    >>> labels[:100] = 1 - labels[:100]
    >>> pred_probs = np.column_stack([1 - positive, positive])
    >>> issues = find_label_issues(labels, pred_probs, return_indices_ranked_by="self_confidence")
    >>> print(f"{np.mean(issues < 100):.0%} of {len(issues)}")
    88% of 42
    """
    check_options(options)
    if return_indices_ranked_by is not None:
        check_choice(return_indices_ranked_by, _RANKINGS, "return_indices_ranked_by")
    result = audit_scores(
        pred_probs,
        labels,
        noise=noise,
        priors=priors,
        trusted=trusted,
        false_discovery_rate=false_discovery_rate,
    )
    rows = np.asarray(result.suspects.row)[: result.n_suspects]
    if return_indices_ranked_by is not None:
        return rows
    mask = np.zeros(len(result.label_posterior), dtype=bool)
    mask[rows] = True
    return mask


def get_label_quality_scores(
    labels: ArrayLike,
    pred_probs: ArrayLike,
    *,
    method: str = "self_confidence",
    noise: Any = "estimate",
    priors: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    **options: Any,
) -> FloatArray:
    """Return the probability that each label is right, between 0 and 1.

    Parameters
    ----------
    labels, pred_probs, noise, priors, trusted, **options
        As in `find_label_issues`.
    method : str
        Any of cleanlab's names; all give the same probability.

    Returns
    -------
    ndarray of shape (n,)
        1 − P(label wrong).
    """
    check_options(options)
    check_choice(method, _RANKINGS, "method")
    result = audit_scores(pred_probs, labels, noise=noise, priors=priors, trusted=trusted)
    return quality_of(result.label_posterior, result.evidence.codes)
