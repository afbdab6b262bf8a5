"""Properties of all noise models and target values."""

import pickle

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from support.strategies import RATES, SEEDS, binary_noise, close, holds, noise_models, permutation
from unflip import NoiseModel, targets, theory

EXACT = 1e-12
RHOS = st.floats(-3, 3)


@holds(noise=noise_models())
def test_transition_and_posterior_are_probabilities(noise):
    for matrix in (noise.transition, noise.posterior):
        assert (matrix >= 0).all()
        close(matrix.sum(axis=1), np.ones(noise.n_classes), EXACT)
    assert (noise.joint >= 0).all()
    close(noise.joint.sum(), 1.0, EXACT)


@holds(noise=noise_models())
def test_posterior_times_observed_is_the_joint_distribution(noise):
    close(noise.posterior * noise.observed[:, None], noise.joint.T, EXACT)
    close(noise.joint.sum(axis=1), noise.priors, EXACT)
    close(noise.observed @ noise.posterior, noise.priors, EXACT)


@holds(noise=noise_models())
def test_priors_are_recovered_from_observed_proportions(noise):
    recovered = NoiseModel(noise.transition).with_observed(noise.observed)
    condition = np.linalg.cond(noise.transition)
    close(recovered.priors, noise.priors, EXACT * condition)
    close(noise.transition @ noise.inverse_transition, np.eye(noise.n_classes), EXACT * condition)


@holds(noise=noise_models(), seed=SEEDS)
def test_renaming_classes_permutes_all_matrices(noise, seed):
    order = permutation(noise.n_classes, seed)
    renamed = NoiseModel(noise.transition[np.ix_(order, order)], noise.priors[order])
    close(renamed.observed, noise.observed[order], EXACT)
    close(renamed.posterior, noise.posterior[np.ix_(order, order)], EXACT)
    close(renamed.inverse_transition, noise.inverse_transition[np.ix_(order, order)], 1e-10)


@holds(noise=noise_models(), seed=SEEDS)
def test_flip_draws_labels_of_positive_probability(noise, seed):
    true = np.repeat(np.arange(noise.n_classes), 50)
    flipped = noise.flip(true, seed)
    assert noise.transition[true, flipped].all()
    np.testing.assert_array_equal(flipped, noise.flip(true, seed))
    np.testing.assert_array_equal(NoiseModel.none(noise.n_classes).flip(true, seed), true)


@holds(noise=noise_models())
def test_pickled_models_are_equal_and_immutable(noise):
    copy = pickle.loads(pickle.dumps(noise))
    assert copy == noise
    assert hash(copy) == hash(noise)
    printed = eval(repr(noise), {"NoiseModel": NoiseModel})
    # The repr of two classes holds one number for each, so 1 − ε is rounded.
    close(printed.transition, noise.transition, 1e-15)
    close(printed.priors, noise.priors, 1e-15)
    assert not copy.transition.flags.writeable
    assert not copy.priors.flags.writeable


@holds(rho_pos=RHOS, rho_neg=RHOS)
def test_targets_of_rho_are_increasing_and_invertible(rho_pos, rho_neg):
    assume(abs(1 - rho_pos - rho_neg) > 1e-3)
    values = targets.from_rho(rho_pos, rho_neg)
    assert values[0] < values[1]
    close(targets.from_rho(*targets.to_rho(values)), values, 1e-9)
    if rho_pos + rho_neg < 1:
        np.testing.assert_allclose(targets.to_rho(values), (rho_pos, rho_neg), atol=1e-9)


@holds(noise=noise_models())
def test_unbiased_targets_have_the_mean_of_the_true_label(noise):
    close(noise.transition @ targets.unbiased(noise), targets.naive(noise.n_classes), 1e-10)


@holds(eps_pos=RATES, eps_neg=RATES)
def test_unbiased_targets_equal_those_of_rho_equal_to_the_rates(eps_pos, eps_neg):
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
    close(targets.unbiased(noise), targets.from_rho(eps_pos, eps_neg), 1e-10)


@holds(noise=noise_models())
def test_optimized_targets_lie_between_the_naive_ones_with_the_same_mean(noise):
    values, clean = targets.optimized(noise), targets.naive(noise.n_classes)
    assert values.min() >= clean.min() - EXACT
    assert values.max() <= clean.max() + EXACT
    close(noise.observed @ values, noise.priors @ clean, EXACT)


@holds(noise=noise_models())
def test_without_noise_all_named_targets_are_naive(noise):
    clean = NoiseModel.none(noise.n_classes).with_priors(noise.priors)
    for name in targets.NAMED:
        close(targets.NAMED[name](clean), targets.naive(noise.n_classes), EXACT)


@holds(noise=binary_noise(), rho_neg=RHOS, shift=RHOS)
def test_best_and_worst_rho_pos_shift_with_rho_neg(noise, rho_neg, shift):
    assume(abs(noise.priors[0] - 0.5) > 1e-3)
    for rule in (theory.optimal_rho, theory.worst_rho):
        close(rule(noise, rho_neg + shift), rule(noise, rho_neg) + shift, 1e-9)


@holds(noise=binary_noise())
def test_the_best_rho_equals_that_of_the_optimized_targets(noise):
    rho_pos = float(theory.optimal_rho(noise))
    assume(abs(1 - rho_pos) > 1e-6)
    values, best = targets.from_rho(rho_pos, 0.0), targets.optimized(noise)
    close(values[1] * best[0], values[0] * best[1], 1e-8)  # the same direction
