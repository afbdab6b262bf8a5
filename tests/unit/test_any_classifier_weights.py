"""NoisyLabelClassifier with sample weights and with groups."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from support.any_classifier import (
    CATEGORIES,
    CERTAIN,
    NOISE,
    TREE,
    Recording,
    circles,
    moons,
    probabilities_near,
)
from unflip import NoisyLabelClassifier
from unflip.estimation import AssumedNoiseWarning


class TestWeights:
    def test_searches_pass_them_to_what_they_search(self):
        X, observed, _ = moons()
        weights = np.random.default_rng(0).uniform(0.5, 2, size=300)
        search = GridSearchCV(TREE, {"max_depth": [3]}, cv=3)
        of_search = NoisyLabelClassifier(search, NOISE, cv=None).fit(X, observed, weights)
        of_tree = NoisyLabelClassifier(clone(TREE).set_params(max_depth=3), NOISE, cv=None)
        of_tree.fit(X, observed, weights)
        np.testing.assert_array_equal(of_search.predict_proba(X), of_tree.predict_proba(X))
        unweighted = clone(search).fit(X, of_tree.label_posterior_.argmax(axis=1))
        assert (of_search.predict_proba(X) != unweighted.predict_proba(X)).any()

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
            message = (
                r"fit of (?s:.*)KNeighborsClassifier.* has no such parameter.*: omit sample_wei"
            )
            with pytest.raises(ValueError, match=message):
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
