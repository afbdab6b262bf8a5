"""Steepness and offsets of log-odds, against their definitions by general solvers."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar, root
from scipy.special import softmax

from unflip import NoiseModel
from unflip.steepness import class_probabilities, likeliest_steepness, prior_offsets

TWO = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.35)
THREE = NoiseModel(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.2, 0.3, 0.5])
BOTH = pytest.mark.parametrize("noise", [TWO, THREE], ids=["two classes", "three classes"])


def draw(noise, n=80, factor=1.0):
    """Logits that are `factor` times too flat, labels, and uneven shares of the rows."""
    rng = np.random.default_rng(0)
    logits = 2.5 * rng.normal(size=(n, noise.n_classes))
    drawn = softmax(logits + offsets_by_definition(logits, np.full(n, 1 / n), noise.priors), axis=1)
    y = (drawn.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    share = rng.random(n)
    return logits / factor, noise.flip(y, random_state=0), share / share.sum()


def offsets_by_definition(logits, share, priors):
    """The first 0, the others such that the mean probability of each class is its prior."""

    def missing(offsets):
        return (share @ softmax(logits + np.append(0.0, offsets), axis=1) - priors)[1:]

    return np.append(0.0, root(missing, np.zeros(len(priors) - 1), tol=1e-12).x)


@BOTH
def test_probabilities_are_the_softmax(noise):
    logits, _, _ = draw(noise)
    for rows in (logits, logits[:2], logits[:1]):
        np.testing.assert_allclose(class_probabilities(rows), softmax(rows, axis=1), rtol=1e-12)


class TestOffsets:
    @BOTH
    def test_the_mean_probability_of_each_class_is_its_prior(self, noise):
        logits, _, share = draw(noise)
        expected = offsets_by_definition(logits, share, noise.priors)
        far = 7.0 * (np.arange(noise.n_classes) > 0)
        for start in (None, expected - far, expected + far):
            found = prior_offsets(logits, share, noise.priors, start=start)
            np.testing.assert_allclose(found, expected, atol=1e-5)

    @BOTH
    def test_what_is_added_to_a_class_is_taken_off_its_offset(self, noise):
        logits, _, share = draw(noise)
        moved = np.arange(noise.n_classes) + 5.0
        before, after = (prior_offsets(z, share, noise.priors) for z in (logits, logits + moved))
        np.testing.assert_allclose(after, before - (moved - moved[0]), atol=1e-6)

    @BOTH
    def test_where_no_row_is_in_doubt_they_are_those_of_classes_whose_mean_scores_are_alike(self, noise):
        """Any would do: the weak pull decides, wherever the search starts."""
        k = noise.n_classes
        logits = 1000.0 * np.eye(k)
        neutral = np.log(noise.priors) - noise.priors * 1000
        neutral -= neutral[0]
        for start in (neutral, neutral + 5.0 * np.arange(k)):
            found = prior_offsets(logits, noise.priors, noise.priors, start=start)
            np.testing.assert_allclose(found, neutral, rtol=1e-9)


def penalised(log_steepness, logits, codes, share, noise, n_rows):
    """Minus the log-likelihood of the labels, and of log τ in a standard normal distribution."""
    steep = np.exp(log_steepness) * logits
    log_odds = steep + offsets_by_definition(steep, share, noise.priors)
    observed = (softmax(log_odds, axis=1) * noise.transition.T[codes]).sum(axis=1)
    return log_steepness**2 / 2 - n_rows * share @ np.log(observed)


class TestLikeliestSteepness:
    @BOTH
    @pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
    @pytest.mark.parametrize("n_rows", [3.0, 80.0])
    def test_it_is_the_posterior_mode_with_its_curvature(self, noise, factor, n_rows):
        logits, codes, share = draw(noise, factor=factor)
        data = logits, codes, share, noise, n_rows
        best = minimize_scalar(penalised, bounds=(-3, 3), args=data, method="bounded", options={"xatol": 1e-7})
        found = likeliest_steepness(*data)
        assert np.log(found.factor) == pytest.approx(best.x, abs=2e-4)
        assert found.cost == pytest.approx(best.fun, rel=1e-6)
        step = 0.01
        around = [penalised(best.x + move, *data) for move in (-step, 0.0, step)]
        curvature = (around[0] - 2 * around[1] + around[2]) / step**2
        assert found.error == pytest.approx(1 / np.sqrt(max(curvature, 1.0)), rel=0.01)

    @BOTH
    @pytest.mark.parametrize("moved", [10.0, 1e6])
    def test_what_is_added_to_all_logits_of_a_class_is_left_to_its_offset(self, noise, moved):
        """However much: offsets follow the steepness from one to the next."""
        logits, codes, share = draw(noise)
        plain = likeliest_steepness(logits, codes, share, noise, 80.0)
        found = likeliest_steepness(logits + moved * np.arange(noise.n_classes)[::-1], codes, share, noise, 80.0)
        assert found.factor == pytest.approx(plain.factor, rel=1e-5)
        assert found.error == pytest.approx(plain.error, rel=1e-5)
        assert found.cost == pytest.approx(plain.cost, rel=1e-8)

    @BOTH
    def test_labels_that_the_scores_say_nothing_of_leave_the_prior(self, noise):
        """Logits that are all alike: no steepness is likelier than another."""
        logits, codes, share = draw(noise)
        found = likeliest_steepness(0.0 * logits, codes, share, noise, 80.0)
        assert found.factor == pytest.approx(1, abs=1e-4)
        assert found.error == pytest.approx(1)
        log_observed = np.log((noise.priors @ noise.transition)[codes])
        assert found.cost == pytest.approx(-80 * share @ log_observed)
