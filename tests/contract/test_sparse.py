"""LPClassifier gives the same results on sparse and dense rows, approximately if they are many."""

import numpy as np
import pytest
from scipy import sparse

from support.text import draw_texts
from unflip import LPClassifier, NoiseModel, audit
from unflip.datasets import make_mixture
from unflip.estimation import CrossMoment, TrustedSubset
from unflip.ridge.spectrum import krylov

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
FITTED = (
    "coef_",
    "intercept_",
    "targets_",
    "loo_decision_",
    "label_posterior_",
    "expected_accuracy_",
    "noise_std_",
)


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
@pytest.mark.parametrize(
    "noise", ["estimate", None, NOISE, "trusted"], ids=["estimate", "none", "model", "trusted"]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_and_predictions_equal_those_of_dense_rows(shape, options, noise, weighted):
    X, y, labels = problem(shape)
    weights = np.random.default_rng(0).integers(3, size=len(X)).astype(float) if weighted else None
    reference = (
        TrustedSubset(np.where(np.arange(len(y)) % 4 == 0, y, np.nan))
        if noise == "trusted"
        else noise
    )
    dense, from_sparse = (
        LPClassifier(reference, **options).fit(rows, labels, weights)
        for rows in (X, sparse.csr_matrix(X))
    )
    for name in FITTED:  # tolerance of the iterated calibration
        np.testing.assert_allclose(
            getattr(from_sparse, name), getattr(dense, name), rtol=1e-4, atol=1e-4
        )
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        np.testing.assert_array_equal(from_sparse.predict(kind(X)), dense.predict(X))
        np.testing.assert_allclose(
            from_sparse.predict_proba(kind(X)), dense.predict_proba(X), atol=1e-4
        )


def test_invalid_sparse_rows_raise():
    labels = np.arange(6) % 2
    with pytest.raises(ValueError, match="All rows have the same features"):
        LPClassifier(NOISE).fit(sparse.csr_array(np.ones((6, 9))), labels)
    with pytest.raises(ValueError, match="rescale X"):
        LPClassifier(NOISE).fit(sparse.csr_array(1e200 * np.eye(6, 9)), labels)


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize("shape", [(80, 200), (200, 60)], ids=["dual", "primal"])
@pytest.mark.parametrize("grouped", [True, False])
def test_audits_equal_those_of_dense_rows(shape, grouped):
    X, _, labels = problem(shape)
    groups = np.arange(len(labels)) // 2 if grouped else None
    dense, from_sparse = (
        audit(rows, labels, noise=NOISE, groups=groups) for rows in (X, sparse.csc_array(X))
    )
    np.testing.assert_allclose(from_sparse.label_posterior, dense.label_posterior, atol=1e-6)
    assert from_sparse.accuracy_after(10) == pytest.approx(dense.accuracy_after(10), abs=1e-6)


def test_several_classes():
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(90, 150)) < 0.2, rng.normal(size=(90, 150)), 0.0)
    codes = rng.integers(3, size=90)
    X[np.arange(90), codes] += 3
    dense, from_sparse = (LPClassifier(None).fit(rows, codes) for rows in (X, sparse.csr_matrix(X)))
    np.testing.assert_allclose(from_sparse.coef_, dense.coef_, atol=1e-8)
    np.testing.assert_array_equal(from_sparse.predict(sparse.coo_array(X)), dense.predict(X))


@pytest.fixture
def out_of_reach(monkeypatch):
    """Treat sparse rows of this module's size as too large to decompose."""
    monkeypatch.setattr(krylov, "LARGEST_EXACT", 50)


@pytest.fixture(scope="module")
def texts():
    X, y = draw_texts(900, 400, length=60, seed=1)
    return X[:600], y[:600], X[600:], y[600:]


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"targets": "optimized"},
        {"targets": "unbiased", "readout": "plain"},
        {"reg": 0.02},
        {"targets": "naive", "reg": 0.02},
    ],
    ids=str,
)
@pytest.mark.parametrize("noise", ["estimate", NOISE], ids=["estimate", "model"])
def test_without_an_eigendecomposition_fits_are_nearly_as_good(texts, out_of_reach, options, noise):
    X, y, X_new, y_new = texts
    labels = NOISE.flip(y, random_state=0)
    exact, actual = (LPClassifier(noise, **options).fit(rows, labels) for rows in (X.toarray(), X))
    assert actual.score(X_new, y_new) > exact.score(X_new.toarray(), y_new) - 0.03
    assert actual.expected_accuracy_ == pytest.approx(exact.expected_accuracy_, abs=0.03)
    assert np.corrcoef(actual.loo_log_odds_, exact.loo_log_odds_)[0, 1] > 0.98
    again = LPClassifier(noise, **options).fit(X, labels)
    np.testing.assert_array_equal(again.coef_, actual.coef_)


def test_without_an_eigendecomposition_duplicates_equal_weights(texts, out_of_reach):
    X, y, X_new, _ = texts
    weights = np.random.default_rng(0).integers(1, 4, size=len(y))
    labels = NOISE.flip(y, random_state=0)
    weighted = LPClassifier(NOISE).fit(X, labels, weights.astype(float))
    copied = LPClassifier(NOISE).fit(
        X[np.repeat(np.arange(len(y)), weights)], np.repeat(labels, weights)
    )
    np.testing.assert_allclose(
        weighted.predict_proba(X_new), copied.predict_proba(X_new), atol=1e-3
    )


@pytest.mark.parametrize("seed", range(3))
def test_without_an_eigendecomposition_unequal_weights_do_not_inflate_accuracy(out_of_reach, seed):
    X, y = draw_texts(700, 900, length=60, seed=seed, tilt=0.1)
    weights = np.exp(np.random.default_rng(seed).normal(size=len(y)))
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
    labels = noise.flip(y, random_state=seed)
    exact, actual = (LPClassifier(noise).fit(rows, labels, weights) for rows in (X.toarray(), X))
    assert actual.expected_accuracy_ == pytest.approx(exact.expected_accuracy_, abs=0.03)


def test_without_an_eigendecomposition_small_reg_warns_once(texts, out_of_reach):
    X, y, _, _ = texts
    with pytest.warns(UserWarning, match="are inaccurate") as caught:
        LPClassifier(NOISE, reg=1e-6).fit(X.T.tocsr()[:, :300], y[:400])
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
def test_without_an_eigendecomposition_rates_follow_from_the_labels(texts, out_of_reach):
    X, y, _, _ = texts
    fitted = LPClassifier().fit(X, NOISE.flip(y, random_state=0))
    assert fitted.noise_estimator_.source_ == "label likelihood"
    evidence = fitted.noise_estimator_.evidence_
    assert "was not tested: X is too large" in str(evidence)
    assert not evidence.supported


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize("trusted", [True, False])
def test_without_an_eigendecomposition_audits_find_the_wrong_labels(texts, out_of_reach, trusted):
    X, y, _, _ = texts
    labels = NOISE.flip(y, random_state=0)
    reference = np.where(np.arange(len(y)) % 4 == 0, y, np.nan) if trusted else None
    exact, actual = (audit(rows, labels, trusted=reference) for rows in (X.toarray(), X))
    wrong = labels != y
    right = [wrong[report.suspects.row[: wrong.sum()]].mean() for report in (exact, actual)]
    assert right[1] > right[0] - 0.05
    assert actual.accuracy_after(50) == pytest.approx(exact.accuracy_after(50), abs=0.03)


def test_without_an_eigendecomposition_several_classes_work(texts, out_of_reach):
    X, y, X_new, y_new = texts
    topics, new_topics = (
        y + 2 * (rows[:, [0]].toarray()[:, 0] > 0) for rows, y in ((X, y), (X_new, y_new))
    )
    exact, actual = (LPClassifier(None).fit(rows, topics) for rows in (X.toarray(), X))
    assert actual.score(X_new, new_topics) > exact.score(X_new.toarray(), new_topics) - 0.03


def test_without_an_eigendecomposition_other_losses_raise(texts, out_of_reach):
    X, y, _, _ = texts
    with pytest.raises(
        ValueError, match=r"too many for sparse rows of 600 × 400: use loss='squared'"
    ):
        LPClassifier(NOISE, loss="logistic").fit(X, y)
    with pytest.raises(
        ValueError, match=r"reg='theory' does not fit these data .*not tested.*use reg='loo'"
    ):
        LPClassifier(NOISE, reg="theory").fit(X, y)
    with pytest.raises(
        ValueError, match=r"mixture structure .* pass a NoiseModel or trusted labels"
    ):
        CrossMoment().fit(X, y)
    with pytest.raises(ValueError, match="use a positive reg"):
        LPClassifier(NOISE, reg=0.0).fit(X, y)
