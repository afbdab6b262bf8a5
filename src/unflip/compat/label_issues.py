"""Wrong labels by the probabilities of any model: functions with the interface of cleanlab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import check_choice, shown
from unflip.auditing.from_scores import audit_scores
from unflip.auditing.report import Audit
from unflip.auditing.suspects import n_suspects_at

# Scores by which cleanlab ranks. Here there is one: the probability that the label is wrong.
_RANKINGS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
_OMIT_RULE = "pass false_discovery_rate= instead"
_OMIT_RATES = "pass noise=, a NoiseModel or a transition matrix whose row is the true class"
_OMIT_FIT = "fit a classifier with these settings yourself"
# Options of cleanlab that unflip does not have: the values that change nothing, and the remedy.
_OPTIONS: dict[str, tuple[tuple[object, ...], str]] = {
    "filter_by": ((None, "prune_by_noise_rate"), _OMIT_RULE),
    "frac_noise": ((1, 1.0), _OMIT_RULE),
    "num_to_remove_per_class": ((None,), _OMIT_RULE),
    "min_examples_per_class": ((None, 0, 1), _OMIT_RULE),
    "rank_by_kwargs": ((None, {}), "rows are ranked by the probability that the label is wrong"),
    "adjust_pred_probs": ((False,), "probabilities are calibrated for each class anyway"),
    "confident_joint": ((None,), _OMIT_RATES),
    "noise_matrix": ((None,), "pass noise=noise_matrix.T, whose row is the true class"),
    "inverse_noise_matrix": ((None,), _OMIT_RATES),
    "thresholds": ((None,), _OMIT_RATES),
    "multi_label": ((False,), "audit each label as one column of 0 and 1"),
    "pulearning": ((None,), "pass noise=NoiseModel.binary(eps_pos=..., eps_neg=0)"),
    "converge_latent_estimates": ((False, True), ""),
    "low_memory": ((False, True), ""),
    "save_space": ((False, True), ""),
    "n_jobs": (("any",), ""),
    "verbose": (("any",), ""),
    "validation_func": ((None,), _OMIT_FIT),
    "clf_kwargs": ((None, {}), _OMIT_FIT),
    "clf_final_kwargs": ((None, {}), _OMIT_FIT),
}


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


def check_options(options: Mapping[str, Any]) -> None:
    """Raise an error for options that unflip does not have, with what to use instead."""
    for name, value in options.items():
        if name not in _OPTIONS:
            raise TypeError(f"{name} is not a parameter: omit it.")
        harmless, remedy = _OPTIONS[name]
        is_harmless = harmless == ("any",) or any(_equal(value, each) for each in harmless)
        if not is_harmless:
            raise ValueError(f"{name}={shown(value)} is not available: {remedy}.")


def _equal(value: Any, other: object) -> bool:
    return type(value) is not np.ndarray and bool(value == other)


def quality_of(label_posterior: FloatArray, codes: IntArray) -> FloatArray:
    """Return P(label right), without rounding errors beyond 0 and 1."""
    return np.clip(label_posterior[np.arange(len(codes)), codes], 0.0, 1.0)


def issue_columns(
    label_posterior: FloatArray,
    codes: IntArray,
    classes: NDArray[Any],
    is_issue: NDArray[np.bool_],
    score_name: str,
) -> dict[str, NDArray[Any]]:
    """Return the columns of a table of labels, as cleanlab names them.

    The predicted label of a suspect is the most likely other class.
    """
    candidates = label_posterior.copy()
    candidates[is_issue, codes[is_issue]] = -1.0
    return {
        "is_label_issue": is_issue,
        score_name: quality_of(label_posterior, codes),
        "given_label": classes[codes],
        "predicted_label": classes[candidates.argmax(axis=1)],
    }


def columns_of_audit(audit: Audit, score_name: str) -> dict[str, NDArray[Any]]:
    """Return `issue_columns` of an audit."""
    codes = audit.evidence.codes
    is_issue = np.zeros(len(codes), dtype=bool)
    is_issue[np.asarray(audit.suspects.row)[: audit.n_suspects]] = True
    return issue_columns(audit.label_posterior, codes, audit.classes, is_issue, score_name)


def most_likely_wrong(quality: FloatArray, false_discovery_rate: float) -> NDArray[np.bool_]:
    """Return the labels that are most likely wrong, at this expected false discovery rate."""
    order = np.argsort(quality, kind="stable")
    is_issue = np.zeros(len(quality), dtype=bool)
    is_issue[order[: n_suspects_at(1 - quality[order], false_discovery_rate)]] = True
    return is_issue
