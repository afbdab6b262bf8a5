"""The Gaussian mixture of whitened scores, against a direct EM, and its leave-one-out logits."""

import numpy as np
import pytest
from scipy.special import softmax

from unflip import NoiseModel
from unflip.calibration.mixture import (
    ScoreMixture,
    has_converged,
    label_log_odds,
    mixture_directions,
    score_weight,
    with_ones,
)
from unflip.data.duplicates import DistinctRows
from unflip.labels.classes import contrasts
from unflip.model.refinement.ridge_coupling import ridge_coupling
from unflip.ridge.selection import corrected_score_parts
from unflip.ridge.spectrum import decompose

TWO = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.35)
THREE = NoiseModel(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.2, 0.3, 0.5])

#: Effective sample size at which scores count fully, and no variance is bounded.
MANY = 1e9


def draw(noise, r, n=200):
    """Return whitened scores, labels, and unequal shares of the rows."""
    rng = np.random.default_rng(0)
    y = rng.choice(noise.n_classes, size=n, p=noise.priors)
    share = rng.random(n)
    share /= share.sum()
    scores = 2.5 * np.eye(3)[:, :r][y] + rng.normal(size=(n, r))
    centred = scores - share @ scores
    values, vectors = np.linalg.eigh((centred.T * share) @ centred)
    return centred @ vectors / np.sqrt(values), noise.flip(y, random_state=0), share


def em_by_definition(scores, codes, share, noise, rounds):
    """Run EM for Gaussian classes with a common covariance; labels act as priors."""
    member = noise.posterior[codes]
    for _ in range(rounds):
        mass = share @ member
        means = (member * share[:, None]).T @ scores / mass[:, None]
        errors = [scores - mean for mean in means]
        within = sum((e.T * (share * q)) @ e for e, q in zip(errors, member.T, strict=True))
        precision = np.linalg.inv(within)
        log_density = [-np.sum(e @ precision * e, axis=1) / 2 for e in errors]  # up to a constant
        member = softmax(np.log(noise.posterior[codes]) + np.transpose(log_density), axis=1)
    directions = np.linalg.solve(within, (means - means[0]).T)
    return directions, [
        (mean + means[0]) @ d / 2 for mean, d in zip(means, directions.T, strict=True)
    ]


@pytest.mark.parametrize(("noise", "r"), [(TWO, 1), (TWO, 2), (THREE, 1), (THREE, 2), (THREE, 3)])
def test_directions_match_em(noise, r):
    scores, codes, share = draw(noise, r)
    directions, middle = mixture_directions(scores, codes, share, noise, MANY)
    expected, expected_middle = em_by_definition(scores, codes, share, noise, 300)
    np.testing.assert_allclose(directions, expected, rtol=2e-4, atol=1e-4)
    np.testing.assert_allclose(middle, expected_middle, rtol=2e-4, atol=1e-4)
    if (noise, r) != (TWO, 1):
        one = ScoreMixture.of(with_ones(scores), noise.posterior[codes], share, MANY).directions
        np.testing.assert_allclose(
            one, em_by_definition(scores, codes, share, noise, 1)[0], rtol=1e-9, atol=1e-12
        )


def test_directions_do_not_depend_on_the_order_of_classes():
    scores, codes, share = draw(THREE, 2)
    order = np.array([2, 0, 1])
    turned = NoiseModel(THREE.transition[np.ix_(order, order)], THREE.priors[order])
    directions, middle = mixture_directions(scores, codes, share, THREE, MANY)
    other, other_middle = mixture_directions(scores, np.argsort(order)[codes], share, turned, MANY)
    np.testing.assert_allclose(
        other, directions[:, order] - directions[:, order[:1]], rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(
        other_middle, middle[order] - middle[order[0]], rtol=1e-9, atol=1e-10
    )


@pytest.mark.parametrize("noise", [TWO, THREE])
def test_separated_classes_have_the_smallest_variance(noise):
    k = noise.n_classes
    clean = NoiseModel.none(k).with_priors(noise.priors)
    means = np.linalg.svd(
        np.sqrt(noise.priors)[:, None] * (np.eye(k) - noise.priors), full_matrices=False
    )[0]
    # One row of each class, whitened.
    standard = (means / np.sqrt(noise.priors)[:, None])[:, : k - 1]
    directions, _ = mixture_directions(standard, np.arange(k), noise.priors, clean, 100)
    np.testing.assert_allclose(directions, (standard - standard[0]).T / 0.01, rtol=1e-9, atol=1e-9)


def test_scores_count_less_if_rows_are_few_for_the_directions():
    assert score_weight(2, 1000.0) == pytest.approx(1000 / 1002)
    assert score_weight(10, 400.0) == pytest.approx(400 / 562)
    scores, codes, share = draw(THREE, 2)
    few = ScoreMixture.fit(scores, codes, share, THREE, 30.0)
    label_prior = np.log(THREE.posterior[codes])
    tempered = 30 / 38 * few.logits(with_ones(scores)) + label_prior
    np.testing.assert_allclose(few.member, softmax(tempered, axis=1), atol=1e-3)


def test_em_converges_by_absolute_or_relative_change():
    large = np.array([[0.0, -1e8], [3.0, 1e8]])
    assert has_converged(large, large + 100)
    assert not has_converged(large, -large)
    assert not has_converged(large, large + 1e5)
    assert has_converged(0.0, 1e-6)
    assert not has_converged(0.0, 1e-3)
    assert not has_converged(3.0, 2.999)


def test_label_log_odds_are_those_of_the_posterior():
    log_odds = label_log_odds(np.array([0, 1, 1]), TWO)
    first, second = (np.log(TWO.joint[1, b] / TWO.joint[0, b]) for b in (0, 1))
    np.testing.assert_allclose(log_odds, [first, second, second], rtol=1e-12)


def left_out_mixture(i, scores, member, share, precision=None):
    """Return slopes and intercepts of the mixture of all rows but i, by definition."""
    kept = np.arange(len(scores)) != i
    mass = share[kept] @ member[kept]
    means = (member[kept] * share[kept, None]).T @ scores[kept] / mass[:, None]
    if precision is None:
        second = (scores[kept].T * share[kept]) @ scores[kept]
        precision = np.linalg.inv(second - (mass * means.T) @ means)
    return means @ precision, np.einsum("ar,rq,aq->a", means, precision, means) / 2


def relative(logits):
    return logits - logits[:, :1]


def test_left_out_logits_use_the_means_of_the_other_rows():
    """Exactly, except for the covariance, which changes by the row's own part."""
    scores, codes, share = draw(THREE, 2, n=60)
    mixture = ScoreMixture.fit(scores, codes, share, THREE, MANY)
    logits = mixture.left_out_logits(scores, share, None)
    plain = scores @ mixture.directions - mixture.middle
    expected, same_covariance = np.empty((60, 3)), np.empty((60, 3))
    for i in range(60):
        slopes, middle = left_out_mixture(i, scores, mixture.member, share)
        expected[i] = slopes @ scores[i] - middle
        slopes, middle = left_out_mixture(i, scores, mixture.member, share, mixture.precision)
        same_covariance[i] = slopes @ scores[i] - middle
    expected, same_covariance = relative(expected), relative(same_covariance)
    off = scores - mixture.member @ mixture.means
    along = off @ mixture.precision
    leverage = share * (along * off).sum(axis=1)
    of_means = along @ mixture.means.T
    bent = of_means * ((along * scores).sum(axis=1)[:, None] - of_means / 2)
    own = relative((share / (1 - leverage))[:, None] * bent)
    np.testing.assert_allclose(logits, same_covariance + own, rtol=1e-9, atol=1e-9)
    assert np.abs(logits - expected).max() < 0.3 * np.abs(plain - expected).max()


@pytest.mark.parametrize("reg", [1e-3, 0.3, 1e5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_left_out_logits_do_not_depend_on_the_own_label(reg, fit_intercept):
    """The own label moves other scores, too: compare with scores computed without it."""
    rng = np.random.default_rng(0)
    k, n, p = 4, 160, 40
    noise = NoiseModel(0.7 * np.eye(k) + 0.3 / k, np.full(k, 1 / k))
    y = rng.integers(k, size=n)
    X = 2.0 * rng.normal(size=(k, p))[y] / np.sqrt(p) * 2 + rng.normal(size=(n, p))
    codes = noise.flip(y, random_state=0)
    rows, spectrum = DistinctRows.of(X), decompose(X, fit_intercept=fit_intercept)
    targets = noise.posterior[codes] @ contrasts(k)

    def scored(columns):
        return corrected_score_parts(spectrum, rows, columns, np.array([reg]))(slice(None))[:, 0, :]

    share = np.full(n, 1 / n)
    scores = scored(targets)
    mean = scores.mean(axis=0)
    root = np.linalg.inv(np.linalg.cholesky(np.cov(scores.T, bias=True))).T
    standard = (scores - mean) @ root
    mixture = ScoreMixture.fit(standard, codes, share, noise, MANY)
    own = targets - noise.priors @ contrasts(k)
    coupling = ridge_coupling(spectrum, rows, own @ root, reg)
    coupled = mixture.left_out_logits(standard, share, coupling)
    alone = mixture.left_out_logits(standard, share, None)
    expected = np.empty((n, k))
    for i in range(n):
        without = targets.copy()
        without[i] -= own[i]
        moved = (scored(without) - (without - targets).mean(axis=0) * fit_intercept - mean) @ root
        slopes, middle = left_out_mixture(i, moved, mixture.member, share)
        expected[i] = slopes @ standard[i] - middle
    expected = relative(expected)
    error, error_alone = (np.std(logits - expected) for logits in (coupled, alone))
    assert error < 0.35 * error_alone
    assert error < 0.1 * np.std(expected)


def test_left_out_logits_are_the_same_in_blocks(monkeypatch):
    scores, codes, share = draw(THREE, 2, n=60)
    mixture = ScoreMixture.fit(scores, codes, share, THREE, MANY)
    whole = mixture.left_out_logits(scores, share, None)
    monkeypatch.setattr("unflip.calibration.mixture._BLOCK", 7 * mixture.means.size)
    np.testing.assert_allclose(mixture.left_out_logits(scores, share, None), whole, rtol=1e-12)
