"""Folds, weighted fits and out-of-fold log-odds of any classifier, and groups of samples."""

from typing import ClassVar

import numpy as np
import pytest
import sklearn
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import AdaBoostClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - allows the import below
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    PredefinedSplit,
    RandomizedSearchCV,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from unflip import LPClassifier, NoiseModel
from unflip.data.groups import group_folds, n_effective_of
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset
from unflip.estimation.score_rates import log_scores_of
from unflip.model.held_out import held_out_log_odds
from unflip.model.out_of_fold import (
    check_classifier,
    fit_weighted,
    given_probabilities,
    out_of_fold_log_odds,
    split_into_folds,
    weight_parameter,
)

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.5)
with sklearn.config_context(enable_metadata_routing=True):
    UNWEIGHTED = StandardScaler().set_fit_request(sample_weight=False)
    WEIGHTED = SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
NAMES = np.array(["ant", "bee", "cat", "dog"])


def blobs(n_classes, n=120, cluster_std=3.0):
    return make_blobs(n, centers=n_classes, cluster_std=cluster_std, random_state=0)


class PredictsOnly(KNeighborsClassifier):
    """A classifier without probabilities and decision values."""

    predict_proba = property(lambda self: (_ for _ in ()).throw(AttributeError("predict_proba")))


class WideDecisions(LinearSVC):
    """A classifier whose decision values have a column too many."""

    def decision_function(self, X):
        values = super().decision_function(X)
        return np.column_stack([values, -values[:, 0]])

    def predict(self, X):
        return self.classes_[super().decision_function(X).argmax(axis=1)]


class SeesLabels(ClassifierMixin, BaseEstimator):
    """A classifier that records the labels it is fitted to."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        SeesLabels.seen.append(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class WithoutBase:
    """A classifier without base classes of scikit-learn, and without classes_."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        self.inner_ = KNeighborsClassifier().fit(X, y)
        return self

    def predict(self, X):
        return self.inner_.predict(X)


class TestWeights:
    @pytest.mark.parametrize(
        ("estimator", "name"),
        [
            (DecisionTreeClassifier(), "sample_weight"),
            (KNeighborsClassifier(), None),
            (make_pipeline(StandardScaler(), SVC()), "svc__sample_weight"),
            (make_pipeline(StandardScaler(), KNeighborsClassifier()), None),
            (
                make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), GaussianNB())),
                "pipeline__gaussiannb__sample_weight",
            ),
        ],
        ids=["tree", "neighbours", "pipeline", "pipeline without weights", "nested pipeline"],
    )
    def test_their_parameter_is_that_of_the_last_step(self, estimator, name):
        assert weight_parameter(estimator) == name

    def test_fits_use_them_and_leave_the_estimator_unfitted(self):
        X, y = blobs(2)
        weights = np.random.default_rng(0).uniform(0, 3, size=len(y))
        for estimator in (GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())):
            name = weight_parameter(estimator)
            fitted = fit_weighted(estimator, X, y, weights)
            direct = clone(estimator).fit(X, y, **{name: weights})
            np.testing.assert_array_equal(fitted.predict_proba(X), direct.predict_proba(X))
            unweighted = clone(estimator).fit(X, y)
            assert not np.allclose(fitted.predict_proba(X), unweighted.predict_proba(X))
            assert not hasattr(estimator, "classes_")

    @pytest.mark.parametrize(
        "search",
        [
            GridSearchCV(GaussianNB(), {}),
            RandomizedSearchCV(GaussianNB(), {}),
            HalvingGridSearchCV(GaussianNB(), {}),
        ],
        ids=["grid", "random", "halving"],
    )
    def test_searches_take_those_of_what_they_search(self, search):
        assert weight_parameter(search) == "sample_weight"
        neighbours = clone(search).set_params(estimator=KNeighborsClassifier())
        assert weight_parameter(neighbours) is None

    @pytest.mark.parametrize(
        ("estimator", "name"),
        [
            (SVC(), "sample_weight"),
            (KNeighborsClassifier(), None),
            (AdaBoostClassifier(), None),
            (make_pipeline(StandardScaler(), SVC()), None),
            (make_pipeline(UNWEIGHTED, WEIGHTED), "sample_weight"),
            (GridSearchCV(SVC(), {}), None),
            (GridSearchCV(WEIGHTED, {}), "sample_weight"),
            (VotingClassifier([("svc", WEIGHTED)]), "sample_weight"),
        ],
        ids=[
            "consumer",
            "consumer without weights",
            "no routing",
            "pipeline",
            "pipeline that requests them",
            "search",
            "search that requests them",
            "voting that requests them",
        ],
    )
    def test_with_metadata_routing_they_are_those_requested(self, estimator, name):
        X, y = blobs(2)
        weights = np.random.default_rng(0).integers(0, 2, size=120)
        with sklearn.config_context(enable_metadata_routing=True):
            assert weight_parameter(estimator) == name
            fitted = fit_weighted(estimator, X, y, weights.astype(float))
            params = {} if name is None else {name: weights.astype(float)}
            expected = clone(estimator).fit(X, y, **params)
        np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))

    def test_classifiers_without_them_are_fitted_without(self):
        X, y = blobs(2)
        fitted = fit_weighted(KNeighborsClassifier(), X, y, np.arange(120.0))
        np.testing.assert_array_equal(
            fitted.predict_proba(X), KNeighborsClassifier().fit(X, y).predict_proba(X)
        )


class TestLogOdds:
    @staticmethod
    def by_module(estimator, X, codes, weights, folds):
        classes = NAMES[: codes.max() + 1]
        return out_of_fold_log_odds(estimator, X, classes, codes, weights, folds)

    @staticmethod
    def by_definition(estimator, X, codes, weights, folds, method):
        """Return the values of one fit for each fold, for the rows of the fold."""
        name = weight_parameter(estimator)
        rows = []
        values = []
        for train, test in folds.split():
            params = {} if name is None else {name: weights[train]}
            fold = clone(estimator).fit(X[train], codes[train], **params)
            rows.append(test)
            values.append(getattr(fold, method)(X[test]))
        order = np.argsort(np.concatenate(rows))
        return np.concatenate(values)[order]

    @staticmethod
    def data(n_classes):
        X, codes = blobs(n_classes)
        weights = np.random.default_rng(1).uniform(0.5, 2, size=len(codes))
        return X, codes, weights, split_into_folds(4, codes, np.arange(len(codes)), None)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_those_of_probabilities(self, n_classes):
        X, codes, weights, folds = self.data(n_classes)
        for estimator in (GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())):
            expected = self.by_definition(estimator, X, codes, weights, folds, "predict_proba")
            log_odds = self.by_module(estimator, X, codes, weights, folds)
            np.testing.assert_allclose(np.exp(log_odds), np.maximum(expected, 1 / 1200), rtol=1e-12)

    def test_those_of_decision_values(self):
        X, codes, weights, folds = self.data(2)
        expected = self.by_definition(LinearSVC(), X, codes, weights, folds, "decision_function")
        log_odds = self.by_module(LinearSVC(), X, codes, weights, folds)
        np.testing.assert_allclose(log_odds[:, 1] - log_odds[:, 0], expected, rtol=1e-12)
        X, codes, weights, folds = self.data(3)
        expected = self.by_definition(LinearSVC(), X, codes, weights, folds, "decision_function")
        log_odds = self.by_module(LinearSVC(), X, codes, weights, folds)
        np.testing.assert_array_equal(log_odds, expected)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_those_of_predictions(self, n_classes):
        X, codes, weights, folds = self.data(n_classes)
        estimator = PredictsOnly()
        assert not hasattr(estimator, "predict_proba")
        expected = self.by_definition(estimator, X, codes, weights, folds, "predict")
        log_odds = self.by_module(estimator, X, codes, weights, folds)
        np.testing.assert_array_equal(log_odds, np.eye(n_classes)[expected])

    def test_probabilities_are_preferred_to_decision_values(self):
        X, codes, weights, folds = self.data(2)
        log_odds = self.by_module(LogisticRegression(), X, codes, weights, folds)
        np.testing.assert_allclose(np.exp(log_odds).sum(axis=1), 1, atol=2e-3)  # with the floor
        scores = self.by_module(Perceptron(), X, codes, weights, folds)
        np.testing.assert_array_equal(scores.sum(axis=1), 0)

    def test_decision_values_of_pairs_of_classes_are_not_used(self):
        """Three classes have as many pairs as classes."""
        for n_classes in (3, 4):
            X, codes, weights, folds = self.data(n_classes)
            pairs = SVC(decision_function_shape="ovo")
            for estimator in (pairs, make_pipeline(StandardScaler(), pairs)):
                expected = self.by_definition(estimator, X, codes, weights, folds, "predict")
                log_odds = self.by_module(estimator, X, codes, weights, folds)
                np.testing.assert_array_equal(log_odds, np.eye(n_classes)[expected])
        X, codes, weights, folds = self.data(2)
        pairs, one = (
            self.by_module(SVC(decision_function_shape=shape), X, codes, weights, folds)
            for shape in ("ovo", "ovr")
        )
        np.testing.assert_array_equal(pairs, one)  # two classes have one pair

    def test_decision_values_with_another_number_of_columns_are_not_used(self):
        X, codes, weights, folds = self.data(3)
        expected = self.by_definition(WideDecisions(), X, codes, weights, folds, "predict")
        log_odds = self.by_module(WideDecisions(), X, codes, weights, folds)
        np.testing.assert_array_equal(log_odds, np.eye(3)[expected])

    @pytest.mark.parametrize(
        "estimator",
        [GaussianNB(), LinearSVC(), PredictsOnly()],
        ids=["probabilities", "decision values", "predictions"],
    )
    def test_a_class_may_be_missing_in_a_training_fold(self, estimator):
        X, codes = blobs(3, cluster_std=1.0)
        folds = PredefinedSplit(np.where(codes == 1, 0, np.arange(120) % 3))
        log_odds = self.by_module(estimator, X, codes, np.ones(120), folds)
        train, test = next(iter(folds.split()))
        assert set(codes[train]) == {0, 2}
        fitted = clone(estimator).fit(X[train], codes[train])
        if isinstance(estimator, GaussianNB):
            expected = np.full((len(test), 3), 1 / (10 * len(test)))
            expected[:, [0, 2]] = np.maximum(fitted.predict_proba(X[test]), expected[:, [0, 2]])
            np.testing.assert_allclose(np.exp(log_odds[test]), expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(log_odds[test], np.eye(3)[fitted.predict(X[test])])
        other_train, other = list(folds.split())[1]
        assert set(codes[other_train]) == {0, 1, 2}
        assert (log_odds[other].argmax(axis=1) == codes[other]).mean() > 0.9

    def test_rows_that_are_not_held_out_have_those_of_the_class_proportions(self):
        X, codes, weights, _ = self.data(3)
        folds = PredefinedSplit(np.where(np.arange(120) < 7, -1, np.arange(120) % 4))
        log_odds = self.by_module(GaussianNB(), X, codes, weights, folds)
        shares = np.bincount(codes, weights) / weights.sum()
        np.testing.assert_allclose(softmax(log_odds[:7], axis=1), np.tile(shares, (7, 1)))

    def test_fits_are_to_the_labels_themselves(self):
        X, codes, weights, folds = self.data(3)
        SeesLabels.seen = []
        self.by_module(SeesLabels(), X, codes, weights, folds)
        assert len(SeesLabels.seen) == 4
        for labels, (train, _) in zip(SeesLabels.seen, folds.split(), strict=True):
            np.testing.assert_array_equal(labels, NAMES[codes[train]])

    def test_classifiers_without_base_classes(self):
        X, codes, weights, folds = self.data(3)
        expected = self.by_definition(PredictsOnly(), X, codes, weights, folds, "predict")
        log_odds = self.by_module(WithoutBase(), X, codes, weights, folds)
        np.testing.assert_array_equal(log_odds, np.eye(3)[expected])

    def test_rows_of_lists_and_sparse_arrays(self):
        X, codes, weights, folds = self.data(2)
        expected = self.by_module(GaussianNB(), X, codes, weights, folds)
        of_lists = self.by_module(GaussianNB(), X.tolist(), codes, weights, folds)
        np.testing.assert_array_equal(of_lists, expected)
        of_sparse = self.by_module(LinearSVC(), sparse.csr_array(X), codes, weights, folds)
        of_dense = self.by_module(LinearSVC(), X, codes, weights, folds)
        np.testing.assert_allclose(of_sparse, of_dense, atol=1e-3)


class TestClassifiers:
    def test_stacking_has_no_predict_before_its_fit_but_is_a_classifier(self):
        stack = StackingClassifier([("bayes", GaussianNB())])
        assert not hasattr(stack, "predict")
        check_classifier(stack)
        check_classifier(WithoutBase())

    @pytest.mark.parametrize(
        "estimator",
        [
            GaussianNB,
            LinearRegression(),
            StandardScaler(),
            make_pipeline(StandardScaler(), LinearRegression()),
            "bayes",
            None,
        ],
        ids=["class", "regressor", "transformer", "pipeline", "name", "None"],
    )
    def test_others_raise(self, estimator):
        with pytest.raises(ValueError, match=r"(?s)^estimator=.* must be a classifier with fit"):
            check_classifier(estimator)


class TestGivenProbabilities:
    def test_they_are_returned_as_floats(self):
        pred_probs = np.array([[1.0, 0.0], [0.5, 0.5], [0.001, 0.999]])
        np.testing.assert_array_equal(given_probabilities(pred_probs, 3, 2), pred_probs)
        of_lists = given_probabilities([[1, 0], [0, 1]], 2, 2)
        np.testing.assert_array_equal(of_lists, np.eye(2))
        assert of_lists.dtype == np.float64

    def test_zeros_are_floored_by_the_number_of_rows(self):
        pred_probs = np.array([[1.0, 0.0], [0.5, 0.5], [0.001, 0.999]])
        expected = np.log([[1, 1 / 30], [0.5, 0.5], [1 / 30, 0.999]])
        log_scores = log_scores_of(given_probabilities(pred_probs, 3, 2))
        np.testing.assert_allclose(log_scores, expected, rtol=1e-12)

    @pytest.mark.parametrize("shape", [(3, 2), (4, 3), (4,), (2, 4)])
    def test_wrong_shapes_raise(self, shape):
        with pytest.raises(ValueError, match=r"pred_probs has shape \(.* 4 samples.* 2 classes"):
            given_probabilities(np.full(shape, 0.5), 4, 2)

    @pytest.mark.parametrize(
        "row", [[0.5, 0.6], [1.5, -0.5], [0.0, 0.0]], ids=["sum", "negative", "zeros"]
    )
    def test_the_first_improper_row_is_named(self, row):
        pred_probs = np.full((4, 2), 0.5)
        pred_probs[2:] = row
        with pytest.raises(ValueError, match=r"pred_probs .* sum to 1, but row 2 is \["):
            given_probabilities(pred_probs, 4, 2)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_the_first_row_that_is_not_finite_is_named(self, value):
        pred_probs = np.full((5, 2), 0.5)
        pred_probs[2:4, 1] = value
        with pytest.raises(ValueError, match=rf"pred_probs .* but row 2 is \[0.5, {value}\]"):
            given_probabilities(pred_probs, 5, 2)


class TestFolds:
    @pytest.mark.parametrize("n_folds", [2, 5, 10])
    def test_each_row_is_held_out_once(self, n_folds):
        codes = np.random.default_rng(0).integers(3, size=100)
        folds = split_into_folds(n_folds, codes, np.arange(100), None)
        assert folds.get_n_splits() == n_folds
        held_out = np.concatenate([test for _, test in folds.split()])
        np.testing.assert_array_equal(np.sort(held_out), np.arange(100))

    def test_duplicates_are_in_one_fold(self):
        rng = np.random.default_rng(1)
        for _ in range(10):
            owner = np.unique(rng.integers(40, size=150), return_inverse=True)[1]
            codes = rng.integers(2, size=150)
            fold = split_into_folds(5, codes, owner, None).test_fold
            for distinct in np.unique(owner):
                assert len(np.unique(fold[owner == distinct])) == 1
            assert len(np.unique(fold)) == 5

    def test_groups_are_in_one_fold(self):
        rng = np.random.default_rng(2)
        groups = rng.choice(["a", "b", "c", "d", "e", "f", "g"], size=100)
        codes = rng.integers(2, size=100)
        fold = split_into_folds(5, codes, np.arange(100), groups).test_fold
        for group in np.unique(groups):
            assert len(np.unique(fold[groups == group])) == 1
        assert len(np.unique(fold)) == 5
        few = split_into_folds(10, codes, np.arange(100), groups)
        assert few.get_n_splits() == 7

    @pytest.mark.parametrize("n_rare", [1, 2, 3, 4, 7])
    def test_each_class_is_in_each_training_fold(self, n_rare):
        """A class with fewer rows than folds does not change the number of folds."""
        rng = np.random.default_rng(n_rare)
        for _ in range(10):
            codes = rng.permutation(np.repeat([0, 1, 2], [40, 30, n_rare]))
            folds = split_into_folds(5, codes, np.arange(len(codes)), None)
            assert folds.get_n_splits() == 5
            for train, _ in folds.split():
                assert set(codes[train]) == {0, 1, 2}
            held_out = np.concatenate([test for _, test in folds.split()])
            never = np.setdiff1d(np.arange(len(codes)), held_out)
            np.testing.assert_array_equal(never, np.flatnonzero(codes == 2) if n_rare == 1 else [])

    def test_duplicates_of_a_class_of_one_unit_are_training_rows_too(self):
        codes = np.repeat([0, 1], [60, 3])
        units = np.arange(63)
        units[[58, 59]] = units[60:] = 58
        folds = split_into_folds(5, codes, units, None)
        assert folds.get_n_splits() == 5
        np.testing.assert_array_equal(np.flatnonzero(folds.test_fold == -1), np.arange(58, 63))

    def test_units_may_hold_labels_of_all_classes(self):
        """Each unit has a label of the first class, so classes of first rows show one class."""
        units = np.repeat(np.arange(30), 2)
        codes = np.tile([0, 1], 30)
        folds = split_into_folds(5, codes, units, None)
        assert folds.get_n_splits() == 5
        for train, test in folds.split():
            assert set(codes[train]) == {0, 1}
            assert not set(units[train]) & set(units[test])

    @pytest.mark.parametrize(("n_units", "n_folds"), [(1, None), (2, 2), (4, 4), (7, 5)])
    def test_there_are_no_more_than_the_units_of_the_largest_class(self, n_units, n_folds):
        codes = np.append(np.zeros(n_units, dtype=int), [1, 2])
        folds = split_into_folds(5, codes, np.arange(len(codes)), None)
        assert (None if folds is None else folds.get_n_splits()) == n_folds

    @pytest.mark.filterwarnings("error")
    def test_small_classes_do_not_warn(self):
        codes = np.repeat([0, 1, 2, 3], [40, 1, 2, 3])
        assert split_into_folds(5, codes, np.arange(46), None).get_n_splits() == 5

    def test_a_class_in_one_group_alone_raises(self):
        codes = np.arange(100) % 2
        with pytest.raises(ValueError, match="A class occurs in so few groups"):
            split_into_folds(5, codes, np.arange(100), np.where(codes == 1, 0, np.arange(100)))

    def test_classes_are_spread_evenly(self):
        codes = np.random.default_rng(3).permutation(np.repeat([0, 1], [80, 20]))
        folds = split_into_folds(5, codes, np.arange(100), None)
        assert [int(codes[test].sum()) for _, test in folds.split()] == [4] * 5

    def test_folds_do_not_depend_on_the_order_of_classes_in_the_rows(self):
        """Rows that are sorted by a feature, within a class, are shuffled."""
        codes = np.repeat([0, 1], 50)
        fold = split_into_folds(5, codes, np.arange(100), None).test_fold
        assert (np.diff(fold[:50]) != 0).mean() > 0.5
        again = split_into_folds(5, codes, np.arange(100), None).test_fold
        np.testing.assert_array_equal(fold, again)


class TestGroups:
    def test_no_group_is_in_training_and_held_out_rows(self):
        groups = np.random.default_rng(0).integers(20, size=100)
        folds = group_folds(groups, (100,))
        assert len(folds) == 8
        for train, test in folds:
            assert not set(groups[train]) & set(groups[test])
        np.testing.assert_array_equal(
            np.sort(np.concatenate([test for _, test in folds])), np.arange(100)
        )
        assert len(group_folds(groups % 3, (100,))) == 3

    def test_groups_of_one_row_need_no_folds(self):
        assert group_folds(None, (5,)) == []
        assert group_folds(np.arange(5), (5,)) == []
        assert group_folds(["a", "b", "c", "d", "e"], (5,)) == []

    def test_wrong_groups_raise(self):
        with pytest.raises(ValueError, match=r"groups has shape \(4,\) but y has \(5,\)"):
            group_folds(np.arange(4), (5,))
        with pytest.raises(ValueError, match="groups has one group only"):
            group_folds(np.zeros(5), (5,))
        for missing in (np.nan, None):
            with pytest.raises(ValueError, match="groups has missing entries"):
                group_folds([1, 1, 2, missing, 3], (5,))

    def test_the_effective_sample_size_counts_groups(self):
        assert n_effective_of(np.repeat(np.arange(7), 4)) == pytest.approx(7)
        assert n_effective_of(np.arange(9)) == pytest.approx(9)
        assert n_effective_of(np.repeat([0, 1], [3, 1])) == pytest.approx(16 / 10)

    def test_the_effective_sample_size_sums_weights(self):
        groups = np.array(["b", "a", "b", "a", "c"])
        weights = np.array([2.0, 1.0, 1.0, 3.0, 2.0])
        assert n_effective_of(groups, weights) == pytest.approx(81 / (9 + 16 + 4))
        counts = weights.astype(int)
        assert n_effective_of(groups.repeat(counts)) == n_effective_of(groups, weights)
        present = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
        assert n_effective_of(groups, present) == pytest.approx(2)


class TestHeldOutScores:
    @staticmethod
    def data(seed=0):
        X, y = make_mixture(120, 8, mean_norm=2.0, random_state=seed)
        return X, NOISE.flip(y, random_state=seed), y, np.repeat(np.arange(30), 4)

    def test_they_are_those_of_fits_to_the_other_groups(self):
        X, codes, _, groups = self.data()
        folds = group_folds(groups, (120,))
        fitted = LPClassifier(NOISE).fit(X, codes)
        scores = held_out_log_odds(X, codes, folds, fitted)
        for train, test in folds:
            values = LPClassifier(NOISE).fit(X[train], codes[train]).decision_function(X[test])
            np.testing.assert_allclose(scores[test, 1] - scores[test, 0], values, rtol=1e-9)

    def test_labels_of_a_group_have_no_effect_on_its_scores(self):
        X, codes, _, groups = self.data()
        folds = group_folds(groups, (120,))
        before = held_out_log_odds(X, codes, folds, LPClassifier(NOISE).fit(X, codes))
        other = np.where(groups == 5, 1 - codes, codes)
        after = held_out_log_odds(X, other, folds, LPClassifier(NOISE).fit(X, other))
        np.testing.assert_array_equal(after[groups == 5], before[groups == 5])
        assert not np.allclose(after[groups == 6], before[groups == 6])

    def test_several_classes_have_a_column_each(self):
        X, codes = blobs(3, cluster_std=1.0)
        noise = NoiseModel(0.7 * np.eye(3) + 0.1, np.full(3, 1 / 3))
        folds = group_folds(np.arange(120) // 4, (120,))
        fitted = LPClassifier(noise).fit(X, codes)
        scores = held_out_log_odds(X, codes, folds, fitted)
        assert scores.shape == (120, 3)
        assert (scores.argmax(axis=1) == codes).mean() > 0.8

    def test_trusted_labels_of_a_group_have_no_effect_on_its_scores(self):
        X, codes, y, groups = self.data()
        folds = group_folds(groups, (120,))
        held_out = next(test for _, test in folds if 5 in groups[test])
        y_trusted = np.where(groups % 2 == 1, y, np.nan)
        fitted = LPClassifier(TrustedSubset(y_trusted)).fit(X, codes)
        before = held_out_log_odds(X, codes, folds, fitted)
        fitted.noise_estimator_.set_params(
            y_trusted=np.where(groups == 5, 1 - y_trusted, y_trusted)
        )
        after = held_out_log_odds(X, codes, folds, fitted)
        np.testing.assert_array_equal(after[held_out], before[held_out])
        assert not np.array_equal(after, before)

    def test_a_class_in_one_group_alone_raises(self):
        X, codes, _, _ = self.data()
        groups = np.where(codes == 1, 0, 1 + np.arange(120) // 4)
        folds = group_folds(groups, (120,))
        fitted = LPClassifier(NOISE).fit(X, codes)
        with pytest.raises(ValueError, match="A class occurs in so few groups"):
            held_out_log_odds(X, codes, folds, fitted)

    def test_weights_are_those_of_the_fits_to_other_groups(self):
        X, codes, _, groups = self.data()
        weights = np.random.default_rng(0).uniform(0.2, 3, size=120)
        folds = group_folds(groups, (120,))
        fitted = LPClassifier(NOISE).fit(X, codes, weights)
        scores = held_out_log_odds(X, codes, folds, fitted, weights=weights)
        for train, test in folds:
            fold = LPClassifier(NOISE).fit(X[train], codes[train], weights[train])
            values = fold.decision_function(X[test])
            np.testing.assert_allclose(scores[test, 1] - scores[test, 0], values, rtol=1e-9)
        unweighted = held_out_log_odds(X, codes, folds, fitted)
        assert not np.allclose(scores, unweighted, atol=1e-3)

    def test_samples_outside_the_folds_have_no_effect(self):
        X, codes, _, groups = self.data()
        members = np.flatnonzero(np.arange(120) % 3 > 0)
        folds = [
            (members[train], members[test])
            for train, test in group_folds(groups[members], members.shape)
        ]
        fitted = LPClassifier(NOISE).fit(X[members], codes[members])
        scores = held_out_log_odds(X, codes, folds, fitted)
        assert scores[members].all()
        others = np.setdiff1d(np.arange(120), members)
        np.testing.assert_array_equal(scores[others], 0)
        shifted = np.where(np.isin(np.arange(120), members)[:, None], X, 1000.0)
        labels = np.where(np.isin(np.arange(120), members), codes, 7)
        np.testing.assert_array_equal(held_out_log_odds(shifted, labels, folds, fitted), scores)
