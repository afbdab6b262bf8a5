"""Rows are never copied as a whole, and inputs are never changed."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from unflip import LPClassifier, Moments, NoiseModel, Votes, audit, audit_scores, targets, theory
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
from unflip.ridge.spectrum import decompose

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)
# 48 MB, or 24 in single precision
N_ROWS = 20_000
N_FEATURES = 300
FIT_BYTES = 20e6  # for blocks of rows and arrays with one entry per row
PREDICTION_BYTES = 6e6
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of assumed noise rates


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=N_ROWS)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    X[y == 1] += 0.1
    return X, NOISE.flip(y, random_state=0)


def laid_out(X, layout):
    """Return the rows in another memory layout or precision."""
    if layout == "strided rows":
        return np.repeat(X, 2, axis=0)[::2]
    if layout == "strided columns":
        return np.repeat(X, 2, axis=1)[:, ::2]
    order, dtype = layout.split()
    return np.asarray(X, order=order, dtype=dtype)


LAYOUTS = ("C float64", "F float64", "C float32", "F float32", "strided rows", "strided columns")


def peak(work):
    """Return the peak memory of a call, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_predictions_do_not_copy_the_rows(large, layout):
    X = laid_out(large[0], layout)
    y = large[1]
    clf = LPClassifier(NOISE, reg=1.0, targets="naive").fit(X[:200], y[:200])
    for method in (clf.predict, clf.predict_proba, clf.decision_function):
        assert peak(lambda method=method: method(X)) < PREDICTION_BYTES


@pytest.mark.parametrize("layout", LAYOUTS)
def test_audits_do_not_copy_the_rows(large, layout):
    X = laid_out(large[0], layout)
    y = large[1]
    assert peak(lambda: audit(X, y, noise=NOISE)) < FIT_BYTES


@pytest.mark.parametrize("layout", LAYOUTS)
def test_moments_do_not_copy_the_rows(large, layout):
    X = laid_out(large[0], layout)
    y = large[1]
    assert peak(lambda: Moments.from_chunks([(X, y)])) < FIT_BYTES


SMALL, TRUE = make_mixture(80, 12, mean_norm=2.0, random_state=0)
OBSERVED = NOISE.flip(TRUE, random_state=0)
SPARSE = csr_array(np.where(np.abs(SMALL) > 1, SMALL, 0.0))
TRUSTED = np.where(np.arange(80) < 40, TRUE.astype(float), np.nan)
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, size=80)


def locked(value):
    """Return a read-only copy."""
    if isinstance(value, csr_array):
        copy = value.copy()
        for part in (copy.data, copy.indices, copy.indptr):
            part.setflags(write=False)
        return copy
    copy = np.array(value)
    copy.setflags(write=False)
    return copy


ROWS = {
    "dense": SMALL,
    "fortran": np.asfortranarray(SMALL),
    "single": SMALL.astype(np.float32),
    "whole": np.round(3 * SMALL).astype(np.int32),
    "wide": np.hstack([SMALL] * 10) + np.random.default_rng(0).normal(size=(80, 120)),
    "sparse": SPARSE,
}
CLASSIFIERS = {
    "refined": {},
    "plain": {"targets": "unbiased", "readout": "plain"},
    "origin": {"fit_intercept": False},
    "logistic": {"loss": "logistic", "reg": 0.1},
    "priors": {"deployment_priors": locked([0.2, 0.8]), "costs": locked([[0.0, 1.0], [2.0, 0.0]])},
    "values": {"targets": locked([-1.0, 2.0])},
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_fits_and_predictions_of_read_only_arrays(name, rows):
    X = locked(ROWS[rows])
    y = locked(OBSERVED)
    weights = locked(WEIGHTS)
    clf = LPClassifier(NOISE, **CLASSIFIERS[name]).fit(X, y, sample_weight=weights)
    free = LPClassifier(NOISE, **CLASSIFIERS[name]).fit(ROWS[rows], OBSERVED, WEIGHTS)
    np.testing.assert_array_equal(clf.coef_, free.coef_)
    np.testing.assert_array_equal(clf.predict_proba(X), free.predict_proba(ROWS[rows]))
    np.testing.assert_array_equal(clf.predict(X), free.predict(X))


@pytest.mark.parametrize("rows", ROWS)
def test_moments_of_read_only_arrays(rows):
    X = locked(ROWS[rows])
    y = locked(OBSERVED)
    weights = locked(WEIGHTS)
    moments = Moments.from_chunks([(X, y, weights), (X, y)])
    LPClassifier.from_moments(moments, NOISE)
    assert (moments + moments).n == pytest.approx(2 * moments.n)
    clf = LPClassifier(NOISE, targets="naive")
    for _ in range(2):
        clf.partial_fit(X, y, classes=locked([0, 1]), sample_weight=weights)
    if not isinstance(X, csr_array):
        as_floats = locked(np.asarray(X, dtype=float))
        Moments.from_rows(as_floats, y, 2, sample_weight=weights)
        decompose(as_floats, weights).leave_one_out(locked(2.0 * OBSERVED - 1), [0.1])


@pytest.mark.parametrize("rows", ROWS)
def test_audits_and_estimates_of_read_only_arrays(rows):
    X = locked(ROWS[rows])
    y = locked(OBSERVED)
    trusted = locked(TRUSTED)
    audit(X, y)
    audit(X, y, noise=NOISE, trusted=trusted, groups=locked(np.arange(80) // 4))
    for estimator in (Automatic(), Automatic(y_trusted=trusted), TrustedSubset(trusted)):
        estimator.fit(X, y)
    CrossMoment(mean_norm=2.0, pi_neg=0.5).fit(X, y)
    estimate_mixture(X, y, NOISE)
    mean_norm_from_rows(X, y)


def test_mixture_estimates_of_read_only_arrays():
    X = locked(SMALL)
    y = locked(OBSERVED)
    CrossMoment().fit(X, y)
    SecondMomentMatching(mean_norm=2.0, pi_neg=0.5, rho_pairs=locked([(0.0, 0.1), (0.0, 0.4)])).fit(
        X, y
    )
    spectral_mixture(X)
    LPClassifier(NOISE, reg="theory").fit(X, y)
    LPClassifier(locked(NOISE.transition), priors=locked(NOISE.priors)).fit(X, y)
    LPClassifier().fit(X, Votes.from_columns(locked(np.column_stack([OBSERVED, TRUE, OBSERVED]))))
    audit_scores(locked(LPClassifier(NOISE).fit(X, y).predict_proba(X)), y, noise=NOISE)


def test_theory_of_read_only_arrays():
    transition = locked([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    priors = locked([0.3, 0.3, 0.4])
    noise = NoiseModel(transition, priors)
    assert noise.with_observed(locked(noise.observed)).priors == pytest.approx(priors)
    noise.flip(locked(np.arange(3)), random_state=0)
    means = locked(2 * np.eye(3, 10))
    theory.predict_multiclass(means=means, n=50, noise=noise, targets=locked(np.eye(3)), reg=1.0)
    theory.multiclass_bayes_accuracy(means=means, noise=noise)
    theory.optimal_multiclass_reg(means=means, n=50, noise=noise)
    mixture = theory.Mixture(mean_norm=locked([1.0, 2.0]), aspect=locked([0.5, 1.0]), noise=NOISE)
    for loss in ("squared", "logistic"):
        theory.predict(mixture, targets=locked([-1.0, 1.0]), reg=locked([1.0, 2.0]), loss=loss)
    theory.optimal_reg(mixture, targets=locked([-1.0, 1.0]), objective="risk")
    covariances = {"cov_neg": locked(np.eye(4)), "cov_pos": locked(2 * np.eye(4) + 0.5)}
    of_two = {"noise": NOISE, "targets": locked([-1.0, 1.0]), "reg": 1.0}
    theory.predict_general(mean=locked(np.ones(4)), n=20, **of_two, **covariances)
    targets.multi_lpc(locked([1.0, 2.0, 3.0]), locked([0.0, 0.1, 0.2]))
    targets.to_rho(locked([-1.0, 2.0]))


@pytest.mark.parametrize("rows", ROWS)
def test_inputs_are_unchanged(rows):
    """These inputs are writable."""
    inputs = [ROWS[rows].copy(), OBSERVED.copy(), WEIGHTS.copy(), TRUSTED.copy()]
    X, y, weights, trusted = inputs
    LPClassifier(NOISE).fit(X, y, sample_weight=weights).predict_proba(X)
    LPClassifier(TrustedSubset(trusted)).fit(X, y)
    audit(X, y, noise=NOISE, trusted=trusted)
    Moments.from_chunks([(X, y, weights)])
    for after, before in zip(inputs, (ROWS[rows], OBSERVED, WEIGHTS, TRUSTED), strict=True):
        np.testing.assert_array_equal(
            *(v.toarray() if isinstance(v, csr_array) else v for v in (after, before))
        )
