"""partial_fit equals a fit to all rows at once, and bad chunks leave it unchanged."""

import pickle
import re
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset
from unflip.ridge.moments import Moments

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
X, TRUE = make_mixture(900, 12, mean_norm=1.5, priors=[0.4, 0.6], random_state=0)
CODES = NOISE.flip(TRUE, 0)
Y = np.where(CODES == 1, "yes", "no")
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, size=900)
COMBINATIONS = [
    LPClassifier(NOISE, targets=targets, readout=readout, reg=reg, fit_intercept=fit_intercept)
    for targets, readout, reg, fit_intercept in product(
        ("naive", "optimized"), ("plain", "gaussian"), ("loo", 0.1), (True, False)
    )
]


def streamed(estimator, height, X=X, y=Y, weights=None, order=None):
    clf = clone(estimator)
    order = np.arange(len(y)) if order is None else order
    for start in range(0, len(y), height):
        part = order[start : start + height]
        clf.partial_fit(X[part], y[part], ["yes", "no"], None if weights is None else weights[part])
    return clf


def assert_same(clf, expected):
    for name in ("coef_", "intercept_", "reg_", "expected_accuracy_", "expected_accuracy_std_"):
        np.testing.assert_allclose(
            getattr(clf, name), getattr(expected, name), rtol=1e-10, atol=1e-11
        )
    np.testing.assert_allclose(
        clf.predict_proba(X), expected.predict_proba(X), rtol=1e-9, atol=1e-11
    )


@pytest.mark.filterwarnings("ignore:Both targets:UserWarning")
@pytest.mark.parametrize("estimator", COMBINATIONS, ids=repr)
def test_equals_a_fit_from_the_moments_of_all_rows(estimator):
    whole = Moments.from_chunks([(X, Y, WEIGHTS)])
    expected = LPClassifier.from_moments(whole, **{**estimator.get_params(), "noise": NOISE})
    assert expected.classes_.tolist() == ["no", "yes"]
    order = np.random.default_rng(1).permutation(900)
    for height, arranged in ((900, None), (250, None), (170, order)):
        assert_same(streamed(estimator, height, weights=WEIGHTS, order=arranged), expected)


def test_sparse_and_single_precision_rows():
    closed = LPClassifier(NOISE, targets="optimized")
    expected = streamed(closed, 300)
    assert_same(streamed(closed, 300, csr_array(X)), expected)
    single = streamed(closed, 300, X.astype(np.float32))
    np.testing.assert_allclose(single.coef_, expected.coef_, rtol=1e-4, atol=1e-5)


def test_single_rows_sorted_by_class():
    closed = LPClassifier(NOISE, targets="optimized", priors=[0.4, 0.6])
    order = np.argsort(Y[:60], kind="stable")
    clf = streamed(closed, 1, X[:60], Y[:60], order=order)
    expected = LPClassifier.from_moments(
        Moments.from_chunks([(X[:60], Y[:60])]), NOISE, priors=[0.4, 0.6]
    )
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-9, atol=1e-11)


def test_first_call_needs_the_classes():
    closed = LPClassifier(NOISE, targets="optimized")
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        closed.partial_fit(X, Y)
    with pytest.raises(NotFittedError):
        closed.predict(X)
    closed.partial_fit(X[:500], Y[:500], classes=["yes", "no"]).partial_fit(X[500:], Y[500:])
    assert_same(closed, streamed(closed, 500))
    with pytest.raises(
        ValueError, match=r"classes \['no', 'yes'\] and \['maybe', 'no', 'yes'\] cannot be added"
    ):
        closed.partial_fit(X, Y, classes=["yes", "no", "maybe"])


def bad(row, value):
    rows = X.copy()
    rows[row, 3] = value
    return rows


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ((bad(5, np.nan), Y), "NaN"),
        ((bad(5, np.inf), Y), "infinity"),
        ((X[:, :5], Y), "5 features, but LPClassifier is expecting 12"),
        ((X, Y[:-1]), r"900 rows but y of shape \(899,\)"),
        ((X, np.where(CODES == 1, "yes", "maybe")), "the label 'maybe' of its row"),
        ((X[:0], Y[:0]), "0 sample"),
        ((X, Y, None, -WEIGHTS), "weight of its row 0 is -"),
    ],
    ids=["NaN", "inf", "width", "misaligned", "class", "empty", "weights"],
)
def test_bad_rows_leave_the_classifier_unchanged(chunk, message):
    closed = streamed(LPClassifier(NOISE, targets="optimized"), 900)
    before = pickle.dumps(closed)
    with pytest.raises(ValueError, match=message):
        closed.partial_fit(*chunk)
    assert pickle.dumps(closed) == before


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "targets='refined' needs a second pass over the rows"),
        ({"targets": "optimized"}, "noise='estimate' needs rows"),
        ({"targets": "optimized", "noise": TrustedSubset()}, "needs rows"),
        (
            {"targets": "naive", "noise": None, "loss": "logistic"},
            "loss='logistic' needs rows in every step",
        ),
        ({"targets": "naive", "noise": None, "loss": "unknown"}, "loss='unknown' needs rows"),
        ({"targets": "naive", "noise": None, "reg": "theory"}, "reg='theory' needs rows"),
    ],
)
def test_exists_only_if_moments_are_enough(options, reason):
    classifier = LPClassifier(**options)
    assert not hasattr(classifier, "partial_fit")
    with pytest.raises(AttributeError) as error:
        classifier.partial_fit(X, Y)
    assert re.search(reason, str(error.value.__cause__))


def test_fit_and_partial_fit_do_not_mix():
    classifier = LPClassifier(NOISE, targets="optimized").fit(X, Y)
    with pytest.warns(UserWarning, match="partial_fit starts anew"):
        classifier.partial_fit(X[:400], Y[:400])
    assert classifier.moments_.n == 400
    assert not hasattr(classifier, "loo_decision_")
    classifier.fit(X, Y)
    assert not hasattr(classifier, "moments_")
    assert len(classifier.loo_decision_) == 900
    with pytest.raises(AttributeError, match="no attribute 'moments_'"):
        classifier.moments_  # noqa: B018 - asking for it is what raises


def test_dataframes_keep_their_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    closed = LPClassifier(NOISE, targets="optimized").partial_fit(
        frame[:500], Y[:500], classes=["no", "yes"]
    )
    with pytest.raises(ValueError, match="feature names should match"):
        closed.partial_fit(frame[frame.columns[::-1]][500:], Y[500:])
    closed.partial_fit(frame[500:], Y[500:])
    assert closed.moments_.feature_names.tolist() == list(frame.columns)
    assert_same(streamed(closed, 900), streamed(closed, 300))


def test_rows_are_not_added_if_a_warning_is_an_error():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), np.arange(80) % 2
    clf = LPClassifier(None, targets=(0.5, 1.5), readout="plain", reg=1.0)
    with pytest.raises(UserWarning, match="same sign"):
        clf.partial_fit(X, y, classes=[0, 1])
    assert not hasattr(clf, "moments_")


def test_raises_if_squares_of_weights_underflow():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match="rescale the weights"):
        LPClassifier(None, targets="naive").partial_fit(X, y, [0, 1], np.full(4, 1e-200))


def test_raises_type_error_for_other_objects_than_moments():
    with pytest.raises(TypeError, match="moments is a tuple: pass a Moments object"):
        LPClassifier.from_moments((np.eye(2), [0, 1]), None)
