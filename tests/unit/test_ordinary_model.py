"""The accuracy on clean labels of an ordinary model trained on noisy ones."""

import numpy as np
import pytest

from unflip import NoiseModel, audit
from unflip.auditing.ordinary_model import _gradient, accuracy_of, out_of_fold_classes
from unflip.datasets import make_mixture

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)


def rows(n_classes, seed):
    means = 2.5 * np.eye(n_classes, 60)
    return make_mixture(1500, 60, means=means, random_state=seed)


def channel(n_classes):
    return NoiseModel(0.7 * np.eye(n_classes) + 0.3 / n_classes)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("is_given", [True, False])
def test_estimate_is_right_within_its_standard_error(n_classes, is_given):
    errors = []
    for seed in range(8):
        X, y = rows(n_classes, seed)
        noise = channel(n_classes)
        labels = noise.flip(y, random_state=seed + 50)
        predicted = out_of_fold_classes(X, labels)
        result = audit(X, labels, noise=noise if is_given else "estimate")
        estimate = accuracy_of(predicted, result.evidence)
        errors.append((estimate.value - np.mean(predicted == y)) / estimate.std)
    # Eight draws: the mean has a standard error of at most 0.35, the mean square of at most 0.5.
    assert abs(np.mean(errors)) < 3 * 0.35
    assert np.mean(np.square(errors)) < 1 + 3 * 0.5


def test_gradient_is_the_change_with_a_noise_rate():
    X, y = rows(3, 0)
    noise = channel(3)
    labels = noise.flip(y, random_state=1)
    predicted = out_of_fold_classes(X, labels)
    evidence = audit(X, labels, noise=noise).evidence
    step = 1e-5
    for true_class in range(3):
        lower, higher = (
            evidence.noise.moved(true_class, change, evidence.observed) for change in (-step, step)
        )
        values = [
            _posterior(evidence, moved)[np.arange(len(predicted)), predicted].mean()
            for moved in (lower, higher)
        ]
        slope = (values[1] - values[0]) / (2 * step)
        assert _gradient(predicted, evidence)[true_class] == pytest.approx(slope, rel=1e-4)


def _posterior(evidence, noise):
    """Return the posterior with other noise rates and the same probabilities."""
    joint = evidence.probabilities * noise.channel.transition.T[evidence.columns]
    return joint / joint.sum(axis=1, keepdims=True)


def test_checked_rows_calibrate_the_estimate():
    X, y = rows(2, 0)
    labels = NOISE.flip(y, random_state=0)
    trusted = np.full(len(y), None)
    trusted[::10] = y[::10]
    interval = audit(X, labels, trusted=trusted).ordinary_accuracy_interval
    truth = np.mean(out_of_fold_classes(X, labels) == y)
    assert interval.low < truth < interval.high


def test_groups_share_a_fold():
    X, y = rows(2, 1)
    X, y = np.repeat(X[:100], 4, axis=0), np.repeat(y[:100], 4)
    labels = np.repeat(NOISE.flip(y[::4], random_state=0), 4)
    groups = np.repeat(np.arange(100), 4)
    by_group = np.mean(out_of_fold_classes(X, labels, groups) == labels)
    assert by_group < np.mean(out_of_fold_classes(X, labels) == labels) - 0.1


def test_what_is_not_computed():
    X, y = rows(2, 2)
    labels = NOISE.flip(y, random_state=0)
    assert out_of_fold_classes(X, np.where(np.arange(len(y)) < 3, 1, 0)) is None
    assert out_of_fold_classes(X, labels, np.arange(len(y)) % 2) is None
    assert audit(X, labels, noise=NOISE).ordinary_accuracy_interval is not None
