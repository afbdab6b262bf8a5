"""Orthant probabilities: closed forms, singular covariances, and a large Monte Carlo."""

import numpy as np
import pytest
from scipy.special import ndtr

from unflip.theory import orthant
from unflip.theory.orthant import orthant_probability


@pytest.mark.parametrize("d", range(1, 10))
def test_equal_correlations_of_one_half(d):
    """Coordinates zᵢ − z₀ of independent z are positive if z₀ is the smallest of d + 1."""
    covariance = (np.eye(d) + 1) / 2
    tolerance = 1e-14 if d < 3 else 5e-5
    assert orthant_probability(np.zeros(d), covariance) == pytest.approx(1 / (d + 1), abs=tolerance)


@pytest.mark.parametrize("d", range(1, 10))
def test_independent_coordinates_multiply(d):
    rng = np.random.default_rng(d)
    mean, std = rng.normal(size=d), rng.uniform(0.1, 10, size=d)
    assert orthant_probability(mean, np.diag(std**2)) == pytest.approx(
        ndtr(mean / std).prod(), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(10))
def test_three_centred_coordinates(seed):
    """P = ⅛ + (arcsin ρ₁₂ + arcsin ρ₁₃ + arcsin ρ₂₃)/4π."""
    factor = np.random.default_rng(seed).normal(size=(3, 4))
    covariance = factor @ factor.T
    std = np.sqrt(covariance.diagonal())
    correlation = (covariance / np.outer(std, std))[np.triu_indices(3, 1)]
    expected = 1 / 8 + np.arcsin(correlation).sum() / (4 * np.pi)
    assert orthant_probability(np.zeros(3), covariance) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("correlation", [-0.999999, -0.7, 0.0, 0.3, 0.95, 0.999999])
@pytest.mark.parametrize(
    "mean",
    [
        (0.0, 0.0),
        (0.0, 1.0),
        (0.0, 0.4),
        (-0.0, -1.0),
        (0.4, 0.0),
        (-0.6, 0.0),
        (0.5, -0.7),
        (2.0, 1.0),
        (-1.0, -3.0),
    ],
)
def test_two_coordinates_are_exact(mean, correlation):
    """Compared with quadrature over the first coordinate on a fine grid."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(-mean[0], 10.0, 2001)
    half = np.diff(edges)[:, None] / 2
    z = edges[:-1, None] + half * (nodes + 1)
    conditional = ndtr((mean[1] + correlation * z) / np.sqrt(1 - correlation**2))
    expected = np.sum(half * weights * conditional * np.exp(-(z**2) / 2)) / np.sqrt(2 * np.pi)
    covariance = [[1.0, correlation], [correlation, 1.0]]
    assert orthant_probability(mean, covariance) == pytest.approx(expected, abs=1e-10)


def test_rank_one_is_an_interval():
    """Conditions 1 + z > 0, 2 − z > 0, 3 + z/2 > 0: −1 < z < 2."""
    direction = np.array([1.0, -1.0, 0.5])
    result = orthant_probability([1.0, 2.0, 3.0], np.outer(direction, direction))
    assert result == pytest.approx(ndtr(2) - ndtr(-1), abs=1e-14)
    assert orthant_probability([-1.0, -2.0], [[1.0, -1.0], [-1.0, 1.0]]) == 0


@pytest.mark.parametrize("mean", [(0.7, 0.7), (0.7, -0.2), (-1.5, 0.0), (0.0, 0.0), (3.0, -9.0)])
def test_perfectly_correlated_coordinates(mean):
    """ρ = 1 leaves the stricter condition, ρ = −1 an interval that may be empty."""
    same, opposite = [[1.0, 1.0], [1.0, 1.0]], [[1.0, -1.0], [-1.0, 1.0]]
    assert orthant_probability(mean, same) == pytest.approx(ndtr(min(mean)), rel=1e-14)
    interval = max(ndtr(mean[0]) - ndtr(-mean[1]), 0.0)
    assert orthant_probability(mean, opposite) == pytest.approx(interval, abs=1e-15)


@pytest.mark.parametrize(("d", "digits"), [(3, 2e-6), (5, 1e-5), (9, 1e-4)])
def test_one_common_factor_is_accurate_in_tails(d, digits):
    """xᵢ = mᵢ + aᵢz + √(1 − aᵢ²) eᵢ are independent given z: reference by an integral over z."""
    rng = np.random.default_rng([d, 0])
    z = np.linspace(-12, 12, 2001)
    for _ in range(8):
        loads = rng.uniform(-0.95, 0.95, size=d)
        mean = 2 * rng.normal(size=d)
        bounds = (mean[:, None] + np.outer(loads, z)) / np.sqrt(1 - loads[:, None] ** 2)
        conditional = ndtr(bounds).prod(axis=0)
        expected = np.sum(conditional * np.exp(-(z**2) / 2)) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
        covariance = np.outer(loads, loads) + np.diag(1 - loads**2)
        assert orthant_probability(mean, covariance) == pytest.approx(expected, rel=digits, abs=0)
        assert orthant_probability(mean, covariance, coarse=True) == pytest.approx(
            expected, rel=1e-3, abs=0
        )


@pytest.mark.parametrize("third", [0.0, 0.6])
def test_contradictory_conditions_have_probability_zero(third):
    """x > 50 and x < −50, and a third coordinate."""
    factor = np.array([[1.0, 0.0], [-1.0, 0.0], [third, 1.0]])
    assert orthant_probability([-50.0, -50.0, 1.0], factor @ factor.T) == 0


@pytest.mark.parametrize(("d", "rank"), [(3, 2), (3, 3), (5, 2), (5, 5), (9, 3), (9, 6), (9, 9)])
def test_against_monte_carlo(d, rank):
    """Full and deficient ranks; a million draws have a standard error of 5e-4 at most."""
    rng = np.random.default_rng([d, rank])
    factor, mean = rng.normal(size=(d, rank)), rng.normal(size=d) + 1.5
    hits = np.mean(
        [
            (mean + rng.normal(size=(200_000, rank)) @ factor.T > 0).all(axis=1).mean()
            for _ in range(5)
        ]
    )
    result = orthant_probability(mean, factor @ factor.T)
    error = np.sqrt(hits * (1 - hits) / 1_000_000)
    assert 0.001 < hits < 0.999
    assert abs(result - hits) < 4 * error + 5e-5
    assert orthant_probability(mean, factor @ factor.T, coarse=True) == pytest.approx(
        result, abs=3e-3
    )


@pytest.mark.parametrize("d", [3, 9])
def test_more_points_change_little(d, monkeypatch):
    """The reference is a different lattice with 16 times as many points."""
    rng = np.random.default_rng(d)
    for _ in range(2):
        factor, mean = rng.normal(size=(d, d + 1)), 2 * rng.normal(size=d) + 2
        covariance = factor @ factor.T
        result = orthant_probability(mean, covariance)
        with monkeypatch.context() as patch:
            patch.setattr("unflip.theory.orthant._lattice", lambda n, multiplier: richtmyer(2**18))
            assert result == pytest.approx(orthant_probability(mean, covariance), abs=1e-4)


@pytest.mark.parametrize("name", ["_FINE", "_COARSE"])
class TestLattices:
    def test_every_coordinate_takes_each_midpoint_once(self, name):
        """For all coordinates but the last, which needs no points."""
        orthant._lattice.cache_clear()
        n, multiplier = getattr(orthant, name)
        midpoints = np.tile((np.arange(n) + 0.5) / n, (orthant.MAX_DIMENSION - 1, 1))
        np.testing.assert_allclose(np.sort(orthant._lattice(n, multiplier), axis=1), midpoints)

    def test_lattices_are_among_the_best_in_every_dimension(self, name):
        """P₂, the worst squared error on periodic functions, is at most 1.6 times the smallest."""
        n, multiplier = getattr(orthant, name)
        others = [worst_errors(n, other) for other in range(2, n, n // 60)]
        assert (worst_errors(n, multiplier) <= 1.6 * np.min(others, axis=0)).all()


def worst_errors(n, multiplier):
    """Return P₂ of the lattice (1, a, a², …)/n in 2, …, 8 variables, by Bernoulli polynomials."""
    x = np.outer([pow(multiplier, j, n) for j in range(8)], np.arange(n)) % n / n
    return (np.cumprod(1 + 2 * np.pi**2 * (x**2 - x + 1 / 6), axis=0).mean(axis=1) - 1)[1:]


def richtmyer(n):
    """Multiples of the square roots of primes, folded."""
    roots = np.sqrt([2, 3, 5, 7, 11, 13, 17, 19])
    return np.abs(2 * (np.outer(roots, np.arange(1, n + 1)) % 1) - 1)


def test_order_and_scale_of_the_coordinates_do_not_matter():
    rng = np.random.default_rng(0)
    factor, mean = rng.normal(size=(6, 7)), rng.normal(size=6) + 1
    result = orthant_probability(mean, factor @ factor.T)
    order, scale = rng.permutation(6), 10.0 ** rng.uniform(-6, 6, size=6)
    scaled = scale[:, None] * factor
    assert orthant_probability(
        (scale * mean)[order], (scaled @ scaled.T)[np.ix_(order, order)]
    ) == pytest.approx(result, abs=1e-10)


def test_coordinates_without_variance():
    assert orthant_probability([1.0, 0.5], np.diag([0.0, 1.0])) == pytest.approx(ndtr(0.5))
    assert orthant_probability([0.0, 0.5], np.diag([0.0, 1.0])) == 0
    assert orthant_probability([1.0, 2.0], np.zeros((2, 2))) == 1
    assert orthant_probability([1.0, -2.0], np.zeros((2, 2))) == 0


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_far_tails(scale):
    covariance = (np.eye(4) + 1) / 2
    assert orthant_probability(np.full(4, -30 * scale), covariance) == pytest.approx(0, abs=1e-100)
    assert orthant_probability(np.full(4, 30 * scale), covariance) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("mean", "covariance", "message"),
    [
        (np.zeros(10), np.eye(10), r"mean has shape \(10,\)"),
        ([], np.zeros((0, 0)), r"mean has shape \(0,\)"),
        (np.zeros(2), np.eye(3), r"covariance has shape \(3, 3\)"),
        (0.0, np.eye(1), r"mean has shape \(\)"),
        ([0.0, np.nan], np.eye(2), "not finite"),
        ([0.0, 0.0], np.diag([1.0, np.inf]), "not finite"),
        ("two", np.eye(2), "must hold numbers"),
    ],
)
def test_invalid_input_raises(mean, covariance, message):
    with pytest.raises(ValueError, match=message):
        orthant_probability(mean, covariance)


@pytest.mark.parametrize(
    "covariance", [-np.eye(2), [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]]]
)
def test_invalid_covariance_raises(covariance):
    with pytest.raises(ValueError, match="not symmetric and positive semi-definite"):
        orthant_probability(np.zeros(2), covariance)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_covariance_with_rounding_errors_is_valid_in_any_unit(unit):
    rounded = np.array([[1.0, 1.0 + 2e-12], [1.0 + 1e-12, 1.0]])
    assert orthant_probability([1.0 * unit, 2.0 * unit], rounded * unit**2) == pytest.approx(
        ndtr(1.0), abs=1e-12
    )
    for wrong in ([[1.0, 1.0 + 1e-6], [1.0 + 1e-6, 1.0]], [[1.0, 0.5], [0.5 + 1e-6, 1.0]]):
        with pytest.raises(ValueError, match="not symmetric and positive semi-definite"):
            orthant_probability([1.0, 2.0], np.array(wrong) * unit**2)
