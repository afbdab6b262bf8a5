"""Class probabilities and intercepts, against their definition by a general solver."""

import numpy as np
import pytest
from scipy.special import softmax

from support.logits import BOTH, draw, intercepts_by_definition
from unflip import NoiseModel
from unflip.calibration.intercepts import ClassProportions, class_probabilities
from unflip.labels.noise import Channel


@BOTH
def test_probabilities_are_the_softmax(noise):
    logits, _, _ = draw(noise)
    for rows in (logits, logits[:2], logits[:1]):
        np.testing.assert_allclose(class_probabilities(rows), softmax(rows, axis=1), rtol=1e-12)


class TestIntercepts:
    @BOTH
    @pytest.mark.parametrize("n_rows", [1e9, 80.0, 5.0])
    def test_match_their_definition(self, noise, n_rows):
        logits, _, share = draw(noise)
        expected = intercepts_by_definition(logits, share, noise.priors, n_rows)
        far = 7.0 * (np.arange(noise.n_classes) > 0)
        for start in (None, expected - far, expected + far):
            intercepts = ClassProportions(noise.priors, n_rows).intercepts(logits, share, start)
            np.testing.assert_allclose(intercepts, expected, atol=1e-5)

    @BOTH
    def test_do_not_depend_on_the_order_of_classes(self, noise):
        logits, _, share = draw(noise)
        intercepts = ClassProportions(noise.priors, 20.0).intercepts(logits, share)
        other = ClassProportions(noise.priors[::-1], 20.0).intercepts(logits[:, ::-1], share)[::-1]
        np.testing.assert_allclose(other - other[0], intercepts, atol=1e-6)

    @BOTH
    @pytest.mark.parametrize("size", [30.0, 1e3, 1e6])
    def test_between_separated_classes_move_with_the_effective_sample_size(self, noise, size):
        """No probability is intermediate, so the mean probabilities are fixed.

        Their difference to the priors, times the effective sample size, moves the intercepts.
        """
        k, n_rows = noise.n_classes, 40.0
        actual = noise.priors + 0.05 * (np.arange(k) - (k - 1) / 2)
        logits = size * (np.eye(k) - np.eye(k)[:, :1])
        for start in (None, 5.0 * np.arange(k)):
            intercepts = ClassProportions(noise.priors, n_rows).intercepts(logits, actual, start)
            moved = np.log(noise.priors) + n_rows * (noise.priors - actual)
            np.testing.assert_allclose(intercepts, moved - moved[0], rtol=1e-9)

    @BOTH
    @pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
    def test_converge_for_logits_of_any_size(self, noise, size):
        """Also if the priors differ so much from the proportions that a threshold lies within a
        class.
        """
        k = noise.n_classes
        rng = np.random.default_rng(0)
        for _ in range(20):
            logits = size * rng.standard_t(2, size=(100, k))
            priors, share = rng.dirichlet(np.ones(k)) * 0.99 + 0.01 / k, np.full(100, 0.01)
            intercepts = ClassProportions(priors, 100.0).intercepts(logits, share)
            apart = intercepts - np.log(priors)
            missed = (
                share @ class_probabilities(logits + intercepts)
                - priors
                + (apart - apart.mean()) / 100
            )
            np.testing.assert_allclose(missed, 0, atol=1e-7)

    @BOTH
    def test_converge_for_distant_intercepts(self, noise):
        """Logits spread evenly over thousands of units."""
        k, n = noise.n_classes, 1000
        logits = np.column_stack(
            [np.zeros(n), *(np.roll(np.linspace(0, 4000.0, n), 300 * a) for a in range(k - 1))]
        )
        share = np.full(n, 1 / n)
        intercepts = ClassProportions(noise.priors, n).intercepts(logits, share)
        assert np.abs(intercepts).max() > 300
        apart = intercepts - np.log(noise.priors)
        missed = (
            share @ class_probabilities(logits + intercepts)
            - noise.priors
            + (apart - apart.mean()) / n
        )
        np.testing.assert_allclose(missed, 0, atol=1e-9)


class TestEffectiveSampleSize:
    @BOTH
    def test_of_noisy_labels_is_cramers_v_squared(self, noise):
        """Pearson's φ² of true and observed class, divided by its largest value."""
        codes = np.arange(noise.n_classes)
        observed = noise.priors @ noise.transition
        independent = np.outer(noise.priors, observed)
        expected = ((noise.joint - independent) ** 2 / independent).sum() / (noise.n_classes - 1)
        assert ClassProportions.from_labels(
            codes, observed, noise, 1000.0
        ).n_effective == pytest.approx(1000 * expected)

    @BOTH
    def test_of_clean_labels_is_n_and_of_random_labels_one(self, noise):
        k, codes = noise.n_classes, np.arange(noise.n_classes)
        right = NoiseModel.none(k).with_priors(noise.priors)
        assert ClassProportions.from_labels(
            codes, noise.priors, right, 70.0
        ).n_effective == pytest.approx(70)
        random = Channel(np.ones((k, k)), noise.priors)
        assert ClassProportions.from_labels(codes, noise.priors, random, 70.0).n_effective == 1
        assert ClassProportions.from_labels(codes, np.eye(k)[0], right, 70.0).n_effective <= 70
