"""Automatic: estimates from each source, the choice of the source, and warnings."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from support.amazon import needs_data
from unflip import NoiseModel
from unflip.data.duplicates import DistinctRows
from unflip.datasets import load_amazon_reviews, make_mixture
from unflip.estimation import AssumedNoiseWarning, Automatic
from unflip.estimation.anchors import RateEstimate, anchor_rates, consistent_noise
from unflip.estimation.loo_scores import class_scores
from unflip.estimation.priors_constraint import constrain_rates

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
SHAPE = np.linspace(0.5, 1.5, 60)  # unequal noise variances: not an isotropic mixture


def draw(seed=0, n=800, mean_norm=2.0, scale=SHAPE):
    X, y = make_mixture(n, 60, mean_norm=mean_norm, priors=[0.4, 0.6], random_state=seed)
    return X * scale, NOISE.flip(y, random_state=seed), y


def quiet(estimator, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        return estimator.fit(*data)


class TestAnchors:
    def test_labels_of_anchor_rows_bound_the_rates(self):
        X, codes, _ = draw(n=4000, mean_norm=3.0)
        estimate = anchor_rates(class_scores(DistinctRows.of(X), codes, 2)[0], codes, np.ones(4000))
        np.testing.assert_allclose(
            [estimate.transition[1, 0], estimate.transition[0, 1]], [0.225, 0.075], atol=0.03
        )
        assert (np.abs(estimate.transition - NOISE.transition) < 2 * estimate.errors).all()

    def test_clean_labels_have_small_estimated_rates(self):
        X, _, y = draw(n=2000, mean_norm=3.0)
        estimate = anchor_rates(class_scores(DistinctRows.of(X), y, 2)[0], y, np.ones(2000))
        assert estimate.transition[1, 0] < 0.02
        assert estimate.errors[1, 0] < 0.02

    def test_overlapping_classes_have_large_standard_errors(self):
        X, _, y = draw(n=2000, mean_norm=0.5)
        estimate = anchor_rates(class_scores(DistinctRows.of(X), y, 2)[0], y, np.ones(2000))
        assert estimate.errors[1, 0] > 0.05
        assert (
            estimate.transition[1, 0] < 2 * estimate.errors[1, 0]
        )  # 0, the truth, is within two standard errors

    def test_a_rare_class_has_few_anchor_rows(self):
        rng = np.random.default_rng(0)
        codes = (np.arange(2000) < 60).astype(np.intp)
        scores = np.column_stack([-codes, codes]) + 0.3 * rng.normal(size=(2000, 1)) * [-1, 1]
        estimate = anchor_rates(scores, codes, np.ones(2000))
        assert estimate.transition[1, 0] < 0.2

    def test_weights_equal_duplicates(self):
        X, codes, _ = draw(n=200)
        counts = np.random.default_rng(0).integers(1, 4, size=200)
        weighted = DistinctRows.of(X, counts.astype(float))
        repeated = DistinctRows.of(np.repeat(X, counts, axis=0))
        first = anchor_rates(class_scores(weighted, codes, 2)[0], codes, weighted.member_weights)
        repeated_codes = np.repeat(codes, counts)
        scores = class_scores(repeated, repeated_codes, 2)[0]
        second = anchor_rates(scores, repeated_codes, repeated.member_weights)
        np.testing.assert_allclose(first.transition, second.transition, atol=1e-10)
        np.testing.assert_allclose(first.errors, second.errors, atol=1e-10)

    def test_three_classes(self):
        transition = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]])
        X, y = make_mixture(3000, 60, means=5 * np.eye(3, 60), random_state=0)
        codes = NoiseModel(transition).flip(y, random_state=0)
        estimate = anchor_rates(class_scores(DistinctRows.of(X), codes, 3)[0], codes, np.ones(3000))
        np.testing.assert_allclose(estimate.transition.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(
            estimate.transition, np.eye(3) + 0.75 * (transition - np.eye(3)), atol=0.05
        )


class TestProportions:
    def test_uncertain_rates_move_until_they_explain_the_observed_proportions(self):
        estimate = RateEstimate(np.array([[0.8, 0.2], [0.2, 0.8]]), np.full((2, 2), 0.2))
        priors = np.array([0.3, 0.7])
        constrained = constrain_rates(estimate, priors, np.array([0.5, 0.5]), 1e12)
        np.testing.assert_allclose(priors @ constrained.transition, [0.5, 0.5], atol=1e-6)
        # Both move along (π₂, −π₁), the shortest way to the line.
        moved = constrained.transition - estimate.transition
        assert moved[1, 0] / -moved[0, 1] == pytest.approx(0.7 / 0.3, rel=1e-6)
        assert constrained.errors[1, 0] < estimate.errors[1, 0]

    def test_certain_rates_do_not_move(self):
        estimate = RateEstimate(NOISE.transition, np.full((2, 2), 1e-5))
        observed = np.array([0.4, 0.6]) @ NOISE.transition + [0.01, -0.01]
        constrained = constrain_rates(estimate, np.array([0.4, 0.6]), observed, 1000.0)
        np.testing.assert_allclose(constrained.transition, NOISE.transition, atol=1e-6)

    def test_rates_stay_non_negative(self):
        estimate = RateEstimate(np.array([[0.98, 0.02], [0.2, 0.8]]), np.full((2, 2), 0.1))
        constrained = constrain_rates(estimate, np.array([0.5, 0.5]), np.array([0.65, 0.35]), 1e6)
        assert constrained.transition[0, 1] == pytest.approx(0, abs=1e-6)
        assert constrained.transition[1, 0] == pytest.approx(0.3, abs=1e-3)

    def test_three_classes(self):
        estimate = RateEstimate(np.full((3, 3), 0.1) + 0.7 * np.eye(3), np.full((3, 3), 0.1))
        priors, observed = np.array([0.2, 0.3, 0.5]), np.array([0.25, 0.3, 0.45])
        constrained = constrain_rates(estimate, priors, observed, 1e10)
        np.testing.assert_allclose(priors @ constrained.transition, observed, atol=1e-6)
        np.testing.assert_allclose(constrained.transition.sum(axis=1), 1, atol=1e-12)

    def test_contradicting_proportions_raise(self):
        estimate = RateEstimate(np.array([[0.99, 0.01], [0.01, 0.99]]), np.full((2, 2), 0.02))
        with pytest.raises(
            ValueError,
            match=r"priors \[0.2, 0.8\] contradict the observed class proportions \[0.6, 0.4\]",
        ):
            constrain_rates(estimate, np.array([0.2, 0.8]), np.array([0.6, 0.4]), 1000.0)


class TestChoice:
    def test_mixture_structure_is_used(self):
        X, codes, _ = draw(scale=1.0)
        estimate = Automatic().fit(X, codes)
        assert estimate.source_ == "mixture"
        assert estimate.evidence_.supported
        assert estimate.assumption_ == ""
        assert (
            np.abs(estimate.noise_.transition - NOISE.transition).max()
            < 4 * estimate.noise_std_.max()
            < 0.12
        )

    def test_priors_enter_the_mixture(self):
        X, codes, _ = draw(scale=1.0)
        estimate = Automatic(priors=[0.4, 0.6]).fit(X, codes)
        assert estimate.source_ == "mixture"
        np.testing.assert_array_equal(estimate.noise_.priors, [0.4, 0.6])

    def test_rough_estimate_with_a_warning(self):
        X, codes, _ = draw()
        with pytest.warns(AssumedNoiseWarning, match="hardly identifiable"):
            estimate = Automatic().fit(X, codes)
        assert estimate.is_start_
        assert estimate.source_ == "anchor rows"
        assert "not isotropic" in str(estimate.evidence_)
        low, high = estimate.interval(0.95)
        assert low[1, 0] <= 0.3 <= high[1, 0]
        assert high[1, 0] - low[1, 0] > 0.1

    def test_priors_reduce_the_standard_errors_of_the_rough_estimate(self):
        X, codes, _ = draw()
        alone = quiet(Automatic(), X, codes)
        estimate = quiet(Automatic(priors=[0.4, 0.6]), X, codes)
        assert estimate.noise_std_[1, 0] < alone.noise_std_[1, 0]
        np.testing.assert_allclose(
            estimate.noise_.observed, np.bincount(codes) / len(codes), atol=0.01
        )

    def test_trusted_labels_have_precedence(self):
        X, codes, y = draw(scale=1.0)
        y_trusted = np.where(np.arange(800) % 4 == 0, y, np.nan)
        estimate = Automatic(y_trusted=y_trusted).fit(X, codes)
        assert estimate.source_ == "trusted rows"
        assert estimate.evidence_ is None
        assert abs(estimate.noise_.eps_pos - 0.3) < 3 * estimate.noise_std_[1, 0] < 0.2
        with_priors = Automatic(y_trusted=y_trusted, priors=[0.4, 0.6]).fit(X, codes)
        assert with_priors.noise_std_[1, 0] < estimate.noise_std_[1, 0]

    def test_duplicates_and_weights_are_not_tested_for_a_mixture(self):
        X, codes, _ = draw(scale=1.0)
        weighted = quiet(Automatic(), X, codes, np.r_[2.0, np.ones(799)])
        repeated = quiet(Automatic(), np.vstack([X[:1], X]), np.append(codes[0], codes))
        assert weighted.source_ == repeated.source_ == "anchor rows"
        np.testing.assert_allclose(
            weighted.noise_.transition, repeated.noise_.transition, atol=1e-10
        )

    def test_the_scale_of_weights_does_not_matter(self):
        X, codes, _ = draw()
        weights = np.random.default_rng(0).uniform(0.5, 1.5, size=800)
        first, second = (quiet(Automatic(), X, codes, scale * weights) for scale in (1.0, 1e-3))
        np.testing.assert_allclose(second.noise_.transition, first.noise_.transition, atol=1e-8)
        np.testing.assert_allclose(second.noise_std_, first.noise_std_, atol=1e-8)

    @pytest.mark.parametrize("width", [1, 3, 9])
    def test_constant_and_duplicate_columns_are_not_a_mixture(self, width):
        rng = np.random.default_rng(0)
        x = rng.random(200)
        codes = (x + 0.3 * rng.normal(size=200) > 0.5).astype(int)
        for rows in (
            np.column_stack([x, np.ones((200, width))]),
            np.column_stack([x] * (width + 1)),
        ):
            assert quiet(Automatic(), rows, codes).source_ == "anchor rows"

    def test_constant_columns_do_not_change_a_mixture(self):
        X, codes, _ = draw(scale=1.0)
        transitions = [
            Automatic().fit(rows, codes).noise_.transition
            for rows in (X, np.hstack([X, np.ones((800, 7))]))
        ]
        np.testing.assert_allclose(transitions[0], transitions[1], atol=1e-6)

    def test_the_global_random_state_is_unchanged(self):
        X, codes, _ = draw(scale=1.0)
        state = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state must not move
        Automatic().fit(X, codes)
        np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002 - the global state must not move

    def test_labels_independent_of_the_rows_have_large_standard_errors(self):
        X, _, _ = draw()
        codes = (np.random.default_rng(5).random(800) < 0.4).astype(int)
        estimate = quiet(Automatic(), X, codes)
        assert estimate.noise_std_[1, 0] > 0.1
        np.testing.assert_allclose(estimate.noise_.observed, np.bincount(codes) / 800, atol=1e-6)

    def test_contradicting_priors(self):
        X, _, y = draw(mean_norm=3.0)
        with pytest.raises(ValueError, match="contradict the observed class proportions"):
            Automatic(priors=[0.9, 0.1]).fit(X, y)
        with pytest.raises(ValueError, match=r"priors sum to 1\.5"):
            quiet(Automatic(priors=[0.9, 0.6]), X, y)
        with pytest.raises(ValueError, match="one entry for each of the 2 classes"):
            quiet(Automatic(priors=[0.2, 0.2, 0.6]), X, y)

    def test_priors_that_the_clusters_contradict(self):
        X, codes, _ = draw(scale=1.0)
        with pytest.raises(
            ValueError, match=r"priors \[0.05, 0.95\] contradict the clusters of the rows"
        ):
            Automatic(priors=[0.05, 0.95]).fit(X, codes)
        with pytest.raises(ValueError, match="one entry for each of the 2 classes"):
            Automatic(priors=[0.5, 0.2, 0.3]).fit(X, codes)

    def test_clone(self):
        assert clone(Automatic(priors=[0.5, 0.5])).get_params() == {
            "priors": [0.5, 0.5],
            "y_trusted": None,
        }


def test_rates_are_halved_until_every_class_has_a_positive_prior():
    noise = consistent_noise(np.array([[0.6, 0.4], [0.05, 0.95]]), np.array([0.8, 0.2]))
    assert (noise.priors > 0).all()
    np.testing.assert_allclose(noise.observed, [0.8, 0.2], atol=1e-12)
    assert noise.eps_neg < 0.4
    worse_than_chance = consistent_noise(np.array([[0.3, 0.7], [0.6, 0.4]]), np.array([0.5, 0.5]))
    assert worse_than_chance.eps_pos + worse_than_chance.eps_neg < 1


@needs_data
def test_rough_intervals_cover_the_true_rates_of_reviews():
    X, y = load_amazon_reviews("kitchen")
    codes = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3).flip(y, random_state=0)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    estimate = quiet(Automatic(), X, codes)
    assert estimate.source_ == "anchor rows"
    low, high = estimate.interval()
    assert low[1, 0] < 0.4 < high[1, 0]
    assert low[0, 1] < 0.3 < high[0, 1]
