"""Rows of any array-API namespace and device: results equal NumPy's and stay on the device.

Arrays on the second device of array-api-strict cannot be converted to NumPy implicitly. A fit there
proves that nothing is copied to the host but by explicit calls.
"""

import warnings

import array_api_strict
import numpy as np
import pytest
from array_api_compat import device
from sklearn import config_context
from sklearn.base import clone

from support.scikit_learn_checks import namespaces_passed
from unflip import LPClassifier, NoiseModel, Votes, audit, audit_scores
from unflip._utils.arrays import as_numpy
from unflip.data import dense
from unflip.data.engines import blocks
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning, Automatic, CrossMoment, TrustedSubset
from unflip.estimation.given_rates import GivenRates
from unflip.ridge import selection
from unflip.ridge.spectrum import decompose

OF_ROWS = ("loo_decision_", "label_posterior_", "loo_log_odds_")
ARRAYS = ("coef_", "intercept_", "targets_", "noise_std_", *OF_ROWS)
NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
OF_THREE = NoiseModel([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]])
N = 180

X2, TRUE2 = make_mixture(N, 20, mean_norm=2.0, random_state=0)
Y2 = NOISE.flip(TRUE2, random_state=0)
X3, TRUE3 = make_mixture(N, 20, mean_norm=2.0, random_state=1)
TRUE3 = np.where(X3[:, 1] > 0.8, 2, TRUE3)
Y3 = OF_THREE.flip(TRUE3, random_state=1)
REPEATED = X2[np.r_[0:120, 0:40, [3] * 20]]
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, size=N)
WITH_ABSENT = np.where(np.arange(N) % 7 == 0, 0.0, WEIGHTS)
CHECKED = [int(label) if i % 9 == 0 else None for i, label in enumerate(TRUE2)]

CASES = {
    "two classes": (LPClassifier(NOISE), X2, Y2, None),
    "weights": (LPClassifier(NOISE), X2, Y2, WEIGHTS),
    "zero-weight rows": (LPClassifier(NOISE), X2, Y2, WITH_ABSENT),
    "duplicates": (LPClassifier(NOISE), REPEATED, Y2, None),
    "duplicates of different weights": (LPClassifier(NOISE), REPEATED, Y2, WITH_ABSENT),
    "no intercept": (LPClassifier(NOISE, fit_intercept=False), X2, Y2, None),
    "plain": (LPClassifier(NOISE, readout="plain"), X2, Y2, WITH_ABSENT),
    "plain without intercept": (
        LPClassifier(NOISE, readout="plain", fit_intercept=False),
        X2,
        Y2,
        None,
    ),
    "optimized": (LPClassifier(NOISE, targets="optimized"), X2, Y2, None),
    "naive and plain": (LPClassifier(NOISE, targets="naive", readout="plain"), X2, Y2, None),
    "pair of targets": (LPClassifier(NOISE, targets=(-1.0, 2.0), reg=0.3), X2, Y2, None),
    "theory": (LPClassifier(NOISE, reg="theory"), X2, Y2, None),
    "clean labels": (LPClassifier(None), X2, Y2, None),
    "costs": (
        LPClassifier(NOISE, costs=[[0, 1], [3, 0]], deployment_priors="balanced"),
        X2,
        Y2,
        None,
    ),
    "estimate": (LPClassifier(), X2, Y2, None),
    "estimate with weights": (LPClassifier(), X2, Y2, WEIGHTS),
    "estimator": (LPClassifier(CrossMoment()), X2, Y2, None),
    "checked rows": (LPClassifier(GivenRates(NOISE, y_trusted=CHECKED)), X2, Y2, None),
    "trusted rows": (LPClassifier(TrustedSubset(CHECKED)), X2, Y2, WITH_ABSENT),
    "fewer rows than features": (LPClassifier(NOISE, reg=0.5), X2[:18], Y2[:18], WEIGHTS[:18]),
    "three classes": (
        LPClassifier(OF_THREE, costs=[[0, 1, 2], [3, 0, 1], [1, 1, 0]]),
        X3,
        Y3,
        WITH_ABSENT,
    ),
    "three classes, table": (
        LPClassifier(OF_THREE, targets="unbiased", readout="plain"),
        X3,
        Y3,
        None,
    ),
}
WITH_TORCH = (
    "two classes",
    "duplicates of different weights",
    "plain",
    "estimate",
    "trusted rows",
    "three classes",
)


@pytest.fixture(autouse=True)
def _dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it
    with config_context(array_api_dispatch=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        yield


def on_device(values):
    return array_api_strict.asarray(np.array(values), device=array_api_strict.Device("device1"))


def torch_array(values):
    return pytest.importorskip("torch").asarray(np.array(values))


@pytest.fixture(params=[on_device, torch_array], ids=["strict", "torch"])
def put(request):
    if request.param is torch_array:
        pytest.importorskip("torch")
    return request.param


def close(actual, expected, name, rtol=1e-9):
    actual = as_numpy(actual)
    size = max(float(np.abs(expected).max()), 1e-300)
    assert actual.shape == expected.shape, name
    assert actual.dtype == expected.dtype, name
    np.testing.assert_allclose(actual / size, expected / size, rtol=0, atol=rtol, err_msg=name)


def is_on_device_of(values, X):
    return type(values) is type(X) and device(values) == device(X)


@pytest.mark.parametrize(
    ("case", "put"),
    [(case, on_device) for case in CASES] + [(case, torch_array) for case in WITH_TORCH],
)
def test_results_equal_those_of_numpy_and_stay_on_the_device(case, put):
    estimator, X, y, weights = CASES[case]
    host = clone(estimator).fit(X, y, weights)
    rows = put(X)
    device_fit = clone(estimator).fit(rows, put(y), None if weights is None else put(weights))
    for name in ARRAYS:
        close(getattr(device_fit, name), getattr(host, name), name)
        assert is_on_device_of(getattr(device_fit, name), rows), name
    close(device_fit.predict_proba(rows), host.predict_proba(X), "predict_proba")
    close(device_fit.decision_function(rows), host.decision_function(X), "decision_function")
    np.testing.assert_array_equal(as_numpy(device_fit.predict(rows)), host.predict(X))
    assert all(
        is_on_device_of(method(rows), rows)
        for method in (device_fit.predict, device_fit.predict_proba, device_fit.decision_function)
    )
    assert is_on_device_of(device_fit.classes_, rows)
    for name in ("reg_", "n_effective_", "expected_accuracy_"):
        assert getattr(device_fit, name) == pytest.approx(getattr(host, name), rel=1e-9), name
    # A root of squared differences of accuracies: their rounding errors, not its own, bound it.
    assert device_fit.expected_accuracy_std_ == pytest.approx(host.expected_accuracy_std_, abs=1e-9)
    np.testing.assert_allclose(
        device_fit.noise_.transition, host.noise_.transition, rtol=1e-9, atol=1e-12
    )
    assert device_fit.score(rows, put(y)) == pytest.approx(host.score(X, y), abs=1e-6)
    np.testing.assert_array_equal(as_numpy(rows), X)


def test_rows_in_several_blocks(put, monkeypatch):
    """Also for rows far from the origin, whose blocks are copied to subtract the mean."""
    host = [LPClassifier(NOISE).fit(X, Y2) for X in (X2, X2 + 5)]
    sizes = {
        (blocks, "_DEVICE_VALUES"): (1500, 1500),
        (blocks, "BLOCK_VALUES"): 300,
        (dense, "_KEPT_VALUES"): 0,
    }
    sizes |= {(selection, "LARGE_BLOCK"): 50 * 70, (selection, "_PART"): 7}
    for (module, name), size in sizes.items():
        monkeypatch.setattr(module, name, size)
    for expected, X in zip(host, (X2, X2 + 5), strict=True):
        actual = LPClassifier(NOISE).fit(put(X), put(Y2))
        for name in ARRAYS:
            close(getattr(actual, name), getattr(expected, name), name)


def test_single_precision_gives_results_in_double(put):
    X = X2.astype(np.float32)
    host = LPClassifier(NOISE).fit(X, Y2)
    device_fit = LPClassifier(NOISE).fit(put(X), put(Y2))
    for name in ARRAYS:
        close(getattr(device_fit, name), getattr(host, name), name, rtol=1e-6)


def test_integers_become_doubles(put):
    X = np.round(10 * X2).astype(np.int64)
    close(
        LPClassifier(NOISE).fit(put(X), put(Y2)).coef_,
        LPClassifier(NOISE).fit(X, Y2).coef_,
        "coef_",
    )


def test_no_array_as_long_as_the_rows_is_copied_to_the_host(monkeypatch):
    """For known noise and distinct rows, copies have one entry per class or candidate `reg`."""
    kind = type(on_device([0.0]))
    sizes = []
    as_before = kind.to_device

    def recorded(self, *args, **kwargs):
        sizes.append(self.size)
        return as_before(self, *args, **kwargs)

    rows = on_device(X2)
    labels = on_device(Y2)
    weights = on_device(WEIGHTS)
    monkeypatch.setattr(kind, "to_device", recorded)
    fitted = LPClassifier(NOISE).fit(rows, labels, weights)
    fitted.predict(rows), fitted.predict_proba(rows), fitted.decision_function(rows)
    assert sizes
    assert max(sizes) <= 50


@pytest.mark.parametrize(
    "names", [np.array(["no", "yes"]), np.array([3, 8]), np.array([True, False])]
)
def test_labels_on_the_host(names, put):
    """Classes stay NumPy arrays; predictions are on the device if its namespace has the dtype."""
    rows = put(X2)
    labels = names[Y2]
    device_fit = LPClassifier(NOISE).fit(rows, labels)
    host = LPClassifier(NOISE).fit(X2, labels)
    assert isinstance(device_fit.classes_, np.ndarray)
    predicted = device_fit.predict(rows)
    assert (
        isinstance(predicted, np.ndarray)
        if names.dtype.kind == "U"
        else is_on_device_of(predicted, rows)
    )
    np.testing.assert_array_equal(as_numpy(predicted), host.predict(X2))
    close(device_fit.coef_, host.coef_, "coef_")


def test_labels_and_weights_follow_the_rows():
    """As in scikit-learn, they are moved to the namespace and device of X."""
    host = LPClassifier(NOISE).fit(X2, Y2, WEIGHTS)
    for X, y, weights in (
        (on_device(X2), array_api_strict.asarray(Y2), WEIGHTS),
        (on_device(X2), Y2, array_api_strict.asarray(WEIGHTS)),
        (X2, on_device(Y2), on_device(WEIGHTS)),
    ):
        actual = LPClassifier(NOISE).fit(X, y, weights)
        close(actual.coef_, host.coef_, "coef_")
        assert type(actual.coef_) is type(X)


def test_checks_of_scikit_learn():
    """For all installed namespaces, at least array-api-strict."""
    estimator = LPClassifier(NoiseModel.binary(eps_pos=0.1, eps_neg=0.05))
    assert "array_api_strict" in namespaces_passed(estimator)


def test_rows_on_a_device_raise_without_dispatch():
    message = (
        r"X is a array_api_strict array on .*: call sklearn.set_config\(array_api_dispatch=True\)"
    )
    fitted = LPClassifier(NOISE).fit(on_device(X2), on_device(Y2))
    with config_context(array_api_dispatch=False):
        for ask in (
            lambda: LPClassifier(NOISE).fit(on_device(X2), Y2),
            lambda: fitted.predict(on_device(X2)),
            lambda: audit(on_device(X2), Y2),
        ):
            with pytest.raises(ValueError, match=message):
                ask()
        with pytest.raises(ValueError, match="y is a array_api_strict array"):
            LPClassifier(NOISE).fit(X2, on_device(Y2))


def test_rows_on_the_host_are_converted_to_numpy_without_dispatch():
    torch = pytest.importorskip("torch")
    with config_context(array_api_dispatch=False):
        actual = LPClassifier(NOISE).fit(torch.asarray(X2), torch.asarray(Y2))
        assert isinstance(actual.coef_, np.ndarray)
        assert isinstance(actual.predict(torch.asarray(X2)), np.ndarray)


def test_rows_on_another_device_than_the_fit_raise():
    device_fit = LPClassifier(NOISE).fit(on_device(X2), on_device(Y2))
    host = LPClassifier(NOISE).fit(X2, Y2)
    for fitted, X in (
        (device_fit, X2),
        (host, on_device(X2)),
        (device_fit, array_api_strict.asarray(X2)),
    ):
        with pytest.raises(
            ValueError,
            match=r"LPClassifier.predict\(\) must use the same namespace and device as fit",
        ):
            fitted.predict(X)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            LPClassifier(NOISE, loss="logistic"),
            "loss='logistic' needs NumPy, but X is a array_api_strict array",
        ),
        (
            LPClassifier(Automatic(y_trusted=CHECKED)),
            "needs NumPy arrays, but X is a array_api_strict array",
        ),
    ],
)
def test_errors_for_options_that_need_numpy(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(on_device(X2), Y2)


def test_votes_need_numpy():
    votes = Votes.from_columns(np.stack([Y2, Y2], axis=1))
    with pytest.raises(ValueError, match="Votes need NumPy, but X is a array_api_strict array"):
        LPClassifier(NOISE).fit(on_device(X2), votes)


def test_labels_that_are_not_classes_raise(put):
    with pytest.raises(ValueError, match="the type of the target is continuous"):
        LPClassifier(NOISE).fit(put(X2), put(X2[:, 0]))
    with pytest.raises(ValueError, match="y has only one class, 1"):
        LPClassifier(NOISE).fit(put(X2), put(np.ones(N, dtype=int)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_raise(bad, put):
    X = X2.copy()
    X[3, 4] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        LPClassifier(NOISE).fit(put(X), Y2)


@pytest.mark.parametrize(
    "options",
    [{"noise": NOISE}, {}, {"trusted": CHECKED}, {"noise": NOISE, "groups": np.arange(N) // 3}],
)
def test_audits_equal_those_of_numpy(options, put):
    host = audit(X2, Y2, **options)
    device_fit = audit(put(X2), put(Y2), **options)
    assert device_fit.n_suspects == host.n_suspects
    np.testing.assert_array_equal(device_fit.suspects.row, host.suspects.row)
    np.testing.assert_allclose(device_fit.label_posterior, host.label_posterior, rtol=0, atol=1e-9)
    assert device_fit.expected_accuracy == pytest.approx(host.expected_accuracy, rel=1e-9)
    assert device_fit.accuracy_after(20) == pytest.approx(host.accuracy_after(20), rel=1e-9)
    assert str(device_fit) == str(host)


def test_out_of_memory_names_a_remedy_and_keeps_the_estimator(monkeypatch):
    class OutOfMemoryError(RuntimeError):
        """Array libraries raise errors of their own, by this name."""

    def decompose(*args, **kwargs):
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 7.45 GiB.")

    monkeypatch.setattr("unflip.model.fit_rows.decompose", decompose)
    X, y = make_mixture(50, 5, mean_norm=1.0, random_state=0)
    classifier = LPClassifier()
    with pytest.raises(
        MemoryError, match=r"Out of memory for X, .* of shape \(50, 5\): pass fewer rows"
    ):
        classifier.fit(array_api_strict.asarray(X), y)
    assert not hasattr(classifier, "classes_")


@pytest.mark.parametrize("distance", [0.5, 100.0])
def test_leverages_equal_those_of_numpy_for_any_mean(distance):
    X, y = make_mixture(400, 12, mean_norm=1.0, random_state=0)
    X = X * np.logspace(0, -3, 12) + distance * np.logspace(0, -3, 12)
    targets = 2.0 * y - 1
    regs = np.logspace(-6, 2, 12)
    expected = decompose(X).leave_one_out(targets, regs).slack
    actual = decompose(on_device(X)).leave_one_out(on_device(targets), regs).slack
    np.testing.assert_allclose(as_numpy(actual), expected, atol=1e-10)


@pytest.mark.parametrize("put", [np.asarray, on_device], ids=["host", "device"])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_leverages_if_the_mean_is_far_along_one_direction(unit, put):
    """Ten thousand standard deviations from the origin, but at most one in each feature."""
    X = np.random.default_rng(0).normal(size=(10_000, 3))
    X = unit * np.column_stack([X[:, 0] + 0.7, X[:, 0] + 2e-4 * X[:, 1] - 0.7, X[:, 2] + 0.5])
    spectrum = decompose(put(X))
    along = as_numpy(spectrum.diagonal(put(np.eye(3))))
    expected = as_numpy(spectrum.principal_rows) ** 2 / as_numpy(spectrum.variances)
    np.testing.assert_allclose(len(X) * along, expected, rtol=0, atol=1e-9)


def test_audits_of_probabilities_on_a_device():
    observed = LPClassifier(NOISE).fit(X2, Y2).predict_proba(X2)
    host, device_fit = (
        audit_scores(put(observed), put(Y2), noise=NOISE) for put in (np.asarray, on_device)
    )
    np.testing.assert_array_equal(device_fit.label_posterior, host.label_posterior)


def test_noise_estimators_need_numpy():
    with pytest.raises(
        ValueError, match="TrustedSubset needs NumPy arrays, but X is a array_api_strict array"
    ):
        TrustedSubset(CHECKED).fit(on_device(X2), Y2)
