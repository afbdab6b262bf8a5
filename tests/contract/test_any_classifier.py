"""NoisyLabelClassifier with the estimators, data and errors of scikit-learn and other libraries."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    HistGradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from support.any_classifier import NOISE, TREE, Convertible, circles
from support.text import draw_texts
from unflip import LPClassifier, NoiseModel, NoisyLabelClassifier

SQUARES = make_pipeline(PolynomialFeatures(2), StandardScaler(), LogisticRegression())

_SPLITS = (
    "the check passes a list of splits as cv, which is a number of folds here; equivalence is "
    "tested in tests/unit/test_noisy_label_classifier.py"
)
# Checks that fail, with the reason.
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": _SPLITS,
    "check_sample_weight_equivalence_on_sparse_data": _SPLITS,
}


def levels(n=600, n_levels=12, seed=0):
    """Return levels of a category whose parity is the class."""
    level = np.random.default_rng(seed).integers(n_levels, size=n)
    return level, NOISE.flip(level % 2, random_state=seed), level % 2


class TestEstimatorChecks:
    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    @pytest.mark.parametrize(
        "estimator",
        [
            NoisyLabelClassifier(DecisionTreeClassifier(random_state=0)),
            NoisyLabelClassifier(LogisticRegression(), noise=None),
            NoisyLabelClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
        ],
        ids=["tree", "logistic", "pipeline"],
    )
    def test_every_check_passes(self, estimator):
        results = check_estimator(
            estimator, on_skip=None, on_fail=None, expected_failed_checks=EXPECTED
        )
        assert len(results) > 55
        failed = [
            (result["check_name"], result["exception"])
            for result in results
            if result["status"] == "failed"
        ]
        assert not failed
        skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
        assert skipped <= {"check_array_api_input"}  # needs an environment variable
        still_failing = {result["check_name"] for result in results if result["status"] == "xfail"}
        # Pipelines that centre their rows do not take sparse ones.
        assert set(EXPECTED) - {"check_sample_weight_equivalence_on_sparse_data"} <= still_failing


class TestScikitLearn:
    def test_parameters_of_the_inner_classifier_can_be_set(self):
        model = NoisyLabelClassifier(DecisionTreeClassifier(), NOISE)
        assert model.get_params()["estimator__max_depth"] is None
        model.set_params(estimator__max_depth=3, cv=None, features="rbf")
        assert model.estimator.max_depth == 3
        copy = clone(model)
        assert copy.estimator is not model.estimator
        assert copy.get_params()["estimator__max_depth"] == 3
        assert (copy.noise, copy.cv, copy.features) == (NOISE, None, "rbf")
        X, observed, _ = circles()
        assert copy.fit(X, observed).estimator_.get_depth() <= 3

    def test_pickles_predict_the_same(self):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(TREE, NOISE).fit(X, observed)
        loaded = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
        np.testing.assert_array_equal(loaded.label_posterior_, fitted.label_posterior_)

    def test_the_last_step_of_a_pipeline(self):
        X, observed, y = circles()
        labels = np.where(observed == 1, "inner", "outer")
        pipeline = make_pipeline(StandardScaler(), NoisyLabelClassifier(SVC(), NOISE))
        pipeline.fit(X, labels)
        assert pipeline.classes_.tolist() == ["inner", "outer"]
        assert pipeline.decision_function(X).shape == (300,)
        assert pipeline.score(X, np.where(y == 1, "inner", "outer")) > 0.5

    def test_searches_and_cross_validation(self):
        X, observed, y = circles()
        model = NoisyLabelClassifier(DecisionTreeClassifier(random_state=0), NOISE)
        grid = {"estimator__max_depth": [1, 4], "cv": [None, 3]}
        search = GridSearchCV(model, grid, cv=3).fit(X, observed)
        assert search.best_params_["estimator__max_depth"] == 4
        assert search.best_estimator_.score(X, y) > 0.9
        plain, robust = (
            cross_val_score(each, X, observed, cv=3) for each in (model.estimator, model)
        )
        assert robust.mean() > plain.mean()
        probabilities = cross_val_predict(model, X, observed, cv=3, method="predict_proba")
        assert probabilities.shape == (300, 2)
        assert (probabilities.argmax(axis=1) == y).mean() > 0.9

    @pytest.mark.parametrize(
        "estimator",
        [
            GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4]}, cv=3),
            VotingClassifier([("tree", TREE), ("neighbours", KNeighborsClassifier())]),
            BaggingClassifier(TREE, 5, random_state=0),
            CalibratedClassifierCV(TREE, cv=3),
            StackingClassifier([("tree", TREE), ("bayes", GaussianNB())], cv=3),
            SQUARES,
        ],
        ids=["search", "voting", "bagging", "calibrated", "stacking", "pipeline"],
    )
    def test_around_other_meta_estimators(self, estimator):
        X, observed, y = circles()
        fitted = NoisyLabelClassifier(estimator, NOISE, cv=3).fit(X, observed)
        assert fitted.score(X, y) > 0.9

    @pytest.mark.parametrize("weighted", [False, True])
    def test_metadata_routing_has_no_effect(self, weighted):
        X, observed, _ = circles()
        weights = np.random.default_rng(0).uniform(0.5, 2, size=300) if weighted else None
        with sklearn.config_context(enable_metadata_routing=True):
            routed = NoisyLabelClassifier(TREE, NOISE).fit(X, observed, sample_weight=weights)
        fitted = NoisyLabelClassifier(TREE, NOISE).fit(X, observed, sample_weight=weights)
        np.testing.assert_array_equal(routed.log_odds_, fitted.log_odds_)
        np.testing.assert_array_equal(routed.predict_proba(X), fitted.predict_proba(X))

    @pytest.mark.parametrize(
        "estimator",
        [
            make_pipeline(StandardScaler(), GaussianNB()),
            GridSearchCV(GaussianNB(), {}, cv=3),
            AdaBoostClassifier(TREE, n_estimators=3, random_state=0),
        ],
        ids=["pipeline", "search", "no routing"],
    )
    def test_with_metadata_routing_weights_that_are_not_requested_are_left_out(self, estimator):
        X, observed, y = circles()
        with sklearn.config_context(enable_metadata_routing=True):
            model = NoisyLabelClassifier(estimator, NOISE)
            fitted = model.fit(X, observed)
            likeliest = fitted.label_posterior_.argmax(axis=1)
            expected = clone(estimator).fit(X, likeliest)
            np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))
            with pytest.raises(ValueError, match="does not request it from metadata routing"):
                model.fit(X, observed, sample_weight=np.ones(300))
        assert (fitted.predict(X) == y).mean() > 0.9

    def test_with_metadata_routing_weights_reach_the_step_that_requests_them(self):
        X, observed, _ = circles()
        weights = np.random.default_rng(0).uniform(0.5, 2, size=300)
        expected = NoisyLabelClassifier(make_pipeline(StandardScaler(), GaussianNB()), NOISE)
        expected.fit(X, observed, sample_weight=weights)
        with sklearn.config_context(enable_metadata_routing=True):
            scaler = StandardScaler().set_fit_request(sample_weight=False)
            bayes = GaussianNB().set_fit_request(sample_weight=True)
            routed = NoisyLabelClassifier(make_pipeline(scaler, bayes), NOISE)
            routed.fit(X, observed, sample_weight=weights)
            np.testing.assert_array_equal(routed.predict_proba(X), expected.predict_proba(X))
        np.testing.assert_array_equal(routed.log_odds_, expected.log_odds_)

    def test_the_output_of_transformers_has_no_effect(self):
        pandas = pytest.importorskip("pandas")
        X, observed, _ = circles()
        frame = pandas.DataFrame(X, columns=["width", "height"])
        expected = NoisyLabelClassifier(TREE, NOISE).fit(X, observed).log_odds_
        with sklearn.config_context(transform_output="pandas"):
            for rows in (X, frame):
                fitted = NoisyLabelClassifier(TREE, NOISE).fit(rows, observed)
                np.testing.assert_allclose(fitted.log_odds_, expected, atol=1e-9)

    @pytest.mark.parametrize("n_classes", [3, 4])
    def test_decision_values_of_pairs_of_classes(self, n_classes):
        centers = [[0, 0], [0, 6], [6, 0], [6, 6]][:n_classes]
        X, y = make_blobs(300, centers=centers, cluster_std=1.2, random_state=0)
        noise = NoiseModel(
            0.6 * np.eye(n_classes) + 0.4 / n_classes, np.full(n_classes, 1 / n_classes)
        )
        observed = noise.flip(y, random_state=0)
        pairs = NoisyLabelClassifier(SVC(decision_function_shape="ovo"), noise).fit(X, observed)
        assert pairs.score(X, y) > 0.9
        assert pairs.decision_function(X).shape == (300, n_classes * (n_classes - 1) // 2)

    def test_it_may_be_nested(self):
        X, observed, y = circles()
        inner = NoisyLabelClassifier(TREE, NOISE, cv=None)
        fitted = NoisyLabelClassifier(inner, NOISE, cv=2).fit(X, observed)
        assert fitted.score(X, y) > 0.9

    @pytest.mark.parametrize("estimator", [LinearSVC(), Perceptron()], ids=repr)
    def test_classifiers_without_probabilities(self, estimator):
        X, y = make_blobs(300, centers=2, cluster_std=2.0, random_state=0)
        observed = NOISE.flip(y, random_state=0)
        fitted = NoisyLabelClassifier(estimator, NOISE).fit(X, observed)
        assert not hasattr(fitted, "predict_proba")
        np.testing.assert_array_equal(
            fitted.decision_function(X), fitted.estimator_.decision_function(X)
        )
        best = clone(estimator).fit(X, y).score(X, y)
        assert fitted.score(X, y) > best - 3 * np.sqrt(best * (1 - best) / 300)

    @pytest.mark.parametrize("estimator", [TREE, GaussianNB(), KNeighborsClassifier()], ids=repr)
    def test_classifiers_without_decision_values(self, estimator):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(estimator, NOISE).fit(X, observed)
        assert not hasattr(fitted, "decision_function")
        np.testing.assert_array_equal(fitted.predict_proba(X), fitted.estimator_.predict_proba(X))

    def test_fits_are_deterministic(self):
        X, observed, _ = circles()
        one, other = (NoisyLabelClassifier(TREE).fit(X, observed) for _ in range(2))
        np.testing.assert_array_equal(one.log_odds_, other.log_odds_)
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))

    def test_predictions_before_a_fit_raise(self):
        X, _, _ = circles()
        for method in ("predict", "predict_proba"):
            with pytest.raises(NotFittedError, match="NoisyLabelClassifier instance is not fitted"):
                getattr(NoisyLabelClassifier(TREE), method)(X)


class TestLabels:
    @pytest.mark.parametrize(
        "names",
        [
            np.array(["no", "yes"]),
            np.array(["no", "yes"], dtype=object),
            np.array([False, True]),
            np.array([-1, 1]),
            np.array([3.0, 7.0]),
        ],
        ids=["strings", "objects", "booleans", "signs", "floats"],
    )
    def test_of_other_types_give_the_same_fit(self, names):
        X, observed, _ = circles()
        expected = NoisyLabelClassifier(TREE, NOISE).fit(X, observed)
        fitted = NoisyLabelClassifier(TREE, NOISE).fit(X, names[observed])
        np.testing.assert_array_equal(fitted.classes_, names)
        np.testing.assert_array_equal(fitted.log_odds_, expected.log_odds_)
        predicted = fitted.predict(X)
        assert predicted.dtype.kind == names.dtype.kind
        np.testing.assert_array_equal(predicted, names[expected.predict(X)])

    def test_lists_and_series(self):
        pandas = pytest.importorskip("pandas")
        X, observed, _ = circles()
        expected = NoisyLabelClassifier(TREE, NOISE).fit(X, observed).log_odds_
        names = np.where(observed == 1, "yes", "no")
        for labels in (
            observed.tolist(),
            pandas.Series(observed, index=np.arange(300)[::-1]),
            pandas.Series(names),
            pandas.Series(names, dtype="category"),
        ):
            fitted = NoisyLabelClassifier(TREE, NOISE).fit(X, labels)
            np.testing.assert_array_equal(fitted.log_odds_, expected)

    def test_four_classes(self):
        centers = [[0, 0], [0, 6], [6, 0], [6, 6]]
        X, y = make_blobs(400, centers=centers, cluster_std=1.2, random_state=0)
        noise = NoiseModel(0.6 * np.eye(4) + 0.1, np.full(4, 1 / 4))
        names = np.array(["a", "b", "c", "d"])
        labels = names[noise.flip(y, random_state=0)]
        for estimator in (TREE, LinearSVC(), KNeighborsClassifier(), SVC()):
            fitted = NoisyLabelClassifier(estimator, noise).fit(X, labels)
            assert fitted.score(X, names[y]) > 0.9
            for method in ("predict_proba", "decision_function"):
                if hasattr(fitted, method):
                    values = getattr(fitted, method)(X)
                    predicted = fitted.classes_[values.argmax(axis=1)]
                    assert (predicted == fitted.predict(X)).mean() > 0.99  # but for ties


class TestData:
    def test_dataframes_have_feature_names(self):
        pandas = pytest.importorskip("pandas")
        X, observed, _ = circles()
        frame = pandas.DataFrame(X, columns=["width", "height"], index=np.arange(300)[::-1])
        fitted = NoisyLabelClassifier(TREE, NOISE).fit(frame, observed)
        assert fitted.feature_names_in_.tolist() == ["width", "height"]
        assert fitted.n_features_in_ == 2
        expected = NoisyLabelClassifier(TREE, NOISE).fit(X, observed)
        np.testing.assert_allclose(fitted.log_odds_, expected.log_odds_, atol=1e-9)
        np.testing.assert_allclose(fitted.predict_proba(frame), expected.predict_proba(X))
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(frame[["height", "width"]])
        weights = np.where(np.arange(300) < 50, 0.0, 1.0)
        of_present = fitted.fit(frame, observed, sample_weight=weights).log_odds_[50:]
        expected = NoisyLabelClassifier(TREE, NOISE).fit(X[50:], observed[50:])
        np.testing.assert_allclose(of_present, expected.log_odds_, atol=1e-8)

    @pytest.mark.parametrize(
        "container",
        [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix],
    )
    def test_sparse_rows(self, container):
        counts, y = draw_texts(500, 300, length=60, tilt=0.5)
        observed = NOISE.flip(y, random_state=0)
        X = container(counts)
        fitted = NoisyLabelClassifier(MultinomialNB(), NOISE).fit(X, observed)
        dense = NoisyLabelClassifier(MultinomialNB(), NOISE).fit(counts, observed)
        np.testing.assert_allclose(fitted.log_odds_, dense.log_odds_, atol=1e-9)
        plain = MultinomialNB().fit(counts, observed).score(counts, y)
        assert fitted.score(X, y) > plain
        assert fitted.n_features_in_ == 300

    def test_missing_values(self):
        """Missing values are imputed for the first step, and passed on to the classifier."""
        X, observed, y = circles(600)
        rng = np.random.default_rng(0)
        X = np.column_stack([X, X + 0.05 * rng.normal(size=X.shape)])
        X[rng.random(X.shape) < 0.1] = np.nan
        estimator = HistGradientBoostingClassifier(max_iter=20)
        fitted = NoisyLabelClassifier(estimator, NOISE).fit(X, observed)
        assert fitted.label_fit_ is not None
        assert fitted.score(X, y) > clone(estimator).fit(X, observed).score(X, y) + 0.03
        with pytest.raises(ValueError, match="NaN"):
            NoisyLabelClassifier(LogisticRegression(), NOISE).fit(X, observed)

    @pytest.mark.parametrize("dtype", ["str", "category", "object"])
    def test_columns_that_are_not_numeric(self, dtype):
        pandas = pytest.importorskip("pandas")
        level, observed, y = levels()
        frame = pandas.DataFrame(
            {
                "level": pandas.Series([f"level {i}" for i in level], dtype=dtype),
                "chance": np.random.default_rng(1).normal(size=600),
            }
        )
        one_hot = OneHotEncoder(handle_unknown="ignore")
        encoder = make_column_transformer((one_hot, ["level"]), remainder="passthrough")
        fitted = NoisyLabelClassifier(make_pipeline(encoder, LogisticRegression()))
        fitted.fit(frame, observed)
        assert fitted.label_fit_ is None
        assert fitted.rates_.source == "label likelihood"
        assert fitted.score(frame, y) > 0.95
        realised = [np.mean(observed[y == a] != a) for a in (0, 1)]
        rates = 1 - np.diag(fitted.noise_.transition)
        np.testing.assert_array_less(
            np.abs(rates - realised), 3 * np.diag(fitted.noise_std_) + 1e-9
        )
        weights = np.where(np.arange(600) < 100, 0.0, 1.0)
        weighted = clone(fitted).fit(frame, observed, sample_weight=weights)
        present = clone(fitted).fit(frame[100:], observed[100:])
        np.testing.assert_allclose(weighted.log_odds_[100:], present.log_odds_, atol=1e-6)

    def test_texts(self):
        level, observed, y = levels()
        texts = [f"{'good' if value else 'bad'} day {i}" for value, i in zip(y, level, strict=True)]
        estimator = make_pipeline(TfidfVectorizer(), LogisticRegression())
        fitted = NoisyLabelClassifier(estimator, NOISE).fit(texts, observed)
        assert fitted.label_fit_ is None
        assert not hasattr(fitted, "n_features_in_")
        assert fitted.cv_share_ == 1
        np.testing.assert_array_equal(fitted.predict(["good day", "bad night"]), [1, 0])

    def test_objects_that_convert_to_arrays(self):
        X, observed, _ = circles()
        for cv in (None, 5):
            fitted = NoisyLabelClassifier(TREE, NOISE, cv=cv).fit(Convertible(X), observed)
            expected = NoisyLabelClassifier(TREE, NOISE, cv=cv).fit(X, observed)
            np.testing.assert_array_equal(fitted.log_odds_, expected.log_odds_)
            np.testing.assert_array_equal(
                fitted.predict_proba(Convertible(X)), expected.predict_proba(X)
            )

    def test_arrays_of_three_dimensions(self):
        """They are not features, but the classifier may take them."""
        X, observed, y = circles()
        images = X[:, None, :]
        fitted = NoisyLabelClassifier(OfImages(), NOISE).fit(images, observed)
        assert fitted.label_fit_ is None
        assert fitted.cv_share_ == 1
        assert fitted.score(images, y) > 0.95

    def test_columns_without_any_value(self):
        X, observed, y = circles()
        wide = np.column_stack([X, np.full(300, np.nan)])
        estimator = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
        fitted = NoisyLabelClassifier(estimator, NOISE).fit(wide, observed)
        assert fitted.label_fit_ is not None
        assert fitted.score(wide, y) > 0.95

    def test_lists_of_rows(self):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(TREE, NOISE).fit(X.tolist(), observed.tolist())
        expected = NoisyLabelClassifier(TREE, NOISE).fit(X, observed)
        np.testing.assert_array_equal(fitted.log_odds_, expected.log_odds_)

    def test_inputs_are_not_changed(self):
        X, observed, y = circles()
        X[::9, 1] = np.nan
        arrays = [X, observed, np.ones(300), np.column_stack([1 - 0.9 * y, 0.9 * y])]
        copies = [array.copy() for array in arrays]
        estimator = HistGradientBoostingClassifier(max_iter=3)
        X, observed, weights, pred_probs = arrays
        NoisyLabelClassifier(estimator, NOISE).fit(
            X, observed, sample_weight=weights, pred_probs=pred_probs
        )
        for array, copy in zip(arrays, copies, strict=True):
            np.testing.assert_array_equal(array, copy)


class NearestMean(ClassifierMixin, BaseEstimator):
    """A classifier as other libraries write them: no weights, and single precision inside."""

    def __init__(self, power=2):
        self.power = power

    def fit(self, X, y, **fit_params):
        assert not fit_params
        powers = np.asarray(X, dtype=np.float32) ** self.power
        self.classes_ = np.unique(y)
        self.means_ = np.array([powers[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict_proba(self, X):
        powers = np.asarray(X, dtype=np.float32) ** self.power
        squares = ((powers[:, None] - self.means_) ** 2).sum(axis=2)
        values = np.exp(-squares)
        return values / values.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class ByHand:
    """The same without any of scikit-learn's base classes."""

    def __init__(self, power=2):
        self.power = power

    def get_params(self, deep=True):
        return {"power": self.power}

    def fit(self, X, y):
        self.inner_ = NearestMean(self.power).fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)

    def predict(self, X):
        return self.inner_.predict(X)


class OfImages(NearestMean):
    """The same for arrays of any number of dimensions."""

    def fit(self, X, y):
        return super().fit(np.reshape(X, (len(X), -1)), y)

    def predict_proba(self, X):
        return super().predict_proba(np.reshape(X, (len(X), -1)))


class TestOtherLibraries:
    @pytest.mark.parametrize("estimator", [NearestMean(), ByHand()], ids=["mixins", "no base"])
    def test_a_classifier_written_by_hand(self, estimator):
        X, observed, y = circles()
        fitted = NoisyLabelClassifier(estimator, NOISE, cv=None).fit(X, observed)
        assert fitted.score(X, y) > 0.95
        assert fitted.predict_proba(X).shape == (300, 2)
        with pytest.raises(ValueError, match=r"has no such parameter.*: omit sample_weight"):
            fitted.fit(X, observed, sample_weight=np.ones(300))

    def test_base_classes_have_no_effect(self):
        X, observed, y = circles()
        names = np.array(["inner", "outer"])
        fitted = NoisyLabelClassifier(ByHand(), NOISE, features="linear").fit(X, names[observed])
        assert fitted.cv_share_ > 0.5
        assert fitted.score(X, names[y]) > 0.95
        expected = NoisyLabelClassifier(NearestMean(), NOISE, features="linear").fit(X, observed)
        np.testing.assert_array_equal(fitted.log_odds_, expected.log_odds_)

    def test_out_of_fold_predictions_of_a_classifier_written_by_hand(self):
        X, observed, y = circles()
        fitted = NoisyLabelClassifier(NearestMean(), NOISE, features="linear").fit(X, observed)
        assert fitted.cv_share_ > 0.5  # a linear fit sees nothing
        assert fitted.score(X, y) > 0.95

    def test_xgboost(self):
        xgboost = pytest.importorskip("xgboost")
        self.check(xgboost.XGBClassifier(n_estimators=20, n_jobs=1))

    @staticmethod
    def with_rare_class(signal, n=600, seed=0):
        """Return three classes, one of which has 2% of the labels, by signal or by chance."""
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=n)
        rare = np.arange(n) % 50 == 0
        off_diagonal, prior = (0.005, 0.02) if signal else (0.03, 0.005)
        if signal:
            y[rare] = 2
        X = rng.normal(size=(n, 2)) + np.array([[0, 0], [5, 0], [2, 6]])[y]
        transition = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
        transition[:2] = (1 - off_diagonal) * transition[:2] + [0, 0, off_diagonal]
        priors = [(1 - prior) / 2, (1 - prior) / 2, prior]
        noise = NoiseModel(transition, priors)
        observed = np.where(
            rare, 2, NoiseModel.binary(eps_pos=0.1, eps_neg=0.1).flip(y % 2, random_state=seed)
        )
        return X, observed, y, noise

    @pytest.mark.parametrize("signal", [False, True])
    def test_xgboost_keeps_a_rare_class(self, signal):
        xgboost = pytest.importorskip("xgboost")
        self.check_rare_class(xgboost.XGBClassifier(n_estimators=20, n_jobs=1), signal)

    @pytest.mark.parametrize("signal", [False, True])
    def test_calibrated_classifiers_keep_a_rare_class(self, signal):
        self.check_rare_class(CalibratedClassifierCV(SVC(), ensemble=False), signal)

    def check_rare_class(self, estimator, signal):
        X, observed, y, noise = self.with_rare_class(signal)
        fitted = NoisyLabelClassifier(estimator, noise).fit(X, observed)
        n_likeliest = np.bincount(fitted.label_posterior_.argmax(axis=1), minlength=3)[2]
        assert n_likeliest > 5 if signal else n_likeliest == 0
        assert fitted.classes_.tolist() == fitted.estimator_.classes_.tolist() == [0, 1, 2]
        probabilities = fitted.predict_proba(X)
        assert probabilities.shape == (600, 3)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(probabilities, fitted.estimator_.predict_proba(X))
        assert fitted.score(X, y) > 0.93
        if signal:
            assert (fitted.predict(X) == 2)[y == 2].mean() > 0.7

    # Fits to arrays name their columns, and predictions for arrays do not.
    @pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
    def test_lightgbm(self):
        lightgbm = pytest.importorskip("lightgbm")
        self.check(lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1))

    @staticmethod
    def check(estimator):
        X, observed, y = circles(500)
        X_new, _, y_new = circles(2000, seed=1)
        weights = np.random.default_rng(0).uniform(0.5, 2, size=500)
        plain = clone(estimator).fit(X, observed, sample_weight=weights).score(X_new, y_new)
        fitted = NoisyLabelClassifier(estimator).fit(X, observed, sample_weight=weights)
        assert fitted.score(X_new, y_new) > plain + 0.01
        assert fitted.predict_proba(X_new).shape == (2000, 2)
        missing = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
        assert fitted.fit(missing, observed).score(missing, y) > 0.8


def test_priors_are_those_of_the_first_step():
    X, observed, _ = circles()
    fitted = NoisyLabelClassifier(TREE, priors=[0.5, 0.5]).fit(X, observed)
    np.testing.assert_array_equal(fitted.noise_.priors, [0.5, 0.5])
    expected = LPClassifier(priors=[0.5, 0.5], features="auto").fit(
        StandardScaler().fit_transform(X), observed
    )
    np.testing.assert_array_equal(expected.noise_.priors, [0.5, 0.5])
    gap = np.abs(fitted.noise_.transition - expected.noise_.transition)
    np.testing.assert_array_less(gap, fitted.noise_std_)
