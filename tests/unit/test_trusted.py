"""Noise rates from checked rows: algebra, labels of every kind, coverage of the intervals, and
which rows to check."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from support.amazon import needs_data
from unflip import LPClassifier, NoiseModel, audit
from unflip.datasets import load_amazon_reviews, make_mixture
from unflip.estimation import TrustedSubset, mean_norm_from_rows

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.15)
FOUR = NoiseModel(
    [[0.7, 0.1, 0.1, 0.1], [0.2, 0.6, 0.1, 0.1], [0.05, 0.05, 0.85, 0.05], [0.0, 0.3, 0.0, 0.7]]
)


def draw(n=300, p=20, noise=NOISE, seed=0, mean_norm=1.5, priors=(0.5, 0.5)):
    X, true = make_mixture(n, p, mean_norm=mean_norm, priors=list(priors), random_state=seed)
    return X, true, noise.flip(true, random_state=seed)


def checked(true, rows):
    trusted = np.full(len(true), np.nan)
    trusted[rows] = true[rows]
    return trusted


def some(n, m, seed=0):
    return np.random.default_rng(seed).permutation(n)[:m]


def holds(estimator, transition):
    low, high = estimator.interval()
    return (low <= transition + 1e-12) & (transition <= high + 1e-12)


# --- exact cases
# ------------------------------------------------------------------------------------------------------


def counting(true, observed, k):
    table = np.zeros((k, k))
    np.add.at(table, (true, observed), 1.0)
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [200, 2000, 20_000])
def test_all_rows_checked_is_counting_up_to_a_prior_that_fades(n):
    X, true, observed = draw(n, p=5)
    estimator = TrustedSubset(true).fit(X, observed)
    counted = counting(true, observed, 2)
    # The prior is worth 1.5 rows in each observed class; 4000 draws add their own error.
    simulation = 4 * estimator.noise_std_.max() / np.sqrt(4000)
    np.testing.assert_allclose(estimator.noise_.transition, counted, atol=6 / n + simulation)
    np.testing.assert_allclose(estimator.noise_.observed, np.bincount(observed) / n)
    expected = np.sqrt(counted * (1 - counted) / np.bincount(true)[:, None])
    np.testing.assert_allclose(estimator.noise_std_, expected, rtol=0.1)
    assert estimator.n_trusted_ == n


def test_no_row_checked_is_the_prior_and_says_nothing():
    X, _, observed = draw()
    estimator = TrustedSubset().fit(X, observed)
    low, high = estimator.interval()
    np.testing.assert_array_equal(low, 0)
    np.testing.assert_array_equal(high, 1)
    assert estimator.n_trusted_ == 0
    assert estimator.noise_.eps_pos + estimator.noise_.eps_neg < 1
    assert estimator.noise_std_.min() > 0.13
    assert np.isnan(estimator.mean_norm_)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_true_labels_that_are_all_missing_are_the_prior_with_a_warning(missing):
    X, _, observed = draw()
    with pytest.warns(UserWarning, match=r"No row is trusted, .* so the flip rates are guesses"):
        estimator = TrustedSubset([missing] * 300).fit(X, observed)
    assert estimator.noise_ == TrustedSubset().fit(X, observed).noise_


def test_audits_and_classifiers_say_that_no_row_is_trusted():
    X, _, observed = draw()
    with pytest.warns(UserWarning, match="No row is trusted"):
        audit(X, observed, trusted=[None] * 300)
    with pytest.warns(UserWarning, match="No row is trusted"):
        LPClassifier(TrustedSubset([None] * 300)).fit(X, observed)


def test_without_a_trace_of_a_flip_the_interval_starts_at_zero():
    X, true, _ = draw()
    estimator = TrustedSubset(checked(true, some(300, 60))).fit(X, true)
    low, high = estimator.interval()
    np.testing.assert_array_equal(low[[0, 1], [1, 0]], 0)
    np.testing.assert_array_equal(np.diag(high), 1)
    assert 0 < high[0, 1] < 0.15
    assert estimator.noise_.eps_pos < 0.05


def test_rows_checked_by_observed_label_do_not_bias_the_rates():
    """Counting by true class would: here nine in ten of the checked rows are observed positives."""
    estimates, naive = [], []
    for seed in range(30):
        X, true, observed = draw(600, p=10, seed=seed)
        rng = np.random.default_rng(seed)
        rows = np.concatenate(
            [
                rng.choice(np.flatnonzero(observed == 1), 180, replace=False),
                rng.choice(np.flatnonzero(observed == 0), 20, replace=False),
            ]
        )
        estimates.append(TrustedSubset(checked(true, rows)).fit(X, observed).noise_.eps_pos)
        naive.append(counting(true[rows], observed[rows], 2)[1, 0])
    error = np.std(estimates, ddof=1) / np.sqrt(30)
    assert abs(np.mean(estimates) - 0.3) < 4 * error
    assert np.mean(naive) < 0.15


def test_rows_that_are_all_alike_need_no_scores():
    _, true, observed = draw()
    estimator = TrustedSubset(true).fit(np.full((300, 3), 0.1), observed)
    np.testing.assert_allclose(estimator.noise_.transition, counting(true, observed, 2), atol=0.02)
    assert np.isnan(estimator.mean_norm_)


@pytest.mark.parametrize(("unit", "origin"), [(1e-200, 0), (1e200, 0), (1e-3, 1e3)])
def test_unit_and_origin_of_the_features_have_no_part(unit, origin):
    X, true, observed = draw()
    trusted = checked(true, some(300, 50))
    expected = TrustedSubset(trusted).fit(X, observed)
    found = TrustedSubset(trusted).fit(unit * X + origin, observed)
    np.testing.assert_allclose(found.noise_.transition, expected.noise_.transition, rtol=1e-9)
    np.testing.assert_allclose(found.mean_norm_, expected.mean_norm_, rtol=1e-9)


# --- labels
# -----------------------------------------------------------------------------------------------------------


def pandas():
    return pytest.importorskip("pandas")


@pytest.mark.parametrize(
    ("names", "write"),
    [
        (np.array([0, 1]), lambda true, known: np.where(known, true, np.nan)),
        (
            np.array([0, 1]),
            lambda true, known: [int(t) if c else None for t, c in zip(true, known, strict=True)],
        ),
        (
            np.array([0, 1]),
            lambda true, known: np.ma.masked_array(np.where(known, true, 7), ~known),
        ),
        (
            np.array([0, 1]),
            lambda true, known: pandas().Series(np.where(known, true, np.nan)).astype("Int64"),
        ),
        (
            np.array([1.0, 2.0]),
            lambda true, known: np.where(known, np.array([1.0, 2.0])[true], np.nan),
        ),
        (
            np.array([False, True]),
            lambda true, known: pandas().array(np.where(known, true == 1, None), dtype="boolean"),
        ),
        (np.array([False, True]), lambda true, known: np.where(known, true == 1, np.nan)),
        (
            np.array(["bad", "good"]),
            lambda true, known: pandas().Series(np.where(known, NAMES[true], None), dtype="string"),
        ),
        (
            np.array(["bad", "good"]),
            lambda true, known: pandas().Categorical(np.where(known, NAMES[true], None)),
        ),
        (
            np.array(["bad", "good"]),
            lambda true, known: np.array(
                [NAMES[t] if c else np.nan for t, c in zip(true, known, strict=True)], object
            ),
        ),
    ],
)
def test_labels_and_missing_values_of_every_kind(names, write):
    X, true, observed = draw()
    known = np.isin(np.arange(300), some(300, 50))
    expected = TrustedSubset(checked(true, known)).fit(X, observed)
    estimator = TrustedSubset(write(true, known)).fit(X, names[observed])
    assert estimator.noise_ == expected.noise_
    assert estimator.n_trusted_ == 50
    np.testing.assert_array_equal(estimator.classes_, names)


NAMES = np.array(["bad", "good"], dtype=object)


@pytest.mark.parametrize(
    ("trusted", "says"),
    [
        (
            ["maybe", *[None] * 39],
            "holds the label 'maybe', which is not among the observed classes [0, 1]",
        ),
        ([[0], *[None] * 39], "holds the label [0]"),
        ([0, 1], "y_trusted has shape (2,) but there are 40 rows"),
        (np.zeros((40, 1)), "y_trusted has shape (40, 1)"),
        ("yes", "y_trusted has shape ()"),
    ],
)
def test_bad_trusted_labels_are_named(trusted, says):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=re.escape(says)):
        TrustedSubset(trusted).fit(X, np.arange(40) % 2)


@pytest.mark.parametrize(
    ("y", "weights", "says"),
    [
        (np.zeros(40), None, "needs at least two classes"),
        (np.linspace(0, 1, 40), None, "Unknown label type"),
        (np.arange(39) % 2, None, "inconsistent numbers of samples"),
        (np.arange(40) % 2, np.zeros(40), "non-zero"),
        (np.arange(40) % 2, -np.ones(40), "Negative values"),
    ],
)
def test_bad_input_is_named(y, weights, says):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=says):
        TrustedSubset().fit(X, y, weights)


def test_labels_worse_than_chance_are_refused_when_the_rows_say_so():
    X, true, observed = draw()
    with pytest.raises(ValueError, match="worse than chance"):
        TrustedSubset(1 - true).fit(X, observed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = TrustedSubset(checked(1 - observed, [0, 1])).fit(X, observed)
    assert 0.5 < few.noise_.eps_pos + few.noise_.eps_neg < 1


def test_a_class_that_no_checked_row_has_is_warned_of():
    X, true, observed = draw()
    trusted = checked(true, np.flatnonzero(true == 1)[:30])
    with pytest.warns(UserWarning, match=r"No trusted row is truly of class 0: .* prior alone"):
        estimator = TrustedSubset(trusted).fit(X, observed)
    low, high = estimator.interval()
    np.testing.assert_array_equal((low[0], high[0]), [[0, 0], [1, 1]])
    assert np.isnan(estimator.mean_norm_)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidence_is_a_probability(confidence):
    X, true, observed = draw()
    with pytest.raises(ValueError, match="confidence"):
        TrustedSubset(true).fit(X, observed).interval(confidence)


def test_intervals_widen_with_confidence():
    X, true, observed = draw()
    estimator = TrustedSubset(checked(true, some(300, 50))).fit(X, observed)
    (low, high), (lower, higher) = estimator.interval(0.5), estimator.interval(0.99)
    assert (lower < low).all()
    assert (low < estimator.noise_.transition).all()
    assert (estimator.noise_.transition < high).all()
    assert (high < higher).all()


def test_parameters_and_clones():
    X, true, observed = draw()
    trusted = checked(true, some(300, 50))
    estimator = TrustedSubset(y_trusted=trusted)
    assert estimator.get_params()["y_trusted"] is trusted
    assert clone(estimator).fit(X, observed).noise_ == estimator.fit(X, observed).noise_
    assert estimator.n_features_in_ == 20


# --- weights
# ----------------------------------------------------------------------------------------------------------


def test_weights_are_repeated_rows():
    X, true, observed = draw(200)
    times = np.random.default_rng(1).integers(0, 4, size=200)
    trusted = checked(true, some(200, 60))
    weighted = TrustedSubset(trusted).fit(X, observed, times)
    repeated = TrustedSubset(np.repeat(trusted, times)).fit(
        np.repeat(X, times, axis=0), np.repeat(observed, times)
    )
    np.testing.assert_allclose(weighted.noise_.transition, repeated.noise_.transition, rtol=1e-9)
    np.testing.assert_allclose(weighted.noise_.priors, repeated.noise_.priors, rtol=1e-9)
    np.testing.assert_allclose(weighted.interval(), repeated.interval(), rtol=1e-9)
    np.testing.assert_allclose(weighted.mean_norm_, repeated.mean_norm_, rtol=1e-9)


def test_the_scale_of_weights_does_not_matter():
    X, true, observed = draw(200)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=200)
    first, second = (TrustedSubset(true).fit(X, observed, scale * weights) for scale in (1.0, 1e-9))
    np.testing.assert_allclose(second.noise_.transition, first.noise_.transition, atol=1e-8)
    np.testing.assert_allclose(second.noise_std_, first.noise_std_, atol=1e-8)


def test_rows_of_no_weight_are_absent():
    X, true, observed = draw(200)
    weights = (np.arange(200) % 3 > 0).astype(float)
    trusted = checked(true, some(200, 60)).astype(object)
    trusted[0] = "never seen"
    kept = weights > 0
    absent = TrustedSubset(trusted[kept]).fit(X[kept], observed[kept])
    weightless = TrustedSubset(trusted).fit(X, observed, weights)
    assert weightless.noise_ == absent.noise_
    assert weightless.n_trusted_ == absent.n_trusted_
    suggested = weightless.suggest(20, random_state=0)
    np.testing.assert_array_equal(
        suggested, np.flatnonzero(kept)[absent.suggest(20, random_state=0)]
    )


# --- coverage
# ---------------------------------------------------------------------------------------------------------


def binomial_floor(confidence, n):
    return confidence - 3.5 * np.sqrt(confidence * (1 - confidence) / n)


@pytest.mark.filterwarnings("ignore:No trusted row")
@pytest.mark.parametrize("m", [10, 20, 100])
@pytest.mark.parametrize(("eps_pos", "eps_neg"), [(0.4, 0.3), (0.05, 0.05), (0.0, 0.0)])
def test_intervals_hold_the_rates_as_often_as_they_say(m, eps_pos, eps_neg):
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
    held = []
    for seed in range(60):
        X, true, observed = draw(400, 10, noise, seed, mean_norm=1.2)
        estimator = TrustedSubset(checked(true, some(400, m, seed + 10_000))).fit(X, observed)
        held.append(holds(estimator, noise.transition))
    assert (np.mean(held, axis=0) > binomial_floor(0.95, 60)).all()


@pytest.mark.filterwarnings("ignore:No trusted row")
@pytest.mark.parametrize("by", ["at random", "as suggested"])
def test_intervals_hold_for_four_classes(by):
    held, errors = [], []
    for seed in range(30):
        X, true = make_mixture(
            600, 30, means=3 * np.eye(4, 30), priors=[0.1, 0.2, 0.3, 0.4], random_state=seed
        )
        observed = FOUR.flip(true, random_state=seed)
        rows = (
            TrustedSubset()
            .fit(X, observed)
            .suggest(120, at_random=by == "at random", random_state=seed)
        )
        estimator = TrustedSubset(checked(true, rows)).fit(X, observed)
        held.append(holds(estimator, FOUR.transition))
        errors.append(np.abs(estimator.noise_.transition - FOUR.transition))
    assert (np.mean(held, axis=0) > binomial_floor(0.95, 30)).all()
    assert np.mean(errors) < 0.05
    assert np.isnan(estimator.mean_norm_)


@needs_data
@pytest.mark.parametrize("domain", ["books", "kitchen"])
def test_a_hundred_checked_reviews_tell_the_rates(domain):
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3)
    X, y = load_amazon_reviews(domain)
    held, errors = [], []
    for seed in range(25):
        train = some(len(X), 1600, seed)
        true = y[train]
        trusted = checked(true, some(1600, 100, seed + 1000))
        observed = noise.flip(true, random_state=seed)
        estimator = TrustedSubset(trusted).fit(StandardScaler().fit_transform(X[train]), observed)
        held.append(holds(estimator, noise.transition))
        errors.append(np.abs(estimator.noise_.transition - noise.transition))
    assert np.mean(errors, axis=0).max() < 0.06
    assert (np.mean(held, axis=0) > binomial_floor(0.95, 25)).all()


# --- which rows to check
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_random", [True, False])
def test_suggested_rows_are_distinct_and_new(at_random):
    X, true, observed = draw()
    rows = some(300, 100)
    estimator = TrustedSubset(checked(true, rows)).fit(X, observed)
    suggested = estimator.suggest(200, at_random=at_random, random_state=0)
    np.testing.assert_array_equal(np.sort(suggested), np.setdiff1d(np.arange(300), rows))
    again = estimator.suggest(20, at_random=at_random, random_state=0)
    np.testing.assert_array_equal(again, suggested[:20])
    other = estimator.suggest(20, at_random=at_random, random_state=np.random.RandomState(1))
    assert set(other) != set(again)


def test_tiny_classes_get_suggestions_too():
    X = np.random.default_rng(0).normal(size=(24, 3))
    estimator = TrustedSubset([0, 1, *[None] * 22]).fit(X, np.arange(24) % 8 == 1)
    assert set(estimator.suggest(22)) == set(range(2, 24))


@pytest.mark.parametrize(
    ("m", "says"),
    [
        (0, "m = 0 must be a whole number of at least 1"),
        (-3, "whole number of at least 1"),
        (2.5, "whole number of at least 1"),
        (True, "whole number of at least 1"),
        (301, "m = 301 rows were asked for, but only 300 are not trusted yet"),
    ],
)
def test_bad_numbers_of_rows_are_named(m, says):
    X, _, observed = draw()
    with pytest.raises(ValueError, match=says):
        TrustedSubset().fit(X, observed).suggest(m)


def test_suggestions_turn_to_what_is_uncertain():
    """Checked rows that settle one observed class send the next ones to the other."""
    X, true, observed = draw(600)
    trusted = checked(true, np.flatnonzero(observed == 1)[:250])
    estimator = TrustedSubset(trusted).fit(X, observed)
    assert (observed[estimator.suggest(40, random_state=0)] == 0).mean() > 0.9


def test_suggested_rows_narrow_the_rates_more_than_random_ones():
    """About a twentieth of the width: where a row is checked matters less than that one more is."""
    variances = {True: [], False: []}
    held = []
    for seed in range(25):
        X, true, observed = draw(600, 20, seed=seed, mean_norm=2.0, priors=(0.15, 0.85))
        first = some(600, 30, seed + 100)
        estimator = TrustedSubset(checked(true, first)).fit(X, observed)
        for at_random in (True, False):
            rows = np.append(first, estimator.suggest(70, at_random=at_random, random_state=seed))
            after = TrustedSubset(checked(true, rows)).fit(X, observed)
            variances[at_random].append((after.noise_std_**2).sum())
        held.append(holds(after, NOISE.transition))
    gain = np.log(variances[True]) - np.log(variances[False])
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(25)
    assert gain.mean() > 0.05
    assert (np.mean(held, axis=0) > binomial_floor(0.95, 25)).all()


# --- ‖μ‖
# --------------------------------------------------------------------------------------------------------------


def test_mean_norm_is_the_statistic_over_distinct_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 4)), np.array([0] * 4 + [1] * 5)
    products = [
        (X[i] - X[a]) @ (X[j] - X[b])
        for i in range(4, 9)
        for j in range(4, 9)
        for a in range(4)
        for b in range(4)
        if i != j and a != b
    ]
    residuals = np.concatenate([X[y == a] - X[y == a].mean(axis=0) for a in (0, 1)])
    variance = (residuals**2).sum() / (7 * 4)
    expected = np.sqrt(max(np.mean(products) / 4 / variance, 0))
    shift = rng.normal(size=4)
    np.testing.assert_allclose(mean_norm_from_rows(X, y), expected, atol=1e-12)
    np.testing.assert_allclose(mean_norm_from_rows(3 * X + shift, y), expected, atol=1e-12)


def test_mean_norm_is_free_of_the_noise_of_high_dimension():
    squares = []
    for seed in range(40):
        X, y = make_mixture(60, 800, mean_norm=2.0, random_state=seed)
        squares.append(mean_norm_from_rows(X, np.array(["a", "b"])[y]) ** 2)
    error = np.std(squares, ddof=1) / np.sqrt(40)
    assert abs(np.mean(squares) - 4) < 4 * error
    assert error < 0.2


def test_noisy_rows_sharpen_the_mean_norm():
    lengths, alone = [], []
    noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.05)
    for seed in range(25):
        X, true, observed = draw(600, 200, noise, seed)
        rows = some(600, 40, seed)
        lengths.append(TrustedSubset(checked(true, rows)).fit(X, observed).mean_norm_)
        alone.append(mean_norm_from_rows(X[rows], true[rows]))
    assert np.mean(np.subtract(lengths, 1.5) ** 2) < np.mean(np.subtract(alone, 1.5) ** 2) / 2
    assert abs(np.mean(lengths) - 1.5) < 0.1


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        (np.eye(4), [0, 1, 2, 2], "takes two classes; y has 3"),
        (np.eye(4), [0, 1, 1, 1], "Class 0 has one row only"),
        (np.eye(4), [0, 0, 0, 0], "needs at least two classes"),
        (np.repeat(np.eye(2), 2, axis=0), [0, 0, 1, 1], "all alike"),
    ],
)
def test_mean_norm_names_bad_input(X, y, says):
    with pytest.raises(ValueError, match=says):
        mean_norm_from_rows(X, y)
