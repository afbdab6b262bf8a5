"""NoiseModel: derived probabilities, drawing of noisy labels, and invalid input."""

import copy
import pickle

import numpy as np
import pytest

from unflip import NoiseModel
from unflip.datasets import make_mixture

THREE = np.array([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]])


def test_binary_rates_are_in_the_row_of_their_true_class():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.2)
    np.testing.assert_allclose(noise.transition, [[0.7, 0.3], [0.4, 0.6]])
    np.testing.assert_allclose(noise.priors, [0.2, 0.8])
    assert (noise.eps_pos, noise.eps_neg, noise.n_classes) == (0.4, 0.3, 2)


def test_observed_and_posterior_obey_bayes():
    noise = NoiseModel(THREE, [0.3, 0.3, 0.4])
    np.testing.assert_allclose(noise.observed, [0.41, 0.27, 0.32])
    joint = noise.posterior * noise.observed[:, None]
    np.testing.assert_allclose(joint, noise.joint.T)
    np.testing.assert_allclose(noise.posterior.sum(axis=1), 1)


def test_priors_are_recovered_from_observed_proportions():
    noise = NoiseModel(THREE, [0.3, 0.3, 0.4])
    np.testing.assert_allclose(NoiseModel(THREE).with_observed(noise.observed).priors, noise.priors)


def test_flip_draws_at_the_rates_of_the_transition():
    noise = NoiseModel(THREE)
    y = np.repeat([0, 1, 2], 20_000)
    observed = noise.flip(y, random_state=3)
    counts = np.array([np.bincount(observed[y == a], minlength=3) for a in range(3)]) / 20_000
    error = np.sqrt(THREE * (1 - THREE) / 20_000)
    assert np.all(np.abs(counts - THREE) <= 4 * error)
    np.testing.assert_array_equal(observed, noise.flip(y, random_state=3))


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_flip_accepts_both_types_of_generator_and_advances_them(source):
    rng = source(0)
    noise = NoiseModel.binary(eps_pos=0.5, eps_neg=0.2)
    y = np.ones(200, dtype=int)
    assert (noise.flip(y, rng) != noise.flip(y, rng)).any()


def test_flip_is_independent_of_rows_drawn_with_the_same_seed():
    """Noisy labels must not depend on the features if all seeds are 0."""
    n = 20_000
    _, y = make_mixture(n, 2, random_state=0)
    flipped = NoiseModel.binary(eps_pos=0.3, eps_neg=0.3).flip(y, random_state=0) != y
    X, _ = make_mixture(n, 2, random_state=0)
    for column in (y, X[:, 0] - y, X[:, 1] - y, np.roll(y, 1)):
        assert abs(np.corrcoef(flipped, column)[0, 1]) < 4 / np.sqrt(n)


def test_equality_hash_repr_and_pickle():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.2)
    again = pickle.loads(pickle.dumps(noise))
    assert again == noise
    assert hash(again) == hash(noise)
    assert noise != NoiseModel.binary(eps_pos=0.4, eps_neg=0.3)
    assert eval(repr(noise)) == noise
    assert eval(repr(noise.with_priors([1 / 3, 2 / 3]))).priors[0] == 1 / 3
    assert eval(repr(NoiseModel(THREE, [0.2, 0.3, 0.5]))) == NoiseModel(THREE, [0.2, 0.3, 0.5])
    assert repr(NoiseModel(THREE)).startswith("NoiseModel([[0.7, 0.3, 0.0]")


def test_models_are_immutable():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.2)
    for model in (noise, copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):
        with pytest.raises(ValueError, match="read-only"):
            model.transition[0, 0] = 1
    with pytest.raises(AttributeError):
        noise.priors = np.array([0.5, 0.5])


def test_eps_pos_requires_two_classes():
    assert not hasattr(NoiseModel(THREE), "eps_pos")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: NoiseModel([[0.9, 0.2], [0.1, 0.9]]), "Row 0 of transition sums to 1.1"),
        (
            lambda: NoiseModel([[1.2, -0.2], [0.1, 0.9]]),
            r"transition\[0, 0\] = 1.2 is not a probability",
        ),
        (lambda: NoiseModel([[np.nan, 1], [0.1, 0.9]]), r"transition\[0, 0\] = nan"),
        (lambda: NoiseModel([0.5, 0.5]), "must be k×k"),
        (lambda: NoiseModel([[1.0]]), "must be k×k"),
        (lambda: NoiseModel([[0.5, 0.5], [0.5, 0.5]]), "must be below 1"),
        (
            lambda: NoiseModel.binary(eps_pos=0.7, eps_neg=0.3),
            "eps_pos \\+ eps_neg = 0.7 \\+ 0.3 must be below 1",
        ),
        (
            lambda: NoiseModel.binary(eps_pos=-0.1, eps_neg=0.3),
            "eps_pos = -0.1 is not a probability",
        ),
        (
            lambda: NoiseModel.binary(eps_pos=0.1, eps_neg=np.nan),
            "eps_neg = nan is not a probability",
        ),
        (lambda: NoiseModel.binary(eps_pos=0.1, eps_neg=0.1, pi_neg=1), "pi_neg = 1"),
        (lambda: NoiseModel(THREE, [0.5, 0.5]), "one entry for each of the 3 classes"),
        (lambda: NoiseModel(THREE, [0.5, 0.5, 0.5]), "sum to 1.5"),
        (lambda: NoiseModel(THREE, [0.5, 0.5, 0.0]), r"priors\[2\] = 0"),
        (lambda: NoiseModel(THREE).posterior, "has no priors"),
        (
            lambda: NoiseModel([[1, 0, 0], [1, 0, 0], [0, 0, 1]], [0.3, 0.3, 0.4]).posterior,
            "Label 1 has probability 0",
        ),
        (lambda: NoiseModel([[1, 0, 0], [1, 0, 0], [0, 0, 1]]).inverse_transition, "singular"),
        (
            lambda: NoiseModel.binary(eps_pos=0.1, eps_neg=0.3).with_observed([0.9, 0.1]),
            "leave no true row in class 1",
        ),
        (lambda: NoiseModel(THREE).flip([0, 3]), "Class index 3 is outside 0..2"),
        (lambda: NoiseModel(THREE).flip(["a", "b"]), "class indices 0..2, not <U1"),
        (lambda: NoiseModel(THREE).flip([-1, 1]), "Class index -1 is outside 0..2"),
        (lambda: NoiseModel({"a": 0.1}), "transition = {'a': 0.1} must hold numbers"),
        (
            lambda: NoiseModel.binary(eps_pos="many", eps_neg=0.1),
            "eps_pos = 'many' must hold numbers",
        ),
        (
            lambda: NoiseModel(THREE).with_priors("balanced"),
            "priors = 'balanced' must hold numbers",
        ),
        (lambda: NoiseModel(THREE).flip([0.0, 1.0]), "class indices"),
    ],
)
def test_invalid_input_raises(build, message):
    with pytest.raises(ValueError, match=message):
        build()
