"""Part `audits` of `honesty.py`: audits with 0 to 200 checked rows against the truth."""

import warnings

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from honesty_sets import control_sets, real_sets
from unflip import audit, audit_scores
from unflip.auditing.evidence import Evidence
from unflip.calibration.interval import wilson_interval
from unflip.labels.codes import UNCHECKED

CHECKS = (50, 100, 200)

SETS = {"real": real_sets, "control": control_sets}


def run(n_draws):
    """Yield a line for each set, number of checks and draw of the checks."""
    warnings.simplefilter("ignore", UserWarning)
    for kind, sets in SETS.items():
        for data in sets():
            first = audited(data, None)
            yield {"kind": kind, "draw": 0, "checks": 0, **measures(first, data)}
            for checks in CHECKS:
                for draw in range(n_draws):
                    rows = first.check_next(checks, random_state=draw)
                    result = audited(data, trusted_labels(data, rows))
                    yield {
                        "kind": kind,
                        "draw": draw,
                        "checks": checks,
                        **measures(result, data),
                    }


def audited(data, trusted):
    """Audit a set with trusted labels of some rows, or of none."""
    if data.pred_probs is not None:
        return audit_scores(data.pred_probs, data.observed, trusted=trusted)
    return audit(data.X, data.observed, trusted=trusted)


def trusted_labels(data, rows):
    """Return the true labels of some rows, None for the others."""
    trusted = np.full(len(data.truth), None)
    trusted[rows] = data.truth[rows]
    return trusted


def measures(result, data):
    """Compare an audit with the truth."""
    evidence = result.evidence
    n = len(data.truth)
    is_right = evidence.probabilities.argmax(axis=1) == data.truth
    is_wrong = evidence.codes != data.truth
    checked = evidence.truth != UNCHECKED
    accuracy = result.expected_accuracy_interval
    wrong = result.expected_wrong_interval
    suspects = result.suspects.row[: result.n_suspects]
    return {
        "set": data.name,
        "source": data.source,
        "n_checked": int(checked.sum()),
        "accuracy": is_right.mean(),
        "accuracy_error": accuracy.value - is_right.mean(),
        "accuracy_covered": accuracy.low <= is_right.mean() <= accuracy.high,
        "accuracy_width": accuracy.width,
        "wilson_width": wilson_interval(is_right.mean(), checked.sum()).width,
        "class_conditional_error": evidence.class_conditional_accuracy - is_right.mean(),
        "wrong_error": wrong.value / n - is_wrong.mean(),
        "wrong_covered": wrong.low / n <= is_wrong.mean() <= wrong.high / n,
        "n_suspects": len(suspects),
        "false_discoveries": int((~is_wrong[suspects]).sum()),
        "accuracy_of_checked": is_right[checked].mean() if checked.any() else np.nan,
        "accuracy_if_unchecked": accuracy_of_cells(is_right, checked, evidence),
        **quality(result.label_posterior, data.truth, is_wrong, evidence, ~checked),
        **{
            f"{name}_before": value
            for name, value in quality(
                class_conditional_posterior(evidence), data.truth, is_wrong, evidence, ~checked
            ).items()
        },
    }


def accuracy_of_cells(is_right, checked, evidence):
    """Return the accuracy of unchecked rows, in the mix of cells of the checked ones.

    A cell is whether label and prediction agree: rows that are checked differ more often.
    """
    differs = evidence.codes != evidence.probabilities.argmax(axis=1)
    if not checked.any():
        return np.nan
    means = [is_right[~checked & (differs == cell)].mean() for cell in (False, True)]
    share = differs[checked].mean()
    return (1 - share) * means[0] + share * means[1]


def class_conditional_posterior(evidence):
    """Return the label posterior that the rates of a class-conditional noise model give."""
    options = {name: getattr(evidence, name) for name in evidence.__dataclass_fields__}
    return Evidence(**{**options, "is_sample": False}).label_posterior


def quality(posterior, truth, is_wrong, evidence, rows):
    """Return log-loss, calibration error and AUROC of wrong labels of some rows."""
    every = np.flatnonzero(rows)
    right = posterior[every, evidence.codes[every]]
    clipped = np.clip(posterior[every], 1e-6, 1)
    return {
        "log_loss": log_loss(
            truth[every],
            clipped / clipped.sum(axis=1, keepdims=True),
            labels=np.arange(posterior.shape[1]),
        ),
        "calibration_error": calibration_error(right, ~is_wrong[every]),
        "auroc": roc_auc_score(is_wrong[every], 1 - right),
    }


def calibration_error(probability, is_true, n_bins=15):
    """Return the expected calibration error of probabilities, in bins of equal numbers of rows."""
    bins = np.array_split(np.argsort(probability, kind="stable"), n_bins)
    gaps = [abs(probability[rows].mean() - is_true[rows].mean()) * len(rows) for rows in bins]
    return sum(gaps) / len(probability)
