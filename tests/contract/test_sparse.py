"""LPClassifier on sparse rows is LPClassifier on the same rows as a dense array."""

import numpy as np
import pytest
from scipy import sparse

from unflip import LPClassifier, NoiseModel, audit
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
FITTED = ("coef_", "intercept_", "targets_", "loo_decision_", "label_posterior_", "expected_accuracy_", "noise_std_")


def problem(shape):
    X, y = make_mixture(*shape, mean_norm=2.5, random_state=0)
    X = np.where(np.random.default_rng(0).uniform(size=shape) < 0.2, X, 0.0)
    X[7] = X[8]
    return X, y, NOISE.flip(y, random_state=0)


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize("shape", [(80, 200), (200, 60)], ids=["dual", "primal"])
@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"readout": "plain", "targets": "optimized"}], ids=str
)
@pytest.mark.parametrize("noise", ["estimate", None, NOISE, "trusted"], ids=["estimate", "none", "given", "trusted"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_and_predictions_are_those_of_the_dense_rows(shape, options, noise, weighted):
    X, y, labels = problem(shape)
    weights = np.random.default_rng(0).integers(3, size=len(X)).astype(float) if weighted else None
    known = TrustedSubset(np.where(np.arange(len(y)) % 4 == 0, y, np.nan)) if noise == "trusted" else noise
    dense, thin = (LPClassifier(known, **options).fit(rows, labels, weights) for rows in (X, sparse.csr_matrix(X)))
    for name in FITTED:  # read-outs are iterated until they move by less than this
        np.testing.assert_allclose(getattr(thin, name), getattr(dense, name), rtol=1e-4, atol=1e-4)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        np.testing.assert_array_equal(thin.predict(kind(X)), dense.predict(X))
        np.testing.assert_allclose(thin.predict_proba(kind(X)), dense.predict_proba(X), atol=1e-4)


def test_what_is_wrong_with_sparse_rows_is_said():
    labels = np.arange(6) % 2
    with pytest.raises(ValueError, match="All rows of X are alike"):
        LPClassifier(NOISE).fit(sparse.csr_array(np.ones((6, 9))), labels)
    with pytest.raises(ValueError, match="rescale X"):
        LPClassifier(NOISE).fit(sparse.csr_array(1e200 * np.eye(6, 9)), labels)


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize("shape", [(80, 200), (200, 60)], ids=["dual", "primal"])
@pytest.mark.parametrize("grouped", [True, False])
def test_audits_are_those_of_the_dense_rows(shape, grouped):
    X, _, labels = problem(shape)
    groups = np.arange(len(labels)) // 2 if grouped else None
    dense, thin = (audit(rows, labels, noise=NOISE, groups=groups) for rows in (X, sparse.csc_array(X)))
    np.testing.assert_allclose(thin.label_posterior, dense.label_posterior, atol=1e-6)
    assert thin.accuracy_after(10) == pytest.approx(dense.accuracy_after(10), abs=1e-6)


def test_several_classes():
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(90, 150)) < 0.2, rng.normal(size=(90, 150)), 0.0)
    codes = rng.integers(3, size=90)
    X[np.arange(90), codes] += 3
    dense, thin = (LPClassifier(None).fit(rows, codes) for rows in (X, sparse.csr_matrix(X)))
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-8)
    np.testing.assert_array_equal(thin.predict(sparse.coo_array(X)), dense.predict(X))
