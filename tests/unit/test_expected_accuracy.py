"""Expected accuracy without clean labels, against the actual accuracy."""

import numpy as np
import pytest

from unflip import LPClassifier, NoiseModel
from unflip.calibration.accuracy import expected_accuracy
from unflip.calibration.log_odds import Calibration, LogOddsModel
from unflip.calibration.observations import Observations
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2, pi_neg=0.4)


def test_is_the_mean_probability_of_the_predicted_class():
    model = LogOddsModel(np.array([[0.0, 1.0]]), np.zeros(2))
    scores = np.array([[-2.0], [0.5], [3.0]])
    rows = Observations(np.array([0, 1, 1]), np.array([1.0, 2.0, 1.0]), 4.0)
    calibration = Calibration(model, scores @ model.slopes, model.intercepts)
    clean = NoiseModel.none().with_priors([0.5, 0.5])
    predicted = (scores[:, 0] > 0).astype(int)
    accuracy = expected_accuracy(
        rows,
        calibration,
        clean,
        covariance=np.diag([0.08, 0.0, 0.0]),
        deployed=np.array([0.5, 0.5]),
        predicted=predicted,
    )
    right = 1 / (1 + np.exp(-np.abs(scores[:, 0])))
    value = np.average(right, weights=rows.weights)
    assert accuracy.value == pytest.approx(value)
    sampling = np.sqrt(value * (1 - value) / 4)
    ends = [
        1 / (1 + np.exp(-np.exp(by) * np.abs(scores[:, 0]))) for by in (-(0.08**0.5), 0.08**0.5)
    ]
    moved = np.average((ends[1] - ends[0]) / 2, weights=rows.weights)
    assert accuracy.error == pytest.approx(np.hypot(sampling, moved))


def test_standard_error_is_small_if_one_class_dominates_deployment():
    X, y = make_mixture(400, 60, mean_norm=1.0, random_state=0)
    rows = X * np.linspace(0.5, 1.5, 60)
    with pytest.warns(AssumedNoiseWarning):
        clf = LPClassifier(deployment_priors=[0.01, 0.99]).fit(rows, NOISE.flip(y, random_state=0))
    assert clf.expected_accuracy_ == pytest.approx(0.99, abs=0.01)
    assert clf.expected_accuracy_std_ < 0.04


@pytest.mark.filterwarnings("ignore:.*of the fitted scores favour:UserWarning")
@pytest.mark.parametrize(
    "options", [{}, {"targets": "optimized"}, {"readout": "plain"}, {"fit_intercept": False}]
)
def test_is_unbiased_with_a_valid_standard_error(options):
    gaps, errors = [], []
    for seed in range(30):
        X, y = make_mixture(600, 120, mean_norm=1.5, priors=NOISE.priors, random_state=seed)
        clf = LPClassifier(NOISE, **options).fit(X, NOISE.flip(y, random_state=seed))
        X_new, y_new = make_mixture(
            5000, 120, mean_norm=1.5, priors=NOISE.priors, random_state=1000 + seed
        )
        gaps.append(clf.expected_accuracy_ - clf.score(X_new, y_new))
        errors.append(clf.expected_accuracy_std_)
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(30) + 0.005
    assert np.mean(np.abs(gaps) < 2 * np.hypot(errors, 0.006)) >= 0.85


def test_label_posteriors_are_calibrated():
    claimed, true = [], []
    for seed in range(10):
        X, y = make_mixture(500, 250, mean_norm=2.0, priors=NOISE.priors, random_state=seed)
        codes = NOISE.flip(y, random_state=seed)
        clf = LPClassifier(NOISE).fit(X, codes)
        claimed.append(1 - clf.label_posterior_[np.arange(500), codes])
        true.append(codes != y)
    claimed, true = np.concatenate(claimed), np.concatenate(true)
    for low in np.arange(0, 1, 0.2):
        inside = (claimed >= low) & (claimed < low + 0.2)
        # Rows of one data set share a calibration, whose slope has an error of about 15%.
        assert (
            abs(true[inside].mean() - claimed[inside].mean())
            < 4 * np.sqrt(0.25 / inside.sum()) + 0.04
        )


def test_balanced_deployment_estimates_balanced_accuracy():
    X, y = make_mixture(3000, 50, mean_norm=1.2, priors=[0.1, 0.9], random_state=0)
    noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1, pi_neg=0.1)
    clf = LPClassifier(noise, deployment_priors="balanced").fit(X, noise.flip(y, random_state=0))
    X_new, y_new = make_mixture(20_000, 50, mean_norm=1.2, random_state=1)
    assert clf.expected_accuracy_ == pytest.approx(
        clf.score(X_new, y_new), abs=3 * clf.expected_accuracy_std_ + 0.01
    )


def test_uncertain_rates_increase_the_standard_error():
    X, y = make_mixture(600, 60, mean_norm=2.0, priors=NOISE.priors, random_state=3)
    observed = NOISE.flip(y, random_state=3)
    estimated = LPClassifier().fit(X, observed)
    given_noise = LPClassifier(estimated.noise_.transition).fit(X, observed)
    assert estimated.expected_accuracy_ == pytest.approx(given_noise.expected_accuracy_, abs=0.002)
    assert estimated.expected_accuracy_std_ > 1.015 * given_noise.expected_accuracy_std_


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
def test_corrected_priors_do_not_increase_the_standard_error():
    rng = np.random.default_rng(0)
    k, n = 12, 1500
    noise = NoiseModel(0.7 * np.eye(k) + 0.3 / k)
    y = rng.choice(k, size=n, p=np.linspace(1, 3, k) / np.linspace(1, 3, k).sum())
    X = 4.0 * np.eye(k)[y] + rng.normal(size=(n, k))
    clf = LPClassifier().fit(X * np.linspace(1, 2, k), noise.flip(y, random_state=0))
    assert 0.003 < clf.expected_accuracy_std_ < 0.05
