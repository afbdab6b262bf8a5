"""What holds of every noise model and of every set of target values."""

import pickle

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from support.strategies import RATES, SEEDS, binary_noise, close, holds, noise_models, permutation
from unflip import NoiseModel, targets, theory

EXACT = 1e-12
RHOS = st.floats(-3, 3)


@holds(noise=noise_models())
def test_tables_are_probabilities(noise):
    for table in (noise.transition, noise.posterior):
        assert (table >= 0).all()
        close(table.sum(axis=1), np.ones(noise.n_classes), EXACT)
    assert (noise.joint >= 0).all()
    close(noise.joint.sum(), 1.0, EXACT)


@holds(noise=noise_models())
def test_posterior_times_observed_is_the_joint_table(noise):
    close(noise.posterior * noise.observed[:, None], noise.joint.T, EXACT)
    close(noise.joint.sum(axis=1), noise.priors, EXACT)
    close(noise.observed @ noise.posterior, noise.priors, EXACT)


@holds(noise=noise_models())
def test_priors_are_found_again_from_what_they_make_observed(noise):
    known = NoiseModel(noise.transition).with_observed(noise.observed)
    condition = np.linalg.cond(noise.transition)
    close(known.priors, noise.priors, EXACT * condition)
    close(noise.transition @ noise.inverse_transition, np.eye(noise.n_classes), EXACT * condition)


@holds(noise=noise_models(), seed=SEEDS)
def test_renaming_classes_permutes_every_table(noise, seed):
    order = permutation(noise.n_classes, seed)
    renamed = NoiseModel(noise.transition[np.ix_(order, order)], noise.priors[order])
    close(renamed.observed, noise.observed[order], EXACT)
    close(renamed.posterior, noise.posterior[np.ix_(order, order)], EXACT)
    close(renamed.inverse_transition, noise.inverse_transition[np.ix_(order, order)], 1e-10)


@holds(noise=noise_models(), seed=SEEDS)
def test_flips_are_those_of_the_transition(noise, seed):
    true = np.repeat(np.arange(noise.n_classes), 50)
    flipped = noise.flip(true, seed)
    assert noise.transition[true, flipped].all()  # none is impossible
    np.testing.assert_array_equal(flipped, noise.flip(true, seed))
    np.testing.assert_array_equal(NoiseModel.none(noise.n_classes).flip(true, seed), true)


@holds(noise=noise_models())
def test_copies_are_equal_and_cannot_be_changed(noise):
    copy = pickle.loads(pickle.dumps(noise))
    assert copy == noise
    assert hash(copy) == hash(noise)
    printed = eval(repr(noise), {"NoiseModel": NoiseModel})
    close(
        printed.transition, noise.transition, 1e-15
    )  # two classes are printed by one number for each, not two
    close(printed.priors, noise.priors, 1e-15)
    assert not copy.transition.flags.writeable
    assert not copy.priors.flags.writeable


@holds(rho_pos=RHOS, rho_neg=RHOS)
def test_targets_of_rho_are_upright_and_give_one_rho_back(rho_pos, rho_neg):
    assume(abs(1 - rho_pos - rho_neg) > 1e-3)
    values = targets.from_rho(rho_pos, rho_neg)
    assert values[0] < values[1]
    close(targets.from_rho(*targets.to_rho(values)), values, 1e-9)
    if rho_pos + rho_neg < 1:
        np.testing.assert_allclose(targets.to_rho(values), (rho_pos, rho_neg), atol=1e-9)


@holds(noise=noise_models())
def test_unbiased_targets_mean_the_true_label(noise):
    close(noise.transition @ targets.unbiased(noise), targets.naive(noise.n_classes), 1e-10)


@holds(eps_pos=RATES, eps_neg=RATES)
def test_unbiased_targets_are_those_of_rho_equal_to_the_rates(eps_pos, eps_neg):
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
    close(targets.unbiased(noise), targets.from_rho(eps_pos, eps_neg), 1e-10)


@holds(noise=noise_models())
def test_optimized_targets_lie_between_the_naive_ones_and_average_to_the_same(noise):
    values, clean = targets.optimized(noise), targets.naive(noise.n_classes)
    assert values.min() >= clean.min() - EXACT
    assert values.max() <= clean.max() + EXACT
    close(noise.observed @ values, noise.priors @ clean, EXACT)


@holds(noise=noise_models())
def test_without_flips_all_named_targets_are_the_naive_ones(noise):
    clean = NoiseModel.none(noise.n_classes).with_priors(noise.priors)
    for name in targets.NAMED:
        close(targets.NAMED[name](clean), targets.naive(noise.n_classes), EXACT)


@holds(noise=binary_noise(), rho_neg=RHOS, shift=RHOS)
def test_the_best_and_the_worst_rho_move_with_the_other_one(noise, rho_neg, shift):
    assume(abs(noise.priors[0] - 0.5) > 1e-3)
    for rule in (theory.optimal_rho, theory.worst_rho):
        close(rule(noise, rho_neg + shift), rule(noise, rho_neg) + shift, 1e-9)


@holds(noise=binary_noise())
def test_the_best_rho_is_that_of_the_optimized_targets(noise):
    rho_pos = float(theory.optimal_rho(noise))
    assume(abs(1 - rho_pos) > 1e-6)
    values, best = targets.from_rho(rho_pos, 0.0), targets.optimized(noise)
    close(values[1] * best[0], values[0] * best[1], 1e-8)  # the same direction
