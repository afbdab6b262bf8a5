"""LPClassifier passes every check of scikit-learn with all combinations of parameters."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from support.scikit_learn_checks import may_be_skipped
from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation import Automatic, TrustedSubset

MILD = NoiseModel.binary(eps_pos=0.1, eps_neg=0.05)
COMBINATIONS = [
    LPClassifier(noise, targets=targets, readout=readout, reg=reg, fit_intercept=fit_intercept)
    for noise, targets, readout, fit_intercept, reg in product(
        (None, MILD),
        ("naive", "unbiased", "optimized", (-1.0, 2.0)),
        ("plain", "gaussian"),
        (True, False),
        ("loo", 0.1),
    )
]


# The defaults, estimated noise with other parameters, and noise estimators for any data.
COMBINATIONS += [
    LPClassifier(),
    LPClassifier(readout="plain", fit_intercept=False),
    LPClassifier(priors=[0.5, 0.5]),
    LPClassifier(TrustedSubset()),
]
ESTIMATORS = [TrustedSubset(), Automatic()]


def describe(estimator):
    noise = "clean" if estimator.noise is None else type(estimator.noise).__name__
    origin = "intercept" if estimator.fit_intercept else "origin"
    return f"{noise}-{estimator.targets}-{estimator.readout}-{origin}-{estimator.reg}"


@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix:UserWarning")
@pytest.mark.filterwarnings(
    "ignore:Both targets:UserWarning", "ignore:.*of the fitted scores:UserWarning"
)  # some checks have very unbalanced labels
@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.filterwarnings("ignore:No row has a trusted label:UserWarning")
@pytest.mark.parametrize("estimator", COMBINATIONS, ids=describe)
def test_every_check_passes(estimator):
    results = check_estimator(estimator, on_skip=None)
    assert len(results) > 50
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert all(map(may_be_skipped, results))


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix:UserWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_every_check_of_noise_estimators_passes(estimator):
    results = check_estimator(estimator, on_skip=None)
    assert len(results) > 40
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert all(map(may_be_skipped, results))


def test_works_in_pipelines_searches_and_with_dataframes():
    pandas = pytest.importorskip("pandas")
    X, y = make_mixture(200, 20, random_state=0)
    frame = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(20)])
    labels = np.where(MILD.flip(y, 0) == 1, "tumour", "normal")
    pipeline = make_pipeline(StandardScaler(), LPClassifier(MILD))
    assert cross_val_score(pipeline, frame, labels).mean() > 0.8
    search = GridSearchCV(LPClassifier(), {"noise": [None, MILD], "reg": [0.1, "loo"]}).fit(
        frame, labels
    )
    assert set(search.best_estimator_.classes_) == {"normal", "tumour"}
    assert list(search.best_estimator_.feature_names_in_) == list(frame.columns)


def test_clones_keep_the_noise_model():
    assert clone(LPClassifier(MILD)).noise == MILD
    assert "eps_pos=0.1" in repr(LPClassifier(MILD))
