"""NoisyLabelClassifier: equality with known models, fits, posteriors and expected accuracy."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from support.any_classifier import (
    CATEGORIES,
    CERTAIN,
    NOISE,
    THREE,
    TREE,
    Recording,
    circles,
    moons,
    probabilities_near,
    three_blobs,
)
from support.combined import combined_log_odds
from unflip import LPClassifier, NoisyLabelClassifier
from unflip.calibration.log_odds import recalibration
from unflip.calibration.observations import Observations
from unflip.estimation import AssumedNoiseWarning, TrustedSubset
from unflip.model.out_of_fold import split_into_folds


class Counting(DecisionTreeClassifier):
    """A tree that counts its fits."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.n_fits += 1
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.fixture
def n_fits():
    """Return a function that returns the number of fits of `Counting`."""
    Counting.n_fits = 0
    return lambda: Counting.n_fits


def bayes(fitted, y):
    """Return P(true class | log-odds, label) by Bayes' rule."""
    codes = np.searchsorted(fitted.classes_, y)
    joint = softmax(fitted.log_odds_, axis=1) * fitted.rates_.noise.transition[:, codes].T
    return joint / joint.sum(axis=1, keepdims=True)


class TestKnownModels:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_without_noise_it_is_the_plain_classifier(self, weighted):
        """The posterior of each sample is its label, and its lead is 1."""
        X, y, _ = moons()
        weights = np.random.default_rng(0).uniform(0.5, 2, size=300) if weighted else None
        for estimator in (TREE, GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())):
            fitted = NoisyLabelClassifier(estimator, noise=None)
            fitted.fit(X, y, sample_weight=weights)
            np.testing.assert_array_equal(fitted.label_posterior_, np.eye(2)[y])
            name = "gaussiannb__sample_weight" if hasattr(estimator, "steps") else "sample_weight"
            plain = clone(estimator).fit(X, y, **{name: weights})
            np.testing.assert_allclose(
                fitted.predict_proba(X), plain.predict_proba(X), rtol=1e-12, atol=1e-15
            )
            np.testing.assert_array_equal(fitted.noise_.transition, np.eye(2))
            assert not fitted.noise_std_.any()

    def test_without_noise_a_classifier_without_weights_is_the_plain_one(self):
        X, y, _ = moons()
        fitted = NoisyLabelClassifier(KNeighborsClassifier(), noise=None).fit(X, y)
        plain = KNeighborsClassifier().fit(X, y)
        np.testing.assert_array_equal(fitted.predict_proba(X), plain.predict_proba(X))

    @pytest.mark.parametrize("estimator", [TREE, SVC(), KNeighborsClassifier()], ids=repr)
    def test_separable_classes_with_known_rates_are_recovered(self, estimator):
        centers = [[-10.0, 0.0], [10.0, 0.0]]
        X, y = make_blobs(200, centers=centers, cluster_std=1.0, random_state=0)
        fitted = NoisyLabelClassifier(estimator, NOISE).fit(X, NOISE.flip(y, random_state=0))
        np.testing.assert_array_equal(fitted.label_posterior_.argmax(axis=1), y)
        assert fitted.label_posterior_[np.arange(200), y].min() > 0.99
        np.testing.assert_array_equal(fitted.predict(X), clone(estimator).fit(X, y).predict(X))
        assert fitted.expected_accuracy_ > 0.99

    def test_separable_blobs_of_three_classes_are_recovered(self):
        X, observed, y = three_blobs(cluster_std=0.3)
        fitted = NoisyLabelClassifier(TREE, THREE).fit(X, observed)
        assert (fitted.label_posterior_.argmax(axis=1) == y).all()
        np.testing.assert_array_equal(fitted.predict(X), y)

    def test_the_first_step_is_a_kernel_classifier_of_standardized_features(self):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(TREE, NOISE, cv=None).fit(X * [1, 1000], observed)
        expected = LPClassifier(NOISE, features="auto").fit(
            StandardScaler().fit_transform(X), observed
        )
        np.testing.assert_allclose(fitted.label_fit_.loo_log_odds_, expected.loo_log_odds_)
        assert fitted.noise_ == expected.noise_
        assert fitted.n_effective_ == expected.n_effective_
        assert fitted.cv_share_ == 0

    def test_given_probabilities_are_combined_with_the_first_step(self):
        X, observed, y = moons(spread=0.5)
        pred_probs = probabilities_near(y)
        fitted = NoisyLabelClassifier(TREE, NOISE, cv=None)
        fitted.fit(X, observed, pred_probs=pred_probs)
        first = np.column_stack([np.zeros(300), fitted.label_fit_.loo_log_odds_])
        rows = Observations(observed, np.ones(300), fitted.label_fit_.n_effective_)
        floored = np.log(np.maximum(pred_probs, 1 / 3000))
        combined, share = combined_log_odds(first, floored, rows, fitted.noise_)
        assert fitted.cv_share_ == pytest.approx(share, rel=1e-9)
        assert 0.1 < share < 1
        expected = recalibration(combined, rows, fitted.noise_).log_odds
        np.testing.assert_allclose(fitted.log_odds_, expected, atol=1e-9)

    def test_given_probabilities_of_the_same_folds_equal_the_fits(self):
        X, observed, _ = moons()
        folds = split_into_folds(5, observed, np.arange(300), None)
        weights = np.ones(300)
        pred_probs = cross_val_predict(
            SVCWithProbabilities(),
            X,
            observed,
            cv=folds,
            method="predict_proba",
            params={"sample_weight": weights},
        )
        by_fits = NoisyLabelClassifier(SVCWithProbabilities(), NOISE).fit(X, observed)
        given = NoisyLabelClassifier(SVCWithProbabilities(), NOISE, cv=None)
        given.fit(X, observed, pred_probs=pred_probs)
        np.testing.assert_allclose(given.log_odds_, by_fits.log_odds_, atol=1e-9)
        assert given.cv_share_ == by_fits.cv_share_

    def test_only_given_probabilities_are_calibrated_if_features_are_not_numeric(self):
        _, observed, y = moons()
        X = np.where(y[:, None] == 1, "a", "b").astype(object)
        pred_probs = probabilities_near(y)
        fitted = NoisyLabelClassifier(CATEGORIES, NOISE, cv=None)
        fitted.fit(X, observed, pred_probs=pred_probs)
        assert fitted.label_fit_ is None
        rows = Observations(observed, np.ones(300), 300.0)
        floored = np.log(np.maximum(pred_probs, 1 / 3000))
        expected = recalibration(floored, rows, fitted.noise_).log_odds
        np.testing.assert_allclose(fitted.log_odds_, expected, atol=1e-9)
        assert fitted.cv_share_ == 1


class SVCWithProbabilities(ClassifierMixin, BaseEstimator):
    """A support vector machine whose decision values are read as log-odds."""

    def fit(self, X, y, sample_weight=None):
        self.inner_ = SVC().fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def predict_proba(self, X):
        values = self.inner_.decision_function(X)
        return softmax(np.column_stack([np.zeros(len(X)), 2 * values]), axis=1)


class TestFits:
    def test_there_is_one_without_folds(self, n_fits):
        X, observed, _ = moons()
        NoisyLabelClassifier(Counting(max_depth=3), NOISE, cv=None).fit(X, observed)
        assert n_fits() == 1

    @pytest.mark.parametrize("cv", [2, 5])
    def test_each_fold_needs_two_more(self, n_fits, cv):
        X, observed, _ = moons()
        NoisyLabelClassifier(Counting(max_depth=3), NOISE, cv=cv).fit(X, observed)
        assert n_fits() == 2 * cv + 1

    def test_given_probabilities_replace_the_fits_to_the_observed_labels(self, n_fits):
        X, observed, y = moons()
        pred_probs = probabilities_near(y)
        results = []
        for cv in (None, 5):
            fitted = NoisyLabelClassifier(Counting(max_depth=3, random_state=0), NOISE, cv=cv)
            results.append(fitted.fit(X, observed, pred_probs=pred_probs).log_odds_)
        assert n_fits() == 1 + (1 + 5)
        np.testing.assert_array_equal(*results)

    def test_the_estimator_stays_unfitted(self):
        X, observed, _ = moons()
        estimator = clone(TREE)
        fitted = NoisyLabelClassifier(estimator, NOISE).fit(X, observed)
        assert not hasattr(estimator, "classes_")
        assert fitted.estimator is estimator
        assert fitted.estimator_ is not estimator

    def test_that_of_all_rows_is_to_the_likeliest_class_weighted_by_its_lead(self, recording):
        X, observed, _ = moons()
        weights = np.random.default_rng(1).uniform(0.5, 2, size=300)
        fitted = NoisyLabelClassifier(recording, NOISE).fit(X, observed, sample_weight=weights)
        (of_all,) = [fit for fit in Recording.fits if len(fit[0]) == len(X)]
        rows, labels, used = of_all
        posterior = fitted.label_posterior_
        np.testing.assert_array_equal(rows, X)
        np.testing.assert_array_equal(labels, posterior.argmax(axis=1))
        np.testing.assert_allclose(
            used, weights * np.abs(posterior[:, 1] - posterior[:, 0]), rtol=1e-12
        )

    def test_those_for_the_expected_accuracy_are_to_the_posterior(self, recording):
        X, observed, _ = moons()
        fitted = NoisyLabelClassifier(recording, NOISE, cv=3).fit(X, observed)
        likeliest = fitted.label_posterior_.argmax(axis=1)
        of_row = dict(zip(X[:, 0].tolist(), likeliest.tolist(), strict=True))
        assert sum(len(rows) for rows, _, _ in Recording.fits[-3:]) == 2 * 300
        for rows, labels, _ in Recording.fits[-3:]:
            assert [of_row[value] for value in rows[:, 0].tolist()] == labels.tolist()

    def test_those_of_folds_are_to_the_observed_labels(self, recording):
        X, observed, _ = moons()
        names = np.where(observed == 1, "b", "a")
        NoisyLabelClassifier(recording, NOISE).fit(X, names)
        of_row = dict(zip(X[:, 0].tolist(), names.tolist(), strict=True))
        assert len(Recording.fits) == 11
        for rows, labels, weights in Recording.fits[:5]:
            assert [of_row[value] for value in rows[:, 0].tolist()] == labels.tolist()
            np.testing.assert_array_equal(weights, 1)

    def test_folds_need_a_class_of_two_rows(self, n_fits):
        X, _, _ = moons(3)
        fitted = NoisyLabelClassifier(Counting(), NOISE).fit(X, [0, 1, 1])
        assert n_fits() == 2 * 2 + 1
        assert np.isfinite(fitted.expected_accuracy_)
        fitted.fit(X[:2], [0, 1])
        assert n_fits() == 2 * 2 + 1 + 1
        assert fitted.cv_share_ == 0
        assert np.isnan(fitted.expected_accuracy_)

    @pytest.mark.parametrize("numeric", [True, False], ids=["numbers", "texts"])
    def test_one_label_of_a_class_does_not_change_the_number_of_folds(self, n_fits, numeric):
        X, observed, _ = moons()
        names = np.array(["no", "yes"])[observed].astype(object)
        names[7] = "yse"
        inner = Counting(max_depth=3)
        encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        estimator = inner if numeric else make_pipeline(encode, inner)
        rows = X if numeric else np.digitize(X, [0, 0.5, 1]).astype(str)
        rows = rows if numeric else np.char.add("level ", rows)
        fitted = NoisyLabelClassifier(estimator).fit(rows, names)
        assert n_fits() == 11
        assert 0.5 < fitted.expected_accuracy_ < 1
        assert fitted.classes_[fitted.label_posterior_[7].argmax()] != "yse"


class TestPosterior:
    @pytest.mark.parametrize("cv", [None, 5])
    @pytest.mark.parametrize(
        "noise", ["estimate", NOISE, None], ids=["estimate", "known", "no noise"]
    )
    def test_it_follows_bayes_rule_from_log_odds_and_rates(self, noise, cv):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(SVC(), noise, cv=cv).fit(X, observed)
        assert fitted.association_ > CERTAIN
        np.testing.assert_allclose(fitted.label_posterior_, bayes(fitted, observed), atol=1e-10)
        np.testing.assert_allclose(fitted.label_posterior_.sum(axis=1), 1, atol=1e-12)

    def test_with_given_noise_the_rates_are_those_of_the_noise_model(self):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(SVC(), NOISE).fit(X, observed)
        assert fitted.noise_ == fitted.rates_.noise
        np.testing.assert_array_equal(fitted.noise_.transition, NOISE.transition)
        np.testing.assert_array_equal(fitted.noise_std_, 0)
        assert fitted.rates_.source == "given"

    def test_with_estimated_noise_it_has_the_mean_of_the_priors(self):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(SVC()).fit(X, observed)
        np.testing.assert_allclose(
            fitted.noise_.priors, fitted.label_posterior_.mean(axis=0), atol=1e-9
        )
        np.testing.assert_allclose(fitted.noise_.observed, np.bincount(observed) / 300, atol=1e-9)
        # The rates behind the posterior differ from those of the posterior by less than a standard
        # error.
        gap = np.abs(fitted.noise_.transition - fitted.rates_.noise.transition)
        np.testing.assert_array_less(gap, fitted.noise_std_)

    def test_it_follows_bayes_rule_for_several_classes(self):
        X, observed, _ = three_blobs()
        fitted = NoisyLabelClassifier(TREE, THREE).fit(X, np.array(["a", "b", "c"])[observed])
        assert fitted.association_ > CERTAIN
        expected = bayes(fitted, np.array(["a", "b", "c"])[observed])
        np.testing.assert_allclose(fitted.label_posterior_, expected, atol=1e-10)
        assert fitted.label_posterior_.shape == fitted.log_odds_.shape == (300, 3)

    def test_log_odds_are_against_the_first_class(self):
        X, observed, _ = circles()
        for cv in (None, 5):
            fitted = NoisyLabelClassifier(TREE, NOISE, cv=cv).fit(X, observed)
            np.testing.assert_allclose(fitted.log_odds_[:, 0], 0, atol=1e-12)

    def test_trusted_rows_are_certain(self):
        X, observed, y = moons(spread=0.5)
        checked = np.arange(300) % 5 == 0
        names = np.array(["no", "yes"])
        trusted = np.where(checked, names[y], None)
        fitted = NoisyLabelClassifier(TREE, TrustedSubset(trusted)).fit(X, names[observed])
        assert (observed != y)[checked].any()
        np.testing.assert_array_equal(fitted.label_posterior_[checked], np.eye(2)[y[checked]])
        others = fitted.label_posterior_[~checked]
        assert others.max() < 1
        np.testing.assert_allclose(others, bayes(fitted, names[observed])[~checked], atol=1e-10)
        assert fitted.rates_.source == "trusted rows"
        assert fitted.noise_std_.max() > 0

    def test_zero_weight_rows_have_the_class_priors(self):
        X, observed, _ = moons()
        absent = np.arange(300) % 4 == 0
        weights = np.where(absent, 0.0, 1.0)
        fitted = NoisyLabelClassifier(TREE, NOISE).fit(X, observed, sample_weight=weights)
        priors = fitted.noise_.priors
        np.testing.assert_array_equal(
            fitted.label_posterior_[absent], np.tile(priors, (absent.sum(), 1))
        )
        np.testing.assert_allclose(
            softmax(fitted.log_odds_[absent], axis=1), np.tile(priors, (absent.sum(), 1))
        )

    def test_rows_without_signal_have_the_posterior_of_their_label(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 5))
        observed = rng.integers(2, size=300)
        with pytest.warns(AssumedNoiseWarning, match="do not predict the labels") as caught:
            fitted = NoisyLabelClassifier(TREE).fit(X, observed)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert fitted.association_ < 1.5
        assert fitted.rates_.source == "no signal"
        for label in (0, 1):
            rows = fitted.label_posterior_[observed == label]
            assert np.ptp(rows, axis=0).max() < 2e-3
        assert abs(fitted.expected_accuracy_ - 0.5) < 0.05


class TestNoSignal:
    """Without signal, the classifier is fitted to the observed labels."""

    @staticmethod
    def chance(n=300):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(n, 5))
        return X, rng.choice(["a", "b"], p=[0.6, 0.4], size=n), rng.uniform(0.5, 2, size=n)

    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    @pytest.mark.parametrize("cv", [None, 5])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_predictions_are_those_of_the_plain_classifier(self, weighted, cv):
        X, observed, weights = self.chance()
        used = weights if weighted else None
        fitted = NoisyLabelClassifier(TREE, cv=cv).fit(X, observed, sample_weight=used)
        assert fitted.rates_.source == "no signal"
        plain = clone(TREE).fit(X, observed, sample_weight=used)
        np.testing.assert_array_equal(fitted.predict_proba(X), plain.predict_proba(X))
        np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))

    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    def test_the_last_fit_has_the_observed_labels_and_the_weights(self, recording):
        X, observed, weights = self.chance()
        weights[:30] = 0
        fitted = NoisyLabelClassifier(recording, cv=None)
        fitted.fit(X, observed, sample_weight=weights)
        assert fitted.rates_.source == "no signal"
        ((rows, labels, used),) = Recording.fits
        np.testing.assert_array_equal(rows, X[30:])
        np.testing.assert_array_equal(labels, observed[30:])
        np.testing.assert_array_equal(used, weights[30:])

    def test_with_given_noise_it_is_fitted_to_the_posterior(self, recording):
        X, observed, _ = self.chance()
        fitted = NoisyLabelClassifier(recording, NOISE, cv=None).fit(X, observed)
        assert fitted.rates_.source == "given"
        _, labels, used = Recording.fits[-1]
        likeliest = fitted.label_posterior_.argmax(axis=1)
        assert (fitted.classes_[likeliest] == labels).mean() > 0.9
        assert not np.allclose(used, 1)

    @pytest.mark.parametrize("strategy", ["prior", "uniform", "most_frequent"])
    def test_a_classifier_that_predicts_the_same_for_all_rows(self, strategy):
        X, observed, _ = moons()
        estimator = DummyClassifier(strategy=strategy, random_state=0)
        with pytest.warns(AssumedNoiseWarning, match="do not predict the labels"):
            fitted = NoisyLabelClassifier(estimator).fit(np.where(X > 0, "a", "b"), observed)
        assert fitted.label_fit_ is None
        assert fitted.rates_.source == "no signal"
        assert fitted.association_ < 2  # the proportions of the classes differ between folds
        plain = clone(estimator).fit(X, observed)
        np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))

    def test_constant_probabilities(self):
        X, observed, _ = moons()
        pred_probs = np.tile([0.3, 0.7], (300, 1))
        with pytest.warns(AssumedNoiseWarning, match="do not predict the labels"):
            fitted = NoisyLabelClassifier(CATEGORIES).fit(
                np.where(X > 0, "a", "b"), observed, pred_probs=pred_probs
            )
        assert fitted.association_ == 0
        assert fitted.rates_.source == "no signal"

    def test_trusted_labels_determine_the_rates_all_the_same(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 5))
        y = rng.integers(2, size=400)
        observed = NOISE.flip(y, random_state=0)
        trusted = np.where(np.arange(400) < 200, y.astype(float), np.nan)
        fitted = NoisyLabelClassifier(TREE, TrustedSubset(trusted), cv=None).fit(X, observed)
        assert fitted.association_ < CERTAIN
        assert fitted.rates_.source == "trusted rows"
        assert fitted.noise_ == fitted.label_fit_.noise_
        np.testing.assert_array_equal(fitted.label_posterior_[:200], np.eye(2)[y[:200]])


def test_a_fit_that_fails_leaves_the_last_one():
    X, observed, _ = moons()
    fitted = NoisyLabelClassifier(TREE, NOISE).fit(X, observed)
    expected = fitted.predict_proba(X)
    wide = np.column_stack([X, X])
    infinite = np.where(np.arange(300) == 3, np.inf, observed)
    with pytest.raises(ValueError, match="Input y contains infinity"):
        fitted.fit(wide, infinite)
    with pytest.raises(ValueError, match="pred_probs has shape"):
        fitted.fit(wide, observed, pred_probs=[[0.5, 0.5]])
    np.testing.assert_array_equal(fitted.predict_proba(X), expected)


class TestExpectedAccuracy:
    def test_it_is_the_mean_probability_of_the_predictions(self):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(SVC(), NOISE).fit(X, observed)
        assert fitted.association_ > CERTAIN
        codes = np.arange(300)
        lead = np.abs(fitted.label_posterior_ @ [-1, 1])
        likeliest = fitted.label_posterior_.argmax(axis=1)
        predicted = np.empty(300, dtype=int)
        folds = split_into_folds(5, observed, codes, None)
        for train, test in folds.split():
            fold = SVC().fit(X[train], likeliest[train], np.maximum(lead[train], 1e-6))
            predicted[test] = fold.predict(X[test])
        expected = softmax(fitted.log_odds_, axis=1)[codes, predicted].mean()
        assert fitted.expected_accuracy_ == pytest.approx(expected, abs=1e-9)
        assert 0 < fitted.expected_accuracy_std_ < 0.1

    def test_it_needs_folds(self):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(SVC(), NOISE, cv=None).fit(X, observed)
        assert np.isnan(fitted.expected_accuracy_)
        assert np.isnan(fitted.expected_accuracy_std_)

    def test_a_classifier_that_learns_nothing_has_that_of_its_class(self):
        X, observed, y = circles()
        constant = DummyClassifier(strategy="constant", constant=1)
        fitted = NoisyLabelClassifier(constant, NOISE).fit(X, observed)
        assert fitted.cv_share_ == 0
        (predicted,) = np.unique(fitted.predict(X))
        share = softmax(fitted.log_odds_, axis=1)[:, predicted].mean()
        assert fitted.expected_accuracy_ == pytest.approx(share, abs=1e-9)
        assert abs(share - (y == predicted).mean()) < 0.1


class TestFewValues:
    """Features of few values have many duplicates, each of which is an observation."""

    @staticmethod
    def data(n_values, n_columns, n=500, seed=0):
        """Return samples whose class has odds of 9 to 1, by the parity of their values."""
        rng = np.random.default_rng(seed)
        values = rng.integers(n_values, size=(n, n_columns))
        y = (rng.random(n) < np.where(values.sum(axis=1) % 2 == 1, 0.9, 0.1)).astype(int)
        return values.astype(float), NOISE.flip(y, random_state=seed), y

    @pytest.mark.parametrize(
        ("n_values", "n_columns"),
        [(2, 1), (2, 2), (3, 2), (30, 1)],
        ids=["binary", "xor", "grid", "codes"],
    )
    def test_fits_have_seen_all_values(self, recording, n_values, n_columns):
        X, observed, _ = self.data(n_values, n_columns)
        index = X @ n_values ** np.arange(n_columns)
        rows = np.column_stack([index, X])  # the first feature is recorded
        NoisyLabelClassifier(recording, NOISE).fit(rows, observed)
        assert len(Recording.seen) == 5
        for training, _ in Recording.seen:
            assert len(training) == n_values**n_columns

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(
        ("n_values", "n_columns"), [(2, 2), (3, 2), (30, 1)], ids=["xor", "grid", "codes"]
    )
    def test_the_expected_accuracy_is_that_of_other_folds(self, n_values, n_columns, seed):
        """A linear first step sees nothing of the parity, so all is by the folds."""
        X, observed, y = self.data(n_values, n_columns, seed=seed)
        tree = DecisionTreeClassifier(random_state=0)
        fitted = NoisyLabelClassifier(tree, NOISE, features="linear").fit(X, observed)
        assert fitted.cv_share_ > 0.9
        assert fitted.score(X, y) > 0.8
        gap = abs(fitted.expected_accuracy_ - fitted.score(X, y))
        assert gap < 3 * fitted.expected_accuracy_std_


def test_scores_of_the_association_are_those_of_the_log_odds():
    """The association is a statistic of the combined log-odds."""
    X, observed, y = moons(spread=0.5)
    alone = NoisyLabelClassifier(TREE, NOISE, cv=None).fit(X, observed)
    pred_probs = probabilities_near(y)
    both = NoisyLabelClassifier(TREE, NOISE).fit(X, observed, pred_probs=pred_probs)
    assert both.association_ > alone.association_
    own = log_softmax(both.log_odds_, axis=1)[np.arange(300), observed]
    shuffled = np.random.default_rng(0).permutation(observed)
    assert own.mean() > log_softmax(both.log_odds_, axis=1)[np.arange(300), shuffled].mean()
