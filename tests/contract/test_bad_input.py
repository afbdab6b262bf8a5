"""Bad input to LPClassifier raises an error that names the value and the remedy."""

import warnings

import numpy as np
import pytest

from unflip import (
    LPClassifier,
    Moments,
    NoiseModel,
    Votes,
    audit,
    audit_scores,
    datasets,
    estimation,
    theory,
)
from unflip.datasets import make_mixture
from unflip.estimation import CrossMoment, TrustedSubset

X, Y = make_mixture(40, 10, random_state=0)
THREE = NoiseModel(np.eye(3))
MILD = NoiseModel.binary(eps_pos=0.1, eps_neg=0.05)


def with_value(value):
    changed = X.copy()
    changed[3, 4] = value
    return changed


@pytest.mark.parametrize(
    ("options", "data", "says"),
    [
        ({}, (with_value(np.nan), Y), "contains NaN"),
        ({}, (with_value(np.inf), Y), "infinity"),
        ({}, (X, np.where(Y == 1, np.nan, 0.0)), "only one class, 0.0, in labelled rows"),
        ({}, (X, np.full(40, np.nan)), "y has no label: all 40 are missing"),
        ({}, (X, [None] * 40), "y has no label: all 40 are missing"),
        (
            {},
            (X, np.zeros(40, dtype=int)),
            "needs at least two classes, but y has only one class, 0",
        ),
        (
            {"noise": MILD},
            (X, np.arange(40) % 3),
            r"^Only binary .* is supported by noise as given, but y has 3",
        ),
        ({}, (X[:1], Y[:1]), "minimum of 2 is required"),
        ({}, (X, Y[:-1]), "inconsistent numbers of samples"),
        ({}, (X[0], Y), "Expected 2D array"),
        ({}, (X, Y, np.ones(39)), "sample_weight.shape"),
        ({}, (X, Y, -np.ones(40)), "Negative values in data passed to `sample_weight`"),
        (
            {},
            (X, Y, (Y == 1).astype(float)),
            "y has only one class, 1, in labelled rows of positive weight",
        ),
        ({}, (X, Y, np.zeros(40)), "at least one non-zero"),
        ({"noise": THREE}, (X, Y), "The noise model has 3 classes but y has 2"),
        ({"noise": "guess"}, (X, Y), "noise='guess' is not known: .* a NoiseEstimator"),
        ({"noise": LPClassifier()}, (X, Y), "is not known: use 'estimate', noise rates by class"),
        (
            {"noise": CrossMoment()},
            (X, Y, np.arange(40.0)),
            r"noise=CrossMoment\(\) does not support sample_weight",
        ),
        (
            {"noise": [[0.4, 0.6], [0.6, 0.4]]},
            (X, Y),
            r"eps_pos \+ eps_neg = 0.6 \+ 0.6 must be below 1",
        ),
        (
            {"noise": NoiseModel.binary(eps_pos=0, eps_neg=0.6)},
            (X, Y),
            "leave no true row in class 1",
        ),
        ({"priors": [0.5, 0.6]}, (X, Y), "priors sum to 1.1"),
        ({"priors": [1.0, 0.0]}, (X, Y), r"priors\[1\] = 0"),
        (
            {
                "noise": NoiseModel.binary(eps_pos=0.1, eps_neg=0.1, pi_neg=0.5),
                "priors": [0.4, 0.6],
            },
            (X, Y),
            "contradict those of the noise model",
        ),
        (
            {"targets": "best"},
            (X, Y),
            "targets='best' is not a valid value: use 'refined', 'naive', 'unbiased', 'optimized'",
        ),
        (
            {"deployment_priors": "even"},
            (X, Y),
            "deployment_priors='even' is not known: use 'balanced'",
        ),
        ({"deployment_priors": [0.5, 0.6]}, (X, Y), "deployment_priors sum to 1.1"),
        (
            {"deployment_priors": [1, 0]},
            (X, Y),
            r"deployment_priors\[1\] = 0 must be a positive proportion",
        ),
        ({"costs": [[0, 1]]}, (X, Y), "give 2×2 finite numbers, row = true class"),
        ({"costs": [[0, np.nan], [1, 0]]}, (X, Y), r"costs\[0, 1\] = nan is not finite"),
        ({"costs": [[0, 1], [np.inf, 0]]}, (X, Y), r"costs\[1, 0\] = inf is not finite"),
        ({"costs": [[0, 1], [0, 0]]}, (X, Y), r"costs\[1, 0\] = 0 must exceed costs\[1, 1\] = 0"),
        (
            {"costs": [[0, 1], [2, 0]], "readout": "plain"},
            (X, Y),
            "deployment_priors and costs move the threshold",
        ),
        ({"targets": (1.0, 1.0)}, (X, Y), "t_neg < t_pos"),
        ({"readout": "best"}, (X, Y), "readout='best' is not a valid value"),
        (
            {"reg": "best"},
            (X, Y),
            "reg='best' is not a valid value: use 'loo', 'theory' or a number",
        ),
        (
            {"reg": "theory"},
            (X[:, :1], Y),
            "reg='theory' does not fit these data .*: use reg='loo'",
        ),
        (
            {"reg": "theory"},
            (X[[*range(40), 0]], Y[[*range(40), 0]]),
            "reg='theory' needs distinct rows",
        ),
        ({"reg": -0.1}, (X, Y), "reg=-0.1 must be 'loo', 'theory' or a finite number"),
        ({"reg": np.nan}, (X, Y), "reg=nan"),
        ({"reg": np.inf}, (X, Y), "reg=inf"),
        ({"reg": None}, (X, Y), "reg=None"),
        ({"reg": True}, (X, Y), "reg=True"),
        (
            {"reg": 1e-200},
            (np.outer(X[:, 0], np.ones(3)), Y),
            "reg=1e-200 is below 1e-30 times the variance",
        ),
        (
            {"reg": 5e-324},
            (X, Y),
            "reg=5e-324 is below 1e-30 times the variance .*: raise reg or rescale X",
        ),
        ({}, (X, Y, np.inf), "sample_weight holds NaN or infinite values"),
        (
            {},
            (X, [None, *["a", "b"] * 18, "a", 1, "a"]),
            r"several types \(int, str\).*convert them to one type",
        ),
        (
            {},
            (X, np.array([1, *["a", "b"] * 19, "a"], dtype=object)),
            r"several types \(int, str\).*convert them to one type",
        ),
        (
            {},
            (np.ma.masked_less(X, 0), Y),
            "X is a masked array, which is not supported: fill in",
        ),
        ({}, (X, np.ma.masked_less(Y, 1)), "y is a masked array"),
        ({}, (X, Y, np.ma.masked_less(np.ones(40), 0)), "sample_weight is a masked array"),
        ({}, ([[10**400]] * 40, Y), "X holds a number that is too large for a float: rescale X"),
        ({"fit_intercept": "no"}, (X, Y), "fit_intercept='no' must be True or False"),
        (
            {"priors": {"a": 0.5}},
            (X, Y),
            "priors = {'a': 0.5} names the class 'a', which is not in y: the labels are 0, 1",
        ),
        (
            {"noise": {"a": 0.5}},
            (X, Y),
            "noise = {'a': 0.5} names the class 'a', which is not in y: the labels are 0, 1",
        ),
        (
            {"noise": 0.2},
            (X, Y),
            r"noise=0.2 is not known: .* noise rates by class such as {'no': 0.1, 'yes': 0.2}",
        ),
        ({"noise": [["a", 0.5], [0.5, 0.5]]}, (X, Y), "noise = .* must hold numbers"),
        ({"reg": 1.0}, (X * 1e-8, Y), "reg=1.0 is above 1e.12 times the variance of the features"),
        (
            {},
            (X * 1e-200, Y),
            "The largest magnitude in X is .*e-200, whose square over- or underflows float64",
        ),
        ({}, (X * 1e200, Y), "rescale X"),
        ({"reg": 0.0}, (np.hstack([X, X]), Y), "reg=0 needs a Gram matrix of full rank"),
        ({"reg": 0.0}, (X[:8], Y[:8]), "the rows span 7 of 10 varying features"),
        ({}, (X[[0] * 40], Y), "All rows have the same features"),
        ({}, (1e6 + 1e-10 * X, Y), "The rows of X are equal up to rounding errors"),
        ({}, (np.tile(1e6 + 1e-10 * X, 30), Y), "The rows of X are equal up to rounding errors"),
    ],
)
def test_fit_raises(options, data, says):
    with pytest.raises(ValueError, match=says) as caught:
        LPClassifier(**{"noise": None, **options}).fit(*data)
    if "sklearn" not in str(caught.traceback[-1].path):
        assert "\n" not in str(caught.value)


MASKED = np.ma.masked_less(X, 0)
MASKED_LABELS = np.ma.masked_less(Y, 1)
PROBABILITIES = np.column_stack([0.8 - 0.6 * Y, 0.2 + 0.6 * Y])


@pytest.mark.parametrize(
    ("act", "name"),
    [
        (lambda: LPClassifier(None).fit(X, Y).predict(MASKED), "X"),
        (lambda: LPClassifier(None, targets="naive").partial_fit(MASKED, Y, [0, 1]), "X"),
        (lambda: LPClassifier(None, targets="naive").partial_fit(X, MASKED_LABELS, [0, 1]), "y"),
        (lambda: CrossMoment().fit(MASKED, Y), "X"),
        (lambda: TrustedSubset().fit(X, MASKED_LABELS), "y"),
        (lambda: estimation.spectral_mixture(MASKED), "X"),
        (lambda: estimation.estimate_mixture(X, MASKED_LABELS, MILD), "y"),
        (lambda: estimation.mean_norm_from_rows(X, MASKED_LABELS), "y"),
        (lambda: audit(MASKED, Y), "X"),
        (lambda: audit(X, MASKED_LABELS), "y"),
        (lambda: audit(X, Y, groups=np.ma.masked_less(np.arange(40) // 4, 1)), "groups"),
        (lambda: audit_scores(np.ma.masked_less(PROBABILITIES, 0.1), Y), "pred_probs"),
        (lambda: audit_scores(PROBABILITIES, MASKED_LABELS), "y"),
        (lambda: Moments.from_chunks([(MASKED, Y)]), "X"),
        (lambda: Moments.from_chunks([(X, MASKED_LABELS)]), "y"),
        (lambda: Moments.from_rows(MASKED, Y, 2), "X"),
        (lambda: MILD.flip(MASKED_LABELS), "y"),
        (lambda: Votes.from_table(MASKED_LABELS, None, Y), "rows"),
        (lambda: NoiseModel(np.ma.masked_less(np.eye(2), 0)), "transition"),
    ],
)
def test_masked_arrays_raise(act, name):
    with pytest.raises(
        ValueError, match=f"{name} is a masked array, which is not supported: fill in"
    ):
        act()


DATES = (np.datetime64("2020-01-01") + np.arange(40)).repeat(3).reshape(40, 3)


@pytest.mark.parametrize("rows", [DATES, DATES - DATES[0, 0]], ids=["dates", "durations"])
@pytest.mark.parametrize(
    "act",
    [
        lambda rows: LPClassifier(None).fit(rows, Y),
        lambda rows: LPClassifier(None).fit(X[:, :3], Y).predict(rows),
        lambda rows: LPClassifier(None, targets="naive").partial_fit(rows, Y, [0, 1]),
        lambda rows: audit(rows, Y),
        lambda rows: CrossMoment().fit(rows, Y),
        lambda rows: estimation.spectral_mixture(rows),
        lambda rows: Moments.from_chunks([(rows, Y)]),
    ],
)
def test_dates_as_features_raise(act, rows):
    with pytest.raises(
        (TypeError, ValueError), match=r"X holds values of dtype .* turn them into numbers"
    ):
        act(rows)


def test_dataframe_column_of_dates_raises():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": X[:, 0], "when": DATES[:, 0]})
    with pytest.raises(
        TypeError, match=r"X holds values of dtype datetime64.*turn them into numbers"
    ):
        LPClassifier(None).fit(frame, Y)


def test_plan_raises_without_noise_model():
    with pytest.raises(ValueError, match=r"noise = None must be a NoiseModel: pass for example"):
        theory.plan(n=100, p=10, mean_norm=1.0, noise=None)


def test_aspect_that_overflows_raises():
    mixture = theory.Mixture(mean_norm=1.0, aspect=1e308, noise=MILD.with_priors([0.5, 0.5]))
    for act in (
        lambda: theory.predict(mixture, reg=1.0),
        lambda: theory.delta(1e308, 1.0),
        lambda: theory.h(1e308, 1.0),
    ):
        with pytest.raises(ValueError, match=r"aspect = 1e\+308 overflows float64 when squared"):
            act()
    assert np.isinf(theory.delta(1e150, 1e-300))


def test_predict_raises():
    clf = LPClassifier(None).fit(X, Y)
    with pytest.raises(ValueError, match="X has 9 features, but LPClassifier is expecting 10"):
        clf.predict(X[:, :9])
    with pytest.raises(ValueError, match="contains NaN"):
        clf.predict_proba(with_value(np.nan))


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.filterwarnings("ignore:.*of the fitted scores favour:UserWarning")
@pytest.mark.parametrize("noise", [None, "estimate"])
@pytest.mark.parametrize("readout", ["plain", "gaussian"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "rows",
    [
        np.repeat([[0.0], [1.0]], 20, axis=0),  # two distinct rows
        np.random.default_rng(0).normal(size=(40, 3)) * 1e-150,
        np.random.default_rng(0).normal(size=(40, 3)) * 1e100,
        np.random.default_rng(0).normal(size=(40, 300)),
        np.outer(Y - 0.5, np.ones(3))
        + 1e-9 * np.random.default_rng(0).normal(size=(40, 3)),  # separable
    ],
    ids=["two rows", "tiny", "huge", "wide", "separable"],
)
def test_unusual_valid_rows_give_finite_results(rows, fit_intercept, readout, noise):
    clf = LPClassifier(noise, readout=readout, fit_intercept=fit_intercept).fit(rows, Y)
    for values in (
        clf.coef_,
        clf.intercept_,
        clf.loo_decision_,
        clf.predict_proba(rows),
        clf.noise_std_,
    ):
        assert np.isfinite(values).all()


@pytest.mark.parametrize("factor", [1e-300, 3.7, 1e200, 1e300])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    "noise", [MILD, TrustedSubset(np.where(np.append(Y, Y[:4]) == 0, None, 1).tolist())]
)
def test_a_common_factor_of_the_weights_changes_nothing(noise, loss, factor):
    rows, labels = np.vstack([X, X[:4]]), np.append(Y, Y[:4])
    weights = np.random.default_rng(0).uniform(0.5, 2, size=44)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No trusted label is 0")
        first, second = (
            LPClassifier(noise, loss=loss).fit(rows, labels, scale * weights)
            for scale in (1.0, factor)
        )
    for name in (
        "coef_",
        "intercept_",
        "loo_decision_",
        "label_posterior_",
        "n_effective_",
        "expected_accuracy_std_",
    ):
        np.testing.assert_allclose(
            getattr(second, name), getattr(first, name), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda: make_mixture(10, 3, means=np.zeros((2, 4))), ValueError, "one row of 3 features"),
        (
            lambda: make_mixture(10, 3, priors=[0.2, 0.3, 0.5]),
            ValueError,
            "one entry for each of the 2 classes",
        ),
        (lambda: make_mixture(10, 3, priors=[0.3, 0.3]), ValueError, "priors sum to 0.6"),
        (lambda: make_mixture(10, 3, mean_norm=-2), ValueError, "mean_norm = -2"),
        (
            lambda: make_mixture(10, 3, covariances=np.eye(2)),
            ValueError,
            r"give \(3, 3\) or \(2, 3, 3\)",
        ),
        (
            lambda: make_mixture(10, 2, covariances=[[1.0, 2.0], [2.0, 1.0]]),
            ValueError,
            "negative eigenvalue -1",
        ),
        (
            lambda: make_mixture(10, 2, covariances=[[1.0, 2.0], [0.0, 1.0]]),
            ValueError,
            "not symmetric",
        ),
        (
            lambda: datasets.load_amazon_reviews("cars"),
            ValueError,
            "domain='cars' is not a valid value",
        ),
        (
            lambda: datasets.load_amazon_reviews("dvd", data_home="/nowhere"),
            FileNotFoundError,
            "does not exist",
        ),
    ],
)
def test_datasets_raise(act, error, says):
    with pytest.raises(error, match=says):
        act()


def test_amazon_reviews_without_a_folder_raise(monkeypatch):
    monkeypatch.delenv("UNFLIP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="UNFLIP_DATA"):
        datasets.load_amazon_reviews("books")
