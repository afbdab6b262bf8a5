"""Probabilities of classes and their intercepts, against their definition by a general solver."""

import numpy as np
import pytest
from scipy.special import softmax

from support.logits import BOTH, draw, offsets_by_definition
from unflip import NoiseModel
from unflip.calibration.intercepts import ClassProportions, class_probabilities
from unflip.labels.noise import Channel


@BOTH
def test_probabilities_are_the_softmax(noise):
    logits, _, _ = draw(noise)
    for rows in (logits, logits[:2], logits[:1]):
        np.testing.assert_allclose(class_probabilities(rows), softmax(rows, axis=1), rtol=1e-12)


class TestOffsets:
    @BOTH
    @pytest.mark.parametrize("n_rows", [1e9, 80.0, 5.0])
    def test_the_mean_probability_of_each_class_is_its_prior_give_or_take_a_few_rows(
        self, noise, n_rows
    ):
        logits, _, share = draw(noise)
        expected = offsets_by_definition(logits, share, noise.priors, n_rows)
        far = 7.0 * (np.arange(noise.n_classes) > 0)
        for start in (None, expected - far, expected + far):
            found = ClassProportions(noise.priors, n_rows).intercepts(logits, share, start)
            np.testing.assert_allclose(found, expected, atol=1e-5)

    @BOTH
    def test_they_do_not_depend_on_which_class_is_the_first(self, noise):
        logits, _, share = draw(noise)
        found = ClassProportions(noise.priors, 20.0).intercepts(logits, share)
        other = ClassProportions(noise.priors[::-1], 20.0).intercepts(logits[:, ::-1], share)[::-1]
        np.testing.assert_allclose(other - other[0], found, atol=1e-6)

    @BOTH
    @pytest.mark.parametrize("size", [30.0, 1e3, 1e6])
    def test_between_classes_far_apart_they_follow_the_prior_by_its_rows(self, noise, size):
        """No row is in doubt, so the mean probability is fixed: what it misses of the prior, times
        the rows, moves."""
        k, n_rows = noise.n_classes, 40.0
        actual = noise.priors + 0.05 * (np.arange(k) - (k - 1) / 2)
        logits = size * (np.eye(k) - np.eye(k)[:, :1])
        for start in (None, 5.0 * np.arange(k)):
            found = ClassProportions(noise.priors, n_rows).intercepts(logits, actual, start)
            moved = np.log(noise.priors) + n_rows * (noise.priors - actual)
            np.testing.assert_allclose(found, moved - moved[0], rtol=1e-9)

    @BOTH
    @pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
    def test_they_are_found_however_large_the_logits(self, noise, size):
        """Also with priors far from the rows' own, which lead into the midst of a class."""
        k = noise.n_classes
        rng = np.random.default_rng(0)
        for _ in range(20):
            logits = size * rng.standard_t(2, size=(100, k))
            priors, share = rng.dirichlet(np.ones(k)) * 0.99 + 0.01 / k, np.full(100, 0.01)
            found = ClassProportions(priors, 100.0).intercepts(logits, share)
            apart = found - np.log(priors)
            missed = (
                share @ class_probabilities(logits + found) - priors + (apart - apart.mean()) / 100
            )
            np.testing.assert_allclose(missed, 0, atol=1e-7)

    @BOTH
    def test_they_are_found_however_far_away(self, noise):
        """Rows that follow one another evenly over thousands of units, of which priors leave a
        class few or many."""
        k, n = noise.n_classes, 1000
        logits = np.column_stack(
            [np.zeros(n), *(np.roll(np.linspace(0, 4000.0, n), 300 * a) for a in range(k - 1))]
        )
        share = np.full(n, 1 / n)
        found = ClassProportions(noise.priors, n).intercepts(logits, share)
        assert np.abs(found).max() > 300
        apart = found - np.log(noise.priors)
        missed = (
            share @ class_probabilities(logits + found) - noise.priors + (apart - apart.mean()) / n
        )
        np.testing.assert_allclose(missed, 0, atol=1e-9)


class TestWhatProportionsAreWorth:
    @BOTH
    def test_a_label_is_worth_the_squared_correlation_with_the_true_class(self, noise):
        """Pearson's φ² of the table of true and observed classes, over its largest value."""
        codes = np.arange(noise.n_classes)
        observed = noise.priors @ noise.transition
        independent = np.outer(noise.priors, observed)
        expected = ((noise.joint - independent) ** 2 / independent).sum() / (noise.n_classes - 1)
        assert ClassProportions.from_labels(codes, observed, noise, 1000.0).n_rows == pytest.approx(
            1000 * expected
        )

    @BOTH
    def test_right_labels_are_worth_their_rows_and_random_ones_one(self, noise):
        k, codes = noise.n_classes, np.arange(noise.n_classes)
        right = NoiseModel.none(k).with_priors(noise.priors)
        assert ClassProportions.from_labels(
            codes, noise.priors, right, 70.0
        ).n_rows == pytest.approx(70)
        random = Channel(np.ones((k, k)), noise.priors)
        assert ClassProportions.from_labels(codes, noise.priors, random, 70.0).n_rows == 1
        assert ClassProportions.from_labels(codes, np.eye(k)[0], right, 70.0).n_rows <= 70
