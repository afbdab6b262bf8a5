"""NoisyLabelClassifier: equality with known models, exact algebra, weights, groups and audits."""

from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from unflip import LPClassifier, NoiseModel, NoisyLabelClassifier, Votes, audit
from unflip.calibration.combined_scores import combined_log_odds
from unflip.calibration.log_odds import recalibration
from unflip.calibration.observations import Observations
from unflip.estimation import AssumedNoiseWarning, TrustedSubset
from unflip.model.out_of_fold import split_into_folds
from unflip.model.samples import Samples, fit_to_posterior

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
THREE = NoiseModel([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], np.full(3, 1 / 3))
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
CATEGORIES = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
# Standard errors of the association from which nothing is shrunk (`certainty`).
CERTAIN = 4.0


def moons(n=300, seed=0, spread=0.2):
    X, y = make_moons(n, noise=spread, random_state=seed)
    return X, NOISE.flip(y, random_state=seed), y


def circles(n=300, seed=0):
    X, y = make_circles(n, noise=0.1, factor=0.4, random_state=seed)
    return X, NOISE.flip(y, random_state=seed), y


def three_blobs(n=300, seed=0, cluster_std=1.5):
    X, y = make_blobs(n, centers=3, cluster_std=cluster_std, random_state=seed)
    return X, THREE.flip(y, random_state=seed), y


def probabilities_near(codes, n_classes=2, certainty=0.8, seed=0):
    """Return probabilities that favour the given class in most rows."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(len(codes), n_classes))
    logits[np.arange(len(codes)), codes] += 5 * certainty
    return softmax(logits, axis=1)


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


class Recording(ClassifierMixin, BaseEstimator):
    """A classifier by the first feature, which records what it is fitted to and asked for."""

    fits: ClassVar[list] = []
    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.rows_ = set(X[:, 0].tolist())
        Recording.fits.append((X, y, sample_weight))
        return self

    def predict_proba(self, X):
        Recording.seen.append((self.rows_, set(X[:, 0].tolist())))
        second = np.clip(0.5 + 0.1 * X[:, 1], 0.1, 0.9)
        return np.column_stack([1 - second, second])

    def predict(self, X):
        return self.classes_[(X[:, 1] > 0).astype(int)]


@pytest.fixture
def recording():
    """Return a `Recording` without records."""
    Recording.fits = []
    Recording.seen = []
    return Recording()


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

    def test_folds_need_two_distinct_rows_of_each_class(self, n_fits):
        X, y = make_blobs(40, centers=2, random_state=0)
        X[y == 1] = X[y == 1][0]
        fitted = NoisyLabelClassifier(Counting(), NOISE).fit(X, y)
        assert n_fits() == 1
        assert fitted.cv_share_ == 0


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


class TestRareClasses:
    """Each class keeps its most credible samples, even if it is the likeliest of none."""

    @staticmethod
    def data(names=("a", "b", "c")):
        """Return samples of two classes, 2% of which have the label of a third by chance."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 2))
        codes = np.where(X[:, 0] > 0, 2, 0)
        codes[rng.random(400) < 0.02] = 1
        noise = NoiseModel(
            [[0.97, 0.03, 0.0], [0.0, 1.0, 0.0], [0.0, 0.03, 0.97]], [0.4975, 0.005, 0.4975]
        )
        return X, np.array(names)[codes], noise

    def test_all_classes_have_probabilities(self):
        X, observed, noise = self.data()
        fitted = NoisyLabelClassifier(GaussianNB(), noise).fit(X, observed)
        assert 1 not in fitted.label_posterior_.argmax(axis=1)
        assert fitted.classes_.tolist() == fitted.estimator_.classes_.tolist() == ["a", "b", "c"]
        probabilities = fitted.predict_proba(X)
        np.testing.assert_array_equal(probabilities, fitted.estimator_.predict_proba(X))
        np.testing.assert_array_equal(
            fitted.classes_[probabilities.argmax(axis=1)], fitted.predict(X)
        )

    def test_all_classes_have_decision_values(self):
        X, observed, noise = self.data()
        fitted = NoisyLabelClassifier(SVC(), noise).fit(X, observed)
        assert 1 not in fitted.label_posterior_.argmax(axis=1)
        values = fitted.decision_function(X)
        assert values.shape == (400, 3)
        np.testing.assert_array_equal(values, fitted.estimator_.decision_function(X))

    @staticmethod
    def last_fit(posterior, codes, weights=None):
        """Return labels and shares of the fit to a posterior."""
        n = len(codes)
        weights = np.ones(n) if weights is None else weights
        X = np.random.default_rng(0).normal(size=(n, 2))
        fit_to_posterior(Recording(), Samples.of(X, codes, weights, None), posterior)
        _, labels, used = Recording.fits[-1]
        return labels, used / weights

    @pytest.mark.parametrize("n_labelled", [1, 4, 5, 8])
    def test_the_most_credible_samples_with_its_label_are_kept(self, n_labelled):
        rng = np.random.default_rng(0)
        codes = np.repeat([0, 1, 2], [30, n_labelled, 30])
        posterior = softmax(rng.normal(size=(len(codes), 3)), axis=1)
        posterior[:, 1] = rng.permutation(np.linspace(0.01, 0.2, len(codes)))
        posterior[:, [0, 2]] *= ((1 - posterior[:, 1]) / posterior[:, [0, 2]].sum(axis=1))[:, None]
        likeliest = posterior.argmax(axis=1)
        assert 1 not in likeliest
        weights = rng.uniform(0.5, 2, size=len(codes))
        labels, shares = self.last_fit(posterior, codes, weights)
        labelled = np.arange(30, 30 + n_labelled)
        kept = sorted(labelled, key=lambda row: -posterior[row, 1])[:5]
        np.testing.assert_array_equal(np.flatnonzero(labels == 1), np.sort(kept))
        np.testing.assert_allclose(shares[kept], posterior[kept, 1], rtol=1e-12)
        others = np.setdiff1d(np.arange(len(codes)), kept)
        np.testing.assert_array_equal(labels[others], likeliest[others])
        leads = np.abs(posterior[:, 0] - posterior[:, 2])
        ordered = np.sort(posterior, axis=1)
        assert not np.allclose(ordered[:, 2] - ordered[:, 1], shares)
        separate = ordered[:, 1] > posterior[:, 1]
        rows = others[separate[others]]
        np.testing.assert_allclose(shares[rows], leads[rows], rtol=1e-9)

    def test_samples_of_which_it_is_the_likeliest_are_kept_too(self):
        codes = np.repeat([0, 1], [20, 20])
        posterior = np.tile([0.9, 0.1], (40, 1))
        posterior[:2] = [0.2, 0.8]  # with the other label
        posterior[30:36, 1] = [0.3, 0.35, 0.4, 0.45, 0.2, 0.25]
        posterior[:, 0] = 1 - posterior[:, 1]
        labels, shares = self.last_fit(posterior, codes)
        np.testing.assert_array_equal(np.flatnonzero(labels == 1), [0, 1, 30, 31, 32, 33, 35])
        np.testing.assert_allclose(shares[:2], 0.6)
        np.testing.assert_allclose(shares[[30, 35]], [0.3, 0.25])

    def test_a_class_of_five_samples_gets_no_more(self):
        codes = np.repeat([0, 1], [20, 20])
        posterior = np.tile([0.9, 0.1], (40, 1))
        posterior[20:25] = [0.3, 0.7]
        labels, shares = self.last_fit(posterior, codes)
        np.testing.assert_array_equal(np.flatnonzero(labels == 1), np.arange(20, 25))
        np.testing.assert_allclose(shares[20:25], 0.4)

    def test_one_class_is_the_likeliest_of_all_samples(self):
        codes = np.repeat([0, 1], [60, 40])
        labels, shares = self.last_fit(np.tile([0.8, 0.2], (100, 1)), codes)
        np.testing.assert_array_equal(np.flatnonzero(labels == 1), np.arange(60, 65))
        np.testing.assert_allclose(shares[60:65], 0.2)
        np.testing.assert_allclose(np.delete(shares, range(60, 65)), 0.6)

    def test_all_weights_are_positive(self):
        """Samples that are equally likely in two classes have no lead."""
        codes = np.repeat([0, 1, 2], 10)
        posterior = np.tile([0.5, 0.0, 0.5], (30, 1))
        labels, shares = self.last_fit(posterior, codes)
        assert set(labels) == {0, 1, 2}
        assert shares.min() > 0
        assert shares.max() <= 1e-6 + np.where(labels == 2, 0.5, 0).max()


class TestWeights:
    @pytest.mark.parametrize(
        "estimator",
        [TREE, GaussianNB(), LogisticRegression(), SVC()],
        ids=["tree", "naive Bayes", "logistic", "support vectors"],
    )
    def test_a_row_of_weight_two_equals_two_rows(self, estimator):
        X, observed, _ = moons()
        counts = np.random.default_rng(0).integers(1, 4, size=300)
        weighted = NoisyLabelClassifier(estimator, NOISE)
        weighted.fit(X, observed, sample_weight=counts.astype(float))
        repeated = NoisyLabelClassifier(estimator, NOISE)
        repeated.fit(X.repeat(counts, axis=0), observed.repeat(counts))
        np.testing.assert_allclose(
            weighted.log_odds_.repeat(counts, axis=0), repeated.log_odds_, atol=1e-6
        )
        np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
        assert weighted.expected_accuracy_ == pytest.approx(repeated.expected_accuracy_, abs=1e-6)
        unweighted = NoisyLabelClassifier(estimator, NOISE).fit(X, observed)
        assert not np.allclose(weighted.log_odds_, unweighted.log_odds_, atol=1e-3)

    def test_a_sparse_row_of_weight_two_equals_two_rows(self):
        X, observed, _ = moons(spread=0.4)
        counts = np.random.default_rng(0).integers(1, 4, size=300)
        weighted = NoisyLabelClassifier(TREE, NOISE)
        weighted.fit(sparse.csr_array(X), observed, sample_weight=counts.astype(float))
        repeated = NoisyLabelClassifier(TREE, NOISE)
        repeated.fit(sparse.csr_array(X.repeat(counts, axis=0)), observed.repeat(counts))
        np.testing.assert_allclose(
            weighted.log_odds_.repeat(counts, axis=0), repeated.log_odds_, atol=1e-6
        )
        np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))

    @pytest.mark.parametrize(
        "container",
        [np.asarray, sparse.csr_array, sparse.coo_array],
        ids=["dense", "sparse", "coordinates"],
    )
    def test_zero_weight_rows_count_as_absent(self, container):
        X, observed, _ = moons()
        present = np.arange(300) >= 40
        labels = np.where(present, observed, 5)  # a class of no present row
        features = np.where(present[:, None], X, 100.0)
        fitted = NoisyLabelClassifier(TREE, NOISE)
        fitted.fit(container(features), labels, sample_weight=present.astype(float))
        expected = NoisyLabelClassifier(TREE, NOISE).fit(container(X[present]), observed[present])
        assert fitted.classes_.tolist() == [0, 1]
        np.testing.assert_allclose(fitted.log_odds_[present], expected.log_odds_, atol=1e-8)
        np.testing.assert_allclose(
            fitted.label_posterior_[present], expected.label_posterior_, atol=1e-8
        )
        np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))

    def test_given_probabilities_of_zero_weight_rows_are_not_used(self):
        """Zeros are floored by the number of rows of positive weight."""
        X, observed, y = moons(spread=0.5)
        present = np.arange(300) % 3 > 0
        pred_probs = probabilities_near(np.where(present, y, 1 - y))
        sure = np.arange(300) % 5 == 0
        pred_probs[sure] = np.eye(2)[pred_probs[sure].argmax(axis=1)]
        fitted = NoisyLabelClassifier(TREE, NOISE).fit(
            X, observed, sample_weight=present.astype(float), pred_probs=pred_probs
        )
        expected = NoisyLabelClassifier(TREE, NOISE).fit(
            X[present], observed[present], pred_probs=pred_probs[present]
        )
        assert fitted.cv_share_ > 0.1
        assert fitted.cv_share_ == pytest.approx(expected.cv_share_, rel=1e-6)
        np.testing.assert_allclose(fitted.log_odds_[present], expected.log_odds_, atol=1e-6)

    def test_the_scale_of_weights_has_no_effect_on_log_odds(self):
        X, observed, _ = moons()
        weights = np.random.default_rng(0).uniform(0.2, 3, size=300)
        one, other = (
            NoisyLabelClassifier(TREE, NOISE).fit(X, observed, sample_weight=unit * weights)
            for unit in (1, 64)
        )
        np.testing.assert_allclose(one.log_odds_, other.log_odds_, atol=1e-8)
        assert one.n_effective_ == pytest.approx(weights.sum() ** 2 / (weights**2).sum())

    def test_classifiers_without_weights_raise_if_they_are_passed(self):
        X, observed, _ = moons()
        for estimator in (
            KNeighborsClassifier(),
            make_pipeline(StandardScaler(), KNeighborsClassifier()),
        ):
            fitted = NoisyLabelClassifier(estimator, NOISE)
            with pytest.raises(ValueError, match=r"KNeighborsClassifier.* takes no sample weights"):
                fitted.fit(X, observed, sample_weight=np.ones(300))
            assert fitted.fit(X, observed).score(X, observed) > 0.5

    def test_classifiers_without_weights_are_fitted_to_the_likeliest_classes(self):
        X, observed, _ = moons()
        fitted = NoisyLabelClassifier(KNeighborsClassifier(), NOISE).fit(X, observed)
        likeliest = fitted.label_posterior_.argmax(axis=1)
        expected = KNeighborsClassifier().fit(X, likeliest).predict_proba(X)
        np.testing.assert_array_equal(fitted.predict_proba(X), expected)


class TestGroups:
    @staticmethod
    def data():
        """Return noisy moons with sixty groups of five rows."""
        X, observed, _ = moons(spread=0.4)
        return X, observed, np.random.default_rng(0).permutation(np.arange(300) // 5)

    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    @pytest.mark.parametrize("cv", [None, 5])
    @pytest.mark.parametrize("noise", ["estimate", NOISE], ids=["estimate", "known"])
    def test_a_row_of_weight_two_equals_two_rows_of_the_group(self, noise, cv):
        X, observed, groups = self.data()
        counts = np.empty(300, dtype=int)
        counts[np.argsort(groups, kind="stable")] = np.tile(
            [1, 2, 1, 2, 2], 60
        )  # as large as before
        weighted = NoisyLabelClassifier(GaussianNB(), noise, cv=cv)
        weighted.fit(X, observed, sample_weight=counts.astype(float), groups=groups)
        repeated = NoisyLabelClassifier(GaussianNB(), noise, cv=cv)
        repeated.fit(
            X.repeat(counts, axis=0), observed.repeat(counts), groups=groups.repeat(counts)
        )
        assert weighted.n_effective_ == pytest.approx(repeated.n_effective_)
        np.testing.assert_allclose(
            weighted.log_odds_.repeat(counts, axis=0), repeated.log_odds_, atol=1e-6
        )
        np.testing.assert_allclose(
            weighted.label_posterior_.repeat(counts, axis=0), repeated.label_posterior_, atol=1e-6
        )
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
        equal = NoisyLabelClassifier(GaussianNB(), noise, cv=cv).fit(X, observed, groups=groups)
        assert not np.allclose(weighted.log_odds_, equal.log_odds_, atol=1e-3)

    @pytest.mark.parametrize("cv", [None, 5])
    @pytest.mark.parametrize("label", [None, 7], ids=["labels", "own label"])
    def test_zero_weight_rows_count_as_absent(self, label, cv):
        X, observed, groups = self.data()
        present = np.random.default_rng(2).random(300) < 0.7
        labels = observed if label is None else np.where(present, observed, label)
        features = np.where(present[:, None], X, 100.0)
        fitted = NoisyLabelClassifier(GaussianNB(), NOISE, cv=cv)
        fitted.fit(features, labels, sample_weight=present.astype(float), groups=groups)
        expected = NoisyLabelClassifier(GaussianNB(), NOISE, cv=cv)
        expected.fit(X[present], observed[present], groups=groups[present])
        assert fitted.classes_.tolist() == [0, 1]
        assert fitted.n_effective_ == pytest.approx(expected.n_effective_)
        np.testing.assert_allclose(fitted.log_odds_[present], expected.log_odds_, atol=1e-8)
        np.testing.assert_allclose(
            fitted.label_posterior_[present], expected.label_posterior_, atol=1e-8
        )
        np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X), atol=1e-8)

    def test_groups_of_one_row_of_positive_weight_have_no_effect(self):
        X, observed, _ = self.data()
        present = np.arange(300) < 150
        groups = np.arange(300) % 150
        fitted = NoisyLabelClassifier(TREE, NOISE)
        fitted.fit(X, observed, sample_weight=present.astype(float), groups=groups)
        expected = NoisyLabelClassifier(TREE, NOISE).fit(X[present], observed[present])
        np.testing.assert_allclose(fitted.log_odds_[present], expected.log_odds_, atol=1e-8)

    @pytest.mark.parametrize("numeric", [True, False], ids=["numbers", "texts"])
    def test_rows_of_positive_weight_in_one_group_raise(self, numeric):
        X, observed, _ = self.data()
        groups = np.arange(300) // 150
        rows = X if numeric else np.where(X > 0, "a", "b")
        model = NoisyLabelClassifier(TREE if numeric else CATEGORIES, NOISE)
        with pytest.raises(ValueError, match="groups has one group only"):
            model.fit(rows, observed, sample_weight=1.0 - groups, groups=groups)
        assert model.fit(rows, observed, groups=groups).n_effective_ == pytest.approx(2)

    def test_out_of_fold_fits_have_not_seen_the_group(self, recording):
        X, observed, _ = moons()
        groups = np.random.default_rng(0).permutation(np.arange(300) // 4)
        X[:, 0] = groups
        NoisyLabelClassifier(recording, NOISE).fit(X, observed, groups=groups)
        assert len(Recording.seen) == 5
        for training, held_out in Recording.seen:
            assert not training & held_out
        assert set().union(*(held_out for _, held_out in Recording.seen)) == set(groups.tolist())

    def test_duplicates_are_held_out_together(self, recording):
        X, observed, _ = moons()
        X = X[np.arange(300) // 3]
        NoisyLabelClassifier(recording, NOISE).fit(X, observed)
        assert len(Recording.seen) == 5
        for training, held_out in Recording.seen:
            assert not training & held_out

    def test_leaked_near_duplicates_do_not_look_like_signal(self):
        """Near-duplicates share their label, which is drawn at random for each group."""
        rng = np.random.default_rng(0)
        groups = np.arange(400) // 4
        X = rng.normal(size=(100, 5))[groups] + 0.01 * rng.normal(size=(400, 5))
        observed = rng.integers(2, size=100)[groups]
        estimator = KNeighborsClassifier(1)
        leaked = NoisyLabelClassifier(estimator, features="laplace").fit(X, observed)
        assert leaked.association_ > CERTAIN
        assert leaked.expected_accuracy_ > 0.8
        with pytest.warns(AssumedNoiseWarning, match="do not predict the labels"):
            fitted = NoisyLabelClassifier(estimator, features="laplace").fit(
                X, observed, groups=groups
            )
        assert fitted.association_ < 2
        assert fitted.expected_accuracy_ < 0.6
        assert fitted.n_effective_ == pytest.approx(100)

    def test_groups_of_one_row_have_no_effect(self):
        X, observed, _ = moons()
        one = NoisyLabelClassifier(TREE, NOISE).fit(X, observed)
        other = NoisyLabelClassifier(TREE, NOISE).fit(X, observed, groups=np.arange(300))
        np.testing.assert_array_equal(one.log_odds_, other.log_odds_)

    def test_groups_of_unlike_rows_cost_little(self):
        X, observed, y = circles(600)
        groups = np.array([f"group {i // 2}" for i in range(600)])
        fitted = NoisyLabelClassifier(SVC(), NOISE).fit(X, observed, groups=groups)
        assert fitted.n_effective_ == pytest.approx(300)
        hits = fitted.log_odds_.argmax(axis=1) == y
        assert hits.mean() > 0.95


class TestSamples:
    def test_numbers_are_standardized_by_the_present_rows(self):
        X, observed, _ = moons()
        weights = np.random.default_rng(0).uniform(0, 2, size=300)
        weights[:30] = 0
        rows = Samples.of(X, observed, weights, None).numeric
        share = weights / weights.sum()
        np.testing.assert_allclose(share @ rows, 0, atol=1e-12)
        np.testing.assert_allclose(share @ rows**2, 1, rtol=1e-12)

    def test_missing_values_are_imputed_and_indicated(self):
        X, observed, _ = moons()
        missing = np.arange(300) % 7 == 0
        X[missing, 1] = np.nan
        rows = Samples.of(X, observed, np.ones(300), None).numeric
        assert rows.shape == (300, 3)
        np.testing.assert_allclose(rows[missing, 1], 0, atol=1e-12)
        np.testing.assert_array_equal(rows[:, 2] > 0, missing)

    @staticmethod
    def with_missing(seed=0):
        """Return weights, and rows with missing values, no two of which are equal."""
        X, observed, _ = moons(spread=0.4)
        rng = np.random.default_rng(seed)
        X[rng.random(300) < 0.2, 1] = np.nan
        return X, observed, rng.integers(1, 4, size=300)

    def test_they_are_imputed_by_the_weighted_mean(self):
        X, observed, counts = self.with_missing()
        rows = Samples.of(X, observed, counts.astype(float), None).numeric
        repeated = Samples.of(
            X.repeat(counts, axis=0), observed.repeat(counts), np.ones(counts.sum()), None
        ).numeric
        np.testing.assert_allclose(rows.repeat(counts, axis=0), repeated, atol=1e-12)
        present = ~np.isnan(X[:, 1])
        mean = np.average(X[present, 1], weights=counts[present])
        std = np.average((X[present, 1] - mean) ** 2, weights=counts[present]) ** 0.5
        np.testing.assert_allclose(rows[present, 1], (X[present, 1] - mean) / std, rtol=1e-9)

    def test_a_row_with_a_missing_value_of_weight_two_equals_two_rows(self):
        X, observed, counts = self.with_missing()
        estimator = DecisionTreeClassifier(max_depth=3, random_state=0)
        weighted = NoisyLabelClassifier(estimator, NOISE)
        weighted.fit(X, observed, sample_weight=counts.astype(float))
        repeated = NoisyLabelClassifier(estimator, NOISE)
        repeated.fit(X.repeat(counts, axis=0), observed.repeat(counts))
        np.testing.assert_allclose(
            weighted.log_odds_.repeat(counts, axis=0), repeated.log_odds_, atol=1e-6
        )
        unweighted = NoisyLabelClassifier(estimator, NOISE).fit(X, observed)
        assert not np.allclose(weighted.log_odds_, unweighted.log_odds_, atol=1e-3)

    @pytest.mark.parametrize("value", [np.nan, 1e6], ids=["missing", "large"])
    def test_values_of_zero_weight_rows_have_no_effect(self, value):
        X, observed, _ = self.with_missing()
        present = np.random.default_rng(1).random(300) < 0.8
        features = np.where(present[:, None], X, value)
        fitted = NoisyLabelClassifier(TREE, NOISE)
        fitted.fit(features, observed, sample_weight=present.astype(float))
        expected = NoisyLabelClassifier(TREE, NOISE).fit(X[present], observed[present])
        np.testing.assert_allclose(fitted.log_odds_[present], expected.log_odds_, atol=1e-8)

    def test_a_column_of_missing_values_has_no_effect(self):
        X, observed, _ = moons(spread=0.4)
        wide = np.column_stack([X, np.full(300, np.nan)])
        rows = Samples.of(wide, observed, np.ones(300), None).numeric
        assert np.isfinite(rows).all()
        np.testing.assert_array_equal(rows[:, 2:], 0)
        estimator = DecisionTreeClassifier(max_depth=3, random_state=0)
        fitted = NoisyLabelClassifier(estimator, NOISE, cv=None).fit(wide, observed)
        expected = NoisyLabelClassifier(estimator, NOISE, cv=None).fit(X, observed)
        np.testing.assert_allclose(fitted.log_odds_, expected.log_odds_, atol=1e-8)

    def test_a_column_whose_values_are_of_zero_weight_rows_has_no_effect(self):
        X, observed, _ = moons(spread=0.4)
        present = np.arange(300) >= 40
        wide = np.column_stack([X, np.where(present, np.nan, 1000.0)])
        weights = present.astype(float)
        rows = Samples.of(wide, observed, weights, None).numeric
        np.testing.assert_array_equal(rows[present, 2:], 0)

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    @pytest.mark.parametrize(
        "container",
        [np.asarray, sparse.csr_array, lambda rows: rows.astype(object), np.ndarray.tolist],
        ids=["array", "sparse", "objects", "lists"],
    )
    def test_infinite_values_raise(self, container, value):
        X, observed, _ = moons()
        X[3, 0] = value
        samples = Samples.of(container(X), observed, np.ones(300), None)
        with pytest.raises(ValueError, match="Input contains infinity"):
            samples.numeric  # noqa: B018 - asking for it is what raises

    def test_arrays_of_three_dimensions_are_not_numeric(self):
        X, observed, _ = moons()
        assert Samples.of(X[:, None, :], observed, np.ones(300), None).numeric is None

    def test_sparse_rows_are_taken_as_they_are(self):
        X, observed, _ = moons()
        rows = Samples.of(sparse.coo_array(X), observed, np.ones(300), None).numeric
        np.testing.assert_array_equal(rows.toarray(), X)

    @pytest.mark.parametrize(
        "rows",
        [[["a"], ["b"]] * 5, ["good day", "bad day"] * 5, [[1.0, "a"], [2.0, "b"]] * 5],
        ids=["categories", "texts", "mixed"],
    )
    def test_other_kinds_are_not_numeric(self, rows):
        samples = Samples.of(rows, np.array([0, 1] * 5), np.ones(10), None)
        assert samples.numeric is None
        np.testing.assert_array_equal(samples.owner, np.arange(10))

    def test_only_rows_of_positive_weight_are_members(self):
        X, observed, _ = moons()
        weights = np.where(np.arange(300) % 3 == 0, 0.0, 2.0)
        groups = np.arange(300) // 6
        samples = Samples.of(X, observed, weights, groups)
        present = weights > 0
        held_out = np.concatenate([test for _, test in samples.folds])
        np.testing.assert_array_equal(np.sort(held_out), np.flatnonzero(present))
        for train, test in samples.folds:
            assert present[train].all()
            assert not set(groups[train]) & set(groups[test])
        np.testing.assert_array_equal(samples.kept, X[present])
        np.testing.assert_array_equal(samples.labels, observed[present])
        np.testing.assert_array_equal(samples.groups, groups[present])
        assert samples.n_all == 300
        assert samples.n_effective == pytest.approx(200)
        np.testing.assert_allclose(samples.observed, np.bincount(observed[present]) / 200)
        values = samples.to_all(np.ones((200, 2)), np.array([0.3, 0.7]))
        np.testing.assert_array_equal(values[present], 1)
        np.testing.assert_array_equal(values[~present], np.tile([0.3, 0.7], (100, 1)))

    def test_weights_of_observations_count_independent_rows(self):
        X, observed, _ = moons()
        weights = np.random.default_rng(0).uniform(1, 2, size=300)
        single = Samples.of(X, observed, weights, None).observations(250.0, priors_known=True)
        assert single.weights.sum() == pytest.approx(250)
        assert single.n_effective == 250
        assert single.priors_known
        groups = np.arange(300) // 5
        grouped = Samples.of(X, observed, weights, groups).observations(250.0, priors_known=False)
        sizes = np.bincount(groups, weights)
        assert grouped.n_effective == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum())
        assert grouped.weights.sum() == pytest.approx(grouped.n_effective)
        equal = Samples.of(X, observed, np.ones(300), groups)
        assert equal.observations(250.0, priors_known=False).n_effective == pytest.approx(60)

    def test_the_smallest_class_is_counted_without_duplicates(self):
        X, observed, _ = moons(50)
        samples = Samples.of(X, observed, np.ones(50), None)
        assert samples.smallest_class == np.bincount(observed).min()
        repeated = Samples.of(np.repeat(X, 3, axis=0), np.repeat(observed, 3), np.ones(150), None)
        assert repeated.smallest_class == samples.smallest_class

    def test_the_last_fit_has_the_leads_of_several_classes_as_weights(self, recording):
        X, observed, _ = three_blobs(60)
        weights = np.linspace(1, 2, 60)
        samples = Samples.of(X, observed, weights, None)
        posterior = softmax(np.random.default_rng(0).normal(size=(60, 3)), axis=1)
        fit_to_posterior(recording, samples, posterior)
        _, labels, used = Recording.fits[-1]
        np.testing.assert_array_equal(labels, posterior.argmax(axis=1))
        ordered = np.sort(posterior, axis=1)
        np.testing.assert_allclose(used, weights * (ordered[:, 2] - ordered[:, 1]))


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


class TestAudit:
    @staticmethod
    def suspects(report):
        return report.suspects.row[: report.n_suspects]

    @pytest.mark.parametrize("noise", ["estimate", NOISE], ids=["estimate", "known"])
    def test_it_reports_the_attributes_of_the_classifier(self, noise):
        X, observed, _ = circles()
        report = audit(X, observed, noise=noise, estimator=SVC())
        fitted = NoisyLabelClassifier(SVC(), noise).fit(X, observed)
        assert report.noise == fitted.noise_
        assert report.noise_source == fitted.rates_.source
        np.testing.assert_array_equal(report.noise_std, fitted.noise_std_)
        assert report.expected_accuracy == pytest.approx(fitted.expected_accuracy_, abs=1e-12)
        assert report.expected_accuracy_std == pytest.approx(
            fitted.expected_accuracy_std_, abs=1e-12
        )
        np.testing.assert_allclose(report.label_posterior, fitted.label_posterior_, atol=1e-9)
        assert np.isnan(report.accuracy_after(10))

    def test_suspects_are_sorted_and_mostly_wrong(self):
        X, observed, y = circles(500)
        report = audit(X, observed, estimator=RandomForestClassifier(20, random_state=0))
        wrong = observed != y
        rows = self.suspects(report)
        assert 0.8 * wrong.sum() < report.n_suspects < 1.2 * wrong.sum()
        error = np.sqrt(0.1 * 0.9 / report.n_suspects)
        assert wrong[rows].mean() > 0.9 - 2 * error
        probabilities = report.suspects.probability
        assert (np.diff(probabilities) <= 0).all()
        np.testing.assert_array_equal(report.suspects.observed, observed[report.suspects.row])
        np.testing.assert_array_equal(
            report.suspects.proposed,
            report.label_posterior[report.suspects.row].argmax(axis=1),
        )

    def test_several_classes_have_names(self):
        X, observed, y = three_blobs(cluster_std=0.5)
        names = np.array(["cat", "dog", "owl"])
        report = audit(X, names[observed], noise=THREE, estimator=TREE)
        rows = self.suspects(report)
        assert (observed != y)[rows].mean() > 0.9
        assert (report.suspects.proposed[: len(rows)] == names[y[rows]]).mean() > 0.9

    def test_rows_of_a_group_are_scored_by_fits_to_other_groups(self):
        groups = np.arange(400) // 4
        centres, truth = make_circles(100, noise=0.05, factor=0.4, random_state=0)
        X = centres[groups] + 0.01 * np.random.default_rng(0).normal(size=(400, 2))
        y = truth[groups]
        observed = NOISE.flip(y, random_state=0)
        report = audit(X, observed, noise=NOISE, estimator=SVC(), groups=groups)
        fitted = NoisyLabelClassifier(SVC(), NOISE).fit(X, observed, groups=groups)
        np.testing.assert_allclose(report.label_posterior, fitted.label_posterior_, atol=1e-9)
        rows = self.suspects(report)
        assert (observed != y)[rows].mean() > 0.9
        assert len(rows) > 0.8 * (observed != y).sum()

    def test_the_report_is_printed_and_written(self, tmp_path):
        pytest.importorskip("jinja2")
        X, observed, _ = circles()
        report = audit(X, observed, noise=NOISE, estimator=TREE)
        text = str(report)
        assert "Suspects: " in text
        assert "nan" not in text
        page = tmp_path / "audit.html"
        report.to_html(page)
        written = page.read_text(encoding="utf-8")
        assert "<html" in written
        assert ">nan<" not in written

    def test_trusted_labels_may_be_passed(self):
        X, observed, y = moons()
        trusted = np.where(np.arange(300) % 5 == 0, y, np.nan)
        report = audit(X, observed, trusted=trusted, estimator=TREE)
        assert report.noise_source == "trusted rows"
        checked = np.flatnonzero(np.arange(300) % 5 == 0)
        np.testing.assert_array_equal(report.label_posterior[checked], np.eye(2)[y[checked]])

    def test_features_that_are_not_numeric(self):
        rng = np.random.default_rng(0)
        level = rng.integers(12, size=600)
        y = level % 2
        observed = NOISE.flip(y, random_state=0)
        X = np.array([f"level {i}" for i in level], dtype=object)[:, None]
        report = audit(X, observed, noise=NOISE, estimator=CATEGORIES)
        rows = self.suspects(report)
        assert (observed != y)[rows].mean() > 0.9
        assert len(rows) > 0.6 * (observed != y).sum()

    def test_votes_raise(self):
        X, observed, _ = circles()
        votes = Votes.from_columns(np.column_stack([observed, observed]))
        with pytest.raises(ValueError, match="Votes need LPClassifier: omit estimator"):
            audit(X, votes, estimator=TREE)

    def test_a_warning_of_assumed_rates_names_the_line_of_the_caller(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        with pytest.warns(AssumedNoiseWarning, match="do not predict the labels") as caught:
            report = audit(X, rng.integers(2, size=200), estimator=TREE)
        assert caught[0].filename == __file__
        assert report.n_suspects == 0


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
