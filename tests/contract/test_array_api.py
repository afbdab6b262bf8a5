"""Rows of any array-API namespace and device: the answers of NumPy's rows, and results where the
rows are.

The device of array-api-strict that is not the host refuses to be made NumPy's, so that a fit there
proves that nothing is brought over but by name.
"""

import warnings
from contextlib import suppress
from unittest import SkipTest

import array_api_strict
import numpy as np
import pytest
from array_api_compat import device
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from unflip import LPClassifier, NoiseModel, Votes, audit, audit_scores
from unflip._utils.arrays import as_numpy
from unflip.data import centred
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
    "rows of no weight": (LPClassifier(NOISE), X2, Y2, WITH_ABSENT),
    "repeated rows": (LPClassifier(NOISE), REPEATED, Y2, None),
    "repeated rows of different weight": (LPClassifier(NOISE), REPEATED, Y2, WITH_ABSENT),
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
    "labels that are right": (LPClassifier(None), X2, Y2, None),
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
    "repeated rows of different weight",
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


def afar(values):
    return array_api_strict.asarray(np.array(values), device=array_api_strict.Device("device1"))


def torch_array(values):
    return pytest.importorskip("torch").asarray(np.array(values))


@pytest.fixture(params=[afar, torch_array], ids=["strict", "torch"])
def put(request):
    if request.param is torch_array:
        pytest.importorskip("torch")
    return request.param


def close(found, expected, name, rtol=1e-9):
    found, size = as_numpy(found), max(float(np.abs(expected).max()), 1e-300)
    assert found.shape == expected.shape, name
    assert found.dtype == expected.dtype, name
    np.testing.assert_allclose(found / size, expected / size, rtol=0, atol=rtol, err_msg=name)


def is_beside(values, X):
    return type(values) is type(X) and device(values) == device(X)


@pytest.mark.parametrize(
    ("case", "put"), [(case, afar) for case in CASES] + [(case, torch_array) for case in WITH_TORCH]
)
def test_answers_are_those_of_numpy_and_lie_where_the_rows_are(case, put):
    estimator, X, y, weights = CASES[case]
    near = clone(estimator).fit(X, y, weights)
    rows = put(X)
    far = clone(estimator).fit(rows, put(y), None if weights is None else put(weights))
    for name in ARRAYS:
        close(getattr(far, name), getattr(near, name), name)
        assert is_beside(getattr(far, name), rows), name
    close(far.predict_proba(rows), near.predict_proba(X), "predict_proba")
    close(far.decision_function(rows), near.decision_function(X), "decision_function")
    np.testing.assert_array_equal(as_numpy(far.predict(rows)), near.predict(X))
    assert all(
        is_beside(method(rows), rows)
        for method in (far.predict, far.predict_proba, far.decision_function)
    )
    assert is_beside(far.classes_, rows)
    for name in ("reg_", "n_effective_", "expected_accuracy_", "expected_accuracy_std_"):
        assert getattr(far, name) == pytest.approx(getattr(near, name), rel=1e-9), name
    np.testing.assert_allclose(far.noise_.transition, near.noise_.transition, rtol=1e-9, atol=1e-12)
    assert far.score(rows, put(y)) == pytest.approx(near.score(X, y), abs=1e-6)
    np.testing.assert_array_equal(as_numpy(rows), X)


def test_rows_that_do_not_fit_into_a_block(put, monkeypatch):
    """Rows about another point than the origin, too, whose blocks are copied before that is
    subtracted."""
    near = [LPClassifier(NOISE).fit(X, Y2) for X in (X2, X2 + 5)]
    sizes = {
        (blocks, "_DEVICE_VALUES"): (1500, 1500),
        (blocks, "BLOCK_VALUES"): 300,
        (centred, "_KEPT"): 0,
    }
    sizes |= {(selection, "LARGE_BLOCK"): 50 * 70, (selection, "_PART"): 7}
    for (module, name), size in sizes.items():
        monkeypatch.setattr(module, name, size)
    for expected, X in zip(near, (X2, X2 + 5), strict=True):
        found = LPClassifier(NOISE).fit(put(X), put(Y2))
        for name in ARRAYS:
            close(getattr(found, name), getattr(expected, name), name)


def test_rows_of_single_precision_stay_so_and_results_are_double(put):
    X = X2.astype(np.float32)
    near, far = LPClassifier(NOISE).fit(X, Y2), LPClassifier(NOISE).fit(put(X), put(Y2))
    for name in ARRAYS:
        close(getattr(far, name), getattr(near, name), name, rtol=1e-6)


def test_integers_become_doubles(put):
    X = np.round(10 * X2).astype(np.int64)
    close(
        LPClassifier(NOISE).fit(put(X), put(Y2)).coef_,
        LPClassifier(NOISE).fit(X, Y2).coef_,
        "coef_",
    )


def test_nothing_as_long_as_the_rows_goes_to_the_host(monkeypatch):
    """With the noise given, and rows that are not copies; what goes over has an entry for each
    class or penalty."""
    kind, sizes = type(afar([0.0])), []
    as_before = kind.to_device

    def recorded(self, *args, **kwargs):
        sizes.append(self.size)
        return as_before(self, *args, **kwargs)

    rows, labels, weights = afar(X2), afar(Y2), afar(WEIGHTS)
    monkeypatch.setattr(kind, "to_device", recorded)
    fitted = LPClassifier(NOISE).fit(rows, labels, weights)
    fitted.predict(rows), fitted.predict_proba(rows), fitted.decision_function(rows)
    assert sizes
    assert max(sizes) <= 50


@pytest.mark.parametrize(
    "names", [np.array(["no", "yes"]), np.array([3, 8]), np.array([True, False])]
)
def test_labels_on_the_host(names, put):
    """Classes stay NumPy's; predictions go where the rows are, if they can."""
    rows, labels = put(X2), names[Y2]
    far, near = LPClassifier(NOISE).fit(rows, labels), LPClassifier(NOISE).fit(X2, labels)
    assert isinstance(far.classes_, np.ndarray)
    predicted = far.predict(rows)
    assert (
        isinstance(predicted, np.ndarray) if names.dtype.kind == "U" else is_beside(predicted, rows)
    )
    np.testing.assert_array_equal(as_numpy(predicted), near.predict(X2))
    close(far.coef_, near.coef_, "coef_")


def test_labels_and_weights_follow_the_rows():
    """As scikit-learn has it: they are put where X is, or made NumPy's where X is."""
    near = LPClassifier(NOISE).fit(X2, Y2, WEIGHTS)
    for X, y, weights in (
        (afar(X2), array_api_strict.asarray(Y2), WEIGHTS),
        (afar(X2), Y2, array_api_strict.asarray(WEIGHTS)),
        (X2, afar(Y2), afar(WEIGHTS)),
    ):
        found = LPClassifier(NOISE).fit(X, y, weights)
        close(found.coef_, near.coef_, "coef_")
        assert type(found.coef_) is type(X)


def test_scikit_learns_own_checks_pass():
    """Those of namespaces that are installed: array-api-strict at least."""
    estimator = LPClassifier(NoiseModel.binary(eps_pos=0.1, eps_neg=0.05))
    passed = set()
    for _, check in estimator_checks_generator(estimator, mark=None):
        if "array_api" in check.func.__name__:
            with suppress(SkipTest):
                check(estimator)
                passed.add(check.keywords.get("array_namespace"))
    assert "array_api_strict" in passed


def test_rows_on_a_device_are_refused_without_dispatch():
    message = r"X is a array_api_strict array on .*: call sklearn.set_config\(array_api_dispatch=True\) to work there"
    fitted = LPClassifier(NOISE).fit(afar(X2), afar(Y2))
    with config_context(array_api_dispatch=False):
        for ask in (
            lambda: LPClassifier(NOISE).fit(afar(X2), Y2),
            lambda: fitted.predict(afar(X2)),
            lambda: audit(afar(X2), Y2),
        ):
            with pytest.raises(ValueError, match=message):
                ask()
        with pytest.raises(ValueError, match="y is a array_api_strict array"):
            LPClassifier(NOISE).fit(X2, afar(Y2))


def test_without_dispatch_rows_on_the_host_become_numpys():
    torch = pytest.importorskip("torch")
    with config_context(array_api_dispatch=False):
        found = LPClassifier(NOISE).fit(torch.asarray(X2), torch.asarray(Y2))
        assert isinstance(found.coef_, np.ndarray)
        assert isinstance(found.predict(torch.asarray(X2)), np.ndarray)


def test_rows_elsewhere_than_those_of_the_fit_are_refused():
    far, near = LPClassifier(NOISE).fit(afar(X2), afar(Y2)), LPClassifier(NOISE).fit(X2, Y2)
    for fitted, X in ((far, X2), (near, afar(X2)), (far, array_api_strict.asarray(X2))):
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
            "loss='logistic' is fitted by NumPy, but X is a array_api_strict array",
        ),
        (
            LPClassifier(Automatic(y_trusted=CHECKED)),
            "reads the rows by NumPy, but X is a array_api_strict array",
        ),
    ],
)
def test_what_needs_numpy_says_so(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(afar(X2), Y2)


def test_votes_need_numpy():
    votes = Votes.from_columns(np.stack([Y2, Y2], axis=1))
    with pytest.raises(
        ValueError, match="Votes are read by NumPy, but X is a array_api_strict array"
    ):
        LPClassifier(NOISE).fit(afar(X2), votes)


def test_targets_that_are_no_classes_are_refused(put):
    with pytest.raises(ValueError, match="the type of the target is continuous"):
        LPClassifier(NOISE).fit(put(X2), put(X2[:, 0]))
    with pytest.raises(ValueError, match=r"y holds only \[1\]"):
        LPClassifier(NOISE).fit(put(X2), put(np.ones(N, dtype=int)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_refused(bad, put):
    X = X2.copy()
    X[3, 4] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        LPClassifier(NOISE).fit(put(X), Y2)


@pytest.mark.parametrize(
    "options",
    [{"noise": NOISE}, {}, {"trusted": CHECKED}, {"noise": NOISE, "groups": np.arange(N) // 3}],
)
def test_audits_are_those_of_numpy(options, put):
    near, far = audit(X2, Y2, **options), audit(put(X2), put(Y2), **options)
    assert far.n_suspects == near.n_suspects
    np.testing.assert_array_equal(far.suspects.row, near.suspects.row)
    np.testing.assert_allclose(far.label_posterior, near.label_posterior, rtol=0, atol=1e-9)
    assert far.expected_accuracy == pytest.approx(near.expected_accuracy, rel=1e-9)
    assert far.accuracy_after(20) == pytest.approx(near.accuracy_after(20), rel=1e-9)
    assert str(far) == str(near)


def test_a_device_without_memory_is_told_of_and_leaves_the_estimator_as_it_was(monkeypatch):
    class OutOfMemoryError(RuntimeError):
        """What array libraries raise is no MemoryError, or not theirs alone."""

    def decompose(*args, **kwargs):
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 7.45 GiB.")

    monkeypatch.setattr("unflip.model.fit_rows.decompose", decompose)
    X, y = make_mixture(50, 5, mean_norm=1.0, random_state=0)
    classifier = LPClassifier()
    with pytest.raises(
        MemoryError, match=r"not enough memory beside X, .* of shape \(50, 5\): give fewer rows"
    ):
        classifier.fit(array_api_strict.asarray(X), y)
    assert not hasattr(classifier, "classes_")


@pytest.mark.parametrize("distance", [0.5, 100.0])
def test_hat_values_on_a_device_are_those_of_numpy_wherever_the_mean_is(distance):
    X, y = make_mixture(400, 12, mean_norm=1.0, random_state=0)
    X = X * np.logspace(0, -3, 12) + distance * np.logspace(0, -3, 12)
    targets, regs = 2.0 * y - 1, np.logspace(-6, 2, 12)
    expected = decompose(X).leave_one_out(targets, regs).slack
    on_device = [
        array_api_strict.asarray(part, device=array_api_strict.Device("device1"))
        for part in (X, targets)
    ]
    found = decompose(on_device[0]).leave_one_out(on_device[1], regs).slack
    np.testing.assert_allclose(as_numpy(found), expected, atol=1e-10)


@pytest.mark.parametrize("put", [np.asarray, afar], ids=["host", "device"])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_hat_values_where_the_mean_is_far_along_one_direction(unit, put):
    """Ten thousand standard deviations off the origin, though no more than one of any feature."""
    X = np.random.default_rng(0).normal(size=(10_000, 3))
    X = unit * np.column_stack([X[:, 0] + 0.7, X[:, 0] + 2e-4 * X[:, 1] - 0.7, X[:, 2] + 0.5])
    spectrum = decompose(put(X))
    along = as_numpy(spectrum.diagonal(put(np.eye(3))))
    expected = as_numpy(spectrum.principal_rows) ** 2 / as_numpy(spectrum.variances)
    np.testing.assert_allclose(len(X) * along, expected, rtol=0, atol=1e-9)


def test_audits_of_probabilities_take_them_from_anywhere():
    observed = LPClassifier(NOISE).fit(X2, Y2).predict_proba(X2)
    near, far = (audit_scores(put(observed), put(Y2), noise=NOISE) for put in (np.asarray, afar))
    np.testing.assert_array_equal(far.label_posterior, near.label_posterior)


def test_estimators_of_their_own_need_numpy():
    with pytest.raises(
        ValueError, match="TrustedSubset reads the rows by NumPy, but X is a array_api_strict array"
    ):
        TrustedSubset(CHECKED).fit(afar(X2), Y2)
