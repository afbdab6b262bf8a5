"""LPClassifier with features: equal to fits to these features, and chosen by noisy labels."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KernelCenterer,
    PolynomialFeatures,
    StandardScaler,
)

from unflip import LPClassifier, NoiseModel, Votes
from unflip.datasets import make_mixture
from unflip.features import KernelFeatures
from unflip.features.kernels import KERNELS
from unflip.model import feature_choice

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
STRONG = NoiseModel.binary(eps_pos=0.4, eps_neg=0.2)


def circles(n, seed=0):
    return make_circles(n, noise=0.15, factor=0.5, random_state=seed)


def moons(n, seed=0):
    return make_moons(n, noise=0.25, random_state=seed)


def checkerboard(n, seed=0):
    X = np.random.default_rng(seed).uniform(-2, 2, size=(n, 2))
    return X, (np.floor(X).sum(axis=1) % 2).astype(int)


def linear_probability(n, seed=0):
    """P(class | row) is linear in the row, so no function agrees more with labels than a linear."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 5))
    return X, (rng.random(n) < 0.5 + 0.5 * X[:, 0]).astype(int)


def fit_to(Z, labels, noise, targets="refined", **options):
    """Return a fit to features computed before.

    Refinement treats fits to features of a transformer and to samples differently.
    """
    features = FunctionTransformer() if targets == "refined" else "linear"
    return LPClassifier(noise, targets=targets, features=features, **options).fit(Z, labels)


def kernel_of(classifier):
    return None if classifier.features_ is None else classifier.features_.kernel


def assert_same(actual, expected, X, Z, tolerance=1e-10):
    """Assert that a fit to X equals a fit to the features Z."""
    for name in ("coef_", "intercept_", "loo_decision_", "label_posterior_", "loo_log_odds_"):
        np.testing.assert_allclose(
            getattr(actual, name), getattr(expected, name), rtol=0, atol=tolerance
        )
    for name in ("reg_", "expected_accuracy_", "expected_accuracy_std_", "association_"):
        assert getattr(actual, name) == pytest.approx(getattr(expected, name), abs=tolerance)
    np.testing.assert_allclose(
        actual.predict_proba(X), expected.predict_proba(Z), rtol=0, atol=tolerance
    )
    np.testing.assert_array_equal(actual.predict(X), expected.predict(Z))


class TestFits:
    @pytest.mark.parametrize("kernel", sorted(KERNELS))
    @pytest.mark.parametrize("targets", ["refined", "optimized"])
    @pytest.mark.parametrize("n", [150, 600])
    def test_they_equal_fits_to_the_features(self, kernel, n, targets):
        """With 600 rows, 500 are landmarks."""
        X, y = circles(n)
        observed = NOISE.flip(y, random_state=0)
        Z = KernelFeatures(kernel).fit_transform(X)
        expected = fit_to(Z, observed, NOISE, targets)
        actual = LPClassifier(NOISE, targets=targets, features=kernel).fit(X, observed)
        assert_same(actual, expected, X, Z)
        assert actual.n_features_in_ == 2
        assert actual.coef_.shape == (1, Z.shape[1])

    @pytest.mark.parametrize(
        "transformer",
        [
            KernelFeatures("rbf", bandwidth=0.5, n_components=40, landmarks="pivoted"),
            PolynomialFeatures(3),
            make_pipeline(StandardScaler(), KernelFeatures(n_components=30)),
        ],
        ids=["kernel", "polynomial", "pipeline"],
    )
    @pytest.mark.parametrize("targets", ["refined", "optimized"])
    def test_a_transformer_is_cloned_and_fitted(self, transformer, targets):
        X, y = circles(200)
        observed = NOISE.flip(y, random_state=0)
        before = str(vars(transformer))
        actual = LPClassifier(NOISE, targets=targets, features=transformer).fit(X, observed)
        assert str(vars(transformer)) == before
        assert actual.features_ is not transformer
        Z = actual.features_.transform(X)
        assert_same(actual, fit_to(Z, observed, NOISE, targets), X, Z)

    def test_linear_is_the_default(self):
        X, y = moons(150)
        observed = NOISE.flip(y, random_state=0)
        by_default = LPClassifier(NOISE, targets="naive", readout="plain", reg=0.3).fit(X, observed)
        named = LPClassifier(NOISE, features="linear").fit(X, observed)
        assert by_default.features_ is None
        assert named.features_ is None
        ridge = Ridge(alpha=0.3 * 150).fit(X, 2 * observed - 1)
        np.testing.assert_allclose(by_default.coef_[0], ridge.coef_, atol=1e-12)
        assert_same(named, LPClassifier(NOISE).fit(X, observed), X, X, tolerance=0)

    @pytest.mark.parametrize("options", [{"loss": "logistic"}, {"fit_intercept": False}])
    def test_other_parameters(self, options):
        X, y = circles(120)
        observed = NOISE.flip(y, random_state=0)
        Z = KernelFeatures().fit_transform(X)
        expected = fit_to(Z, observed, NOISE, **options)
        actual = LPClassifier(NOISE, features="matern", **options).fit(X, observed)
        assert_same(actual, expected, X, Z)

    def test_three_classes(self):
        X, y = moons(300)
        y = np.where(X[:, 0] > 1.2, 2, y)
        noise = NoiseModel(0.7 * np.eye(3) + 0.1)
        observed = noise.flip(y, random_state=0)
        Z = KernelFeatures("rbf").fit_transform(X)
        actual = LPClassifier(noise, features="rbf").fit(X, observed)
        assert_same(actual, fit_to(Z, observed, noise), X, Z)


@pytest.mark.parametrize("reg", [1e-3, 0.1])
class TestLimitingCase:
    """Naive targets, the plain rule and a given regularization strength are kernel ridge."""

    def test_ridge_on_the_features(self, reg):
        X, y = moons(120)
        X_new, _ = moons(50, seed=1)
        features = KernelFeatures("laplace", n_components=40).fit(X)
        ridge = Ridge(alpha=120 * reg).fit(features.transform(X), 2 * y - 1)
        clf = LPClassifier(
            None,
            targets="naive",
            readout="plain",
            reg=reg,
            features=KernelFeatures("laplace", n_components=40),
        ).fit(X, y)
        np.testing.assert_allclose(
            clf.decision_function(X_new), ridge.predict(features.transform(X_new)), atol=1e-10
        )

    def test_kernel_ridge_without_intercept(self, reg):
        X, y = moons(120)
        X_new, _ = moons(50, seed=1)
        clf = LPClassifier(
            None, targets="naive", readout="plain", reg=reg, fit_intercept=False, features="rbf"
        ).fit(X, y)
        gamma = 1 / (2 * clf.features_.scale_**2)
        exact = KernelRidge(alpha=120 * reg, kernel="rbf", gamma=gamma).fit(X, 2 * y - 1)
        # Directions below 1e-10 of the largest eigenvalue are dropped.
        np.testing.assert_allclose(clf.decision_function(X_new), exact.predict(X_new), atol=1e-6)

    def test_kernel_ridge_with_intercept(self, reg):
        """An intercept centres the kernel matrix and the targets."""
        X, y = moons(120)
        X_new, _ = moons(50, seed=1)
        clf = LPClassifier(None, targets="naive", readout="plain", reg=reg, features="rbf")
        clf.fit(X, y)
        gamma = 1 / (2 * clf.features_.scale_**2)
        centerer = KernelCenterer()
        K = centerer.fit_transform(rbf_kernel(X, X, gamma))
        targets = 2.0 * y - 1
        exact = KernelRidge(alpha=120 * reg, kernel="precomputed").fit(K, targets - targets.mean())
        expected = exact.predict(centerer.transform(rbf_kernel(X_new, X, gamma))) + targets.mean()
        np.testing.assert_allclose(clf.decision_function(X_new), expected, atol=1e-6)


class TestAutomaticChoice:
    @pytest.mark.parametrize("noise", [NoiseModel.none(), NOISE, STRONG], ids=["0", "mild", "high"])
    def test_linear_if_no_function_agrees_more_with_the_labels(self, noise):
        """Three one-sided tests at 5%: at most 15% of the draws, and 9 of 20 in one of 10,000."""
        chosen = []
        for seed in range(20):
            X, y = linear_probability(400, seed)
            observed = noise.flip(y, random_state=seed)
            chosen.append(kernel_of(LPClassifier(noise, features="auto").fit(X, observed)))
        assert len(chosen) - chosen.count(None) <= 8

    @pytest.mark.parametrize("draw", [circles, checkerboard])
    def test_noise_that_depends_on_the_class_does_not_change_it(self, draw):
        for seed in range(4):
            X, y = draw(600, seed)
            clean, noisy = (
                LPClassifier(noise, features="auto").fit(X, noise.flip(y, random_state=seed))
                for noise in (NoiseModel.none(), STRONG)
            )
            assert kernel_of(clean) in KERNELS
            assert kernel_of(noisy) in KERNELS
            assert np.mean(noisy.predict(X) == y) > 0.7

    def test_it_does_not_depend_on_the_noise_model(self):
        """Estimated or given rates play no part in the comparison."""
        X, y = circles(300)
        observed = STRONG.flip(y, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimated = LPClassifier(features="auto").fit(X, observed)
        given = LPClassifier(STRONG, features="auto").fit(X, observed)
        assert kernel_of(estimated) == kernel_of(given)

    def test_the_fit_is_that_with_the_chosen_kernel(self):
        X, y = checkerboard(400)
        observed = NOISE.flip(y, random_state=0)
        clf = LPClassifier(NOISE, features="auto").fit(X, observed)
        named = LPClassifier(NOISE, features=kernel_of(clf)).fit(X, observed)
        assert_same(clf, named, X, X, tolerance=0)

    def test_the_order_of_the_rows_does_not_matter(self):
        """With at most 500 rows, each of them is a landmark."""
        X, y = circles(300)
        observed = STRONG.flip(y, random_state=0)
        order = np.random.default_rng(0).permutation(300)
        clf = LPClassifier(STRONG, features="auto").fit(X, observed)
        permuted = LPClassifier(STRONG, features="auto").fit(X[order], observed[order])
        assert kernel_of(permuted) == kernel_of(clf)
        assert kernel_of(clf) in KERNELS
        np.testing.assert_allclose(permuted.predict_proba(X), clf.predict_proba(X), atol=1e-9)
        np.testing.assert_allclose(
            permuted.label_posterior_, clf.label_posterior_[order], atol=1e-9
        )

    @pytest.mark.parametrize("names", [["b", "a"], ["no", "yes"], [7, -3]])
    def test_the_names_of_the_classes_do_not_matter(self, names):
        X, y = circles(300)
        codes = STRONG.flip(y, random_state=0)
        expected = LPClassifier(STRONG, features="auto").fit(X, codes)
        order = np.argsort(names)
        noise = NoiseModel(STRONG.transition[np.ix_(order, order)])
        clf = LPClassifier(noise, features="auto").fit(X, np.array(names)[codes])
        assert kernel_of(clf) == kernel_of(expected)
        assert kernel_of(clf) in KERNELS
        probabilities = expected.predict_proba(X)[:, order]
        np.testing.assert_allclose(clf.predict_proba(X), probabilities, atol=1e-9)

    def test_zero_weight_rows_count_as_absent(self):
        X, y = circles(300)
        observed = STRONG.flip(y, random_state=0)
        weights = np.where(np.arange(300) % 4 == 0, 0.0, 1.0)
        kept = weights > 0
        far = np.where(kept[:, None], X, 1e4 * X)
        expected = LPClassifier(STRONG, features="auto").fit(X[kept], observed[kept])
        clf = LPClassifier(STRONG, features="auto").fit(far, observed, weights)
        assert kernel_of(clf) == kernel_of(expected)
        assert kernel_of(clf) in KERNELS
        np.testing.assert_array_equal(clf.features_.landmarks_, expected.features_.landmarks_)
        np.testing.assert_allclose(clf.predict_proba(X), expected.predict_proba(X), atol=1e-12)

    @pytest.mark.parametrize("seed", range(5))
    def test_labels_of_large_duplicate_groups_count_each(self, seed):
        # Averages over the four distinct rows alone could not show that a kernel agrees better.
        X = np.random.default_rng(seed).choice([-1.0, 1.0], size=(800, 2))
        y = (X.prod(axis=1) > 0).astype(int)
        noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.4)
        observed = noise.flip(y, random_state=seed)
        assert LPClassifier(features="auto").fit(X, observed).score(X, y) == 1

    @pytest.mark.parametrize("features", ["auto", "matern"])
    def test_whole_weights_are_counts_of_duplicates(self, features):
        X, y = circles(250)
        observed = STRONG.flip(y, random_state=0)
        counts = np.random.default_rng(0).integers(1, 4, size=250)
        weighted = LPClassifier(STRONG, features=features).fit(X, observed, counts.astype(float))
        repeated = LPClassifier(STRONG, features=features).fit(
            X.repeat(counts, axis=0), observed.repeat(counts)
        )
        assert kernel_of(weighted) == kernel_of(repeated)
        assert kernel_of(weighted) in KERNELS
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)

    def test_many_rows_are_compared_by_a_sample(self, monkeypatch):
        sizes = []
        decompose = feature_choice.decompose

        def recorded(X, *arguments):
            sizes.append(X.shape[0])
            return decompose(X, *arguments)

        monkeypatch.setattr(feature_choice, "decompose", recorded)
        X, y = circles(2300)
        clf = LPClassifier(STRONG, features="auto").fit(X, STRONG.flip(y, random_state=0))
        assert sizes == [2000] * 4
        assert kernel_of(clf) in KERNELS
        assert len(clf.loo_decision_) == 2300
        assert np.mean(clf.predict(X) == y) > 0.85

    def test_a_sample_of_weighted_rows(self, monkeypatch):
        """Rows of very small weight must not decide, though they are as many."""
        monkeypatch.setattr(feature_choice, "_COMPARED_ROWS", 400)
        X, y = circles(600)
        shuffled = np.random.default_rng(0).permutation(y)
        weights = np.concatenate([np.ones(600), np.full(600, 1e-6)])
        rows = np.concatenate([X, 10 * X])
        clf = LPClassifier(NOISE, features="auto").fit(rows, np.concatenate([y, shuffled]), weights)
        assert kernel_of(clf) in KERNELS
        assert np.mean(clf.predict(X) == y) > 0.85

    def test_votes(self):
        X, y = circles(300)
        annotators = [NoiseModel.binary(eps_pos=a, eps_neg=b) for a, b in [(0.3, 0.1), (0.1, 0.3)]]
        columns = [
            noise.flip(y, random_state=i).astype(float) for i, noise in enumerate(annotators)
        ]
        table = np.column_stack([*columns, NOISE.flip(y, random_state=2)])
        rng = np.random.default_rng(0)
        table[rng.random(table.shape) < 0.2] = np.nan
        table[:5] = np.nan
        clf = LPClassifier(features="auto").fit(X, Votes.from_columns(table))
        assert kernel_of(clf) in KERNELS
        assert clf.score(X, y) > 0.9
        assert clf.annotators_.names.tolist() == [0, 1, 2]

    def test_single_votes_are_labels(self):
        X, y = circles(300)
        observed = STRONG.flip(y, random_state=0)
        labels = LPClassifier(STRONG, features="auto").fit(X, observed)
        votes = LPClassifier(STRONG, features="auto").fit(X, Votes.from_columns(observed))
        assert kernel_of(votes) == kernel_of(labels)
        assert kernel_of(votes) in KERNELS
        np.testing.assert_allclose(votes.predict_proba(X), labels.predict_proba(X), atol=1e-8)

    def test_three_classes_on_rings(self):
        rng = np.random.default_rng(0)
        y = rng.integers(3, size=450)
        angle = rng.uniform(0, 2 * np.pi, size=450)
        radius = 0.6 + y + 0.15 * rng.normal(size=450)
        X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        noise = NoiseModel(0.6 * np.eye(3) + 0.4 / 3)
        clf = LPClassifier(noise, features="auto").fit(X, noise.flip(y, random_state=0))
        assert kernel_of(clf) in KERNELS
        assert clf.score(X, y) > 0.9

    def test_labels_at_random_rarely_choose_a_kernel(self):
        """At the 5% level, a binomial count of 60 draws exceeds 8 with probability 0.002."""
        chosen = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            data = LPClassifier(NOISE, features="auto")
            data.fit(rng.normal(size=(150, 6)), rng.integers(2, size=150))
            chosen += kernel_of(data) is not None
        assert chosen <= 8

    def test_gaussian_mixtures_stay_linear(self):
        """Kernels saturate as probabilities do, but the best boundary is linear."""
        kernels = 0
        for seed in range(10):
            X, y = make_mixture(600, 10, mean_norm=1.5, random_state=seed)
            kernels += kernel_of(LPClassifier(None, features="auto").fit(X, y)) is not None
        assert kernels <= 2

    def test_few_rows(self):
        X, _ = circles(6)
        clf = LPClassifier(NOISE, features="auto").fit(X, [0, 1, 0, 1, 0, 1])
        assert clf.predict_proba(X).shape == (6, 2)


class TestAgreement:
    def features(self, draw, n=400):
        X, y = draw(n)
        labels = np.eye(2)[y]
        rows = feature_choice.DistinctRows.of(X)
        Z = feature_choice.DistinctRows.of(KernelFeatures().fit_transform(X))
        return feature_choice._agreement(rows, labels), feature_choice._agreement(Z, labels)

    def test_the_influences_of_the_rows_have_mean_zero(self):
        for agreement in self.features(moons):
            assert 0.5 < agreement.correlation < 1
            assert agreement.share @ agreement.influence == pytest.approx(0, abs=1e-12)

    def test_the_standard_error_is_that_of_the_difference(self):
        linear, kernel = self.features(moons)
        difference = kernel.correlation - linear.correlation
        influence = kernel.influence - linear.influence
        error = influence.std() / np.sqrt(len(influence))
        assert kernel.exceeds(linear, 0.999 * difference / error)
        assert not kernel.exceeds(linear, 1.001 * difference / error)
        assert not linear.exceeds(kernel, 0.0)
        assert not linear.exceeds(linear, 0.0)

    def test_rows_that_do_not_vary_agree_with_nothing(self):
        rows = feature_choice.DistinctRows.of(np.ones((2, 1)) * [[1.0], [1.0 + 1e-16]])
        agreement = feature_choice._agreement(rows, np.array([[0.0, 1.0]]))
        assert agreement.correlation == 0.0


@cache
def noisy_fits(draw, kernel):
    """Return labels, noisy labels and fits to 20 draws of 600 rows with known noise rates."""
    fits = []
    for seed in range(20):
        X, y = draw(600, seed)
        observed = STRONG.flip(y, random_state=100 + seed)
        fits.append((y, observed, LPClassifier(STRONG, features=kernel).fit(X, observed)))
    return fits


@pytest.mark.parametrize("kernel", ["rbf", "matern"])
class TestLabelLeakage:
    @pytest.mark.parametrize("draw", [circles, moons])
    def test_scores_do_not_depend_on_their_own_labels(self, kernel, draw):
        """Within a true class, the correlation of scores and labels must be 0."""
        correlations = []
        for y, observed, clf in noisy_fits(draw, kernel):
            scores = clf.loo_log_odds_
            of_classes = [np.corrcoef(scores[y == a], observed[y == a])[0, 1] for a in (0, 1)]
            correlations.append(np.mean(of_classes))
        error = np.std(correlations, ddof=1) / np.sqrt(len(correlations))
        assert error < 0.02
        assert abs(np.mean(correlations)) < 3 * error + 0.03

    def test_the_expected_accuracy_is_that_on_clean_labels(self, kernel):
        gaps = []
        for seed, (_, _, clf) in enumerate(noisy_fits(circles, kernel)):
            gaps.append(clf.expected_accuracy_ - clf.score(*circles(5000, 1000 + seed)))
        error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
        assert error < 0.015
        assert abs(np.mean(gaps)) < 3 * error + 0.015
