"""Targets: the named choices, their defining equations and the ρ parametrisation."""

import numpy as np
import pytest

from unflip import NoiseModel, targets, theory

BINARY = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
THREE = NoiseModel([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]], [0.3, 0.3, 0.4])


def test_naive_is_the_label_itself():
    np.testing.assert_array_equal(targets.naive(), [-1, 1])
    np.testing.assert_array_equal(targets.naive(3), np.eye(3))


@pytest.mark.parametrize("noise", [BINARY, THREE])
def test_unbiased_means_given_the_true_class_are_clean(noise):
    np.testing.assert_allclose(
        noise.transition @ targets.unbiased(noise),
        targets.naive(noise.n_classes),
        rtol=1e-13,
        atol=1e-13,
    )


@pytest.mark.parametrize("noise", [BINARY, THREE])
def test_optimized_is_the_posterior_mean(noise):
    expected = [
        sum(noise.joint[a, b] * targets.naive(noise.n_classes)[a] for a in range(noise.n_classes))
        / noise.observed[b]
        for b in range(noise.n_classes)
    ]
    np.testing.assert_allclose(targets.optimized(noise), expected)


@pytest.mark.parametrize("name", targets.NAMED)
def test_tables_match_values(name):
    """Binary targets are the 2×2 table times the labels ±1; for more classes, the table itself."""
    table = targets.resolve_table(name, BINARY)
    np.testing.assert_allclose(table @ [-1, 1], targets.resolve(name, BINARY), rtol=1e-12)
    np.testing.assert_allclose(
        targets.resolve_table(name, THREE), targets.NAMED[name](THREE), rtol=1e-12
    )


def test_no_noise_makes_all_named_targets_naive():
    clean = NoiseModel.none().with_priors([0.2, 0.8])
    for name in targets.NAMED:
        np.testing.assert_allclose(targets.resolve(name, clean), [-1, 1], atol=1e-15)


def test_unbiased_is_rho_equal_to_the_rates():
    np.testing.assert_allclose(targets.from_rho(0.4, 0.3), targets.unbiased(BINARY), rtol=1e-13)
    np.testing.assert_allclose(targets.from_rho(0, 0), targets.naive())


@pytest.mark.parametrize(
    ("rho_pos", "rho_neg"), [(0.2, 0.0), (-3.0, 0.5), (0.0, -1.5667), (0.1, 0.8)]
)
def test_rho_round_trip(rho_pos, rho_neg):
    assert targets.to_rho(targets.from_rho(rho_pos, rho_neg)) == pytest.approx(
        (rho_pos, rho_neg), abs=1e-12
    )


def test_positive_target_is_larger_where_printed_formula_inverts():
    """ρ₊*(0) = 1.57 here: β < 0, and λ₊ as printed is negative."""
    t_neg, t_pos = targets.from_rho(1.57, 0.0)
    assert t_pos > t_neg
    best = targets.from_rho(float(theory.optimal_rho(BINARY)), 0.0)
    optimized = targets.optimized(BINARY)
    np.testing.assert_allclose(best / best[1], optimized / optimized[1], rtol=1e-12)


def test_multi_lpc_has_alpha_on_diagonal_and_beta_elsewhere():
    table = targets.multi_lpc([1, 2, 3], [10, 20, 30])
    np.testing.assert_array_equal(table, [[1, 20, 30], [10, 2, 30], [10, 20, 3]])
    np.testing.assert_array_equal(targets.multi_lpc(np.ones(3), np.zeros(3)), targets.naive(3))
    np.testing.assert_array_equal(targets.multi_lpc([1, 2], [10, 20]), [[1, 20], [10, 2]])


def test_resolve_classes_gives_values_for_two_classes_and_table_for_more():
    np.testing.assert_array_equal(
        targets.resolve_classes("unbiased", BINARY), targets.unbiased(BINARY)
    )
    np.testing.assert_array_equal(targets.resolve_classes([0, 3], BINARY), [0, 3])
    np.testing.assert_array_equal(
        targets.resolve_classes("unbiased", THREE), THREE.inverse_transition
    )
    np.testing.assert_array_equal(targets.resolve_table(np.ones((3, 1)), THREE), np.ones((3, 1)))


def test_table_of_two_classes_becomes_difference_of_scores():
    np.testing.assert_array_equal(targets.checked([[3, 1], [0.5, 2]]), [-2, 1.5])


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e9])
def test_tables_of_any_scale_are_valid(scale):
    np.testing.assert_array_equal(
        targets.resolve_classes(scale * np.eye(3), THREE), scale * np.eye(3)
    )
    with pytest.raises(ValueError, match="targets has the same row for every observed class"):
        targets.resolve_classes(np.full((3, 3), scale), THREE)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: targets.resolve_classes(
                "optimized", NoiseModel(np.full((3, 3), 1 / 3), [0.2, 0.3, 0.5])
            ),
            "targets='optimized' are the same .* independent under this noise model: give another",
        ),
        (lambda: targets.from_rho(0.6, 0.4), "differ from 1"),
        (lambda: targets.from_rho(np.nan, 0.4), "finite"),
        (lambda: targets.naive(1), "k = 1 must be a whole number of at least 2"),
        (lambda: targets.naive(BINARY), "k = .* must be a whole number"),
        (lambda: targets.checked(["a", "b"]), r"targets = \['a', 'b'\] must hold numbers"),
        (lambda: targets.multi_lpc([1, 2], [1, 2, 3]), "one value each per class"),
        (lambda: targets.multi_lpc([1], [2]), "one value each per class"),
        (lambda: targets.multi_lpc(np.eye(2), np.eye(2)), "one value each per class"),
        (
            lambda: targets.resolve_classes(np.zeros((3, 3)), THREE),
            "the same row for every observed class",
        ),
        (lambda: targets.resolve_classes(np.ones((3, 2)), THREE), "3 classes need 3 scores"),
        (lambda: targets.resolve_table("best", THREE), "'best' is not a valid value"),
        (
            lambda: targets.resolve_table(np.eye(2), THREE),
            "one row for each of the 3 observed classes",
        ),
        (
            lambda: targets.resolve_table(np.ones(3), THREE),
            "one row for each of the 3 observed classes",
        ),
        (
            lambda: targets.resolve_table(np.ones((3, 0)), THREE),
            "one row for each of the 3 observed classes",
        ),
        (lambda: targets.resolve_table(np.full((3, 3), np.nan), THREE), "not finite"),
        (
            lambda: targets.resolve("best", BINARY),
            "'best' is not a valid value: use 'naive', 'unbiased', 'optimized'",
        ),
        (lambda: targets.resolve([1, 2, 3], BINARY), "two values"),
        (lambda: targets.resolve([1, -1], BINARY), "t_neg < t_pos"),
        (lambda: targets.resolve([1, 1], BINARY), "t_neg < t_pos"),
        (lambda: targets.resolve([0, np.inf], BINARY), "must be finite"),
    ],
)
def test_invalid_input_raises(build, message):
    with pytest.raises(ValueError, match=message):
        build()
