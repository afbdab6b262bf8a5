"""Any value of any parameter gives a result without NumPy warnings, or an error that names it.

Each public callable is called once for each of its parameters and each value below. All other
parameters are valid.
"""

import re
import traceback
import warnings
from importlib import import_module

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from unflip import (
    LPClassifier,
    Moments,
    NoiseModel,
    NoisyLabelClassifier,
    Votes,
    audit,
    audit_scores,
    compare,
    datasets,
    estimation,
    evaluate,
    fit_table,
    load_model,
    losses,
    theory,
    unusual_rows,
)
from unflip import targets as target_values
from unflip.auditing import Audit
from unflip.datasets import make_mixture
from unflip.features import ImageFeatures, KernelFeatures, TableFeatures
from unflip.plotting import (
    AccuracyPathDisplay,
    CalibrationCurveDisplay,
    NoiseMatrixDisplay,
    PlanDisplay,
    ScoreDistributionDisplay,
    SuspectsDisplay,
)

pyplot = pytest.importorskip("matplotlib.pyplot", reason="needs the extra unflip[cli]")
pytest.importorskip("jinja2", reason="needs the extra unflip[cli]")
pandas = pytest.importorskip("pandas", reason="needs the extra unflip[tables]")
pytest.importorskip("skops", reason="needs the extra unflip[tables]")

#: What is given for a parameter.
VALUES = {
    "None": None,
    "str": "no such value",
    "bytes": b"ab",
    "object": object(),
    "list": [1, 2],
    "nested list": [[1.0], [2.0, 3.0]],
    "empty list": [],
    "dict": {"a": 0.5},
    "complex": 1 + 2j,
    "nan": np.nan,
    "inf": np.inf,
    "True": True,
    "zero": 0,
    "negative": -1,
    "fraction": 0.5,
    "large": 1e300,
    "small": 1e-300,
    "huge int": 10**400,
    "long int": 2**70,
    "0-d float": np.array(0.5),
    "0-d int": np.array(3),
    "0-d str": np.array("a"),
    "array of objects": np.array([None, "a", 2.0], dtype=object),
    "date": np.datetime64("2020-01-01"),
}

X, TRUE = make_mixture(40, 4, mean_norm=2.0, random_state=0)
NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)
THREE = NoiseModel(0.7 * np.eye(3) + 0.1, [0.3, 0.3, 0.4])
Y = NOISE.flip(TRUE, random_state=0)
PROBABILITIES = np.column_stack([0.8 - 0.6 * Y, 0.2 + 0.6 * Y])
MIXTURE = theory.Mixture(mean_norm=1.0, aspect=0.5, noise=NOISE)
GENERAL = theory.GeneralMixture(
    mean=np.ones(3), cov_neg=np.ones(3), cov_pos=np.ones(3), n=50, noise=NOISE
)
PLAN = theory.plan(n=100, p=10, mean_norm=1.0, noise=NOISE)
FITTED = LPClassifier(NOISE).fit(X, Y)
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
WRAPPED = NoisyLabelClassifier(TREE, NOISE).fit(X, Y)
KERNEL = KernelFeatures(n_components=10).fit(X)
AUDIT = audit(X, Y, noise=NOISE)
FRAME = pandas.DataFrame(X, columns=list("abcd")).assign(
    e=1.5, sex=["f", "m"] * 20, note=["so good", "so bad", "all of it"] * 13 + ["so"], label=Y
)
CHECKED_FRAME = FRAME.assign(
    checked=np.where(np.arange(40) < 20, TRUE, np.nan), pair=np.arange(40) // 2
)
TABLE_FEATURES = TableFeatures().fit(FRAME)
TABLE_MODEL = fit_table(FRAME, "label", ignore="e", text="note", noise=NOISE)
COLUMNS = {"text": "note", "embedding": "a", "use": "sex", "ignore": "e"}
EVALUATION = evaluate(PROBABILITIES, Y)
INCLUSION = np.full(40, 0.5)
MOMENTS = Moments.from_chunks([(X, Y)])
TRUSTED = estimation.TrustedSubset(np.where(np.arange(40) < 20, TRUE, np.nan)).fit(X, Y)
VOTES = Votes.from_table([0, 1, 1], ["a", "a", "b"], [0, 1, 1], n_rows=3)
CHECKED = np.where(np.arange(40) < 20, TRUE, np.nan)
PREDICTION = theory.predict(MIXTURE, reg=1.0)
PAIR = theory.predict_mixture(GENERAL, reg=1.0)


def of_classifier(X=X, y=Y, sample_weight=None, **params):
    return LPClassifier(**{"noise": NOISE, **params}).fit(X, y, sample_weight)


def of_any_classifier(X=X, y=Y, **options):
    names = NoisyLabelClassifier(TREE).get_params().keys() & options
    params = {name: options.pop(name) for name in names}
    return NoisyLabelClassifier(**{"estimator": TREE, "noise": NOISE, **params}).fit(
        X, y, **options
    )


def of_partial_fit(**data):
    return LPClassifier(NOISE, targets="naive").partial_fit(**data)


def of_estimator(kind):
    def fitted(X=X, y=Y, sample_weight=None, **params):
        data = (X, y) if sample_weight is None else (X, y, sample_weight)
        return kind(**params).fit(*data)

    return fitted


def predicted(mean_norm, aspect, noise, **options):
    prediction = theory.predict(
        theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise), **options
    )
    return prediction.accuracy, prediction.best_accuracy, prediction.risk


def planned(**options):
    plan = theory.plan(**options)
    return plan.more_rows, plan.checked_rows, plan.cleaner_labels, plan.equivalent_rows(1)


def described(**options):
    mixture = theory.GeneralMixture(**options)
    return mixture.bayes_accuracy


ROWS = {"X": X, "y": Y}
GENERALS = {
    "mean": np.ones(3),
    "cov_neg": np.ones(3),
    "cov_pos": np.ones(3),
    "n": 50,
    "noise": NOISE,
}
CLASSES = {"means": np.eye(3), "n": 50, "noise": THREE}
LOSS = {"name": "mine", "value": lambda s, y: (s - y) ** 2, "gradient": lambda s, y: 2 * (s - y)}
#: Every public callable with parameters that are right.
CALLS = {
    "LPClassifier": (
        of_classifier,
        {
            "noise": NOISE,
            "priors": [0.5, 0.5],
            "targets": "refined",
            "readout": "gaussian",
            "reg": 1.0,
            "loss": "squared",
            "fit_intercept": True,
            "deployment_priors": "balanced",
            "costs": [[0, 1], [1, 0]],
            "features": "auto",
        },
    ),
    "LPClassifier.fit": (of_classifier, {**ROWS, "sample_weight": np.ones(40)}),
    "LPClassifier.partial_fit": (
        of_partial_fit,
        {**ROWS, "classes": [0, 1], "sample_weight": np.ones(40)},
    ),
    "LPClassifier.from_moments": (
        LPClassifier.from_moments,
        {"moments": MOMENTS, "noise": NOISE, "targets": "naive", "reg": 1.0, "priors": None},
    ),
    "LPClassifier.predict": (FITTED.predict, {"X": X}),
    "LPClassifier.predict_proba": (FITTED.predict_proba, {"X": X}),
    "LPClassifier.decision_function": (FITTED.decision_function, {"X": X}),
    "LPClassifier.score": (FITTED.score, {**ROWS, "sample_weight": np.ones(40)}),
    "NoiseModel": (NoiseModel, {"transition": [[0.9, 0.1], [0.2, 0.8]], "priors": [0.5, 0.5]}),
    "NoiseModel.binary": (NoiseModel.binary, {"eps_pos": 0.1, "eps_neg": 0.2, "pi_neg": 0.5}),
    "NoiseModel.none": (NoiseModel.none, {"n_classes": 2}),
    "NoiseModel.with_priors": (NOISE.with_priors, {"priors": [0.4, 0.6]}),
    "NoiseModel.with_observed": (NOISE.with_observed, {"observed": [0.4, 0.6]}),
    "NoiseModel.flip": (NOISE.flip, {"y": TRUE, "random_state": 0}),
    "targets.naive": (target_values.naive, {"k": 2}),
    "targets.unbiased": (target_values.unbiased, {"noise": NOISE}),
    "targets.optimized": (target_values.optimized, {"noise": NOISE}),
    "targets.from_rho": (target_values.from_rho, {"rho_pos": 0.1, "rho_neg": 0.2}),
    "targets.to_rho": (target_values.to_rho, {"targets": [-1.0, 1.0]}),
    "targets.multi_lpc": (target_values.multi_lpc, {"alpha": [1.0, 1.0], "beta": [0.0, 0.0]}),
    "targets.checked": (target_values.checked, {"targets": [-1.0, 1.0]}),
    "targets.resolve": (target_values.resolve, {"targets": "naive", "noise": NOISE}),
    "targets.resolve_table": (target_values.resolve_table, {"targets": "naive", "noise": THREE}),
    "targets.resolve_classes": (
        target_values.resolve_classes,
        {"targets": "naive", "noise": THREE},
    ),
    "losses.resolve": (losses.resolve, {"loss": "squared"}),
    "losses.Loss": (losses.Loss, {**LOSS, "curvature": lambda s, y: 2 + 0 * s}),
    "theory.Mixture": (theory.Mixture, {"mean_norm": 1.0, "aspect": 0.5, "noise": NOISE}),
    "theory.GeneralMixture": (described, GENERALS),
    "theory.delta": (theory.delta, {"aspect": 0.5, "reg": 1.0}),
    "theory.h": (theory.h, {"aspect": 0.5, "reg": 1.0}),
    "theory.predict": (
        predicted,
        {
            "mean_norm": 1.0,
            "aspect": 0.5,
            "noise": NOISE,
            "targets": "naive",
            "reg": 1.0,
            "fit_intercept": True,
        },
    ),
    "theory.predict, other losses": (
        theory.predict,
        {
            "mixture": MIXTURE,
            "targets": "naive",
            "reg": 1.0,
            "loss": "logistic",
            "fit_intercept": True,
        },
    ),
    "theory.predict_general": (
        theory.predict_general,
        {**GENERALS, "targets": "naive", "reg": 1.0, "fit_intercept": True},
    ),
    "theory.predict_mixture": (
        theory.predict_mixture,
        {"mixture": GENERAL, "targets": "naive", "reg": 1.0, "fit_intercept": True},
    ),
    "theory.predict_multiclass": (
        theory.predict_multiclass,
        {**CLASSES, "targets": "naive", "reg": 1.0, "fit_intercept": True},
    ),
    "theory.multiclass_bayes_accuracy": (
        theory.multiclass_bayes_accuracy,
        {"means": np.eye(3), "noise": THREE},
    ),
    "theory.optimal_convex_targets": (
        theory.optimal_convex_targets,
        {"mixture": MIXTURE, "reg": 1.0, "loss": "squared", "power": 1.0},
    ),
    "theory.optimal_multi_lpc": (
        theory.optimal_multi_lpc,
        {
            "means": np.eye(2),
            "n": 50,
            "noise": NOISE,
            "reg": 1.0,
            "fit_intercept": True,
            "worst": False,
        },
    ),
    "theory.optimal_multiclass_reg": (
        theory.optimal_multiclass_reg,
        {
            "means": np.eye(2),
            "n": 50,
            "noise": NOISE,
            "targets": "naive",
            "readout": "best",
            "fit_intercept": True,
        },
    ),
    "theory.optimal_rho": (theory.optimal_rho, {"noise": NOISE, "rho_neg": 0.0}),
    "theory.worst_rho": (
        theory.worst_rho,
        {"noise": NOISE.with_priors([0.4, 0.6]), "rho_neg": 0.0},
    ),
    "theory.optimal_reg": (
        theory.optimal_reg,
        {
            "mixture": MIXTURE,
            "targets": "naive",
            "objective": "accuracy",
            "loss": "squared",
            "fit_intercept": True,
        },
    ),
    "theory.plan": (
        planned,
        {"n": 100, "p": 10, "mean_norm": 1.0, "noise": NOISE, "reg": 1.0, "fit_intercept": True},
    ),
    "theory.Plan.accuracy_of": (PLAN.accuracy_of, {"rows": 50}),
    "theory.Plan.accuracy_of, checked": (PLAN.accuracy_of, {"checked": 50}),
    "theory.Plan.equivalent_rows": (PLAN.equivalent_rows, {"checked": 50}),
    "theory.Prediction.accuracy_at": (PREDICTION.accuracy_at, {"threshold": 0.1}),
    "theory.Prediction.recall_at": (PREDICTION.recall_at, {"threshold": 0.1}),
    "theory.GeneralPrediction.accuracy_at": (PAIR.accuracy_at, {"threshold": 0.1}),
    "theory.GeneralPrediction.class_accuracies_at": (PAIR.class_accuracies_at, {"threshold": 0.1}),
    "estimation.Automatic": (
        of_estimator(estimation.Automatic),
        {**ROWS, "sample_weight": np.ones(40), "y_trusted": CHECKED, "priors": [0.5, 0.5]},
    ),
    "estimation.CrossMoment": (
        of_estimator(estimation.CrossMoment),
        {**ROWS, "mean_norm": 2.0, "pi_neg": 0.5, "reg": 1.0},
    ),
    "estimation.TrustedSubset": (
        of_estimator(estimation.TrustedSubset),
        {**ROWS, "sample_weight": np.ones(40), "y_trusted": CHECKED},
    ),
    "estimation.TrustedSubset.interval": (TRUSTED.interval, {"confidence": 0.9}),
    "estimation.TrustedSubset.suggest": (
        TRUSTED.suggest,
        {"m": 3, "at_random": False, "random_state": 0},
    ),
    "estimation.NoiseEstimator.interval": (
        estimation.CrossMoment(mean_norm=2.0, pi_neg=0.5).fit(X, TRUE).interval,
        {"confidence": 0.9},
    ),
    "estimation.SecondMomentMatching": (
        of_estimator(estimation.SecondMomentMatching),
        {
            **ROWS,
            "mean_norm": 2.0,
            "pi_neg": 0.5,
            "reg": 1.0,
            "rho_pairs": ((0.0, 0.1), (0.0, 0.4)),
        },
    ),
    "estimation.estimate_mixture": (
        estimation.estimate_mixture,
        {**ROWS, "noise": NOISE, "common_covariance": True},
    ),
    "estimation.mean_norm_from_rows": (estimation.mean_norm_from_rows, ROWS),
    "estimation.spectral_mixture": (estimation.spectral_mixture, {"X": X}),
    "audit": (
        audit,
        {
            **ROWS,
            "noise": NOISE,
            "priors": None,
            "trusted": CHECKED,
            "inclusion": INCLUSION,
            "groups": np.arange(40) // 4,
            "features": "auto",
            "estimator": TREE,
            "false_discovery_rate": 0.1,
        },
    ),
    "NoisyLabelClassifier": (
        of_any_classifier,
        {"estimator": TREE, "noise": NOISE, "priors": [0.5, 0.5], "features": "auto", "cv": 3},
    ),
    "NoisyLabelClassifier.fit": (
        of_any_classifier,
        {
            **ROWS,
            "sample_weight": np.ones(40),
            "groups": np.arange(40) // 4,
            "pred_probs": PROBABILITIES,
        },
    ),
    "NoisyLabelClassifier.predict": (WRAPPED.predict, {"X": X}),
    "NoisyLabelClassifier.predict_proba": (WRAPPED.predict_proba, {"X": X}),
    "features.ImageFeatures": (lambda **params: ImageFeatures(**params).fit(), {"n_cells": 2}),
    "features.ImageFeatures.transform": (ImageFeatures(2).transform, {"X": np.zeros((2, 4, 4))}),
    "unusual_rows": (unusual_rows, {"X": X, "y": Y}),
    "features.KernelFeatures": (
        lambda **params: KernelFeatures(**params).fit(X),
        {
            "kernel": "rbf",
            "bandwidth": 1.0,
            "n_components": 10,
            "landmarks": "pivoted",
            "random_state": 0,
        },
    ),
    "features.KernelFeatures.fit": (KernelFeatures(n_components=10).fit, {"X": X}),
    "features.KernelFeatures.transform": (KERNEL.transform, {"X": X}),
    "audit, table": (
        audit,
        {
            "X": CHECKED_FRAME,
            "label": "label",
            "noise": NOISE,
            **COLUMNS,
            "id": "d",
            "trusted": "checked",
            "groups": "pair",
        },
    ),
    "features.TableFeatures": (lambda **params: TableFeatures(**params).fit(FRAME), COLUMNS),
    "features.TableFeatures.fit": (TableFeatures().fit, {"X": FRAME}),
    "features.TableFeatures.transform": (TABLE_FEATURES.transform, {"X": FRAME}),
    "features.TableFeatures.named_rows": (TABLE_FEATURES.named_rows, {"X": FRAME}),
    "fit_table": (
        fit_table,
        {
            "X": CHECKED_FRAME,
            "label": "label",
            **COLUMNS,
            "noise": NOISE,
            "priors": None,
            "trusted": "checked",
            "features": "linear",
        },
    ),
    "TableModel.predict": (TABLE_MODEL.predict, {"X": FRAME}),
    "TableModel.predict_proba": (TABLE_MODEL.predict_proba, {"X": FRAME}),
    "TableModel.save": (TABLE_MODEL.save, {"path": "model.skops"}),
    "load_model": (load_model, {"path": "model.skops"}),
    "evaluate": (
        evaluate,
        {"scores": PROBABILITIES, "labels": Y, "trusted": CHECKED, "inclusion": INCLUSION},
    ),
    "compare": (
        compare,
        {
            "scores_a": PROBABILITIES,
            "scores_b": Y,
            "labels": Y,
            "trusted": CHECKED,
            "inclusion": INCLUSION,
        },
    ),
    "audit_scores": (
        audit_scores,
        {
            "pred_probs": PROBABILITIES,
            "y": Y,
            "noise": NOISE,
            "priors": None,
            "trusted": CHECKED,
            "inclusion": INCLUSION,
            "false_discovery_rate": 0.1,
            "effective_dimension": 3.0,
        },
    ),
    "Audit": (Audit, {"evidence": AUDIT.evidence, "false_discovery_rate": 0.1}),
    "Audit.accuracy_after": (AUDIT.accuracy_after, {"m": 3, "growth": 2.0}),
    "Audit.check_next": (AUDIT.check_next, {"m": 3}),
    "Audit.to_html": (AUDIT.to_html, {"path": "page.html", "texts": ["a"] * 40, "ids": ["a"] * 40}),
    "Votes.from_table": (
        Votes.from_table,
        {"rows": [0, 1, 1], "annotators": ["a", "a", "b"], "labels": [0, 1, 1], "n_rows": 3},
    ),
    "Votes.from_columns": (
        Votes.from_columns,
        {"columns": [[0, 1], [1, 1]], "annotators": ["a", "b"]},
    ),
    "Votes.__getitem__": (VOTES.__getitem__, {"rows": [0, 1]}),
    "Moments.from_rows": (
        Moments.from_rows,
        {"X": X, "codes": Y, "n_classes": 2, "sample_weight": np.ones(40)},
    ),
    "Moments.from_chunks": (
        Moments.from_chunks,
        {"chunks": [(X, Y)], "classes": [0, 1], "feature_names": ["a", "b", "c", "d"]},
    ),
    "Moments.with_classes": (MOMENTS.with_classes, {"classes": [0, 1, 2]}),
    "Moments.gram": (MOMENTS.gram, {"centred": True}),
    "Moments.cross": (MOMENTS.cross, {"targets": [-1.0, 1.0], "centred": True}),
    "Moments.load": (Moments.load, {"path": "moments.npz"}),
    "Moments.save": (MOMENTS.save, {"path": "moments.npz"}),
    "datasets.make_mixture": (
        datasets.make_mixture,
        {
            "n_samples": 10,
            "n_features": 3,
            "mean_norm": 1.0,
            "means": None,
            "priors": [0.5, 0.5],
            "covariances": np.eye(3),
            "random_state": 0,
        },
    ),
    "datasets.make_messages": (datasets.make_messages, {"n_samples": 3, "random_state": 0}),
    "datasets.load_amazon_reviews": (
        datasets.load_amazon_reviews,
        {"domain": "books", "data_home": "."},
    ),
    "datasets.load_sentiment_votes": (datasets.load_sentiment_votes, {"data_home": "."}),
    "datasets.load_scene_votes": (datasets.load_scene_votes, {"data_home": "."}),
    "plotting.CalibrationCurveDisplay": (
        CalibrationCurveDisplay,
        {
            "confidence": [0.6, 0.9],
            "accuracy": [0.6, 0.8],
            "low": [0.5, 0.7],
            "high": [0.7, 0.9],
        },
    ),
    "plotting.CalibrationCurveDisplay.from_evaluation": (
        CalibrationCurveDisplay.from_evaluation,
        {"evaluation": EVALUATION},
    ),
    "plotting.NoiseMatrixDisplay": (
        NoiseMatrixDisplay,
        {"transition": np.eye(2), "errors": np.zeros((2, 2)), "display_labels": ["a", "b"]},
    ),
    "plotting.NoiseMatrixDisplay.from_estimator": (
        NoiseMatrixDisplay.from_estimator,
        {"estimator": FITTED},
    ),
    "plotting.NoiseMatrixDisplay.from_audit": (NoiseMatrixDisplay.from_audit, {"audit": AUDIT}),
    "plotting.PlanDisplay": (
        PlanDisplay,
        {"efforts": ["now", "later"], "accuracies": [0.8, 0.9], "error": 0.1},
    ),
    "plotting.PlanDisplay.from_audit": (PlanDisplay.from_audit, {"audit": AUDIT}),
    "plotting.SuspectsDisplay": (
        SuspectsDisplay,
        {"wrong": [0.1, 0.9], "n_suspects": 1, "false_discovery_rate": 0.1},
    ),
    "plotting.SuspectsDisplay.from_audit": (SuspectsDisplay.from_audit, {"audit": AUDIT}),
    "plotting.ScoreDistributionDisplay": (
        ScoreDistributionDisplay,
        {
            "log_odds": [-1.0, 1.0, 2.0],
            "codes": [0, 1, 1],
            "posterior": [[0.8, 0.2], [0.2, 0.8], [0.1, 0.9]],
            "display_labels": ["a", "b"],
        },
    ),
    "plotting.ScoreDistributionDisplay.from_estimator": (
        ScoreDistributionDisplay.from_estimator,
        {"estimator": FITTED, "y": Y},
    ),
    "plotting.ScoreDistributionDisplay.from_audit": (
        ScoreDistributionDisplay.from_audit,
        {"audit": AUDIT},
    ),
    "plotting.AccuracyPathDisplay": (
        AccuracyPathDisplay,
        {
            "regs": [0.1, 1.0],
            "accuracies": {"naive": [0.8, 0.9]},
            "errors": {"naive": [0.1, 0.1]},
            "chosen_reg": 1.0,
            "limit": 0.9,
        },
    ),
    "plotting.AccuracyPathDisplay.from_estimator": (
        AccuracyPathDisplay.from_estimator,
        {"estimator": FITTED, **ROWS, "regs": [1.0]},
    ),
    "plotting.AccuracyPathDisplay.from_mixture": (
        AccuracyPathDisplay.from_mixture,
        {"mixture": MIXTURE, "fit_intercept": True},
    ),
}
#: Searches that take seconds.
SLOW = {("theory.predict, other losses", "reg", "small")}
#: Public classes whose instances are results of other calls.
RESULTS = {
    "Audit",
    "AssumedNoiseWarning",
    "Comparison",
    "Evaluation",
    "GeneralPrediction",
    "MixtureEvidence",
    "MulticlassPrediction",
    "NoiseEstimator",
    "Plan",
    "Prediction",
    "SpectralMixture",
    "UnusualRows",
}
PAIRS = [(name, parameter) for name, (_, parameters) in CALLS.items() for parameter in parameters]


def is_of_scikit_learn(error):
    """Whether the error was raised by scikit-learn, whose messages need not name the parameter."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    last = max(i for i, file in enumerate(files) if "/unflip/" in file)
    return any("sklearn" in file for file in files[last + 1 :])


def names_parameter(message, parameter):
    singular = parameter.removesuffix("s")
    return re.search(rf"(?<!\w){re.escape(singular)}s?(?!\w)", message, re.IGNORECASE) is not None


def fault(call, parameters, parameter):
    """Return what is wrong with the outcome of a call, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # assumptions of unflip
        try:
            call(**parameters)
        except (ValueError, TypeError) as error:
            if not names_parameter(str(error), parameter) and not is_of_scikit_learn(error):
                return f"{type(error).__name__} does not name {parameter}: {error}"
        except OSError as error:
            if parameter not in ("path", "data_home"):
                return repr(error)
        except Exception as error:
            return repr(error)
    return None


@pytest.mark.parametrize(
    ("name", "parameter"), PAIRS, ids=[f"{name}({parameter})" for name, parameter in PAIRS]
)
def test_any_value_is_accepted_or_named_in_an_error(name, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNFLIP_DATA", raising=False)
    call, right = CALLS[name]
    try:
        faults = {
            label: fault(call, {**right, parameter: value}, parameter)
            for label, value in VALUES.items()
            if (name, parameter, label) not in SLOW
        }
    finally:
        pyplot.close("all")
    assert [(label, text) for label, text in faults.items() if text is not None] == []


@pytest.mark.parametrize("module", ["", "features", "theory", "estimation", "plotting"])
def test_every_public_callable_is_covered(module):
    owner = import_module(f"unflip.{module}" if module else "unflip")
    for name in owner.__all__:
        if callable(getattr(owner, name)) and name not in RESULTS:
            full_name = f"{module}.{name}".lstrip(".")
            assert any(
                call == full_name or call.startswith((f"{full_name}.", f"{full_name},"))
                for call in CALLS
            ), full_name
