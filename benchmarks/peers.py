"""The compared methods: this library, ridge, logistic regression and cleanlab."""

import importlib.util
import time
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    RidgeClassifierCV,
)
from sklearn.model_selection import cross_val_predict

from unflip import LPClassifier
from unflip.estimation import AssumedNoiseWarning

HAS_CLEANLAB = importlib.util.find_spec("cleanlab") is not None
FOLDS = 5
ALPHAS = np.logspace(-1, 6, 15)
CS = np.logspace(-4, 1, 6)
CLEANLAB_CS = (1e-4, 1e-3, 1e-2, 1.0)
DEFAULT_POINT = (1.0, None)
# Names of the methods in tables. "Noise-aware": a threshold moved by the known noise rates.
RATES = "noise rates given"
PRIORS = "class priors given"
DEFAULT = "default settings"
OPTIMIZED = "optimized targets"
OURS = (RATES, PRIORS, DEFAULT, OPTIMIZED)
RIDGE = "ridge"
LOGISTIC = "logistic CV"
ORACLE = "ridge, clean labels"
RIDGE_AWARE = "ridge, noise-aware"
LOGISTIC_AWARE = "logistic CV, noise-aware"
CLEANLAB = "cleanlab default"
CLEANLAB_GIVEN = "cleanlab, rates given"
GRID = "cleanlab C="


@dataclass(frozen=True)
class Outcome:
    """One fit: decision values of the test rows, scores for wrong training labels, seconds.

    Decision values have shape (n,) for two classes and (n, k) for more. ``p_wrong`` holds one or
    more scores per training label; higher means more likely wrong. ``extra`` is stored as well.
    """

    method: str
    decision: np.ndarray
    seconds: float
    p_wrong: tuple = ()
    classifier: object = None
    extra: dict = field(default_factory=dict)

    @property
    def predicted(self):
        """Predicted class of each test row."""
        return self.decision > 0 if self.decision.ndim == 1 else self.decision.argmax(axis=1)


def outcomes(draw):
    """Fit all methods to one draw."""
    fits = [ours(method, draw) for method in OURS] + linear_peers(draw)
    return fits + (cleanlab_peers(draw) if HAS_CLEANLAB else [])


def timed(function):
    """Return the result of a function and the seconds it took."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def ours(method, draw):
    """Fit one variant of this library's classifier."""
    classifier = {
        RATES: lambda: LPClassifier(draw.noise),
        PRIORS: lambda: LPClassifier(priors=draw.priors),
        DEFAULT: lambda: LPClassifier(),
        OPTIMIZED: lambda: LPClassifier(draw.noise, targets="optimized"),
    }[method]()
    outcome = fitted(method, classifier, draw)
    rates = {"eps_pos": classifier.noise_.eps_pos, "eps_neg": classifier.noise_.eps_neg}
    return replace(outcome, extra=outcome.extra | rates)


def fitted(method, classifier, draw):
    """Fit a classifier of this library, for any number of classes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, seconds = timed(lambda: classifier.fit(draw.X, draw.observed))
    others = [str(w.message) for w in caught if not issubclass(w.category, AssumedNoiseWarning)]
    p_wrong = 1 - classifier.label_posterior_[np.arange(len(draw.y)), draw.observed]
    extra = {"reg": classifier.reg_, "warnings": "; ".join(others)}
    return Outcome(
        method, classifier.decision_function(draw.X_test), seconds, (p_wrong,), classifier, extra
    )


def linear_peers(draw):
    """Fit ridge and logistic regression, noise-aware for two classes, and ridge on clean labels."""
    ridge, ridge_seconds = timed(lambda: RidgeClassifierCV(ALPHAS).fit(draw.X, draw.observed))
    logistic, logistic_seconds = timed(lambda: logistic_cv().fit(draw.X, draw.observed))
    oracle, oracle_seconds = timed(lambda: RidgeClassifierCV(ALPHAS).fit(draw.X, draw.y))
    fits = [
        Outcome(RIDGE, ridge.decision_function(draw.X_test), ridge_seconds),
        Outcome(LOGISTIC, logistic.decision_function(draw.X_test), logistic_seconds),
        Outcome(ORACLE, oracle.decision_function(draw.X_test), oracle_seconds),
    ]
    if len(ridge.classes_) > 2:
        return fits
    return [
        *fits,
        aware(RIDGE_AWARE, ridge, RidgeClassifier(ridge.alpha_), ridge_seconds, draw),
        aware(
            LOGISTIC_AWARE,
            logistic,
            logistic_at(float(np.ravel(logistic.C_)[0])),
            logistic_seconds,
            draw,
        ),
    ]


def logistic_cv():
    """Logistic regression with C chosen by cross-validated accuracy."""
    return LogisticRegressionCV(Cs=CS, cv=FOLDS, scoring="accuracy", max_iter=1000)


def logistic_at(C, class_weight=None):
    """Logistic regression at one C."""
    return LogisticRegression(C=C, class_weight=class_weight, max_iter=1000)


def aware(method, fitted, same, seconds, draw):
    """Move a threshold so that the positive share is the one implied by the noise model."""

    def threshold():
        values = cross_val_predict(
            same, draw.X, draw.observed, cv=FOLDS, method="decision_function"
        )
        return np.quantile(values, 1 - positive_share(draw.noise, draw.observed))

    value, more = timed(threshold)
    return Outcome(method, fitted.decision_function(draw.X_test) - value, seconds + more)


def positive_share(noise, observed):
    """Return the true share of positives, inferred from the observed share."""
    share = (observed.mean() - noise.eps_neg) / (1 - noise.eps_pos - noise.eps_neg)
    return float(np.clip(share, 0.01, 0.99))


def cleanlab_peers(draw, Cs=CLEANLAB_CS):
    """Fit cleanlab at each grid point, and at its default with and without given noise rates."""
    fits = []
    for point in [(C, weight) for C in Cs for weight in (None, "balanced")]:
        probabilities, seconds = timed(lambda point=point: cross_validated(point, draw))
        outcome = cleanlab_at(grid_name(point), point, probabilities, seconds, draw)
        fits.append(outcome)
        if point == DEFAULT_POINT:
            fits.append(Outcome(CLEANLAB, outcome.decision, outcome.seconds, outcome.p_wrong))
            noise = {"noise_matrix": draw.noise.transition.T}
            fits.append(cleanlab_at(CLEANLAB_GIVEN, point, probabilities, seconds, draw, **noise))
    return fits


def grid_name(point):
    """Return the name of a grid point."""
    return f"{GRID}{point[0]:g}{' balanced' if point[1] else ''}"


def cross_validated(point, draw):
    """Return out-of-fold probabilities of the observed classes."""
    return cross_val_predict(
        logistic_at(*point), draw.X, draw.observed, cv=FOLDS, method="predict_proba"
    )


def cleanlab_at(method, point, probabilities, seconds, draw, **options):
    """Fit CleanLearning from out-of-fold probabilities; its time includes theirs."""
    from cleanlab.classification import CleanLearning

    learner = CleanLearning(logistic_at(*point), find_label_issues_kwargs={"n_jobs": 1})
    _, more = timed(lambda: learner.fit(draw.X, draw.observed, pred_probs=probabilities, **options))
    shares = learner.predict_proba(draw.X_test)
    decision = shares[:, 1] - 0.5 if shares.shape[1] == 2 else shares
    return Outcome(method, decision, seconds + more, wrong_scores(draw.observed, probabilities))


def wrong_scores(observed, probabilities):
    """Return one minus cleanlab's label quality, in each of its variants."""
    from cleanlab.rank import get_label_quality_scores

    forms = [
        (m, adjust) for m in ("self_confidence", "normalized_margin") for adjust in (False, True)
    ]
    return tuple(
        1 - get_label_quality_scores(observed, probabilities, method=m, adjust_pred_probs=adjust)
        for m, adjust in forms
    )
