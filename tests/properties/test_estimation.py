"""Properties of all estimators of noise rates, of the spectrum, and of losses."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from support.strategies import (
    SEEDS,
    Instance,
    binary_noise,
    close,
    holds,
    noise_models,
    permutation,
    rotation,
)
from unflip import NoiseModel, losses
from unflip.datasets import make_mixture
from unflip.estimation import (
    Automatic,
    CrossMoment,
    SecondMomentMatching,
    TrustedSubset,
    estimate_mixture,
    mean_norm_from_rows,
    spectral_mixture,
)

# Estimates at the limits of their range, and heuristic estimates, give warnings.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@dataclass(frozen=True)
class Drawn:
    """Rows of an isotropic mixture with true and observed labels."""

    noise: NoiseModel
    mean_norm: float
    n: int
    p: int
    seed: int

    @property
    def all(self):
        rng = np.random.default_rng(self.seed)
        X, true = make_mixture(
            self.n, self.p, mean_norm=self.mean_norm, priors=self.noise.priors, random_state=rng
        )
        observed = self.noise.flip(true, rng)
        assume(min(np.bincount(labels, minlength=2).min() for labels in (true, observed)) > 3)
        return X, true, observed, self.noise


def mixtures(rows=(80, 120), features=(2, 30)):
    return st.builds(
        Drawn,
        noise=binary_noise(),
        mean_norm=st.floats(1.5, 3.0),
        n=st.integers(*rows),
        p=st.integers(*features),
        seed=SEEDS,
    )


def trusted(true, n_checked=30):
    return np.where(np.arange(len(true)) < n_checked, true, np.nan)


def estimators(true, model):
    """Return all estimators with their known parameters."""
    return [
        CrossMoment(mean_norm=2.0, pi_neg=float(model.priors[0])),
        CrossMoment(mean_norm=2.0),
        SecondMomentMatching(mean_norm=2.0, pi_neg=float(model.priors[0]), reg=1.0),
        TrustedSubset(trusted(true)),
        Automatic(),
    ]


def fit_or_error(estimator, X, y):
    """Return the fitted estimator, or the message of the error."""
    try:
        return estimator.fit(X, y)
    except ValueError as error:
        return str(error)


@holds(drawn=mixtures())
def test_rates_are_probabilities_with_standard_errors(drawn):
    X, true, observed, model = drawn.all
    for estimator in estimators(true, model):
        fitted = fit_or_error(estimator, X, observed)
        if isinstance(fitted, str):
            assert "cannot" in fitted or ":" in fitted, fitted
            continue
        table = fitted.noise_.transition
        assert ((table >= 0) & (table <= 1)).all()
        close(table.sum(axis=1), np.ones(2), 1e-12)
        assert (fitted.noise_std_ >= 0).all()
        assert not np.isnan(fitted.noise_std_).any()
        low, high = fitted.interval()
        assert (low <= table).all()
        assert (table <= high).all()


def assert_same_rates(then, now):
    """Assert equal rates to 1% of their standard error: a flat minimum is found no better."""
    difference = np.abs(then.noise_.transition - now.noise_.transition)
    assert (difference <= 1e-4 + 0.01 * now.noise_std_).all()


@holds(drawn=mixtures(), seed=SEEDS)
def test_rates_do_not_depend_on_axes_or_units(drawn, seed):
    X, true, observed, model = drawn.all
    axes = rotation(X.shape[1], seed)
    for make in (0, 1, 4):
        now, then = (
            fit_or_error(estimators(true, model)[make], rows, observed)
            for rows in (X, 7 * X @ axes + 3)
        )
        assert isinstance(now, str) == isinstance(then, str)
        if not isinstance(now, str):
            assert_same_rates(then, now)


@holds(drawn=mixtures(), seed=SEEDS)
def test_rates_do_not_depend_on_the_order_of_rows(drawn, seed):
    X, true, observed, model = drawn.all
    order = permutation(len(X), seed)
    for make in range(3):
        now, then = (
            fit_or_error(estimators(true, model)[make], rows, labels)
            for rows, labels in ((X, observed), (X[order], observed[order]))
        )
        assert isinstance(now, str) == isinstance(then, str)
        if not isinstance(now, str):
            assert_same_rates(then, now)


@holds(drawn=mixtures())
def test_exchanging_the_classes_exchanges_the_rates(drawn):
    X, _, observed, model = drawn.all
    pi_neg, pairs = float(model.priors[0]), np.array([(0.0, 0.1), (0.0, 0.4)])
    one = (CrossMoment(mean_norm=2.0, pi_neg=pi_neg), CrossMoment(mean_norm=2.0, pi_neg=1 - pi_neg))
    other = (
        SecondMomentMatching(mean_norm=2.0, pi_neg=pi_neg, rho_pairs=pairs),
        SecondMomentMatching(mean_norm=2.0, pi_neg=1 - pi_neg, rho_pairs=pairs[:, ::-1]),
    )
    for before, after in (one, other):
        now, then = fit_or_error(before, X, observed), fit_or_error(after, -X, 1 - observed)
        assert isinstance(now, str) == isinstance(then, str)
        # Without a valid solution, several rates may be nearest.
        if not isinstance(now, str) and getattr(now, "root_inside_", True):
            close(then.noise_.transition[::-1, ::-1], now.noise_.transition, 1e-4)


@holds(drawn=mixtures(), seed=SEEDS)
def test_mean_norm_does_not_depend_on_axes_or_units(drawn, seed):
    X, true, _, _ = drawn.all
    axes = rotation(X.shape[1], seed)
    now, then = (mean_norm_from_rows(rows, true) for rows in (X, 5 * X @ axes - 2))
    assert now >= 0
    close(then, now, 1e-7)
    now, then = (fit_or_error(_Spectral(), rows, true) for rows in (X, 5 * X @ axes - 2))
    assert isinstance(now, str) == isinstance(then, str)
    if not isinstance(now, str):
        close(then.mean_norm, now.mean_norm, 1e-6)
        assert 0 < now.pi_small <= 0.5


class _Spectral:
    """`spectral_mixture` as an estimator."""

    def fit(self, X, _):
        return spectral_mixture(X)


@holds(drawn=mixtures(rows=(60, 100), features=(2, 10)))
def test_estimated_covariances_are_positive_semidefinite(drawn):
    X, _, observed, model = drawn.all
    mixture = fit_or_error(_Mixture(model), X, observed)
    if isinstance(mixture, str):
        return
    for covariance in (mixture.cov_neg, mixture.cov_pos):
        matrix = np.asarray(covariance)
        close(matrix, matrix.T, 1e-12)
        assert np.linalg.eigvalsh(matrix).min() >= -1e-9 * np.abs(matrix).max()
    assert np.isfinite(mixture.mean).all()


class _Mixture:
    """`estimate_mixture` as an estimator."""

    def __init__(self, noise):
        self.noise = noise

    def fit(self, X, y):
        return estimate_mixture(X, y, self.noise)


@holds(noise=noise_models(st.integers(2, 4)), seed=SEEDS, n=st.integers(60, 100))
def test_trusted_subset_with_any_number_of_classes(noise, seed, n):
    drawn = Instance("gaussian", noise, seed, n, 5)
    fitted = TrustedSubset(trusted(drawn.true, 40)).fit(drawn.X, drawn.y)
    k = noise.n_classes
    close(fitted.noise_.transition.sum(axis=1), np.ones(k), 1e-12)
    assert (fitted.noise_std_ >= 0).all()
    low, high = fitted.interval(0.9)
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    again = TrustedSubset(trusted(drawn.true, 40)).fit(drawn.X, drawn.y)
    np.testing.assert_array_equal(again.noise_.transition, fitted.noise_.transition)
    suggested = fitted.suggest(5, random_state=0)
    assert len(set(suggested.tolist())) == 5
    assert (suggested >= 40).all()  # checked rows are not suggested


SCORES, TARGET_VALUES = st.floats(-8, 8), st.floats(-1, 1)


@holds(score=SCORES, target=TARGET_VALUES, name=st.sampled_from(["squared", "logistic"]))
def test_losses_are_convex_and_their_derivatives_are_right(score, target, name):
    loss = losses.TargetLoss(losses.resolve(name), np.array(target))
    step = 1e-4
    around = np.array([score - step, score, score + step])
    values, slopes = loss.value(around), loss.gradient(around)
    assert (values[2] - values[0]) / (2 * step) == pytest.approx(slopes[1], abs=1e-5)
    assert (slopes[2] - slopes[0]) / (2 * step) == pytest.approx(
        float(loss.curvature(around)[1]), abs=1e-5
    )
    assert (loss.curvature(around) >= 0).all()
    mirrored = losses.TargetLoss(losses.resolve(name), -np.array(target))
    close(-mirrored.gradient(-around), slopes, 1e-12)


@holds(drawn=mixtures(features=(2, 10)))
def test_trusted_labels_that_are_all_right_do_not_contradict_clean_labels(drawn):
    X, true, _, _ = drawn.all
    fitted = TrustedSubset(true.astype(float)).fit(X, true)
    noise_rates = 1 - np.diag(fitted.noise_.transition)
    assert (noise_rates <= 3 * np.diag(fitted.noise_std_)).all()
