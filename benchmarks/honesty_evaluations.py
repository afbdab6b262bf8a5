"""Part `evaluations` of `honesty.py`: metrics of models on noisy test labels, and their comparison.

The models are trained on the noisy labels and predict out of fold. Each draw checks other rows; the
calibration of the probabilities does not depend on the checks, so it is computed once.
"""

import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from honesty_sets import SEED, cifar, feature_sets
from unflip import compare, evaluate
from unflip.auditing.evaluation import Comparison, Evaluation
from unflip.auditing.evaluation.class_contrast import ClassContrast
from unflip.auditing.evaluation.model_evaluation import best_truth
from unflip.auditing.evaluation.uncertain_truth import SampledTruth
from unflip.calibration.interval import share_interval, wilson_interval
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED

CHECKS = (50, 100, 200)
METRICS = ("accuracy", "balanced_accuracy", "f1", "roc_auc")
# Difference in accuracy from which on the better model is to be found.
APART = 0.02
# A model that is only compared with the others.
BAYES = "Bayes"
# Half of the rows per tree make the forest faster.
MODELS = {
    "logistic": LogisticRegression(C=0.01, max_iter=1000),
    "forest": RandomForestClassifier(
        n_estimators=100, min_samples_leaf=5, max_samples=0.5, random_state=SEED
    ),
    BAYES: GaussianNB(),
}
SETS = (
    "news, human labels",
    "sentences, one vote",
    "sentences, worst annotator",
    "scenes, one vote",
    "scenes, worst annotator",
    "media bias, GPT-4",
    "media bias, Mistral 7B",
    "messages, majority",
    "relations, majority",
)


def run(n_draws):
    """Yield a line for each set, model, number of checks and draw, and for each pair of models."""
    warnings.simplefilter("ignore", UserWarning)
    for data, models in sets_with_models():
        for name, scores in models.items():
            if name != BAYES:
                yield from evaluations(data, name, scores, n_draws)
        for first, second in combinations(models, 2):
            yield from comparisons(data, first, second, models, n_draws)


def sets_with_models():
    """Yield each set with the out-of-sample probabilities of its models, by name."""
    for kind, file in (
        ("worst of three", "cifar10n_worst_resnet18"),
        ("majority", "cifar10n_aggregate_efficientnet"),
    ):
        data = cifar(f"photographs, {kind}", file)
        yield data, {"network": data.pred_probs}
    for data in feature_sets():
        if data.name in SETS:
            yield data, {name: out_of_fold(model, data) for name, model in MODELS.items()}


def out_of_fold(model, data):
    """Return out-of-fold probabilities of a model that is trained on the observed labels."""
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED)
    return cross_val_predict(model, data.X, data.observed, cv=folds, method="predict_proba")


def evaluations(data, name, scores, n_draws):
    """Yield the metrics of a model for each draw of the checks, beside those of the truth."""
    inputs = {"probabilities": scores}
    if name != "forest":  # one model of each set
        inputs["predictions"] = scores.argmax(axis=1)
    for kind, given in inputs.items():
        first = evaluate(given, data.observed)
        actual = true_metrics(scores, data.truth)
        for checks in (0, *CHECKS):
            for draw in range(n_draws if checks else 1):
                rows = first.check_next(checks, random_state=draw) if checks else []
                result = with_checks(first, known(data.truth, rows))
                counted = counting(first, data.truth, checks, draw)
                for metric in METRICS:
                    interval = getattr(result, metric)
                    if interval is not None:
                        yield {
                            "set": data.name,
                            "model": name,
                            "scores": kind,
                            "checks": checks,
                            "draw": draw,
                            "metric": metric,
                            "truth": actual[metric],
                            "error": interval.value - actual[metric],
                            "covered": interval.low <= actual[metric] <= interval.high,
                            "width": interval.width,
                            "counted_width": counted[metric],
                            "by_model": result.is_model_based,
                        }


def true_metrics(scores, truth):
    """Return the metrics of a model against the true classes."""
    predicted = scores.argmax(axis=1)
    k = scores.shape[1]
    if k == 2:
        f1 = f1_score(truth, predicted)
        area = roc_auc_score(truth, scores[:, 1])
    else:
        f1 = f1_score(truth, predicted, average="macro", labels=np.arange(k), zero_division=0)
        area = np.mean([roc_auc_score(truth == a, scores[:, a]) for a in range(k)])
    return {
        "accuracy": np.mean(predicted == truth),
        "balanced_accuracy": balanced_accuracy_score(truth, predicted),
        "f1": f1,
        "roc_auc": area,
    }


def known(truth, rows):
    """Return the true classes of some rows, `UNCHECKED` for the others."""
    codes = np.full(len(truth), UNCHECKED)
    codes[rows] = truth[rows]
    return codes


def with_checks(first, truth):
    """Return an evaluation with other checked rows, as `evaluate` does."""
    checked = replace(first.checked, truth=truth)
    fitted = TrueClassModel.fit(first.fitted.rows, truth)
    soft_truth = best_truth(fitted, [ClassContrast(first.scored.predicted)], checked)
    return Evaluation(checked, first.scored, fitted, soft_truth)


def counting(first, truth, checks, draw):
    """Return the width of each interval by counting as many rows, drawn at random."""
    if not checks:
        return dict.fromkeys(METRICS, np.nan)
    n = len(truth)
    rows = np.random.default_rng(draw).permutation(n)[:checks]
    every = np.zeros(n, dtype=np.intp)
    sampled = SampledTruth.of(known(truth, rows), len(first.classes), [every], None)
    scored = first.scored
    widths = {}
    for metric in METRICS[1:]:
        if metric == "roc_auc" and scored.probabilities is None:
            continue
        error = np.sqrt(sampled.variance(scored.gradient(metric, sampled.masses)))
        widths[metric] = share_interval(scored.metric(metric, sampled.masses), error).width
    accuracy = np.mean(scored.predicted[rows] == truth[rows])
    return {"accuracy": wilson_interval(accuracy, checks).width, **widths}


def comparisons(data, first_name, second_name, models, n_draws):
    """Yield the difference in accuracy of two models for each draw of the checks."""
    first = models[first_name]
    second = models[second_name]
    right = (scores.argmax(axis=1) == data.truth for scores in (first, second))
    actual = np.subtract(*map(np.mean, right))
    start = compare(first, second, data.observed)
    sample = evaluate(first, data.observed)
    for checks in CHECKS:
        for draw in range(n_draws):
            truth = known(data.truth, sample.check_next(checks, random_state=draw))
            checked = replace(start.checked, truth=truth)
            fitted = TrueClassModel.fit(start.truth.model.rows, truth)
            contrast = ClassContrast(start.first.predicted, start.second.predicted)
            soft_truth = best_truth(fitted, [contrast], checked)
            interval = Comparison(checked, start.first, start.second, soft_truth).difference
            yield {
                "set": data.name,
                "model": f"{first_name} - {second_name}",
                "scores": "probabilities",
                "checks": checks,
                "draw": draw,
                "metric": "difference",
                "truth": actual,
                "error": interval.value - actual,
                "covered": interval.low <= actual <= interval.high,
                "width": interval.width,
                "chosen": np.sign(interval.value) == np.sign(actual),
                "by_model": not isinstance(soft_truth, SampledTruth),
            }
