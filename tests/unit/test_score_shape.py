"""The Gaussian mixture of whitened scores, against EM written out, and how class means are shrunk."""

import numpy as np
import pytest
from scipy.special import softmax

from unflip import NoiseModel
from unflip.score_shape import directions_by_shape, label_log_odds, mixture_step, settled

TWO = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.35)
THREE = NoiseModel(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.2, 0.3, 0.5])


def draw(noise, r, n=200):
    """Whitened scores, labels, and uneven shares of the rows."""
    rng = np.random.default_rng(0)
    y = rng.choice(noise.n_classes, size=n, p=noise.priors)
    share = rng.random(n)
    share /= share.sum()
    scores = 2.5 * np.eye(3)[:, :r][y] + rng.normal(size=(n, r))
    centred = scores - share @ scores
    values, vectors = np.linalg.eigh((centred.T * share) @ centred)
    return centred @ vectors / np.sqrt(values), noise.flip(y, random_state=0), share


def written_out(scores, codes, share, noise, rounds):
    """EM for Gaussian classes of one covariance; the label of a row is a prior of its own."""
    member = noise.posterior[codes]
    for _ in range(rounds):
        mass = share @ member
        means = (member * share[:, None]).T @ scores / mass[:, None]
        errors = [scores - mean for mean in means]
        within = sum((e.T * (share * q)) @ e for e, q in zip(errors, member.T, strict=True))
        precision = np.linalg.inv(within)
        log_density = [-np.sum(e @ precision * e, axis=1) / 2 for e in errors]  # but for a constant
        member = softmax(np.log(noise.posterior[codes]) + np.transpose(log_density), axis=1)
    directions = np.linalg.solve(within, (means - means[0]).T)
    return directions, [(mean + means[0]) @ d / 2 for mean, d in zip(means, directions.T, strict=True)]


@pytest.mark.parametrize(("noise", "r"), [(TWO, 1), (TWO, 2), (THREE, 1), (THREE, 2), (THREE, 3)])
def test_directions_are_those_of_em(noise, r):
    scores, codes, share = draw(noise, r)
    found, middle = directions_by_shape(scores, codes, share, noise, 1e-9)
    expected, expected_middle = written_out(scores, codes, share, noise, 300)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-4)
    np.testing.assert_allclose(middle, expected_middle, rtol=2e-4, atol=1e-4)
    if (noise, r) != (TWO, 1):
        one, _ = directions_by_shape(scores, codes, share, noise, 1e-9, rounds=1)
        np.testing.assert_allclose(one, written_out(scores, codes, share, noise, 1)[0], rtol=1e-9, atol=1e-12)


def test_directions_do_not_depend_on_which_class_is_the_first():
    scores, codes, share = draw(THREE, 2)
    order = np.array([2, 0, 1])
    turned = NoiseModel(THREE.transition[np.ix_(order, order)], THREE.priors[order])
    found, middle = directions_by_shape(scores, codes, share, THREE, 1e-9)
    other, other_middle = directions_by_shape(scores, np.argsort(order)[codes], share, turned, 1e-9)
    np.testing.assert_allclose(other, found[:, order] - found[:, order[:1]], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(other_middle, middle[order] - middle[order[0]], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("noise", [TWO, THREE])
def test_classes_that_fall_apart_have_the_smallest_variance(noise):
    k = noise.n_classes
    clean = NoiseModel.none(k).with_priors(noise.priors)
    means = np.linalg.svd(np.sqrt(noise.priors)[:, None] * (np.eye(k) - noise.priors), full_matrices=False)[0]
    standard = (means / np.sqrt(noise.priors)[:, None])[:, : k - 1]  # one row of each class, whitened
    found, _ = directions_by_shape(standard, np.arange(k), noise.priors, clean, 0.01)
    np.testing.assert_allclose(found, (standard - standard[0]).T / 0.01, rtol=1e-9, atol=1e-9)


def test_em_has_settled_where_a_step_is_small_beside_the_slopes_or_beside_one():
    large = np.array([[0.0, -1e8], [3.0, 1e8]])
    assert settled(large, large + 100)
    assert not settled(large, -large)
    assert not settled(large, large + 1e5)
    assert settled(0.0, 1e-6)
    assert not settled(0.0, 1e-3)
    assert not settled(3.0, 2.999)


def test_log_odds_of_a_label_are_those_of_its_posterior():
    found = label_log_odds(np.array([0, 1, 1]), TWO)
    first, second = (np.log(TWO.joint[1, b] / TWO.joint[0, b]) for b in (0, 1))
    np.testing.assert_allclose(found, [first, second, second], rtol=1e-12)


class TestAnchors:
    """Class means are drawn to a multiple of their anchors by the part of their scatter that chance explains."""

    def setup_method(self):
        self.scores, self.codes, self.share = draw(THREE, 2)
        self.member = THREE.posterior[self.codes]
        self.anchors = np.array([[0.0, 1.0], [2.0, 0.0], [-1.0, -3.0]])

    def plain_means(self):
        mass = self.share @ self.member
        return (self.member * self.share[:, None]).T @ self.scores / mass[:, None], mass

    def directions_of(self, means, mass):
        """C⁻¹(m_a − m₀) with C = I − Σ mass·m·mᵀ."""
        within = np.eye(2) - (mass * means.T) @ means
        return np.linalg.solve(within, (means - means[0]).T)

    def test_many_rows_leave_nothing_to_chance(self):
        plain, anchored = (
            mixture_step(self.scores, self.member, self.share, 1e-12, anchors)[0] for anchors in (None, self.anchors)
        )
        np.testing.assert_allclose(anchored, plain, rtol=1e-6)

    def test_very_few_rows_leave_the_multiple_of_the_anchors_that_is_closest(self):
        means, mass = self.plain_means()
        apart = self.anchors - mass @ self.anchors
        root = np.sqrt(mass)[:, None]
        factor = np.linalg.lstsq((root * apart).reshape(-1, 1), (root * means).ravel(), rcond=None)[0][0]
        assert factor != 0
        found = mixture_step(self.scores, self.member, self.share, 0.5, np.sign(factor) * self.anchors)[0]
        np.testing.assert_allclose(found, self.directions_of(factor * apart, mass), rtol=1e-9)

    def test_anchors_that_point_the_other_way_are_none(self):
        means, mass = self.plain_means()
        apart = self.anchors - mass @ self.anchors
        away = -np.sign((mass[:, None] * apart * means).sum()) * self.anchors
        found = mixture_step(self.scores, self.member, self.share, 0.5, away)[0]
        np.testing.assert_allclose(found, 0, atol=1e-12)
        same = mixture_step(self.scores, self.member, self.share, 0.5, np.zeros((3, 2)))[0]
        np.testing.assert_allclose(same, 0, atol=1e-12)

    def test_an_axis_keeps_the_part_of_its_scatter_that_chance_does_not_explain(self):
        """Scatter b along one score, of which (b − chance)/(1 − chance) is the classes' own."""
        scores, member, share = self.scores[:, :1], self.member, self.share
        mass = share @ member
        means = (member * share[:, None]).T @ scores / mass[:, None]
        scatter = float(mass @ means[:, 0] ** 2)
        per_unit = float((share @ member**2 / mass).sum())
        for chance in (0.1 * scatter, 0.5 * scatter, 2 * scatter):
            kept = max((scatter - chance) / (1 - chance), 0) / scatter
            found, middle, found_mass = mixture_step(scores, member, share, chance / per_unit, np.zeros((3, 1)))
            shrunk = kept * means[:, 0]
            within = max(1 - mass @ shrunk**2, chance / per_unit)
            np.testing.assert_allclose(found[0], (shrunk - shrunk[0]) / within, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(middle, (shrunk**2 - shrunk[0] ** 2) / within / 2, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found_mass, mass)
