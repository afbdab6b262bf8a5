"""Tests of the isotropic mixture model: data that pass, and data that fail each test."""

import numpy as np
import pytest
from scipy.special import ndtr

from unflip import NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation.isotropy import MixtureEvidence, mixture_evidence
from unflip.ridge.spectrum import decompose

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2)


def evidence(X, codes, k=2):
    return mixture_evidence(decompose(X), codes, k)


def mixture(seed, n=800, p=80):
    X, y = make_mixture(n, p, mean_norm=2.0, priors=[0.4, 0.6], random_state=seed)
    return X, y, np.random.default_rng(1000 + seed)


@pytest.mark.parametrize(("n", "p", "mean_norm"), [(800, 80, 2.0), (300, 450, 4.0)])
def test_mixtures_pass(n, p, mean_norm):
    results = []
    for seed in range(20):
        X, y = make_mixture(n, p, mean_norm=mean_norm, priors=[0.4, 0.6], random_state=seed)
        results.append(evidence(3 * X + 1, NOISE.flip(y, random_state=seed)))
    assert (
        np.mean([result.supported for result in results]) >= 0.85
    )  # five tests of 0.1% to 1% each
    stray = np.array([result.stray_signal for result in results])
    assert abs(np.nanmean(stray)) < 1.5


def test_three_classes_pass_as_three_and_not_as_two():
    X, y = make_mixture(900, 60, means=4 * np.eye(3, 60), random_state=0)
    transition = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    codes = NoiseModel(transition).flip(y, random_state=0)
    assert evidence(X, codes, 3).supported
    assert "2 or more covariance eigenvalues exceed the noise level" in str(
        evidence(X, np.minimum(codes, 1), 2)
    )


def gaussian_factor(seed):
    _, _, rng = mixture(seed)
    factor = 2 * rng.normal(size=800)
    X = rng.normal(size=(800, 80))
    X[:, 0] += factor
    return X, (rng.random(800) < ndtr(factor)).astype(int)


def other_direction(seed):
    X, _, _ = mixture(seed)
    return X, (X @ np.tile([1.0, -1.0], 40) > 0).astype(int)


def within_clusters(seed):
    X, _, _ = mixture(seed)
    return X, (X.sum(axis=1) > 2 * np.sqrt(80)).astype(int)  # the centre of one cluster


def unequal_noise(seed):
    X, y, _ = mixture(seed)
    return X * np.linspace(0.5, 1.5, 80), NOISE.flip(y, random_state=seed)


def many_factors(seed):
    X, y, rng = mixture(seed)
    return X + 2 * rng.normal(size=(800, 3)) @ rng.normal(size=(3, 80)) / np.sqrt(3), NOISE.flip(
        y, random_state=seed
    )


def no_classes(seed):
    _, _, rng = mixture(seed)
    return rng.normal(size=(800, 80)), rng.integers(2, size=800)


def unlabelled_clusters(seed):
    X, _, rng = mixture(seed)
    return X, rng.integers(2, size=800)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (gaussian_factor, "the rows do not form clusters"),
        (other_direction, "the labels also depend on directions"),
        (within_clusters, "within clusters, the labels depend on the features"),
        (unequal_noise, "the noise is not isotropic"),
        (many_factors, "or more covariance eigenvalues exceed the noise level"),
        (no_classes, "no covariance eigenvalue exceeds the noise level"),
        (unlabelled_clusters, "the labels are independent of the clusters"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_other_data_fail_for_the_right_reason(draw, message):
    for seed in range(5):
        result = evidence(*draw(seed))
        assert not result.supported
        assert message in str(result)


def test_str():
    good = MixtureEvidence(2, 1, 0.3, cluster_gain=50.0, stray_signal=-0.2, label_fit=0.4)
    assert str(good) == "the rows are consistent with classes in isotropic noise"
    bad = MixtureEvidence(2, 3, 40.0)
    assert bad.objections == [
        "3 or more covariance eigenvalues exceed the noise level, too many for 2 classes",
        "the noise is not isotropic (by 40 standard errors)",
    ]
