"""LPClassifier with estimated noise: the default, estimators, priors, and reg="theory"."""

import warnings

import numpy as np
import pytest

from support.amazon import needs_data
from unflip import LPClassifier, NoiseModel, audit, theory
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews, load_sentiment_votes, make_mixture
from unflip.estimation import AssumedNoiseWarning, Automatic, CrossMoment, TrustedSubset
from unflip.estimation.given_rates import GivenRates

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.1)


def draw(seed=0, scale=1.0):
    X, y = make_mixture(600, 60, mean_norm=2.0, random_state=seed)
    return X * scale, NOISE.flip(y, random_state=seed), y


def quiet(clf, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        return clf.fit(*data, **options)


def test_the_default_uses_the_automatic_estimate():
    X, observed, _ = draw()
    clf = LPClassifier().fit(X, observed)
    estimate = Automatic().fit(X, observed)
    assert clf.noise_ == estimate.noise_
    np.testing.assert_array_equal(clf.noise_std_, estimate.noise_std_)
    assert clf.noise_estimator_.source_ == "mixture"
    with_model = LPClassifier(estimate.noise_).fit(X, observed)
    assert with_model.noise_estimator_ is None
    assert not with_model.noise_std_.any()
    # Priors of a NoiseModel are known, which changes the calibration and refined targets a little.
    distance = np.linalg.norm(clf.coef_ - with_model.coef_)
    assert distance < 0.01 * np.linalg.norm(with_model.coef_)
    with_rates = LPClassifier(GivenRates(estimate.noise_)).fit(X, observed)
    np.testing.assert_allclose(with_rates.coef_, clf.coef_, atol=1e-10)
    options = {"targets": "optimized", "readout": "plain"}
    first, second = (
        LPClassifier(noise, **options).fit(X, observed) for noise in ("estimate", estimate.noise_)
    )
    np.testing.assert_allclose(second.coef_, first.coef_, atol=1e-10)


def test_the_origin_does_not_change_the_estimate():
    X, observed, _ = draw()
    with_intercept, without = (
        LPClassifier(fit_intercept=choice).fit(X, observed) for choice in (True, False)
    )
    np.testing.assert_allclose(
        with_intercept.noise_.transition, without.noise_.transition, atol=1e-10
    )


def test_rates_without_a_mixture_follow_from_the_labels():
    X, observed, y = draw(scale=np.linspace(0.5, 1.5, 60))
    clf = LPClassifier().fit(X, observed)  # a warning would be an error
    estimator = clf.noise_estimator_
    assert estimator.source_ == "label likelihood"
    assert estimator.assumption_ == ""
    assert estimator.noise_ == clf.noise_
    np.testing.assert_array_equal(estimator.noise_std_, clf.noise_std_)
    realised = np.mean(observed[y == 1] != 1)
    assert abs(clf.noise_.eps_pos - realised) < 3 * clf.noise_std_[1, 0] < 0.3
    # The noise model is that of the label posteriors.
    np.testing.assert_allclose(clf.noise_.priors, clf.label_posterior_.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(clf.noise_.observed, np.bincount(observed) / 600, rtol=1e-9)


def test_known_priors_constrain_rates_from_the_labels():
    X, observed, _ = draw(scale=np.linspace(0.5, 1.5, 60))
    informed = LPClassifier(priors=[0.5, 0.5]).fit(X, observed)
    np.testing.assert_array_equal(informed.noise_.priors, [0.5, 0.5])
    np.testing.assert_allclose(informed.noise_.observed, np.bincount(observed) / 600, atol=0.02)
    by_estimator = LPClassifier(Automatic(priors=[0.5, 0.5])).fit(X, observed)
    np.testing.assert_array_equal(by_estimator.coef_, informed.coef_)
    np.testing.assert_array_equal(by_estimator.noise_.priors, [0.5, 0.5])


def test_audits_have_the_posteriors_of_the_classifier():
    X, observed, _ = draw(scale=np.linspace(0.5, 1.5, 60))
    clf = LPClassifier().fit(X, observed)
    report = audit(X, observed)
    np.testing.assert_allclose(report.label_posterior, clf.label_posterior_, atol=1e-9)
    assert report.noise == clf.noise_


def test_rates_that_data_hardly_determine_give_a_short_warning():
    X, observed, _ = draw(scale=np.linspace(0.5, 1.5, 60))
    weak = 0.25 * X + np.random.default_rng(0).normal(size=X.shape)
    with pytest.warns(AssumedNoiseWarning, match="hardly identifiable") as caught:
        clf = LPClassifier().fit(weak, observed)
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert not any(letter.isdigit() for letter in message)  # or Python would repeat it
    assert clf.noise_std_[1, 0] > 0.05


def test_features_without_signal_give_a_warning():
    X, observed, _ = draw()
    shuffled = np.random.default_rng(0).permutation(observed)
    with pytest.warns(AssumedNoiseWarning, match="do not predict the labels"):
        clf = LPClassifier().fit(X, shuffled)
    assert clf.noise_estimator_.source_ == "no signal"


def test_the_default_equals_its_estimator():
    X, observed, _ = draw(scale=np.linspace(0.5, 1.5, 60))
    default = LPClassifier().fit(X, observed)
    passed = LPClassifier(Automatic()).fit(X, observed)
    np.testing.assert_array_equal(passed.coef_, default.coef_)
    assert passed.noise_ == default.noise_


@pytest.mark.parametrize("given_priors", [True, False])
def test_estimators_are_fitted_as_clones(given_priors):
    X, observed, y = draw(seed=1)
    trusted = TrustedSubset(np.where(np.arange(600) % 6 == 0, y, np.nan))
    options = {"priors": [0.5, 0.5]} if given_priors else {}
    clf = LPClassifier(trusted, **options).fit(X, observed)
    assert not hasattr(trusted, "noise_")
    assert clf.noise_estimator_.n_trusted_ == 100
    assert abs(clf.noise_.eps_pos - 0.4) < 3 * clf.noise_std_[1, 0] < 0.3
    narrower = clf.noise_std_[1, 0] < clf.noise_estimator_.noise_std_[1, 0]
    assert narrower == given_priors


def test_an_estimator_with_known_geometry():
    X, observed, _ = draw()
    clf = LPClassifier(CrossMoment(mean_norm=2.0, pi_neg=0.5)).fit(X, observed)
    assert clf.noise_estimator_.mean_norm_ == 2.0
    assert abs(clf.noise_.eps_neg - 0.1) < 4 * clf.noise_std_[0, 1]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("unit", [1.0, 30.0])
def test_reg_theory_is_at_least_as_large_as_reg_loo(fit_intercept, unit):
    """In isotropic noise accuracy grows with γ, so the largest candidate is taken."""
    X, observed, _ = draw(scale=unit)
    by_theory = LPClassifier(reg="theory", fit_intercept=fit_intercept).fit(X, observed)
    by_loo = LPClassifier(fit_intercept=fit_intercept).fit(X, observed)
    assert by_theory.reg_ >= by_loo.reg_
    X_new, y_new = make_mixture(4000, 60, mean_norm=2.0, random_state=99)
    assert by_theory.score(unit * X_new, y_new) > by_loo.score(unit * X_new, y_new) - 0.01


def test_reg_theory_with_a_plain_readout_minimizes_the_risk():
    X, observed, _ = draw(scale=3.0)
    clf = LPClassifier(reg="theory", readout="plain", targets="naive").fit(X, observed)
    mixture = theory.Mixture(mean_norm=2.0, aspect=0.1, noise=NOISE.with_priors([0.5, 0.5]))
    best = theory.optimal_reg(mixture, targets="naive", objective="risk", fit_intercept=True)
    assert clf.reg_ / 9 == pytest.approx(float(best), rel=0.3)


def test_reg_theory_raises_on_other_data():
    X, observed, _ = draw(scale=np.linspace(0.5, 1.5, 60))
    with pytest.raises(
        ValueError,
        match=r"reg='theory' does not fit these data \(the rows are not an isotropic mixture",
    ):
        LPClassifier(NOISE, reg="theory").fit(X, observed)


def test_plain_readout_of_one_sided_scores_gives_a_warning():
    X, y = make_mixture(600, 20, mean_norm=2.0, priors=[0.2, 0.8], random_state=0)
    with pytest.warns(
        UserWarning, match="of the fitted scores favour one class, so readout='plain'"
    ) as caught:
        LPClassifier(NOISE, readout="plain", reg=1e4).fit(X, NOISE.flip(y, random_state=0))
    assert caught[0].filename == __file__


def accuracies(X, observed, X_test, y_test):
    return [
        quiet(LPClassifier(noise), X, observed).score(X_test, y_test)
        for noise in ("estimate", None)
    ]


def standardised(X, X_test):
    mean, std = X.mean(axis=0), X.std(axis=0) + 1e-12
    return (X - mean) / std, (X_test - mean) / std


@needs_data
@pytest.mark.parametrize("domain", AMAZON_DOMAINS)
def test_the_default_is_no_worse_than_no_noise_on_reviews(domain):
    X, y = load_amazon_reviews(domain)
    results = []
    for noise in (NOISE, NoiseModel.binary(eps_pos=0.4, eps_neg=0.3), NoiseModel.none()):
        for seed in range(2):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[:1600], order[1600:]
            rows, rows_test = standardised(X[train], X[test])
            results.append(
                accuracies(rows, noise.flip(y[train], random_state=seed), rows_test, y[test])
            )
    estimated, ignored = np.array(results).reshape(3, 2, 2).mean(axis=1).T
    assert (estimated >= ignored - 0.01).all()
    assert estimated.mean() > ignored.mean() + 0.02


@needs_data
@pytest.mark.parametrize("votes", ["random", "worst"])
def test_the_default_is_no_worse_than_no_noise_on_annotator_votes(votes):
    crowd = load_sentiment_votes()
    observed = crowd.random_votes(0) if votes == "random" else crowd.worst_votes()
    rows, rows_test = standardised(crowd.X_train, crowd.X_test)
    estimated, ignored = accuracies(rows, observed, rows_test, crowd.y_test)
    assert estimated >= ignored - 0.01
