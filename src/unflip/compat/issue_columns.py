"""The options of cleanlab, and the columns of its tables of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import shown
from unflip.auditing.findings import Findings
from unflip.auditing.suspects import n_suspects_at
from unflip.labels.codes import UNLABELLED

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
    """Return P(label right), without rounding errors beyond 0 and 1.

    Raises ValueError if labels are missing.
    """
    if (codes == UNLABELLED).any():
        raise ValueError(
            f"The label of row {int(np.argmax(codes == UNLABELLED))} is missing: leave such rows "
            "out."
        )
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


def columns_of_audit(audit: Findings, score_name: str) -> dict[str, NDArray[Any]]:
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
