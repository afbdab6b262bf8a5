"""Simulations of `evaluate` and `compare`: coverage and width of the 95% intervals."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import softmax
from sklearn import metrics

from unflip import compare, evaluate
from unflip.calibration.interval import wilson_interval

N = 1500
N_CHECKED = 100
METRICS = ["accuracy", "balanced_accuracy", "f1", "roc_auc"]
DIFFERENCE = "difference in accuracy"


@dataclass
class Coverage:
    """Whether each interval of each draw covers the truth, and its width."""

    is_covered: dict[str, list[bool]]
    widths: dict[str, list[float]]
    wilson_widths: list[float]

    def check(self):
        """Coverage is 95% less three binomial standard errors, and Wilson's intervals are wider."""
        for name, is_covered in self.is_covered.items():
            error = np.sqrt(0.95 * 0.05 / len(is_covered))
            assert np.mean(is_covered) >= 0.95 - 3 * error, name
        assert np.mean(self.widths["accuracy"]) < np.mean(self.wilson_widths)


@pytest.mark.parametrize("noise", ["class-conditional", "instance-dependent"])
def test_intervals_cover_true_metrics(noise):
    simulate(2, noise, n_draws=12).check()


def test_intervals_of_an_accurate_model_cover_true_metrics_with_clean_labels():
    simulate(2, "none", n_draws=12, is_accurate=True).check()


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4])
def test_intervals_of_an_accurate_model_cover_true_metrics_in_many_draws(k):
    """Labels are clean, and about 15 of 1500 predictions are wrong."""
    simulate(k, "none", n_draws=200, is_accurate=True).check()


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["class-conditional", "instance-dependent", "unseen"])
@pytest.mark.parametrize("k", [2, 4])
def test_intervals_cover_true_metrics_in_many_draws(k, noise):
    simulate(k, noise, n_draws=200).check()


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4])
def test_intervals_of_checks_at_unequal_rates_cover_true_metrics(k):
    """Sure rows are checked ten times as often as others, which `inclusion` says."""
    simulate(k, "instance-dependent", n_draws=200, has_inclusion=True).check()


def simulate(k, noise, n_draws, *, has_inclusion=False, is_accurate=False):
    names = [*METRICS, DIFFERENCE]
    result = Coverage({name: [] for name in names}, {name: [] for name in names}, [])
    for seed in range(n_draws):
        rng = np.random.default_rng([seed, k])
        probabilities = accurate(k, rng) if is_accurate else rng.dirichlet(np.full(k, 0.6), N)
        true = (rng.random(N)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
        labels = mislabel(true, probabilities, noise, rng)
        first = softmax(1.5 * np.log(probabilities) + rng.normal(0, 0.3, (N, k)), axis=1)
        second = softmax(0.7 * np.log(probabilities) + rng.normal(0, 0.8, (N, k)), axis=1)
        inclusion = None
        rows = evaluate(first, labels).check_next(N_CHECKED, random_state=seed)
        if has_inclusion:
            inclusion = np.where(first.max(axis=1) > 0.8, 0.2, 0.02)
            rows = np.flatnonzero(rng.random(N) < inclusion)
        trusted = np.full(N, None)
        trusted[rows] = true[rows]
        evaluation = evaluate(first, labels, trusted, inclusion=inclusion)
        comparison = compare(first, second, labels, trusted, inclusion=inclusion)
        truths = true_metrics(first, true)
        intervals = {name: evaluation.metrics[name] for name in METRICS}
        truths[DIFFERENCE] = truths["accuracy"] - np.mean(second.argmax(axis=1) == true)
        intervals[DIFFERENCE] = comparison.difference
        for name in names:
            interval = intervals[name]
            result.is_covered[name].append(interval.low <= truths[name] <= interval.high)
            result.widths[name].append(interval.width)
        # The checks alone, by their number, or their effective number (Kish) at unequal rates.
        weights = np.ones(len(rows)) if inclusion is None else 1 / inclusion[rows]
        n_effective = weights.sum() ** 2 / (weights @ weights)
        result.wilson_widths.append(wilson_interval(truths["accuracy"], n_effective).width)
    return result


def accurate(k, rng):
    """Return probabilities of the classes whose largest one is 0.99 on average."""
    largest = rng.uniform(0.98, 1.0, N)
    others = (1 - largest) / (k - 1)
    is_likeliest = np.eye(k, dtype=bool)[rng.integers(0, k, N)]
    return np.where(is_likeliest, largest[:, None], others[:, None])


def mislabel(true, probabilities, noise, rng):
    """Return noisy labels.

    Errors depend on the class, on how unsure the best possible model is of a row, or on half of the
    rows that no model can tell; or there are none.
    """
    n, k = probabilities.shape
    rates = {
        "class-conditional": np.linspace(0.1, 0.3, k)[true],
        "instance-dependent": 0.6 * (1 - probabilities.max(axis=1)),
        "none": np.zeros(n),
        "unseen": np.where(rng.random(n) < 0.5, 0.4, 0.02),
    }
    is_wrong = rng.random(n) < rates[noise]
    return np.where(is_wrong, (true + rng.integers(1, k, n)) % k, true)


def true_metrics(scores, true):
    k = scores.shape[1]
    predicted = scores.argmax(axis=1)
    positive = scores[:, 1] if k == 2 else scores
    return {
        "accuracy": metrics.accuracy_score(true, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(true, predicted),
        "f1": metrics.f1_score(true, predicted, average="binary" if k == 2 else "macro"),
        "roc_auc": metrics.roc_auc_score(true, positive, multi_class="ovr", average="macro"),
    }
