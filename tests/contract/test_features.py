"""LPClassifier and audits with features: scikit-learn's contracts, and rows of any kind."""

import pickle
import re
from contextlib import nullcontext

import array_api_strict
import numpy as np
import pytest
from array_api_compat import device
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import make_circles
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from support.lazy import Failing, Stored
from support.scikit_learn_checks import may_be_skipped, namespaces_passed
from unflip import LPClassifier, Moments, NoiseModel, Votes, audit
from unflip._utils.arrays import as_numpy
from unflip.data.lazy import RowMapping
from unflip.data.streamed import streamed
from unflip.features import KernelFeatures

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
MILD = NoiseModel.binary(eps_pos=0.1, eps_neg=0.05)
FEW = KernelFeatures("rbf", n_components=60, landmarks="pivoted")
OF_ROWS = ("loo_decision_", "label_posterior_", "loo_log_odds_", "targets_")
KEPT_VALUES = "unflip.features.transformed_rows._KEPT_VALUES"
each_kind = pytest.mark.parametrize(
    "features", ["matern", "auto", FEW], ids=["name", "auto", "few"]
)


def rings(n=300, seed=0):
    """Return rows on two rings and two columns without signal, noisy labels, and true ones."""
    X, y = make_circles(n, noise=0.15, factor=0.5, random_state=seed)
    others = 0.3 * np.random.default_rng(seed).normal(size=(n, 2))
    return np.column_stack([X, others]), NOISE.flip(y, random_state=seed), y


X, Y, TRUE = rings()


def assert_same(actual, expected, rows, tolerance=1e-8):
    """Assert that two fits are the same but for the signs of the features."""
    assert (actual.features_ is None) == (expected.features_ is None)
    for name in OF_ROWS:
        values = as_numpy(getattr(actual, name))
        np.testing.assert_allclose(values, getattr(expected, name), rtol=0, atol=tolerance)
    probabilities = as_numpy(actual.predict_proba(rows))
    np.testing.assert_allclose(probabilities, expected.predict_proba(X), rtol=0, atol=tolerance)
    for name in ("reg_", "expected_accuracy_", "n_effective_"):
        assert getattr(actual, name) == pytest.approx(getattr(expected, name), abs=tolerance)


def on_device(values):
    return array_api_strict.asarray(np.array(values), device=array_api_strict.Device("device1"))


def torch_array(values):
    return pytest.importorskip("torch").asarray(np.array(values))


@pytest.fixture(params=[on_device, torch_array], ids=["strict", "torch"])
def put(request, monkeypatch):
    """Put values on a device, with array API dispatch."""
    if request.param is torch_array:
        pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it
    with config_context(array_api_dispatch=True):
        yield request.param


class TestScikitLearn:
    @pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix:UserWarning")
    @pytest.mark.filterwarnings(
        "ignore:Both targets:UserWarning", "ignore:.*of the fitted scores:UserWarning"
    )  # some checks have very unbalanced labels
    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    @pytest.mark.parametrize(
        "estimator",
        [
            KernelFeatures(),
            FEW,
            LPClassifier(MILD, features="auto"),
            LPClassifier(features="auto"),
            LPClassifier(MILD, features="matern"),
            LPClassifier(None, features=KernelFeatures("laplace", n_components=10)),
        ],
        ids=repr,
    )
    def test_every_check_passes(self, estimator):
        results = check_estimator(estimator, on_skip=None, on_fail=None)
        assert len(results) > 50
        assert {result["status"] for result in results} <= {"passed", "skipped"}
        assert all(map(may_be_skipped, results))

    @pytest.mark.parametrize(
        "estimator",
        [KernelFeatures(), FEW, LPClassifier(MILD, features="matern")],
        ids=["random", "pivoted", "classifier"],
    )
    def test_checks_of_other_namespaces(self, estimator, monkeypatch):
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")
        assert "array_api_strict" in namespaces_passed(estimator)

    def test_clones_keep_the_features(self):
        classifier = LPClassifier(NOISE, features=FEW).fit(X, Y)
        copied = clone(classifier)
        assert not hasattr(copied, "features_")
        assert copied.features is not FEW
        assert copied.get_params()["features__n_components"] == 60
        assert "features=KernelFeatures(kernel='rbf'" in repr(copied)
        assert "features" not in repr(LPClassifier(features="linear"))

    @each_kind
    def test_pickles_predict_the_same(self, features):
        classifier = LPClassifier(NOISE, features=features).fit(X, Y)
        loaded = pickle.loads(pickle.dumps(classifier))
        np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
        np.testing.assert_array_equal(loaded.loo_decision_, classifier.loo_decision_)

    def test_pipelines_and_cross_validation(self):
        pipeline = make_pipeline(StandardScaler(), LPClassifier(NOISE, features="auto"))
        by_kernel = cross_val_score(pipeline, X, Y).mean()
        pipeline.set_params(lpclassifier__features="linear")
        assert by_kernel > cross_val_score(pipeline, X, Y).mean() + 0.1

    def test_searches_over_features_and_their_parameters(self):
        search = GridSearchCV(LPClassifier(NOISE), {"features": ["linear", "rbf", FEW]}).fit(X, Y)
        assert search.best_params_["features"] != "linear"
        classifier = LPClassifier(NOISE, features=KernelFeatures("rbf"))
        search = GridSearchCV(classifier, {"features__bandwidth": [0.5, 100.0]}).fit(X, Y)
        assert search.best_params_ == {"features__bandwidth": 0.5}
        assert search.best_estimator_.features_.bandwidth == 0.5

    def test_dataframes(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=["east", "north", "noise", "more noise"])
        expected = LPClassifier(NOISE, features="matern").fit(X, Y)
        classifier = LPClassifier(NOISE, features="matern").fit(frame, Y)
        assert classifier.feature_names_in_.tolist() == frame.columns.tolist()
        # A frame is stored by columns, so its sums are rounded differently.
        np.testing.assert_allclose(
            classifier.predict_proba(frame), expected.predict_proba(X), rtol=1e-10
        )
        with pytest.raises(ValueError, match="feature names"):
            classifier.predict(frame.rename(columns={"east": "west"}))

    @pytest.mark.parametrize("is_global", [True, False])
    def test_transformers_that_return_dataframes(self, is_global):
        pytest.importorskip("pandas")
        expected = LPClassifier(NOISE, features=FEW).fit(X, Y)
        transformer = clone(FEW) if is_global else clone(FEW).set_output(transform="pandas")
        with config_context(transform_output="pandas") if is_global else nullcontext():
            classifier = LPClassifier(NOISE, features=transformer).fit(X, Y)
            probabilities = classifier.predict_proba(X)
        assert isinstance(probabilities, np.ndarray)
        np.testing.assert_array_equal(probabilities, expected.predict_proba(X))

    def test_a_later_fit_forgets_the_features(self):
        classifier = LPClassifier(NOISE, targets="optimized", features="matern").fit(X, Y)
        classifier.set_params(features="linear").fit(X, Y)
        assert classifier.features_ is None
        assert classifier.coef_.shape == (1, 4)


class Recorder(TransformerMixin, BaseEstimator):
    """Returns the rows and their squares; records what it was fitted to."""

    def fit(self, X, y=None, **options):
        self.fitted_to_ = X, y, options
        return self

    def transform(self, X):
        return np.column_stack([X, X**2])


class TestTransformers:
    def test_they_are_fitted_without_labels_and_zero_weight_rows(self):
        weights = np.where(np.arange(len(X)) < 50, 0.0, 1.0)
        classifier = LPClassifier(NOISE, targets="optimized", features=Recorder())
        classifier.fit(X, Y, weights)
        rows, labels, options = classifier.features_.fitted_to_
        np.testing.assert_array_equal(rows, X[50:])
        assert labels is None
        assert not options
        Z = np.column_stack([X, X**2])
        expected = LPClassifier(NOISE, targets="optimized").fit(Z, Y, weights)
        np.testing.assert_array_equal(classifier.loo_decision_, expected.loo_decision_)
        np.testing.assert_array_equal(classifier.predict_proba(X), expected.predict_proba(Z))

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda rows: rows * np.nan, "numbers that are not finite: impute or scale"),
            (lambda rows: rows[:, 0], r"shape \(1,\) for 1 rows, but must return one row"),
            (lambda rows: rows[1:], "must return one row of features for each row"),
        ],
        ids=["missing", "one-dimensional", "fewer rows"],
    )
    def test_output_that_is_no_features_is_an_error(self, function, message):
        features = FunctionTransformer(function)
        with pytest.raises(ValueError, match=message):
            LPClassifier(NOISE, features=features).fit(X, Y)

    def test_sparse_features(self):
        words = FunctionTransformer(sparse.csr_array)
        rows = np.where(X > 0.2, X, 0.0) + np.arange(300)[:, None] * [1e-3, 0, 0, 0]
        classifier = LPClassifier(NOISE, targets="optimized", features=words).fit(rows, Y)
        Z = sparse.csr_array(rows)
        expected = LPClassifier(NOISE, targets="optimized").fit(Z, Y)
        np.testing.assert_array_equal(classifier.predict_proba(rows), expected.predict_proba(Z))

    @pytest.mark.parametrize(
        "features", ["poly", "", None, 5, KernelFeatures, ["rbf"], np.eye(3)], ids=repr
    )
    def test_errors_of_other_values(self, features):
        with pytest.raises(
            ValueError, match=r"(?s)^features=.* is not a valid value: use 'linear', "
        ):
            LPClassifier(NOISE, features=features).fit(X, Y)

    def test_errors_of_their_parameters_leave_the_classifier_unchanged(self):
        classifier = LPClassifier(NOISE, features="matern").fit(X, Y)
        before = dict(vars(classifier))
        classifier.features = KernelFeatures(bandwidth=-1.0)
        with pytest.raises(ValueError, match="bandwidth = -1"):
            classifier.fit(X, Y)
        before["features"] = classifier.features
        assert vars(classifier) == before

    def test_the_number_of_columns_must_be_that_of_the_fit(self):
        classifier = LPClassifier(NOISE, features="rbf").fit(X, Y)
        with pytest.raises(ValueError, match="X has 3 features, but LPClassifier is expecting 4"):
            classifier.predict(X[:, :3])


class TestSumsOverTheRows:
    """Moments of the rows do not determine those of their features."""

    @each_kind
    def test_errors(self, features):
        classifier = LPClassifier(NOISE, targets="naive", features=features)
        reason = "needs rows: use features='linear'"
        assert not hasattr(classifier, "partial_fit")
        with pytest.raises(AttributeError) as error:
            classifier.partial_fit(X, Y, classes=[0, 1])
        assert re.search(reason, str(error.value.__cause__))
        with pytest.raises(ValueError, match=reason):
            LPClassifier.from_moments(Moments.from_chunks([(X, Y)]), NOISE, features=features)

    def test_linear_features(self):
        moments = Moments.from_chunks([(X, Y)])
        assert LPClassifier.from_moments(moments, NOISE, features="linear").features_ is None
        classifier = LPClassifier(NOISE, targets="optimized", features="rbf").fit(X, Y)
        classifier.set_params(features="linear")
        with pytest.warns(UserWarning, match="partial_fit starts anew"):
            classifier.partial_fit(X, Y)
        assert classifier.features_ is None
        assert classifier.predict(X).shape == (300,)


@each_kind
class TestOtherNamespaces:
    def test_fits_equal_those_of_numpy_and_stay_on_the_device(self, features, put):
        expected = LPClassifier(NOISE, features=features).fit(X, Y)
        rows = put(X)
        actual = LPClassifier(NOISE, features=features).fit(rows, put(Y))
        # The kernel that "auto" takes here is not smooth at the landmarks, where the square root of
        # the distance's rounding error counts.
        assert_same(actual, expected, rows, tolerance=1e-9)
        values = [getattr(actual, name) for name in ("coef_", *OF_ROWS)]
        values += [actual.features_.basis_, actual.features_.landmarks_]
        values += [actual.predict(rows), actual.predict_proba(rows), actual.decision_function(rows)]
        for each in values:
            assert type(each) is type(rows)
            assert device(each) == device(rows)
        np.testing.assert_array_equal(as_numpy(rows), X)

    def test_audits_equal_those_of_numpy(self, features, put):
        expected = audit(X, Y, noise=NOISE, features=features)
        actual = audit(put(X), put(Y), noise=NOISE, features=features)
        assert actual.n_suspects == expected.n_suspects
        np.testing.assert_allclose(actual.label_posterior, expected.label_posterior, atol=1e-9)


def test_single_precision_on_a_device(put):
    single = X.astype(np.float32)
    expected = KernelFeatures(n_components=40).fit_transform(single)
    actual = KernelFeatures(n_components=40).fit_transform(put(single))
    assert "float32" in str(actual.dtype)
    actual = as_numpy(actual).astype(float)
    tolerance = 10 * np.finfo(np.float32).eps
    np.testing.assert_allclose(actual @ actual.T, expected @ expected.T, rtol=0, atol=tolerance)


def test_features_on_another_device_than_the_rows_raise(put):
    classifier = LPClassifier(NOISE, features="matern").fit(put(X), put(Y))
    with pytest.raises(ValueError, match="must use the same namespace and device"):
        classifier.predict(X)
    with pytest.raises(ValueError, match="must use the same namespace and device"):
        classifier.features_.transform(X)


@each_kind
class TestRowsReadLazily:
    """Results equal those in memory, whether the features are kept or computed in each pass."""

    @pytest.fixture(autouse=True, params=["kept", "computed"])
    def _kept(self, request, monkeypatch):
        if request.param == "computed":
            monkeypatch.setattr(KEPT_VALUES, 0)
            monkeypatch.setattr("unflip.data.dense._KEPT_VALUES", 0)

    def expected(self, features):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(KEPT_VALUES, 2**25)
            patch.setattr("unflip.data.dense._KEPT_VALUES", 2**25)
            return LPClassifier(NOISE, features=features).fit(X, Y)

    def test_memory_maps(self, features, tmp_path):
        np.save(tmp_path / "rows.npy", X)
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
        actual = LPClassifier(NOISE, features=features).fit(rows, Y)
        assert_same(actual, self.expected(features), rows)

    def test_arrays_in_memory(self, features):
        actual = LPClassifier(NOISE, features=features).fit(X, Y)
        assert_same(actual, self.expected(features), X)

    def test_rows_that_can_only_be_sliced(self, features, monkeypatch):
        monkeypatch.setattr("unflip.data.lazy._MAPPED_VALUES", 40 * 300)
        rows = Stored(X)
        actual = LPClassifier(NOISE, features=features).fit(rows, Y)
        assert_same(actual, self.expected(features), rows)

    def test_dask_arrays(self, features):
        dask = pytest.importorskip("dask", reason="Dask collections need Dask")
        import dask.array as da

        rows = da.from_array(X, chunks=(70, -1))
        expected = self.expected(features)
        with dask.config.set(scheduler="synchronous"):
            actual = LPClassifier(NOISE, features=features).fit(rows, da.from_array(Y, chunks=50))
            assert actual.loo_decision_.chunks == ((70, 70, 70, 70, 20),)
            probabilities = actual.predict_proba(rows)
            assert isinstance(probabilities, da.Array)
            assert_same(actual, expected, rows)
            Z = actual.features_.transform(rows)
            assert isinstance(Z, da.Array)
            np.testing.assert_allclose(Z, expected.features_.transform(X), rtol=0, atol=1e-9)

    def test_zero_weight_rows_and_duplicates(self, features, tmp_path):
        order = np.r_[0:300, 5:25, [7] * 5]
        weights = np.where(np.arange(325) % 6 == 0, 0.0, 1.0)
        np.save(tmp_path / "rows.npy", X[order])
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(KEPT_VALUES, 2**25)
            expected = LPClassifier(NOISE, features=features).fit(X[order], Y[order], weights)
        actual = LPClassifier(NOISE, features=features).fit(rows, Y[order], weights)
        assert_same(actual, expected, rows[:300])

    def test_rows_that_fail_to_load_leave_the_classifier_unchanged(self, features):
        classifier = LPClassifier(NOISE, features=features).fit(X, Y)
        before = dict(vars(classifier))
        with pytest.raises(RuntimeError, match="could not be read: the disk is gone"):
            classifier.fit(Failing(X, after=2 * X.size), Y)
        assert vars(classifier) == before


def test_features_that_are_not_kept_are_computed_within_bounded_memory(monkeypatch):
    """No more rows are transformed together than a block has, or the sample that every pass has."""
    monkeypatch.setattr(KEPT_VALUES, 0)
    monkeypatch.setattr("unflip.data.dense._KEPT_VALUES", 0)
    monkeypatch.setattr("unflip.data.lazy._MAPPED_VALUES", 150 * 8)
    heights = []

    class Counted(Recorder):
        def transform(self, X):
            heights.append(len(X))
            return super().transform(X)

    rows, observed, _ = rings(900)
    Z = np.column_stack([rows, rows**2])
    expected = LPClassifier(NOISE, targets="optimized").fit(Z, observed)
    actual = LPClassifier(NOISE, targets="optimized", features=Counted()).fit(rows, observed)
    assert max(heights) <= 150
    assert sum(heights) >= 900
    np.testing.assert_allclose(actual.loo_decision_, expected.loo_decision_, atol=1e-10)
    heights.clear()
    np.testing.assert_allclose(actual.predict_proba(rows), expected.predict_proba(Z), atol=1e-10)
    assert max(heights) <= 150


def test_streamed_rows_cannot_be_mapped():
    rows = streamed(X, like=np.empty(0))
    with pytest.raises(ValueError, match="Features cannot be computed from streamed rows: pass X"):
        rows.mapped(RowMapping(np.abs, 4))


@each_kind
def test_fits_to_streamed_rows_need_linear_features(features, put):
    rows = streamed(X, like=put(np.empty(0)))
    with pytest.raises(ValueError, match="Features cannot be computed from streamed rows: pass X"):
        LPClassifier(NOISE, features=features).fit(rows, put(Y))


class TestSparseRows:
    @pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
    @each_kind
    def test_fits_equal_those_of_dense_rows(self, features, container):
        expected = LPClassifier(NOISE, features=features).fit(X, Y)
        rows = container(X)
        actual = LPClassifier(NOISE, features=features).fit(rows, Y)
        assert_same(actual, expected, rows, tolerance=1e-9)
        assert sparse.issparse(actual.features_.landmarks_)

    @each_kind
    def test_dense_and_sparse_rows_can_be_mixed(self, features):
        rows = sparse.csr_array(X)
        of_dense = LPClassifier(NOISE, features=features).fit(X, Y)
        of_sparse = LPClassifier(NOISE, features=features).fit(rows, Y)
        expected = of_dense.predict_proba(X)
        for actual in (of_dense.predict_proba(rows), of_sparse.predict_proba(X)):
            np.testing.assert_allclose(actual, expected, atol=1e-9)

    def test_rows_without_any_value(self):
        rows = sparse.csr_array(np.where(np.arange(300)[:, None] % 10 == 0, 0.0, X))
        classifier = LPClassifier(NOISE, features="matern").fit(rows, Y)
        expected = LPClassifier(NOISE, features="matern").fit(rows.toarray(), Y)
        np.testing.assert_allclose(
            classifier.predict_proba(rows), expected.predict_proba(rows.toarray()), atol=1e-9
        )


class TestAudits:
    @each_kind
    def test_posteriors_are_those_of_the_classifier(self, features):
        report = audit(X, Y, noise=NOISE, features=features)
        classifier = LPClassifier(NOISE, features=features).fit(X, Y)
        expected = classifier.expected_accuracy_
        assert report.expected_accuracy == pytest.approx(expected, abs=1e-9)
        np.testing.assert_allclose(
            report.label_posterior, classifier.label_posterior_, rtol=0, atol=0.02
        )

    @pytest.mark.parametrize("options", [{}, {"groups": np.arange(300) // 2}], ids=["", "groups"])
    @each_kind
    def test_suspects_are_wrong_labels(self, features, options):
        rows, observed, true = rings(600)
        if options:
            options = {"groups": np.arange(600) // 2}
        report = audit(rows, observed, noise=NOISE, features=features, **options)
        suspects = report.suspects.row[: report.n_suspects]
        wrong = observed != true
        # At an expected false discovery rate of 10%.
        assert wrong[suspects].mean() > 0.75
        assert wrong[suspects].sum() > 0.5 * wrong.sum()

    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    def test_a_linear_audit_of_rings_finds_nothing(self):
        for features in ("linear", None):
            assert audit(X, Y, noise=NOISE, features=features).n_suspects == 0

    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    @each_kind
    def test_votes(self, features):
        columns = np.column_stack([NOISE.flip(TRUE, random_state=i) for i in range(3)])
        report = audit(X, Votes.from_columns(columns), features=features)
        majority = (columns.sum(axis=1) > 1).astype(int)
        suspects = report.suspects.row[: report.n_suspects]
        assert len(suspects)
        assert (majority != TRUE)[suspects].mean() > 0.6

    def test_dask_arrays(self):
        dask = pytest.importorskip("dask", reason="Dask collections need Dask")
        import dask.array as da

        expected = audit(X, Y, noise=NOISE, features="matern")
        with dask.config.set(scheduler="synchronous"):
            actual = audit(da.from_array(X, chunks=(70, -1)), Y, noise=NOISE, features="matern")
        assert actual.n_suspects == expected.n_suspects
        np.testing.assert_allclose(actual.label_posterior, expected.label_posterior, atol=1e-9)

    def test_errors_of_other_values(self):
        with pytest.raises(ValueError, match="features='poly' is not a valid value"):
            audit(X, Y, noise=NOISE, features="poly")
