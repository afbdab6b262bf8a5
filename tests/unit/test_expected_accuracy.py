"""The accuracy that is expected without clean labels, against the accuracy that there is."""

import numpy as np
import pytest

from unflip import LPClassifier, NoiseModel
from unflip.calibration.accuracy import expected_accuracy
from unflip.calibration.log_odds import Calibration, LogOddsModel
from unflip.calibration.observations import Observations
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning
from unflip.labels.moved_noise import other_noise

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2, pi_neg=0.4)


def test_it_is_the_mean_probability_of_what_is_predicted():
    readout = LogOddsModel(np.array([[0.0, 1.0]]), np.zeros(2), slope_error=0.2)
    scores = np.array([[-2.0], [0.5], [3.0]])
    rows = Observations(np.array([0, 1, 1]), np.array([1.0, 2.0, 1.0]), 4.0)
    reading = Calibration(readout, scores @ readout.slopes, readout.intercepts)
    clean = NoiseModel.none().with_priors([0.5, 0.5])
    predicted = (scores[:, 0] > 0).astype(int)
    found = expected_accuracy(
        rows, reading, clean, others=[], deployed=np.array([0.5, 0.5]), predicted=predicted
    )
    right = 1 / (1 + np.exp(-np.abs(scores[:, 0])))
    value = np.average(right, weights=rows.weights)
    assert found.value == pytest.approx(value)
    sampling = np.sqrt(value * (1 - value) / 4)
    ends = [
        1 / (1 + np.exp(-np.exp(by * 0.2) * np.abs(scores[:, 0]))) for by in (-(2**0.5), 2**0.5)
    ]
    moved = np.average((ends[1] - ends[0]) / 2, weights=rows.weights)
    assert found.error == pytest.approx(np.hypot(sampling, moved))


def test_a_rule_that_always_predicts_the_deployed_class_is_sure_of_its_accuracy():
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
def test_it_is_right_on_average_and_knows_its_error(options):
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


def test_posteriors_of_labels_are_calibrated():
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
        # Rows of one data set share a read-out, whose steepness is known to 15% or so.
        assert (
            abs(true[inside].mean() - claimed[inside].mean())
            < 4 * np.sqrt(0.25 / inside.sum()) + 0.04
        )


def test_balanced_deployment_expects_balanced_accuracy():
    X, y = make_mixture(3000, 50, mean_norm=1.2, priors=[0.1, 0.9], random_state=0)
    noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1, pi_neg=0.1)
    clf = LPClassifier(noise, deployment_priors="balanced").fit(X, noise.flip(y, random_state=0))
    X_new, y_new = make_mixture(20_000, 50, mean_norm=1.2, random_state=1)
    assert clf.expected_accuracy_ == pytest.approx(
        clf.score(X_new, y_new), abs=3 * clf.expected_accuracy_std_ + 0.01
    )


def test_other_noise_models_are_one_error_away():
    errors = np.array([[0.05, 0.05], [0.1, 0.1]])
    unmoved, *found = other_noise(NOISE, errors, None)
    assert unmoved == NOISE
    assert [model.eps_neg for model in found] == pytest.approx([0.15, 0.2])
    assert [model.eps_pos for model in found] == pytest.approx([0.3, 0.2])
    assert all((model.priors == NOISE.priors).all() for model in found)
    assert other_noise(NOISE, np.zeros((2, 2)), None) == [NOISE]
    _, *none_seen = other_noise(
        NoiseModel.binary(eps_pos=0, eps_neg=0.2, pi_neg=0.5), np.full((2, 2), 0.1), None
    )
    assert [model.eps_pos for model in none_seen] == pytest.approx(
        [0, 0.1]
    )  # a rate of 0 can only be too low
    follow = other_noise(NOISE, errors, NOISE.observed)
    for model in follow:
        np.testing.assert_allclose(model.observed, NOISE.observed)


def test_doubt_about_the_rates_widens_the_error():
    X, y = make_mixture(600, 60, mean_norm=2.0, priors=NOISE.priors, random_state=3)
    observed = NOISE.flip(y, random_state=3)
    estimated = LPClassifier().fit(X, observed)
    known = LPClassifier(estimated.noise_).fit(X, observed)
    # Priors that are known are worth more rows, which moves the threshold a little.
    assert estimated.expected_accuracy_ == pytest.approx(known.expected_accuracy_, abs=0.002)
    assert estimated.expected_accuracy_std_ > 1.02 * known.expected_accuracy_std_


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
def test_priors_that_scores_correct_are_no_doubt_about_the_rates():
    """Rates one error away are compared with these rates and priors that follow in the same way."""
    rng = np.random.default_rng(0)
    k, n = 12, 1500
    noise = NoiseModel(0.7 * np.eye(k) + 0.3 / k)
    y = rng.choice(k, size=n, p=np.linspace(1, 3, k) / np.linspace(1, 3, k).sum())
    X = 4.0 * np.eye(k)[y] + rng.normal(size=(n, k))
    found = LPClassifier().fit(X * np.linspace(1, 2, k), noise.flip(y, random_state=0))
    assert 0.003 < found.expected_accuracy_std_ < 0.05
