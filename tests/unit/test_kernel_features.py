"""KernelFeatures: inner products equal the kernel, and landmarks are rows of the data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import rbf_kernel

from support.lazy import Stored
from unflip.data.lazy import LazyRows, RowMapping
from unflip.features import KernelFeatures
from unflip.features.kernels import KERNELS, squared_distances
from unflip.features.transformed_rows import transformed_rows

ATOL = 1e-10
KEPT_VALUES = "unflip.features.transformed_rows._KEPT_VALUES"
each_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))
both_choices = pytest.mark.parametrize("landmarks", ["random", "pivoted"])


def normal(n, p, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


X = normal(80, 4)
X_NEW = normal(30, 4, seed=1)


def textbook(kernel, rows, others, unit):
    """Return the kernel matrix by scikit-learn, with bandwidth `unit`."""
    if kernel == "rbf":
        return rbf_kernel(rows, others, gamma=1 / (2 * unit**2))
    return Matern(unit, nu={"laplace": 0.5, "matern": 1.5}[kernel])(rows, others)


def rows_of(features, data):
    """Return the indices of the landmarks among the rows."""
    distances = cdist(np.asarray(features.landmarks_), data)
    np.testing.assert_array_equal(distances.min(axis=1), 0)
    return distances.argmin(axis=1)


def unexplained(features, data):
    """Return the trace of the error of the kernel matrix: every row has a kernel of 1 to itself."""
    Z = features.fit_transform(data)
    return len(data) - (Z**2).sum()


def tight_clusters(sizes=(150, 120, 100, 60, 30, 10, 5, 5)):
    """Return clusters much smaller than their distances."""
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(len(sizes), 5))
    return np.vstack(
        [
            centre + 0.05 * rng.normal(size=(size, 5))
            for centre, size in zip(centres, sizes, strict=True)
        ]
    )


class TestKernels:
    @each_kernel
    def test_they_equal_those_of_scikit_learn(self, kernel):
        expected = textbook(kernel, X, X_NEW, unit=1.7)
        actual = KERNELS[kernel](cdist(X, X_NEW, "sqeuclidean") / 1.7**2)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-14)

    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
    def test_squared_distances_equal_those_of_scipy(self, container):
        actual = squared_distances(container(X), container(X_NEW))
        np.testing.assert_allclose(actual, cdist(X, X_NEW, "sqeuclidean"), atol=1e-12)

    def test_squared_distances_keep_their_digits_far_from_the_origin(self):
        """With ‖x‖² − 2xᵀz + ‖z‖² about the origin they would be wrong by about 1e-3."""
        far, far_new = X + 1e6, X_NEW + 1e6
        expected = cdist(far, far_new, "sqeuclidean")
        np.testing.assert_allclose(squared_distances(far, far_new), expected, rtol=1e-8)

    def test_squared_distances_are_never_negative(self):
        rows = 1e3 * normal(200, 3)
        assert (squared_distances(rows, rows) >= 0).all()
        assert (squared_distances(sparse.csr_array(rows), sparse.csr_array(rows)) >= 0).all()


class TestInnerProducts:
    @each_kernel
    @both_choices
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
    def test_they_equal_the_kernel_if_all_rows_are_landmarks(self, kernel, landmarks, container):
        rows = container(X)
        features = KernelFeatures(kernel, landmarks=landmarks, n_components=len(X))
        Z = features.fit_transform(rows)
        assert isinstance(Z, np.ndarray)
        assert Z.dtype == np.float64
        expected = textbook(kernel, X, X, features.scale_)
        np.testing.assert_allclose(Z @ Z.T, expected, rtol=0, atol=ATOL)

    @each_kernel
    def test_single_precision_is_kept(self, kernel):
        rows = X.astype(np.float32)
        features = KernelFeatures(kernel, n_components=len(X)).fit(rows)
        Z = features.transform(rows)
        assert Z.dtype == np.float32
        expected = textbook(kernel, X, X, features.scale_)
        # The features of a row have a sum of squares of 1.
        tolerance = 10 * np.finfo(np.float32).eps
        np.testing.assert_allclose(Z.astype(float) @ Z.T, expected, rtol=0, atol=tolerance)

    @each_kernel
    @both_choices
    @pytest.mark.parametrize("bandwidth", [0.5, 2.0])
    def test_fewer_landmarks_are_the_nystrom_approximation(self, kernel, landmarks, bandwidth):
        features = KernelFeatures(
            kernel, bandwidth=bandwidth, landmarks=landmarks, n_components=20
        ).fit(X)
        unit = bandwidth * features.scale_
        kept = X[rows_of(features, X)]
        # The basis divides by the smallest eigenvalue, which is about 1e-6 for the widest kernel.
        K_mm = textbook(kernel, kept, kept, unit)
        tolerance = max(ATOL, 1e-14 * np.linalg.cond(K_mm))
        for rows in (X, X_NEW):
            Z = features.transform(rows)
            K_nm = textbook(kernel, rows, kept, unit)
            expected = K_nm @ np.linalg.solve(K_mm, K_nm.T)
            np.testing.assert_allclose(Z @ Z.T, expected, rtol=0, atol=tolerance)
            with_landmarks = Z @ features.transform(kept).T
            np.testing.assert_allclose(with_landmarks, K_nm, rtol=0, atol=tolerance)

    @each_kernel
    def test_the_approximation_never_exceeds_the_kernel(self, kernel):
        """What landmarks do not explain is a covariance, so it has no negative eigenvalue."""
        features = KernelFeatures(kernel, n_components=10).fit(X)
        Z = features.transform(X)
        rest = textbook(kernel, X, X, features.scale_) - Z @ Z.T
        assert np.linalg.eigvalsh(rest).min() > -1e-7
        assert np.trace(rest) > 1

    @each_kernel
    def test_blocks_of_rows_have_the_features_of_all(self, kernel, monkeypatch):
        features = KernelFeatures(kernel, n_components=25).fit(X)
        whole = features.transform(X)
        monkeypatch.setattr("unflip.features.kernel_features.BLOCK_VALUES", 7 * 25)
        np.testing.assert_allclose(features.transform(X), whole, rtol=0, atol=ATOL)
        monkeypatch.setattr("unflip.features.kernel_features.BLOCK_VALUES", 1)
        np.testing.assert_allclose(features.transform(X), whole, rtol=0, atol=ATOL)

    @each_kernel
    def test_with_kernel_is_a_fit_with_that_kernel(self, kernel):
        features = KernelFeatures("matern", n_components=20).fit(X)
        other = features.with_kernel(kernel)
        expected = KernelFeatures(kernel, n_components=20).fit(X)
        assert other.kernel == kernel
        assert features.kernel == "matern"
        np.testing.assert_array_equal(other.transform(X_NEW), expected.transform(X_NEW))
        at_distances = other.features_at(features.squared_distances(X_NEW))
        np.testing.assert_array_equal(at_distances, expected.transform(X_NEW))


class TestUnits:
    def test_the_unit_is_the_median_distance(self):
        assert KernelFeatures().fit(X).scale_ == pytest.approx(np.median(pdist(X)), rel=1e-12)

    def test_the_median_of_many_rows_is_that_of_a_sample(self):
        rows = normal(3000, 3)
        # Rows are sampled, so the standard error of the median is about 2%.
        expected = np.median(pdist(rows))
        actual = KernelFeatures(n_components=2).fit(rows).scale_
        assert actual == pytest.approx(expected, rel=0.08)
        assert actual != expected

    @each_kernel
    @both_choices
    def test_features_do_not_depend_on_the_unit_of_the_rows(self, kernel, landmarks):
        def features():
            return KernelFeatures(kernel, n_components=30, landmarks=landmarks)

        expected = features().fit_transform(X)
        np.testing.assert_array_equal(features().fit_transform(1024 * X), expected)
        tenfold = features().fit_transform(10 * X)
        np.testing.assert_allclose(tenfold @ tenfold.T, expected @ expected.T, atol=ATOL)

    @pytest.mark.parametrize("kernel", ["rbf", "matern"])
    def test_a_large_offset_loses_no_more_digits_than_the_rows_do(self, kernel):
        expected = KernelFeatures(kernel, n_components=30).fit_transform(X)
        actual = KernelFeatures(kernel, n_components=30).fit_transform(X + 1e6)
        # The rows lose 1e6 times the rounding error. Kernels change by less than their argument.
        tolerance = 10 * 1e6 * np.finfo(float).eps
        np.testing.assert_allclose(actual @ actual.T, expected @ expected.T, rtol=0, atol=tolerance)

    @each_kernel
    def test_a_constant_column_changes_nothing(self, kernel):
        expected = KernelFeatures(kernel, n_components=30).fit_transform(X)
        wider = np.column_stack([X[:, :2], np.full(len(X), 1e3), X[:, 2:]])
        actual = KernelFeatures(kernel, n_components=30).fit_transform(wider)
        np.testing.assert_allclose(actual @ actual.T, expected @ expected.T, atol=ATOL)

    def test_a_rotation_changes_no_inner_product(self):
        turn = np.linalg.qr(normal(4, 4, seed=2))[0]
        expected = KernelFeatures(n_components=30).fit_transform(X)
        actual = KernelFeatures(n_components=30).fit_transform(X @ turn)
        np.testing.assert_allclose(actual @ actual.T, expected @ expected.T, atol=1e-10)


@each_kernel
@both_choices
class TestDegenerateRows:
    def test_duplicates(self, kernel, landmarks):
        rows = X[:12].repeat(5, axis=0)
        features = KernelFeatures(kernel, landmarks=landmarks, n_components=60)
        Z = features.fit_transform(rows)
        assert Z.shape == (60, 12)
        assert features.scale_ == pytest.approx(np.median(pdist(rows)[pdist(rows) > 0]), rel=1e-12)
        expected = textbook(kernel, rows, rows, features.scale_)
        np.testing.assert_allclose(Z @ Z.T, expected, rtol=0, atol=ATOL)

    @pytest.mark.parametrize(
        "rows", [np.full((10, 3), 7.0), np.zeros((5, 2)), np.full((1, 3), 0.1)], ids=str
    )
    def test_rows_that_are_all_the_same(self, kernel, landmarks, rows):
        features = KernelFeatures(kernel, landmarks=landmarks)
        Z = features.fit_transform(rows)
        assert features.scale_ == 1.0
        assert Z.shape == (len(rows), 1)
        np.testing.assert_allclose(Z @ Z.T, 1, atol=1e-12)

    def test_more_components_than_rows(self, kernel, landmarks):
        few = KernelFeatures(kernel, landmarks=landmarks, n_components=len(X))
        many = KernelFeatures(kernel, landmarks=landmarks, n_components=1000)
        few_products, many_products = (
            Z @ Z.T for Z in (each.fit_transform(X) for each in (few, many))
        )
        assert many.landmarks_.shape[0] <= len(X)
        np.testing.assert_allclose(many_products, few_products, rtol=0, atol=ATOL)


class TestLandmarks:
    @both_choices
    @pytest.mark.parametrize(
        "convert",
        [np.asarray, sparse.csr_array, lambda rows: rows.astype(np.float32)],
        ids=["dense", "sparse", "single"],
    )
    def test_they_are_different_rows(self, landmarks, convert):
        rows = convert(X)
        features = KernelFeatures(landmarks=landmarks, n_components=20).fit(rows)
        assert features.landmarks_.dtype == rows.dtype
        assert type(features.landmarks_) is type(rows)
        dense = sparse.csr_array(features.landmarks_).toarray()
        original = sparse.csr_array(rows).toarray()
        distances = cdist(dense, original)
        np.testing.assert_array_equal(distances.min(axis=1), 0)
        assert len(set(distances.argmin(axis=1))) == 20

    def test_pivots_are_drawn_by_what_is_left_unexplained(self):
        """Probabilities of pairs by definition; each frequency is within 4 standard errors."""
        rows = normal(5, 2)
        n_draws = 2000
        counts = np.zeros((5, 5))
        for seed in range(n_draws):
            features = KernelFeatures("rbf", landmarks="pivoted", n_components=2, random_state=seed)
            first, second = rows_of(features.fit(rows), rows)
            counts[first, second] += 1
        K = textbook("rbf", rows, rows, features.scale_)
        rest = 1 - K**2  # of the second pivot (column), after the first (row)
        ordered = rest / rest.sum(axis=1, keepdims=True) / 5
        expected = np.triu(ordered + ordered.T, 1)
        error = np.sqrt(expected * (1 - expected) / n_draws)
        assert np.all(np.abs(counts / n_draws - expected) <= 4 * error)

    @each_kernel
    def test_pivoted_landmarks_explain_tight_clusters_better(self, kernel):
        """One landmark in each cluster explains nearly all; random ones miss the small clusters."""
        rows = tight_clusters()
        pivoted = [
            unexplained(
                KernelFeatures(kernel, landmarks="pivoted", n_components=8, random_state=seed), rows
            )
            for seed in range(5)
        ]
        random = [
            unexplained(KernelFeatures(kernel, n_components=8, random_state=seed), rows)
            for seed in range(20)
        ]
        assert max(pivoted) < 0.5 * np.mean(random)

    def test_pivoted_landmarks_stop_when_all_is_explained(self):
        rows = X[:7].repeat(4, axis=0)
        assert KernelFeatures(landmarks="pivoted").fit(rows).landmarks_.shape == (7, 4)

    @both_choices
    def test_the_seed_determines_them(self, landmarks):
        def chosen(random_state):
            features = KernelFeatures(
                landmarks=landmarks, n_components=10, random_state=random_state
            )
            return features.fit(X).landmarks_

        np.testing.assert_array_equal(chosen(3), chosen(3))
        generators = [np.random.default_rng(5) for _ in range(2)]
        np.testing.assert_array_equal(*map(chosen, generators))
        legacy = [np.random.RandomState(5) for _ in range(2)]
        np.testing.assert_array_equal(*map(chosen, legacy))
        assert any((chosen(seed) != chosen(3)).any() for seed in range(3))
        assert chosen(None).shape == (10, 4)

    def test_labels_are_not_used(self):
        expected = KernelFeatures(n_components=10).fit(X)
        actual = KernelFeatures(n_components=10).fit(X, np.arange(len(X)) % 2)
        np.testing.assert_array_equal(actual.basis_, expected.basis_)


class TestNamesAndParameters:
    def test_names_of_the_features(self):
        features = KernelFeatures(n_components=3).fit(X)
        names = ["kernelfeatures0", "kernelfeatures1", "kernelfeatures2"]
        assert features.get_feature_names_out().tolist() == names
        # Duplicates of landmarks add no feature.
        same = KernelFeatures(n_components=3).fit(np.ones((5, 2)))
        assert same.get_feature_names_out().tolist() == names[:1]

    def test_dataframes(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, columns=list("abcd"), index=np.arange(len(X)) + 100)
        features = KernelFeatures(n_components=5).set_output(transform="pandas")
        table = features.fit_transform(frame)
        assert features.feature_names_in_.tolist() == list("abcd")
        assert table.columns.tolist() == features.get_feature_names_out().tolist()
        assert table.index.tolist() == frame.index.tolist()
        expected = KernelFeatures(n_components=5).fit_transform(X)
        np.testing.assert_array_equal(table.to_numpy(), expected)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("kernel", "poly"),
            ("kernel", None),
            ("bandwidth", 0),
            ("bandwidth", -1.0),
            ("bandwidth", np.nan),
            ("bandwidth", np.inf),
            ("bandwidth", "wide"),
            ("bandwidth", [1.0, 2.0]),
            ("n_components", 0),
            ("n_components", 1.5),
            ("n_components", True),
            ("n_components", None),
            ("landmarks", "kmeans"),
            ("landmarks", 3),
            ("random_state", -1),
            ("random_state", "seed"),
        ],
    )
    def test_errors_name_the_parameter(self, name, value):
        with pytest.raises(ValueError, match=f"^{name} ?= ?"):
            KernelFeatures(**{name: value}).fit(X)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_values_that_are_not_finite_raise(self, bad):
        rows = X.copy()
        rows[3, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            KernelFeatures().fit(rows)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            KernelFeatures().fit(X).transform(rows)
        with pytest.raises(ValueError, match="row 3 and column 1"):
            KernelFeatures().fit(X).transform(LazyRows.of(Stored(rows)))


class TestRowsReadLazily:
    def test_landmarks_and_features_equal_those_in_memory(self):
        stored = Stored(X)
        expected = KernelFeatures(n_components=20).fit(X)
        features = KernelFeatures(n_components=20).fit(stored)
        np.testing.assert_array_equal(features.landmarks_, expected.landmarks_)
        np.testing.assert_array_equal(features.transform(stored), expected.transform(X))

    def test_features_of_few_rows_are_kept_in_memory(self):
        features = KernelFeatures(n_components=20).fit(X)
        rows = transformed_rows(features, X)
        np.testing.assert_array_equal(rows, features.transform(X))

    def test_features_of_many_rows_are_computed_again_in_each_pass(self, monkeypatch):
        monkeypatch.setattr(KEPT_VALUES, len(X) * 20 - 1)
        features = KernelFeatures(n_components=20).fit(X)
        rows = transformed_rows(features, X)
        assert isinstance(rows, LazyRows)
        assert rows.shape == (len(X), 20)
        expected = features.transform(X)
        np.testing.assert_allclose(np.asarray(rows), expected, rtol=0, atol=1e-12)

    def test_slices_and_selections_of_mapped_rows(self):
        rows = LazyRows.of(Stored(X)).mapped(RowMapping(lambda block: block[:, :2] ** 2, 2))
        expected = X[:, :2] ** 2
        assert rows.shape == expected.shape
        np.testing.assert_array_equal(rows[5:40, 1:], expected[5:40, 1:])
        np.testing.assert_array_equal(rows[::3, :], expected[::3])
        chosen = np.array([2, 3, 3, 17, 79])
        np.testing.assert_array_equal(rows[chosen][:, :], expected[chosen])
        np.testing.assert_array_equal(rows[chosen][1:, :1], expected[chosen][1:, :1])
        rescaled = rows.rescaled()
        largest = np.abs(expected - expected[0]).max()
        np.testing.assert_allclose(rescaled[:, :], (expected - expected[0]) / largest, atol=1e-15)

    def test_mapped_rows_read_only_what_they_need(self):
        stored = Stored(X)
        rows = LazyRows.of(stored).mapped(RowMapping(lambda block: 2 * block, 4))
        np.testing.assert_array_equal(rows[10:20, :], 2 * X[10:20])
        assert stored.n_read == 40


class TestPrecision:
    def test_sparse_rows_in_single_precision_are_computed_in_double(self):
        rows = sparse.csr_array(X.astype(np.float32))
        squared = squared_distances(rows, rows)
        assert squared.dtype == np.float64
        expected = cdist(rows.toarray().astype(float), rows.toarray().astype(float)) ** 2
        np.testing.assert_allclose(squared, expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("offset", [0.0, 1.0, 100.0])
    def test_distances_of_equal_rows_are_zero(self, offset):
        rows = X + offset
        for container in (np.asarray, sparse.csr_array):
            assert not np.diag(squared_distances(container(rows), container(rows))).any()

    def test_small_distances_are_kept(self):
        """A distance of 1e-6 of the norm has a square of 1e-12, far above rounding errors."""
        rows = np.vstack([X, X + 1e-6])
        squared = squared_distances(rows, rows)
        near = squared[np.arange(80), np.arange(80, 160)]
        np.testing.assert_allclose(near, 4e-12, rtol=0.01)

    @pytest.mark.parametrize("scale", [1e-170, 1e160])
    def test_squares_that_leave_the_range_are_errors(self, scale):
        with pytest.raises(ValueError, match="square over- or underflows float64: rescale X"):
            KernelFeatures().fit(scale * X)
