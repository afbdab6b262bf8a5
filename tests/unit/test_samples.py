"""Samples of any classifier: rare classes, and rows as numbers."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from scipy.special import softmax
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from support.any_classifier import (
    NOISE,
    TREE,
    Recording,
    moons,
    three_blobs,
)
from unflip import NoiseModel, NoisyLabelClassifier
from unflip.model.samples import Samples, fit_to_posterior


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
        np.testing.assert_array_equal(samples.fold_units, np.arange(10))

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

    @pytest.mark.parametrize("n_others", [100, 1000])
    def test_each_of_many_duplicates_is_a_unit_of_its_own(self, n_others):
        """They are many if there are more than 5, and more than 1% of all rows."""
        for n_duplicates in (2, 5, 6, 10, 11, 20):
            n = n_others + n_duplicates
            X = np.arange(n, dtype=float)[:, None]
            X[:n_duplicates] = -1
            units = Samples.of(X, np.arange(n) % 2, np.ones(n), None).fold_units
            assert len(np.unique(units[n_duplicates:])) == n_others
            is_many = n_duplicates > max(5, 0.01 * n)
            n_units = n_duplicates if is_many else 1
            assert len(np.unique(units)) == n_others + n_units
            assert len(np.unique(units[:n_duplicates])) == n_units

    def test_units_are_those_of_rows_of_positive_weight(self):
        X = np.repeat(np.arange(40.0), 3)[:, None]
        weights = np.tile([0.0, 1.0, 2.0], 40)
        units = Samples.of(X, np.arange(120) % 2, weights, None).fold_units
        np.testing.assert_array_equal(
            np.unique(units, return_inverse=True)[1], np.repeat(np.arange(40), 2)
        )

    def test_numbers_are_an_array_whatever_the_output_of_transformers(self):
        pandas = pytest.importorskip("pandas")
        X, observed, _ = self.with_missing()
        expected = Samples.of(X, observed, np.ones(300), None).numeric
        with sklearn.config_context(transform_output="pandas"):
            for rows in (X, pandas.DataFrame(X, columns=["width", "height"])):
                numeric = Samples.of(rows, observed, np.ones(300), None).numeric
                assert type(numeric) is np.ndarray
                np.testing.assert_allclose(numeric, expected, atol=1e-12)

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
