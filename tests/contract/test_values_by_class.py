"""Estimators and audits take noise rates and class proportions by the name of the class."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict

from unflip import LPClassifier, Moments, NoiseModel, NoisyLabelClassifier, Votes, audit_scores
from unflip import audit as audit_rows
from unflip.datasets import make_mixture

RATES = {"yes": 0.3, "no": 0.1}
PRIORS = {"yes": 0.5, "no": 0.5}
NOISE = NoiseModel([[0.9, 0.1], [0.3, 0.7]])
X, TRUE = make_mixture(400, 20, mean_norm=2.0, random_state=0)
Y = np.where(NOISE.flip(TRUE, random_state=0) == 1, "yes", "no")


def coefficients(**parameters):
    fitted = LPClassifier(**parameters).fit(X, Y)
    return np.append(fitted.coef_, fitted.intercept_)


@pytest.mark.parametrize(
    ("by_class", "in_order"),
    [
        ({"noise": RATES}, {"noise": NOISE}),
        ({"noise": RATES, "priors": PRIORS}, {"noise": NOISE, "priors": [0.5, 0.5]}),
        ({"noise": NOISE, "priors": PRIORS}, {"noise": NOISE.with_priors([0.5, 0.5])}),
        (
            {"noise": RATES, "deployment_priors": {"yes": 0.9, "no": 0.1}},
            {"noise": NOISE, "deployment_priors": [0.1, 0.9]},
        ),
        (
            {"noise": RATES, "targets": "optimized", "readout": "plain"},
            {"noise": NOISE, "targets": "optimized", "readout": "plain"},
        ),
    ],
)
def test_classifier(by_class, in_order):
    np.testing.assert_array_equal(coefficients(**by_class), coefficients(**in_order))


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
def test_priors_by_class_constrain_estimated_rates():
    np.testing.assert_array_equal(coefficients(priors=PRIORS), coefficients(priors=[0.5, 0.5]))


def test_sums_over_rows():
    moments = Moments.from_chunks([(X, Y)])
    by_class = LPClassifier.from_moments(moments, RATES, priors=PRIORS)
    in_order = LPClassifier.from_moments(moments, NOISE, priors=[0.5, 0.5])
    np.testing.assert_array_equal(by_class.coef_, in_order.coef_)
    partial = LPClassifier(RATES, priors=PRIORS, targets="optimized")
    partial.partial_fit(X[:200], Y[:200], classes=["no", "yes"]).partial_fit(X[200:], Y[200:])
    np.testing.assert_allclose(partial.coef_, in_order.coef_)


def test_votes():
    votes = Votes.from_columns(np.column_stack([Y, Y[::-1]]))
    by_class = LPClassifier(RATES).fit(X, votes)
    np.testing.assert_array_equal(by_class.coef_, LPClassifier(NOISE).fit(X, votes).coef_)


@pytest.mark.parametrize("features", ["numbers", "texts"])
def test_any_classifier(features):
    samples = X if features == "numbers" else X.astype(object)
    options = {"cv": 2}
    by_class = NoisyLabelClassifier(LogisticRegression(), RATES, priors=PRIORS, **options)
    in_order = NoisyLabelClassifier(LogisticRegression(), NOISE, priors=[0.5, 0.5], **options)
    np.testing.assert_array_equal(
        by_class.fit(samples, Y).label_posterior_, in_order.fit(samples, Y).label_posterior_
    )


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize("noise", ["estimate", "rates"])
@pytest.mark.parametrize("groups", [None, np.arange(400) // 2])
def test_audit(noise, groups):
    by_class = RATES if noise == "rates" else noise
    in_order = NOISE if noise == "rates" else noise
    found = audit_rows(X, Y, noise=by_class, priors=PRIORS, groups=groups)
    expected = audit_rows(X, Y, noise=in_order, priors=[0.5, 0.5], groups=groups)
    np.testing.assert_array_equal(found.label_posterior, expected.label_posterior)
    assert str(found) == str(expected)


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize("noise", ["estimate", "rates"])
def test_audit_of_scores(noise):
    probabilities = cross_val_predict(LogisticRegression(), X, Y, method="predict_proba")
    by_class = RATES if noise == "rates" else noise
    in_order = NOISE if noise == "rates" else noise
    found = audit_scores(probabilities, Y, noise=by_class, priors=PRIORS)
    expected = audit_scores(probabilities, Y, noise=in_order, priors=[0.5, 0.5])
    np.testing.assert_array_equal(found.label_posterior, expected.label_posterior)


def test_scikit_learn_handles_values_by_class():
    classifier = LPClassifier(RATES, priors=PRIORS)
    copy = clone(classifier)
    assert copy.get_params()["noise"] == RATES
    assert copy.noise is not classifier.noise
    assert "'yes': 0.3" in repr(copy)
    assert copy.set_params(noise={"yes": 0.2, "no": 0.2}).noise["yes"] == 0.2
    search = GridSearchCV(LPClassifier(), {"noise": [RATES, None]}, cv=2).fit(X, Y)
    assert set(search.best_estimator_.classes_) == {"no", "yes"}


def test_errors_name_the_class():
    with pytest.raises(ValueError, match="names the class 'Yes', which is not in y: did you mean"):
        LPClassifier({"Yes": 0.3, "no": 0.1}).fit(X, Y)
    with pytest.raises(ValueError, match=r"priors = .* has no value for the class 'no'"):
        audit_rows(X, Y, priors={"yes": 0.5})
    with pytest.raises(ValueError, match=r"deployment_priors = .* sums to 0.8"):
        LPClassifier(RATES, deployment_priors={"yes": 0.5, "no": 0.3}).fit(X, Y)
