"""Properties of all predictions of the theory, for any mixture."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from support.strategies import (
    ASPECTS,
    BOOLS,
    NORMS,
    REGS,
    SEEDS,
    binary_noise,
    close,
    holds,
    noise_models,
    permutation,
    rotation,
)
from unflip import NoiseModel, targets, theory

SLACK = 1e-12  # of inequalities, for rounding
NAMES = st.sampled_from(["naive", "unbiased", "optimized"])
MIXTURES = st.builds(theory.Mixture, mean_norm=NORMS, aspect=ASPECTS, noise=binary_noise())
SHIFTS = st.floats(-3, 3)


def swapped(noise):
    """Return the same noise with its two classes exchanged."""
    return NoiseModel.binary(
        eps_pos=noise.eps_neg, eps_neg=noise.eps_pos, pi_neg=float(noise.priors[1])
    )


def degraded(noise, share):
    """Return a fraction of the noise; labels of `noise` are these labels, flipped again."""
    return NoiseModel.binary(
        eps_pos=share * noise.eps_pos, eps_neg=share * noise.eps_neg, pi_neg=float(noise.priors[0])
    )


@holds(aspect=ASPECTS, reg=REGS)
def test_delta_and_h_solve_their_equations(aspect, reg):
    delta, h = theory.delta(aspect, reg), theory.h(aspect, reg)
    assert delta * (reg + 1 / (1 + delta)) == pytest.approx(aspect, rel=1e-12)
    assert h == pytest.approx(1 - aspect / (1 + reg * (1 + delta)) ** 2, abs=1e-12)
    assert 0 <= h <= 1


@holds(aspect=ASPECTS, reg=REGS, factor=st.floats(1, 100))
def test_delta_falls_with_reg_and_grows_with_dimension(aspect, reg, factor):
    assert theory.delta(aspect, factor * reg) <= theory.delta(aspect, reg) * (1 + SLACK)
    assert theory.delta(factor * aspect, reg) >= theory.delta(aspect, reg) * (1 - SLACK)
    assert theory.h(aspect, factor * reg) >= theory.h(aspect, reg) * (1 - SLACK)


@holds(mixture=MIXTURES, reg=REGS, name=NAMES, fit_intercept=BOOLS, threshold=SHIFTS)
def test_accuracies_are_ordered_and_variances_positive(
    mixture, reg, name, fit_intercept, threshold
):
    prediction = theory.predict(mixture, targets=name, reg=reg, fit_intercept=fit_intercept)
    assert prediction.variance > 0
    assert prediction.second_moment >= 0
    assert prediction.risk >= 0
    assert 0 <= prediction.accuracy <= 1
    assert (
        max(mixture.noise.priors) - SLACK
        <= prediction.best_accuracy
        <= mixture.bayes_accuracy + SLACK
    )
    assert 0 <= prediction.accuracy_at(threshold) <= prediction.best_accuracy + SLACK


@holds(mixture=MIXTURES, reg=REGS, difference=SHIFTS)
def test_no_rho_is_more_accurate_than_the_optimum(mixture, reg, difference):
    best = theory.predict(mixture, targets="optimized", reg=reg)
    other = theory.predict(mixture, targets=(difference - 1, difference + 1), reg=reg)
    assert other.accuracy <= best.accuracy + SLACK
    assert theory.predict(mixture, targets="naive", reg=reg).accuracy <= best.accuracy + SLACK


@holds(mixture=MIXTURES, reg=REGS)
def test_worst_rho_is_random_guessing(mixture, reg):
    assume(abs(mixture.noise.priors[0] - 0.5) > 1e-3)
    difference = float(theory.worst_rho(mixture.noise))
    prediction = theory.predict(mixture, targets=(difference - 1, difference + 1), reg=reg)
    assert prediction.accuracy == pytest.approx(0.5, abs=1e-9)


@holds(mixture=MIXTURES, growth=st.floats(1, 100), fit_intercept=BOOLS)
def test_more_rows_never_hurt_at_optimal_reg(mixture, growth, fit_intercept):
    more = replace(mixture, aspect=mixture.aspect / growth)
    now, then = (
        theory.predict(m, reg=np.inf, fit_intercept=fit_intercept) for m in (mixture, more)
    )
    assert then.separation >= now.separation * (1 - SLACK)
    assert then.best_accuracy >= now.best_accuracy - SLACK


@holds(mixture=MIXTURES, reg=REGS, share=st.floats(0, 1), fit_intercept=BOOLS)
def test_cleaner_labels_never_hurt_the_optimized_targets(mixture, reg, share, fit_intercept):
    cleaner = replace(mixture, noise=degraded(mixture.noise, share))
    now, then = (
        theory.predict(m, reg=reg, fit_intercept=fit_intercept) for m in (mixture, cleaner)
    )
    assert then.separation >= now.separation * (1 - SLACK)


@holds(mixture=MIXTURES, reg=REGS, name=NAMES, fit_intercept=BOOLS)
def test_without_noise_all_targets_match_oracle(mixture, reg, name, fit_intercept):
    oracle = theory.predict(mixture.clean, targets="naive", reg=reg, fit_intercept=fit_intercept)
    prediction = theory.predict(mixture.clean, targets=name, reg=reg, fit_intercept=fit_intercept)
    close(prediction.means, oracle.means, SLACK)
    assert prediction.variance == pytest.approx(oracle.variance, rel=SLACK)
    noisy = theory.predict(mixture, targets=name, reg=reg, fit_intercept=fit_intercept)
    assert noisy.separation <= oracle.separation * (1 + SLACK)


@holds(mixture=MIXTURES, reg=REGS, scale=st.floats(0.01, 100), shift=SHIFTS, fit_intercept=BOOLS)
def test_scaled_targets_scale_scores_and_intercept_absorbs_shift(
    mixture, reg, scale, shift, fit_intercept
):
    values = targets.optimized(mixture.noise)
    moved = scale * values + (shift if fit_intercept else 0.0)
    now, then = (
        theory.predict(mixture, targets=t, reg=reg, fit_intercept=fit_intercept)
        for t in (values, moved)
    )
    close(then.separation, now.separation, 1e-9)
    assert then.variance == pytest.approx(scale**2 * now.variance, rel=1e-9)
    for before, after in zip(now.means, then.means, strict=True):
        close(after, scale * before + (shift if fit_intercept else 0.0), 1e-9)


@holds(
    mixture=MIXTURES,
    reg=REGS,
    name=NAMES,
    fit_intercept=BOOLS,
    loss=st.sampled_from(["squared", "logistic"]),
)
def test_exchanging_classes_negates_scores(mixture, reg, name, fit_intercept, loss):
    assume(loss == "squared" or (reg >= 0.1 and name != "unbiased"))
    options = {"targets": name, "reg": reg, "fit_intercept": fit_intercept, "loss": loss}
    now = theory.predict(mixture, **options)
    then = theory.predict(replace(mixture, noise=swapped(mixture.noise)), **options)
    digits = 1e-10 if loss == "squared" else 1e-6
    close((-then.means[1], -then.means[0]), now.means, digits)
    close((then.variance, then.best_accuracy), (now.variance, now.best_accuracy), digits)


@holds(
    mixture=MIXTURES, regs=st.lists(REGS, min_size=1, max_size=4), name=NAMES, fit_intercept=BOOLS
)
def test_arrays_match_scalar_calls(mixture, regs, name, fit_intercept):
    options = {"targets": name, "fit_intercept": fit_intercept}
    aspects = mixture.aspect * np.array([[1.0], [2.0]])
    table = theory.predict(replace(mixture, aspect=aspects), reg=regs, **options)
    for i, aspect in enumerate(aspects[:, 0]):
        for j, reg in enumerate(regs):
            alone = theory.predict(replace(mixture, aspect=aspect), reg=reg, **options)
            # NumPy rounds arrays and scalars differently in the last digit.
            close(table.accuracy[i, j], alone.accuracy, 1e-14)
            close(table.variance[i, j], alone.variance, 1e-14)


@holds(mixture=MIXTURES, reg=REGS, fit_intercept=BOOLS)
def test_no_reg_has_less_risk_than_optimal_reg(mixture, reg, fit_intercept):
    best = float(theory.optimal_reg(mixture, objective="risk", fit_intercept=fit_intercept))
    least = theory.predict(mixture, reg=best, fit_intercept=fit_intercept).risk
    other = theory.predict(mixture, reg=reg, fit_intercept=fit_intercept).risk
    assert least <= other * (1 + 1e-9)


@holds(mixture=MIXTURES, reg=REGS, fit_intercept=BOOLS)
def test_accuracy_grows_with_reg(mixture, reg, fit_intercept):
    weak, strong = (
        theory.predict(mixture, reg=r, fit_intercept=fit_intercept).separation
        for r in (reg, 10 * reg)
    )
    assert strong >= weak * (1 - SLACK)


@holds(mixture=MIXTURES, reg=st.floats(0.1, 100), fit_intercept=BOOLS)
def test_the_logistic_loss_is_no_better_than_the_best_squared_one(mixture, reg, fit_intercept):
    prediction = theory.predict(mixture, reg=reg, loss="logistic", fit_intercept=fit_intercept)
    best = theory.predict(mixture, reg=np.inf, fit_intercept=fit_intercept)
    assert prediction.variance > 0
    assert prediction.separation <= best.separation * (1 + 1e-9)


@holds(mixture=MIXTURES, reg=REGS, fit_intercept=BOOLS, n=st.integers(20, 500))
def test_multiclass_theory_of_two_classes_matches_binary(mixture, reg, fit_intercept, n):
    p = max(round(mixture.aspect * n), 1)
    mean = np.zeros(p)
    mean[0] = mixture.mean_norm
    binary = theory.predict(
        replace(mixture, aspect=p / n), targets="optimized", reg=reg, fit_intercept=fit_intercept
    )
    options = {"means": np.array([-mean, mean]), "n": n, "noise": mixture.noise, "reg": reg}
    several = theory.predict_multiclass(targets="optimized", fit_intercept=fit_intercept, **options)
    contrast = np.array([-1.0, 1.0])
    close(several.means @ contrast, np.ravel(binary.means), 1e-9)
    assert contrast @ several.covariance @ contrast == pytest.approx(
        float(binary.variance), rel=1e-9
    )


@holds(
    noise=noise_models(st.integers(3, 4)),
    seed=SEEDS,
    reg=REGS,
    fit_intercept=BOOLS,
    p=st.integers(4, 20),
)
def test_multiclass_predictions_do_not_depend_on_axes_or_names(noise, seed, reg, fit_intercept, p):
    means = 2 * np.random.default_rng(seed).normal(size=(noise.n_classes, p))
    options = {"n": 50, "reg": reg, "fit_intercept": fit_intercept}
    now = theory.predict_multiclass(means=means, noise=noise, **options)
    turned = theory.predict_multiclass(means=means @ rotation(p, seed), noise=noise, **options)
    close(turned.means, now.means, 1e-9)
    close(turned.covariance, now.covariance, 1e-9)
    order = permutation(noise.n_classes, seed)
    renamed_noise = NoiseModel(noise.transition[np.ix_(order, order)], noise.priors[order])
    renamed = theory.predict_multiclass(means=means[order], noise=renamed_noise, **options)
    close(renamed.means, now.means[np.ix_(order, order)], 1e-9)
    assert renamed.accuracy == pytest.approx(now.accuracy, abs=2e-4)  # what orthants are known to
    assert 0 <= now.accuracy <= now.readout_accuracy + 2e-4
    bayes = theory.multiclass_bayes_accuracy(means=means, noise=noise)
    assert now.readout_accuracy <= bayes + 2e-4


@holds(
    noise=binary_noise(),
    seed=SEEDS,
    reg=REGS,
    p=st.integers(1, 15),
    fit_intercept=BOOLS,
    scale=st.floats(0.1, 10),
)
def test_general_predictions_do_not_depend_on_axes_units_or_names(
    noise, seed, reg, p, fit_intercept, scale
):
    rng = np.random.default_rng(seed)
    mean, roots = rng.normal(size=p), rng.normal(size=(2, p, p)) / np.sqrt(p)
    covariances = [root @ root.T + 0.1 * np.eye(p) for root in roots]
    options = {"n": 40, "fit_intercept": fit_intercept, "targets": "optimized"}
    now = theory.predict_general(
        mean=mean, cov_neg=covariances[0], cov_pos=covariances[1], noise=noise, reg=reg, **options
    )
    axes = scale * rotation(p, seed)
    turned = [axes.T @ covariance @ axes for covariance in covariances]
    then = theory.predict_general(
        mean=mean @ axes,
        cov_neg=turned[0],
        cov_pos=turned[1],
        noise=noise,
        reg=scale**2 * reg,
        **options,
    )
    exchanged = theory.predict_general(
        mean=mean,
        cov_neg=covariances[1],
        cov_pos=covariances[0],
        noise=swapped(noise),
        reg=reg,
        **options,
    )
    for before, after, mirrored in zip(now, then, exchanged[::-1], strict=True):
        assert before.variance > 0
        close(after.means, before.means, 1e-7)
        close(after.variance, before.variance, 1e-7)
        close(mirrored.variance, before.variance, 1e-7)
    assert now.accuracy <= now.best_accuracy + SLACK
    close(
        (then.best_accuracy, exchanged.best_accuracy), (now.best_accuracy, now.best_accuracy), 1e-6
    )


@holds(noise=binary_noise(), seed=SEEDS, reg=REGS, p=st.integers(1, 15))
def test_diagonal_covariances_may_be_given_as_vectors(noise, seed, reg, p):
    rng = np.random.default_rng(seed)
    mean, diagonals = rng.normal(size=p), rng.uniform(0.2, 3, size=(2, p))
    as_vectors, as_tables = (
        theory.predict_general(
            mean=mean, cov_neg=neg, cov_pos=pos, n=40, noise=noise, targets="optimized", reg=reg
        )
        for neg, pos in (diagonals, [np.diag(diagonal) for diagonal in diagonals])
    )
    for one, other in zip(as_vectors, as_tables, strict=True):
        close(other.means, one.means, 1e-9)
        close(other.variance, one.variance, 1e-9)


@holds(
    noise=binary_noise(),
    n=st.integers(10, 5000),
    p=st.integers(1, 2000),
    mean_norm=NORMS,
    reg=st.one_of(REGS, st.just(np.inf)),
    share=st.floats(0, 1),
    fit_intercept=BOOLS,
)
def test_plan_accuracies_are_at_most_bayes(noise, n, p, mean_norm, reg, share, fit_intercept):
    plan = theory.plan(
        n=n, p=p, mean_norm=mean_norm, noise=noise, reg=reg, fit_intercept=fit_intercept
    )
    assert max(noise.priors) - SLACK <= plan.accuracy <= plan.oracle_accuracy + SLACK
    assert plan.oracle_accuracy <= plan.bayes_accuracy + SLACK
    assert (
        plan.accuracy - SLACK <= plan.accuracy_of(checked=share * n) <= plan.oracle_accuracy + SLACK
    )
    assert 0 < plan.clean_rows <= n * (1 + SLACK)
    assert plan.equivalent_rows(share * n) >= -SLACK * n
    for curve in (plan.checked_rows, plan.cleaner_labels):
        assert (np.diff(curve.accuracy) >= -SLACK).all()
    if np.isinf(reg):
        assert (np.diff(plan.more_rows.accuracy) >= -SLACK).all()
