"""Binned scores give the same smooth sums and the same calibration as all scores."""

import numpy as np
import pytest
from scipy.special import expit

from unflip import NoiseModel
from unflip.calibration import binning
from unflip.calibration.binning import MIN_ROWS_TO_BIN, binned, evenly_spaced
from unflip.calibration.log_odds import calibrate
from unflip.calibration.observations import Observations
from unflip.labels.noise import Channel

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.6)


def draw(n, *, weighted=False, heavy=False, apart=1.5):
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.4).astype(int)
    scores = (rng.standard_t(3, size=n) if heavy else rng.normal(size=n)) + apart * y
    codes, weights = NOISE.flip(y, random_state=1), rng.random(n) if weighted else np.ones(n)
    return scores, codes, weights


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("heavy", [False, True])
def test_smooth_sums_equal_those_of_all_rows(weighted, heavy):
    scores, codes, weights = draw(80_000, weighted=weighted, heavy=heavy)
    scores, share = scores / scores.std(), weights / weights.sum()
    bins, labels, kept = binned(scores, codes, share)
    assert len(bins) < 8000
    for function in (
        expit,
        lambda s: np.log(0.1 + expit(3 * s)),
        np.ones_like,
        lambda s: s,
        lambda s: s**2,
    ):
        for code in (0, 1):
            expected = share[codes == code] @ function(scores[codes == code])
            assert kept[labels == code] @ function(bins[labels == code]) == pytest.approx(
                expected, abs=2e-9
            )


def test_bins_separate_labels_and_keep_few_rows():
    bins, labels, share = binned(np.arange(6.0), np.array([0, 1, 0, 1, 0, 1]), np.full(6, 1 / 6))
    assert set(bins[labels == 0]) == {0.0, 2.0, 4.0}
    assert set(bins[labels == 1]) == {1.0, 3.0, 5.0}
    assert share.sum() == pytest.approx(1)


def test_label_without_rows_has_no_bins():
    bins, labels, share = binned(np.arange(3.0), np.zeros(3, dtype=int), np.full(3, 1 / 3))
    assert not labels.any()
    assert share @ bins == pytest.approx(1)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("apart", [1.5, 4.0, 8.0, 12.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_of_bins_equals_that_of_all_rows(weighted, apart, rounded, monkeypatch):
    """Scores of one label have two clusters if classes are separated, and ties if rounded."""
    scores, codes, weights = draw(MIN_ROWS_TO_BIN, weighted=weighted, apart=apart)
    scores = scores.round(1) if rounded else scores
    calibration = calibrate(
        scores[:, None], Observations(codes, weights, float(MIN_ROWS_TO_BIN)), NOISE
    )
    monkeypatch.setattr(binning, "MIN_ROWS_TO_BIN", MIN_ROWS_TO_BIN + 1)
    exact = calibrate(scores[:, None], Observations(codes, weights, float(MIN_ROWS_TO_BIN)), NOISE)
    # An error of 1e-4 in log τ moves a probability by up to p(1 − p)·|log-odds| times that.
    np.testing.assert_allclose(calibration.probabilities, exact.probabilities, atol=3e-5)


@pytest.mark.parametrize(
    ("n", "r", "noise", "is_binned"),
    [
        (60, 1, NOISE, True),
        (59, 1, NOISE, False),
        (60, 2, NOISE, False),
        (60, 1, Channel(np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]), np.array([0.6, 0.4])), False),
        (60, 1, NoiseModel(0.7 * np.eye(3) + 0.1, [0.3, 0.3, 0.4]), False),
    ],
    ids=["very many rows", "fewer", "two scores", "three kinds of votes", "three classes"],
)
def test_only_very_many_binary_scores_are_binned(n, r, noise, is_binned, monkeypatch):
    calls = []
    monkeypatch.setattr(binning, "MIN_ROWS_TO_BIN", 60)
    monkeypatch.setattr(
        binning, "binned", lambda *rows: calls.append(len(rows[0])) or binned(*rows)
    )
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(n, r)), np.arange(n) % noise.transition.shape[1]
    calibration = calibrate(scores, Observations(codes, np.ones(n), 1e6), noise)
    assert calls == [n] * is_binned
    assert calibration.logits.shape == (n, noise.n_classes)


def test_several_classes_of_many_rows_are_calibrated_on_a_sample(monkeypatch):
    """Log-odds agree with a fit to all rows, up to the standard error of the slope."""
    rng = np.random.default_rng(0)
    noise = NoiseModel(0.7 * np.eye(3) + 0.1, np.full(3, 1 / 3))
    y = rng.integers(3, size=20_000)
    scores = 1.5 * np.eye(3)[y] @ np.linalg.qr(rng.normal(size=(3, 3)))[0][:, :2] + rng.normal(
        size=(20_000, 2)
    )
    codes, weights = noise.flip(y, random_state=0), np.ones(20_000)
    whole = calibrate(scores, Observations(codes, weights, 20_000), noise)
    monkeypatch.setattr(binning, "_SAMPLE_ROWS", 5000)
    sampled = calibrate(scores, Observations(codes, weights, 20_000), noise)
    assert sampled.log_odds.shape == whole.log_odds.shape
    turned = scores @ np.linalg.qr(rng.normal(size=(2, 2)))[0]  # the same rows are sampled
    again = calibrate(turned, Observations(codes, weights, 20_000), noise)
    np.testing.assert_allclose(again.log_odds, sampled.log_odds, rtol=1e-6, atol=1e-6)
    assert 0 < np.abs(sampled.probabilities - whole.probabilities).mean() < 0.02
    assert sampled.probabilities.mean(axis=0) == pytest.approx(
        whole.probabilities.mean(axis=0), abs=0.01
    )


def test_evenly_spaced_values():
    values = np.random.default_rng(0).permutation(100.0 * np.arange(10))
    np.testing.assert_array_equal(values[evenly_spaced(values, 5)], [0, 200, 400, 600, 800])
    np.testing.assert_array_equal(np.sort(evenly_spaced(values, 10)), np.arange(10))
