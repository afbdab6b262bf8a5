"""Outliers and near-duplicates: distances of the ridge metric, nearest rows, scores and groups."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from unflip import UnusualRows, unusual_rows
from unflip.data import near_rows
from unflip.ridge import RowMetric, decompose


def brute_force(coordinates, k):
    squares = ((coordinates[:, None] - coordinates[None, :]) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    return np.sort(squares, axis=1)[:, :k].mean(axis=1), squares.argmin(axis=1), squares.min(axis=1)


class TestNearRows:
    @pytest.mark.parametrize(("n", "k"), [(2, 1), (40, 10), (64, 10)])
    def test_are_exact_up_to_one_leaf(self, n, k):
        coordinates = np.random.default_rng(0).normal(size=(n, 5)).astype(np.float32)
        near = near_rows(coordinates, k)
        mean_square, nearest, nearest_square = brute_force(coordinates.astype(float), k)
        np.testing.assert_allclose(near.mean_square, mean_square, rtol=1e-4)
        np.testing.assert_array_equal(near.nearest, nearest)
        np.testing.assert_allclose(near.nearest_square, nearest_square, rtol=1e-3, atol=1e-5)

    @pytest.mark.parametrize("n", [65, 700, 1501])
    def test_are_never_nearer_than_the_nearest_and_copies_are_found(self, n):
        rng = np.random.default_rng(1)
        coordinates = rng.normal(size=(n, 12)).astype(np.float32)
        coordinates[1::20] = coordinates[::20][: len(coordinates[1::20])]
        near = near_rows(coordinates, 10)
        mean_square, _, nearest_square = brute_force(coordinates.astype(float), 10)
        assert (near.mean_square >= mean_square - 1e-3).all()
        assert (near.nearest_square >= nearest_square - 1e-3).all()
        assert (near.nearest != np.arange(n)).all()
        is_copy = nearest_square == 0
        assert (near.nearest_square[is_copy] < 1e-4).all()
        found = near.nearest_square < nearest_square * 1.01 + 1e-4
        assert found.mean() > 0.5  # by chance, the nearest is in the same leaf in 64/n of the cases


class TestMetric:
    @pytest.mark.parametrize("shape", [(60, 7), (20, 50)], ids=["tall", "wide"])
    def test_squared_norms_are_leverages_of_the_ridge_fit(self, shape):
        X = np.random.default_rng(2).normal(size=shape)
        spectrum = decompose(X)
        metric = RowMetric.of(X)
        assert metric.scale == pytest.approx(spectrum.scale, rel=1e-5)
        leverage = spectrum.hat_diagonals([[0.1 * spectrum.scale]])[0][:, 0]
        norms = metric.squared_norms(metric.factor(0.1))
        np.testing.assert_allclose(norms / len(X), leverage, rtol=1e-4)

    @pytest.mark.parametrize("shape", [(60, 7), (20, 50)], ids=["tall", "wide"])
    def test_scores_are_the_exact_leave_one_out_scores(self, shape):
        rng = np.random.default_rng(3)
        X = rng.normal(size=shape)
        targets = np.eye(3)[rng.integers(3, size=shape[0])]
        spectrum = decompose(X)
        expected = spectrum.leave_one_out(targets, [0.1 * spectrum.scale]).scores[:, 0, :]
        metric = RowMetric.of(X)
        factor = metric.factor(0.1)
        scores = metric.leave_one_out_scores(factor, metric.squared_norms(factor), targets)
        np.testing.assert_allclose(scores + targets.mean(axis=0), expected, atol=1e-4)

    @pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30, 1e200])
    def test_does_not_depend_on_the_unit(self, unit):
        X = np.random.default_rng(4).normal(size=(30, 4))
        metric = RowMetric.of(unit * X)
        of_unit = RowMetric.of(X)
        np.testing.assert_allclose(
            metric.squared_norms(metric.factor(0.1)),
            of_unit.squared_norms(of_unit.factor(0.1)),
            rtol=1e-4,
        )


class TestOutliers:
    @pytest.mark.parametrize("shape", [(300, 8), (60, 100)], ids=["tall", "wide"])
    def test_a_far_row_is_the_only_one(self, shape):
        X = np.random.default_rng(5).normal(size=shape)
        X[3] *= 6
        unusual = unusual_rows(X)
        assert unusual.outliers.row.tolist() == [3]
        assert unusual.outlier_score.argmin() == 3
        assert np.median(unusual.outlier_score) == pytest.approx(0.5)

    def test_a_row_that_differs_where_rows_hardly_vary_is_found(self):
        X = np.random.default_rng(6).normal(size=(500, 100)) * np.r_[np.ones(99), 0.2]
        X[9, 99] = 6.0  # 30 standard deviations, and still shorter than most rows
        assert np.linalg.norm(X[9]) < np.percentile(np.linalg.norm(X, axis=1), 99)
        assert unusual_rows(X).outliers.row.tolist() == [9]

    def test_labels_help_to_find_rows_of_another_class(self):
        X, y = load_digits(return_X_y=True)
        rng = np.random.default_rng(7)
        others = np.flatnonzero(y == 9)[:30]
        rows = np.r_[np.flatnonzero(y != 9), others]
        labels = y[rows]
        labels[-30:] = rng.integers(9, size=30)
        is_other = np.arange(len(rows)) >= len(rows) - 30

        def auroc(scores):
            return np.mean(scores[is_other][:, None] < scores[~is_other][None, :])

        with_labels = auroc(unusual_rows(X[rows], labels).outlier_score)
        without = auroc(unusual_rows(X[rows]).outlier_score)
        assert with_labels > 0.9 > without

    def test_two_classes_and_random_labels_change_little(self):
        rng = np.random.default_rng(8)
        X = rng.normal(size=(200, 10))
        alone = unusual_rows(X).outlier_score
        np.testing.assert_array_equal(
            unusual_rows(X, rng.integers(2, size=200)).outlier_score, alone
        )
        names = np.array(["a", "b", "c"])[rng.integers(3, size=200)]
        with_noise = unusual_rows(X, names).outlier_score
        assert np.corrcoef(with_noise, alone)[0, 1] > 0.95


class TestNearDuplicates:
    def test_groups_of_copies_and_of_near_copies(self):
        rng = np.random.default_rng(9)
        X = rng.normal(size=(2000, 100))
        X[100] = X[200]
        X[300:303] = X[400] + 0.03 * rng.normal(size=(3, 100))
        unusual = unusual_rows(X)
        assert unusual.near_duplicates.row.tolist() == [100, 200, 300, 301, 302, 400]
        assert unusual.near_duplicates.group.tolist() == [0, 0, 1, 1, 1, 1]
        assert unusual.near_duplicate_score[[100, 200]].tolist() == [0.0, 0.0]
        assert set(unusual.near_duplicates.nearest[2:]) <= {300, 301, 302, 400}
        others = np.setdiff1d(np.arange(2000), unusual.near_duplicates.row)
        assert (unusual.duplicate_groups[others] == -1).all()
        assert unusual.near_duplicate_score[others].min() > 0.4
        assert "6 near-duplicates in 2 groups" in repr(unusual)

    def test_a_group_larger_than_the_number_of_near_rows(self):
        rng = np.random.default_rng(10)
        X = rng.normal(size=(400, 20))
        X[:30] = X[0] + 0.001 * rng.normal(size=(30, 20))
        unusual = unusual_rows(X)
        assert np.flatnonzero(unusual.is_near_duplicate).tolist() == list(range(30))
        assert (unusual.near_duplicates.nearest < 30).all()

    def test_few_features_have_few_by_chance(self):
        X = np.random.default_rng(11).uniform(size=(3000, 2))
        assert unusual_rows(X).is_near_duplicate.mean() < 0.03


class TestOrder:
    def test_sorted_rows_have_a_small_p_value(self):
        X = np.random.default_rng(12).normal(size=(300, 5))
        assert unusual_rows(X).order_p_value > 0.001
        assert unusual_rows(X[X[:, 0].argsort()]).order_p_value < 1e-6

    def test_p_values_of_random_orders_are_uniform(self):
        rng = np.random.default_rng(13)
        p_values = [unusual_rows(rng.normal(size=(60, 3))).order_p_value for _ in range(200)]
        # The mean of 200 uniform values is 0.5, with a standard error of 0.02.
        assert abs(np.mean(p_values) - 0.5) < 4 * 0.0204
        assert abs(np.mean(np.less(p_values, 0.1)) - 0.1) < 4 * np.sqrt(0.09 / 200)


class TestInput:
    def test_equal_rows_are_copies_and_no_outliers(self):
        unusual = unusual_rows(np.ones((5, 3)))
        assert isinstance(unusual, UnusualRows)
        assert len(unusual.outliers) == 0
        assert unusual.near_duplicates.row.tolist() == [0, 1, 2, 3, 4]
        assert np.isnan(unusual.order_p_value)

    def test_two_rows_and_one_feature_work(self):
        assert len(unusual_rows([[0.0], [1.0]]).outliers) == 0

    def test_results_are_the_same_again_and_for_dataframes(self):
        pandas = pytest.importorskip("pandas")
        X = np.random.default_rng(14).normal(size=(300, 4))
        frame = pandas.DataFrame(X, columns=list("abcd"))
        first = unusual_rows(X)
        for again in (unusual_rows(X), unusual_rows(frame)):
            np.testing.assert_array_equal(again.outlier_score, first.outlier_score)
            np.testing.assert_array_equal(again.near_duplicate_score, first.near_duplicate_score)

    def test_sparse_rows_missing_values_and_other_lengths_raise(self):
        X = np.eye(4)
        with pytest.raises(ValueError, match="TruncatedSVD"):
            unusual_rows(csr_array(X))
        with pytest.raises(ValueError, match="X contains NaN"):
            unusual_rows(np.where(X > 0, np.nan, X))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            unusual_rows(X, [0, 1, 0])
        with pytest.raises(ValueError, match="minimum of 2"):
            unusual_rows(X[:1])
