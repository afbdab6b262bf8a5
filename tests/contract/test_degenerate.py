"""Special cases in which LPClassifier must equal a known model."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge, RidgeClassifier

from unflip import LPClassifier, NoiseModel, targets
from unflip.datasets import make_mixture

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.2)
SHAPES = pytest.mark.parametrize(("n", "p"), [(120, 30), (40, 90), (50, 50)])
INTERCEPT = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "origin"])


def noisy(n, p, seed=0):
    X, y = make_mixture(n, p, mean_norm=1.5, priors=[0.4, 0.6], random_state=seed)
    return X + 0.3, NOISE.flip(y, random_state=seed), y


@SHAPES
@INTERCEPT
@pytest.mark.parametrize("reg", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
def test_naive_targets_with_plain_readout_are_ridge(n, p, fit_intercept, reg, weighted):
    X, observed, _ = noisy(n, p)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=n) if weighted else None
    total = n if weights is None else weights.sum()
    ours = LPClassifier(
        NOISE, targets="naive", readout="plain", reg=reg, fit_intercept=fit_intercept
    )
    ours.fit(X, observed, sample_weight=weights)
    ridge = Ridge(alpha=total * reg, fit_intercept=fit_intercept)
    ridge.fit(X, 2 * observed - 1, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_[0], ridge.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.intercept_[0], ridge.intercept_, rtol=0, atol=1e-10)
    classifier = RidgeClassifier(alpha=total * reg, fit_intercept=fit_intercept)
    classifier.fit(X, observed, sample_weight=weights)
    np.testing.assert_array_equal(ours.predict(X), classifier.predict(X))


@INTERCEPT
@pytest.mark.parametrize("readout", ["plain", "gaussian"])
@pytest.mark.parametrize("name", ["naive", "unbiased", "optimized"])
def test_without_noise_all_targets_agree(name, readout, fit_intercept):
    X, _, y = noisy(100, 40)
    options = {"readout": readout, "fit_intercept": fit_intercept}
    oracle = LPClassifier(None, targets="naive", **options).fit(X, y)
    clean = LPClassifier(NoiseModel.binary(eps_pos=0, eps_neg=0), targets=name, **options).fit(X, y)
    for attribute in ("coef_", "intercept_", "loo_decision_", "reg_"):
        np.testing.assert_allclose(
            getattr(clean, attribute), getattr(oracle, attribute), rtol=1e-12, atol=1e-12
        )


@SHAPES
@INTERCEPT
@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
def test_leave_one_out_decisions_equal_refits(n, p, fit_intercept, weighted):
    X, observed, _ = noisy(n, p)
    X[1] = X[0]  # duplicates are left out one at a time
    weights = np.random.default_rng(1).uniform(0.5, 2, size=n) if weighted else np.ones(n)
    weights[5] = 0.0  # takes no part in the fit
    reg = 0.2
    ours = LPClassifier(
        NOISE, targets="unbiased", readout="plain", reg=reg, fit_intercept=fit_intercept
    )
    ours.fit(X, observed, sample_weight=weights)
    t = targets.unbiased(NOISE)[observed]
    for i in range(n):
        rest = np.arange(n) != i
        refit = Ridge(alpha=weights.sum() * reg, fit_intercept=fit_intercept)
        refit.fit(X[rest], t[rest], sample_weight=weights[rest])
        assert ours.loo_decision_[i] == pytest.approx(refit.predict(X[[i]])[0], abs=1e-8)


def test_leave_one_out_decisions_are_calibrated():
    X, observed, _ = noisy(80, 20)
    options = {"targets": "optimized", "reg": 0.3, "fit_intercept": False}
    plain = LPClassifier(NOISE, readout="plain", **options).fit(X, observed)
    gaussian = LPClassifier(NOISE, readout="gaussian", **options).fit(X, observed)
    slope = gaussian.coef_[0, 0] / plain.coef_[0, 0]
    np.testing.assert_allclose(
        gaussian.loo_decision_, slope * plain.loo_decision_ + gaussian.intercept_, atol=1e-10
    )


@pytest.mark.parametrize("reg", [1.0, 100.0, "loo"])
def test_leave_one_out_decisions_of_the_gaussian_readout_match_refits(reg):
    """At strong regularization plain leave-one-out scores contain label leakage; these must not."""
    X, y = make_mixture(300, 100, mean_norm=2.5, random_state=0)
    observed = NOISE.flip(y, random_state=0)
    clf = LPClassifier(NOISE, reg=reg).fit(X, observed)
    rows = np.arange(0, 300, 6)
    refits = []
    for i in rows:
        rest = np.arange(300) != i
        refit = LPClassifier(NOISE, reg=clf.reg_ * 300 / 299).fit(X[rest], observed[rest])
        refits.append(refit.decision_function(X[[i]])[0])
    assert np.corrcoef(clf.loo_decision_[rows], refits)[0, 1] > 0.98
    assert np.mean((clf.loo_decision_ > 0) == y) > 0.75


def test_warns_of_one_sided_targets_with_plain_readout_and_intercept():
    X, observed, _ = noisy(80, 20)
    with pytest.warns(UserWarning, match="Both targets .* have the same sign"):
        LPClassifier(NOISE, targets=(0.1, 0.6), readout="plain").fit(X, observed)


def test_with_an_intercept_targets_change_the_threshold_only():
    """The gaussian calibration recovers the same threshold."""
    X, observed, _ = noisy(150, 60)
    fits = [
        LPClassifier(NOISE, targets=t, reg=1.0).fit(X, observed)
        for t in ("naive", "unbiased", "optimized")
    ]
    for fit in fits[1:]:
        np.testing.assert_allclose(
            fit.decision_function(X), fits[0].decision_function(X), rtol=1e-6, atol=1e-6
        )


def test_without_noise_and_with_few_features_it_is_discriminant_analysis():
    """With many rows leave-one-out scores equal the scores, and ridge at γ → 0 has Fisher's
    direction.
    """
    X, y = make_mixture(20_000, 3, mean_norm=1.0, priors=[0.3, 0.7], random_state=0)
    ours = LPClassifier(None, reg=1e-10).fit(X, y)
    fisher = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    # The slope is fitted to the labels, not to the shape of the scores.
    np.testing.assert_allclose(ours.coef_, fisher.coef_, rtol=0.02)
    np.testing.assert_allclose(ours.intercept_, fisher.intercept_, rtol=0.02)


@pytest.mark.filterwarnings("ignore:.*of the fitted scores favour:UserWarning")
@pytest.mark.parametrize("readout", ["plain", "gaussian"])
@pytest.mark.parametrize(
    ("fit_intercept", "value"), [(True, 0.0), (True, 1.0), (True, 1e6), (False, 0.0)]
)
def test_constant_columns_change_nothing(fit_intercept, value, readout):
    X, observed, _ = noisy(90, 20)
    padded = np.insert(X, 7, value, axis=1)
    options = {"readout": readout, "fit_intercept": fit_intercept}
    for reg in (0.0, 0.1, "loo"):
        without = LPClassifier(NOISE, reg=reg, **options).fit(X, observed)
        with_it = LPClassifier(NOISE, reg=reg, **options).fit(padded, observed)
        assert with_it.reg_ == pytest.approx(without.reg_, rel=1e-9)
        np.testing.assert_allclose(
            with_it.decision_function(padded), without.decision_function(X), atol=1e-7
        )
        assert abs(with_it.coef_[0, 7]) < 1e-10


@pytest.mark.parametrize("targets", ["naive", "refined"])
def test_deployment_priors_and_costs_shift_the_threshold_only(targets):
    X, observed, _ = noisy(150, 30)
    options = {"noise": NOISE, "targets": targets, "reg": 1.0}
    default, even = (
        LPClassifier(deployment_priors=pi, **options).fit(X, observed) for pi in (None, "balanced")
    )
    few_positives, many = (
        LPClassifier(deployment_priors=pi, **options).fit(X, observed)
        for pi in ([0.9, 0.1], [0.1, 0.9])
    )
    for clf in (even, few_positives, many):
        np.testing.assert_allclose(clf.coef_, default.coef_)
        np.testing.assert_allclose(clf.label_posterior_, default.label_posterior_)
    assert many.intercept_ - few_positives.intercept_ == pytest.approx(2 * np.log(9))
    assert many.intercept_ - even.intercept_ == pytest.approx(np.log(9))
    with_costs = LPClassifier(costs=[[0, 1], [5, 0]], **options).fit(X, observed)
    assert with_costs.intercept_ - default.intercept_ == pytest.approx(np.log(5))
    np.testing.assert_allclose(with_costs.predict_proba(X), default.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(
        with_costs.predict(X), (with_costs.predict_proba(X)[:, 1] > 1 / 6).astype(int)
    )


def test_transition_matrix_equals_noise_model_in_the_order_of_classes():
    X, observed, _ = noisy(100, 20)
    names = np.array(["b-neg", "a-pos"])  # sorted, the positive class comes first
    relabelled = NoiseModel.binary(eps_pos=NOISE.eps_neg, eps_neg=NOISE.eps_pos)
    first = LPClassifier(NOISE.transition, reg=1.0).fit(X, observed)
    second = LPClassifier(relabelled.transition, reg=1.0).fit(X, names[observed])
    np.testing.assert_allclose(second.decision_function(X), -first.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(second.predict_proba(X), first.predict_proba(X)[:, ::-1], atol=1e-6)
    np.testing.assert_array_equal(second.predict(X) == "a-pos", first.predict(X) == 1)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_features_with_few_values_are_fitted_as_well_as_continuous_ones(k):
    """Duplicates are then independent observations, as slightly different rows would be."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(1000, k)).astype(float)
    y = np.where(rng.random(1000) < 0.9, X[:, 0], 1 - X[:, 0]).astype(int)
    apart = X + 1e-7 * rng.normal(size=X.shape)
    exact, jittered = (
        LPClassifier(None, reg=0.01).fit(X, y),
        LPClassifier(None, reg=0.01).fit(apart, y),
    )
    np.testing.assert_allclose(exact.predict_proba(X), jittered.predict_proba(X), atol=0.02)


def test_zero_weight_samples_and_their_classes_are_ignored():
    X, observed, _ = noisy(60, 10)
    labels = observed.copy()
    labels[:5] = 7
    weights = np.ones(60)
    weights[:5] = 0
    clf = LPClassifier(None, reg=0.1).fit(X, labels, sample_weight=weights)
    fewer = LPClassifier(None, reg=0.1).fit(X[5:], observed[5:])
    np.testing.assert_array_equal(clf.classes_, fewer.classes_)
    np.testing.assert_allclose(clf.decision_function(X), fewer.decision_function(X))
    np.testing.assert_allclose(clf.loo_decision_[:5], fewer.decision_function(X[:5]))
