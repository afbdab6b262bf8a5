"""Leave-one-out criteria are valid under label noise."""

import numpy as np
import pytest
from scipy.special import ndtr

from unflip import NoiseModel, targets
from unflip.data.duplicates import DistinctRows
from unflip.datasets import make_mixture
from unflip.ridge import selection
from unflip.ridge.selection import (
    best_reg_index,
    candidate_regs,
    canonical_correlation,
    corrected_score_parts,
    criterion_values,
    loo_alignment,
    loo_squared_error,
    second_moments,
    select_reg,
)
from unflip.ridge.spectrum import decompose

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.2, pi_neg=0.4)


def ill_conditioned(n, p, seed):
    """Return rows with strong noise in some directions: the best reg is neither 0 nor infinite."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) > NOISE.priors[0]).astype(int)
    scales = np.concatenate([np.full(p // 5, 4.0), np.full(p - p // 5, 0.5)])
    mu = np.full(p, 1.2 / np.sqrt(p))
    X = scales * rng.normal(size=(n, p)) + np.outer(2 * y - 1, mu)
    return X, y, mu, scales, rng


def clean_accuracy(coef, mu, scales):
    return ndtr(coef.T @ mu / np.linalg.norm(scales[:, None] * coef, axis=0))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_alignment_selects_a_reg_close_to_the_best_on_clean_labels(fit_intercept):
    regret, fixed = [], []
    for seed in range(20):
        X, y, mu, scales, rng = ill_conditioned(400, 200, seed)
        t = targets.optimized(NOISE)[NOISE.flip(y, rng)]
        spectrum = decompose(X, fit_intercept=fit_intercept)
        regs = candidate_regs(spectrum)
        scores = spectrum.leave_one_out(t, regs).corrected_scores
        accuracy = clean_accuracy(spectrum.path(t, regs).coef[:, :, 0], mu, scales)
        chosen = best_reg_index(
            scores.__getitem__, t[:, None], np.ones(400), scale_free=True, centred=fit_intercept
        )
        regret.append(accuracy.max() - accuracy[chosen])
        fixed.append(accuracy.max() - accuracy[[0, -1]])
    assert np.mean(regret) < 0.02
    # Either end of the grid is much worse.
    assert np.mean(fixed, axis=0).min() > 2 * np.mean(regret)


def test_squared_error_under_noise_is_the_clean_one_plus_a_constant():
    """Unbiased targets: E[(t − s)²] = E[(y − s)²] + Var(t | y), the same for every reg."""
    n, differences = 4000, []
    for seed in range(10):
        X, y, *_, rng = ill_conditioned(n, 50, seed)
        t = targets.unbiased(NOISE)[NOISE.flip(y, rng)]
        scores = decompose(X).leave_one_out(t, [0.01, 1.0, 100.0]).corrected_scores
        noisy, clean = (
            loo_squared_error(scores.__getitem__, v[:, None], np.ones(n)) for v in (t, 2.0 * y - 1)
        )
        differences.append(noisy - clean)
    differences = np.array(differences)
    error = differences.std(axis=0, ddof=1) / np.sqrt(10)
    expected = NOISE.joint.sum(axis=0) @ targets.unbiased(NOISE) ** 2 - 1
    assert np.all(np.abs(differences.mean(axis=0) - expected) < 4 * error)


def test_alignment_is_the_weighted_correlation_or_cosine():
    rng = np.random.default_rng(0)
    scores, t, weights = rng.normal(size=(30, 2)), rng.normal(size=30), rng.integers(1, 4, size=30)
    repeated_scores, repeated_t = scores.repeat(weights, axis=0), t.repeat(weights)
    correlation = [np.corrcoef(column, repeated_t)[0, 1] for column in repeated_scores.T]
    np.testing.assert_allclose(
        loo_alignment(scores[:, :, None].__getitem__, t[:, None], weights, centred=True),
        correlation,
    )
    cosine = (
        repeated_t
        @ repeated_scores
        / np.linalg.norm(repeated_scores, axis=0)
        / np.linalg.norm(repeated_t)
    )
    np.testing.assert_allclose(
        loo_alignment(scores[:, :, None].__getitem__, t[:, None], weights, centred=False), cosine
    )


def test_scores_without_variation_do_not_divide_by_zero():
    targets_ = np.array([[-1.0], [1], [-1], [1]])
    assert loo_alignment(np.zeros((4, 1, 1)).__getitem__, targets_, np.ones(4), centred=True) == 0


def test_alignment_of_several_targets_does_not_depend_on_their_axes():
    rng = np.random.default_rng(0)
    scores, t = rng.normal(size=(50, 2, 3)), rng.normal(size=(50, 3))
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    actual = [
        loo_alignment((scores @ turn).__getitem__, t @ turn, np.ones(50), centred=True)
        for turn in (np.eye(3), rotation)
    ]
    np.testing.assert_allclose(actual[0], actual[1])


def test_canonical_correlation_of_one_column_is_correlation_and_ignores_linear_maps():
    rng = np.random.default_rng(0)
    labels, weights = rng.normal(size=(200, 2)), rng.uniform(0.5, 2, size=200)
    scores = labels @ rng.normal(size=(2, 2)) + rng.normal(size=(200, 2))
    actual = canonical_correlation(scores, labels, weights, centred=True)
    assert 0 < actual < 1
    mapped = canonical_correlation(
        5 + scores @ rng.normal(size=(2, 2)),
        labels @ [[1.0, 2.0], [0.0, 1.0]],
        weights,
        centred=True,
    )
    assert mapped == pytest.approx(actual, abs=1e-10)
    one = canonical_correlation(scores[:, :1], labels[:, :1], weights, centred=True)
    reference = loo_alignment(
        scores[:, None, :1].__getitem__, labels[:, :1], weights, centred=True
    )[0]
    assert one == pytest.approx(abs(reference), abs=1e-12)
    assert canonical_correlation(labels, labels, weights, centred=False) == pytest.approx(1)


@pytest.mark.parametrize("centred", [True, False])
def test_criteria_do_not_depend_on_the_parts_they_are_summed_over(centred, monkeypatch):
    rng = np.random.default_rng(0)
    scores, t, weights = (
        rng.normal(size=(100, 4, 2)) + 1e5,
        rng.normal(size=(100, 2)),
        rng.uniform(0.5, 2, size=100),
    )
    whole = [
        loo_alignment(scores.__getitem__, t, weights, centred=centred),
        loo_squared_error(scores.__getitem__, t, weights),
    ]
    monkeypatch.setattr(selection, "_PART", 7)
    np.testing.assert_allclose(
        loo_alignment(scores.__getitem__, t, weights, centred=centred), whole[0], rtol=1e-9
    )
    np.testing.assert_allclose(
        loo_squared_error(scores.__getitem__, t, weights), whole[1], rtol=1e-12
    )


class TestSelectReg:
    """A search near the guess is as good as a search of all regularization strengths."""

    @pytest.mark.parametrize("scale_free", [True, False])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("shape", [(300, 60), (120, 200)], ids=["primal", "dual"])
    def test_it_selects_the_best_of_all(self, shape, fit_intercept, scale_free):
        for seed in range(5):
            X, y = make_mixture(*shape, mean_norm=2.0, random_state=seed)
            X *= np.logspace(0, -1, shape[1])
            t = (2.0 * NOISE.flip(y, random_state=seed) - 1)[:, None]
            spectrum, rows = decompose(X, fit_intercept=fit_intercept), DistinctRows.of(X)
            regs, options = candidate_regs(spectrum), {"scale_free": scale_free}
            parts = corrected_score_parts(spectrum, rows, t, regs)
            actual = criterion_values(parts, t, rows.weights, centred=fit_intercept, **options)
            chosen = select_reg(spectrum, rows, t, regs, **options)
            assert actual[regs == chosen] == pytest.approx(actual.max(), abs=0.01)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("shape", [(50, 9), (20, 30)], ids=["primal", "dual"])
    def test_powers_along_the_directions_are_those_of_projections(self, shape, fit_intercept):
        rng = np.random.default_rng(0)
        X, t, weights = rng.normal(size=shape), rng.normal(size=(shape[0], 2)), rng.random(shape[0])
        spectrum = decompose(X, weights, fit_intercept=fit_intercept)
        powers, total = spectrum.target_powers(t)
        centre = weights / weights.sum() if fit_intercept else np.zeros(shape[0])
        centred, root = t - centre @ t, np.sqrt(weights)[:, None]
        left, sizes, _ = np.linalg.svd(root * (X - centre @ X), full_matrices=False)
        expected = ((left[:, sizes > 1e-9].T @ (root * centred)) ** 2).sum(axis=1)
        np.testing.assert_allclose(np.sort(powers)[-len(expected) :], np.sort(expected), rtol=1e-9)
        assert total == pytest.approx(((root * centred) ** 2).sum(), rel=1e-12)

    def test_few_regs_are_compared_if_the_guess_is_good(self, monkeypatch):
        X, y = make_mixture(400, 100, mean_norm=2.0, random_state=0)
        compared = []
        parts = selection.corrected_score_parts
        monkeypatch.setattr(
            selection, "corrected_score_parts", lambda *a: compared.append(len(a[3])) or parts(*a)
        )
        select_reg(
            spectrum := decompose(X),
            DistinctRows.of(X),
            2.0 * y[:, None] - 1,
            candidate_regs(spectrum),
        )
        assert len(compared) == 1
        assert compared[0] <= 11

    def test_all_are_compared_if_one_row_misleads_the_guess(self, monkeypatch):
        X, y = make_mixture(200, 20, mean_norm=3.0, random_state=0)
        X = np.column_stack([X, 1e4 * (np.arange(200) == 0)])
        compared = []
        parts = selection.corrected_score_parts
        monkeypatch.setattr(
            selection, "corrected_score_parts", lambda *a: compared.append(len(a[3])) or parts(*a)
        )
        spectrum = decompose(X, fit_intercept=False)
        select_reg(spectrum, DistinctRows.of(X), 2.0 * y[:, None] - 1, candidate_regs(spectrum))
        assert compared[0] <= 11
        assert compared[-1] == 50


def test_moments_about_the_mean_lose_no_digits_to_it():
    rng = np.random.default_rng(0)
    columns, share = rng.normal(size=(200, 2)), np.full(200, 1 / 200)
    actual = second_moments(1 + 2.0**-30 * columns, columns, share, centred=True)
    np.testing.assert_allclose(2.0**30 * actual, np.cov(columns.T, bias=True), rtol=1e-5)
