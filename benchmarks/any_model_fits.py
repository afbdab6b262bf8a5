"""Fits of any_model.py to one draw: kernels, other models alone, in CleanLearning and in unflip."""

import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from draws import split_rows
from peers import wrong_scores
from tabular_sets import sklearn_sets, table_sets
from unflip import LPClassifier, NoiseModel, NoisyLabelClassifier

LEVELS = ("none", ".2/.2", ".3/.1", ".4/.2")
BINARY_RATES = {"none": (0, 0), ".2/.2": (0.2, 0.2), ".3/.1": (0.3, 0.1), ".4/.2": (0.4, 0.2)}
UNIFORM_RATES = {"none": 0.0, ".2/.2": 0.2, ".3/.1": 0.3, ".4/.2": 0.4}  # of several classes
MOST_ROWS = 1000  # for training
FOLDS = 5
MODELS = {
    "boosting": HistGradientBoostingClassifier(random_state=0),
    "forest": RandomForestClassifier(200, random_state=0),
    "SVC": CalibratedClassifierCV(SVC(), ensemble=False),
    "MLP": MLPClassifier(random_state=0),
    "logistic": LogisticRegression(max_iter=1000),
}
# Methods around each model.
PLAIN = "plain"
THRESHOLDS = "thresholds by the priors"
CLEANLAB = "CleanLearning"
ONE = "unflip, one fit"
ONE_PRIORS = "unflip, one fit, priors known"
SIX = "unflip, six fits"
SIX_PRIORS = "unflip, six fits, priors known"
# Variants of LPClassifier.
KERNEL = "kernel"
UNKNOWN = "nothing known"
PRIORS = "priors known"
RATES = "rates known"
LINEAR = "linear, nothing known"
LINEAR_PRIORS = "linear, priors known"


def jobs(n_draws):
    """Return the names of all draws: set, level and number."""
    names = [*sklearn_sets(), *table_sets()]
    return [(name, level, draw) for draw in range(n_draws) for name in names for level in LEVELS]


def noise_of(level, n_classes):
    """Return the noise model of a level; several classes have uniform noise."""
    if n_classes == 2:
        eps_pos, eps_neg = BINARY_RATES[level]
        return NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
    rate = UNIFORM_RATES[level]
    return NoiseModel(
        (1 - rate) * np.eye(n_classes) + rate / (n_classes - 1) * (1 - np.eye(n_classes))
    )


def results(name, level, number):
    """Return the measures of all fits to one draw, one row for each."""
    sets = sklearn_sets() | table_sets()
    X, y = sets[name]
    seed = (24, list(sets).index(name), LEVELS.index(level), number)
    n_train = min(MOST_ROWS, int(0.7 * len(y)))
    noise = noise_of(level, int(y.max()) + 1)
    draw = split_rows(X, y, n_train, noise, np.random.default_rng(seed))
    key = {
        "set": name,
        "level": level,
        "draw": number,
        "classes": int(y.max()) + 1,
        "n_test": len(draw.y_test),
    }
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        features, rows = kernel_fits(draw)
        for model in MODELS:
            rows += model_fits(model, draw, features)
    return [key | row for row in rows]


def kernel_fits(draw):
    """Return the features that were chosen, and the measures of each variant of LPClassifier."""
    chosen, row = lp_fit(UNKNOWN, draw, features="auto")
    features = chosen.features_ or "linear"
    rows = [row | {"features": getattr(features, "kernel", "linear")}]
    for method, options in (
        (PRIORS, {"priors": draw.priors, "features": "auto"}),
        (RATES, {"noise": draw.noise, "features": "auto"}),
        (LINEAR, {}),
        (LINEAR_PRIORS, {"priors": draw.priors}),
    ):
        rows.append(lp_fit(method, draw, **options)[1])
    return features, rows


def lp_fit(method, draw, **options):
    """Fit LPClassifier; return it and its measures."""
    classifier = LPClassifier(**options)
    start = time.process_time()
    classifier.fit(draw.X, draw.observed)
    seconds = time.process_time() - start
    return classifier, {
        "model": KERNEL,
        "method": method,
        "seconds": seconds,
        **measures(classifier, draw),
    }


def measures(classifier, draw):
    """Return accuracy, expected accuracy, and AUROC of the wrong labels."""
    p_wrong = 1 - classifier.label_posterior_[np.arange(len(draw.y)), draw.observed]
    return {
        "accuracy": classifier.score(draw.X_test, draw.y_test),
        "expected": classifier.expected_accuracy_,
        "expected_std": classifier.expected_accuracy_std_,
        "auroc": auroc([p_wrong], draw),
    }


def auroc(scores, draw):
    """Return the best AUROC of scores for the wrong labels; NaN without wrong labels."""
    wrong = draw.observed != draw.y
    return max(roc_auc_score(wrong, score) for score in scores) if wrong.any() else np.nan


def model_fits(name, draw, features):
    """Return the measures of one model by each method.

    CleanLearning and unflip get the same out-of-fold probabilities.
    """
    from cleanlab.classification import CleanLearning

    model = MODELS[name]
    start = time.process_time()
    plain = clone(model).fit(draw.X, draw.observed)
    seconds = time.process_time() - start
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    pred_probs = cross_val_predict(model, draw.X, draw.observed, cv=folds, method="predict_proba")
    cleanlab = CleanLearning(clone(model), find_label_issues_kwargs={"n_jobs": 1})
    cleanlab.fit(draw.X, draw.observed, pred_probs=pred_probs)
    all_seconds = time.process_time() - start
    probabilities = plain.predict_proba(draw.X_test)
    shifted = probabilities * offsets(pred_probs, draw.priors)
    rows = [
        {"method": PLAIN, "accuracy": plain.score(draw.X_test, draw.y_test), "seconds": seconds},
        {"method": THRESHOLDS, "accuracy": np.mean(shifted.argmax(axis=1) == draw.y_test)},
        {
            "method": CLEANLAB,
            "accuracy": np.mean(cleanlab.predict(draw.X_test) == draw.y_test),
            "seconds": all_seconds,
            "auroc": auroc(wrong_scores(draw.observed, pred_probs), draw),
        },
    ]
    for method, priors, out_of_fold in (
        (ONE, None, None),
        (ONE_PRIORS, draw.priors, None),
        (SIX, None, pred_probs),
        (SIX_PRIORS, draw.priors, pred_probs),
    ):
        ours = NoisyLabelClassifier(model, priors=priors, features=features, cv=None)
        ours.fit(draw.X, draw.observed, pred_probs=out_of_fold)
        rows.append({"method": method, "share": ours.cv_share_, **measures(ours, draw)})
    return [{"model": name} | row for row in rows]


def offsets(pred_probs, priors):
    """Return factors of the class probabilities under which predicted classes have the priors."""
    factors = np.ones(len(priors))
    for _ in range(200):
        counts = np.bincount((pred_probs * factors).argmax(axis=1), minlength=len(priors))
        shares = (counts + 0.5) / (counts + 0.5).sum()
        factors = factors * (priors / shares) ** 0.1
    return factors
