"""Noise rates from trusted labels: estimates, label types, coverage, and suggestions."""

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


def random_rows(n, m, seed=0):
    return np.random.default_rng(seed).permutation(n)[:m]


def covers(estimator, transition):
    low, high = estimator.interval()
    return (low <= transition + 1e-12) & (transition <= high + 1e-12)


# --- exact cases


def counted_rates(true, observed, k):
    counts = np.zeros((k, k))
    np.add.at(counts, (true, observed), 1.0)
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [200, 2000, 20_000])
def test_all_rows_checked_equals_counting_up_to_the_prior(n):
    X, true, observed = draw(n, p=5)
    estimator = TrustedSubset(true).fit(X, observed)
    counted = counted_rates(true, observed, 2)
    # The prior counts as 1.5 rows in each observed class; 4000 draws add their own error.
    simulation = 4 * estimator.noise_std_.max() / np.sqrt(4000)
    np.testing.assert_allclose(estimator.noise_.transition, counted, atol=6 / n + simulation)
    np.testing.assert_allclose(estimator.noise_.observed, np.bincount(observed) / n)
    expected = np.sqrt(counted * (1 - counted) / np.bincount(true)[:, None])
    np.testing.assert_allclose(estimator.noise_std_, expected, rtol=0.1)
    assert estimator.n_trusted_ == n


def test_no_row_checked_gives_the_prior_without_a_warning():
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
def test_trusted_labels_that_are_all_missing_give_the_prior_with_a_warning(missing):
    X, _, observed = draw()
    with pytest.warns(UserWarning, match="No row has a trusted label: all of y_trusted is missing"):
        estimator = TrustedSubset([missing] * 300).fit(X, observed)
    assert estimator.noise_ == TrustedSubset().fit(X, observed).noise_


def test_audits_and_classifiers_warn_that_no_row_is_trusted():
    X, _, observed = draw()
    with pytest.warns(UserWarning, match="No row has a trusted label"):
        audit(X, observed, trusted=[None] * 300)
    with pytest.warns(UserWarning, match="No row has a trusted label"):
        LPClassifier(TrustedSubset([None] * 300)).fit(X, observed)
    with pytest.warns(UserWarning, match="No row has a trusted label: y_trusted is None"):
        LPClassifier(TrustedSubset()).fit(X, observed)


def test_interval_starts_at_zero_without_wrong_labels_among_the_checked():
    X, true, _ = draw()
    estimator = TrustedSubset(checked(true, random_rows(300, 60))).fit(X, true)
    low, high = estimator.interval()
    np.testing.assert_array_equal(low[[0, 1], [1, 0]], 0)
    np.testing.assert_array_equal(np.diag(high), 1)
    assert 0 < high[0, 1] < 0.15
    assert estimator.noise_.eps_pos < 0.05


def test_rows_checked_by_observed_label_do_not_bias_the_rates():
    """Counts would be biased: nine in ten of the checked rows are observed positives."""
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
        naive.append(counted_rates(true[rows], observed[rows], 2)[1, 0])
    error = np.std(estimates, ddof=1) / np.sqrt(30)
    assert abs(np.mean(estimates) - 0.3) < 4 * error
    assert np.mean(naive) < 0.15


def test_rows_that_are_all_duplicates():
    _, true, observed = draw()
    estimator = TrustedSubset(true).fit(np.full((300, 3), 0.1), observed)
    np.testing.assert_allclose(
        estimator.noise_.transition, counted_rates(true, observed, 2), atol=0.02
    )
    assert np.isnan(estimator.mean_norm_)


@pytest.mark.parametrize(("unit", "origin"), [(1e-200, 0), (1e200, 0), (1e-3, 1e3)])
def test_unit_and_origin_of_the_features_do_not_matter(unit, origin):
    X, true, observed = draw()
    trusted = checked(true, random_rows(300, 50))
    expected = TrustedSubset(trusted).fit(X, observed)
    estimator = TrustedSubset(trusted).fit(unit * X + origin, observed)
    np.testing.assert_allclose(estimator.noise_.transition, expected.noise_.transition, rtol=1e-9)
    np.testing.assert_allclose(estimator.mean_norm_, expected.mean_norm_, rtol=1e-9)


# --- labels


def pandas():
    return pytest.importorskip("pandas")


@pytest.mark.parametrize(
    ("names", "write"),
    [
        (np.array([0, 1]), lambda true, is_checked: np.where(is_checked, true, np.nan)),
        (
            np.array([0, 1]),
            lambda true, is_checked: [
                int(t) if c else None for t, c in zip(true, is_checked, strict=True)
            ],
        ),
        (
            np.array([0, 1]),
            lambda true, is_checked: np.ma.masked_array(np.where(is_checked, true, 7), ~is_checked),
        ),
        (
            np.array([0, 1]),
            lambda true, is_checked: (
                pandas().Series(np.where(is_checked, true, np.nan)).astype("Int64")
            ),
        ),
        (
            np.array([1.0, 2.0]),
            lambda true, is_checked: np.where(is_checked, np.array([1.0, 2.0])[true], np.nan),
        ),
        (
            np.array([False, True]),
            lambda true, is_checked: pandas().array(
                np.where(is_checked, true == 1, None), dtype="boolean"
            ),
        ),
        (np.array([False, True]), lambda true, is_checked: np.where(is_checked, true == 1, np.nan)),
        (
            np.array(["bad", "good"]),
            lambda true, is_checked: pandas().Series(
                np.where(is_checked, NAMES[true], None), dtype="string"
            ),
        ),
        (
            np.array(["bad", "good"]),
            lambda true, is_checked: pandas().Categorical(np.where(is_checked, NAMES[true], None)),
        ),
        (
            np.array(["bad", "good"]),
            lambda true, is_checked: np.array(
                [NAMES[t] if c else np.nan for t, c in zip(true, is_checked, strict=True)], object
            ),
        ),
    ],
)
def test_types_of_labels_and_missing_values(names, write):
    X, true, observed = draw()
    is_checked = np.isin(np.arange(300), random_rows(300, 50))
    expected = TrustedSubset(checked(true, is_checked)).fit(X, observed)
    estimator = TrustedSubset(write(true, is_checked)).fit(X, names[observed])
    assert estimator.noise_ == expected.noise_
    assert estimator.n_trusted_ == 50
    np.testing.assert_array_equal(estimator.classes_, names)


NAMES = np.array(["bad", "good"], dtype=object)


@pytest.mark.parametrize(
    ("trusted", "message"),
    [
        (
            ["maybe", *[None] * 39],
            "(y_trusted) contain 'maybe', which is not among the observed classes [0, 1]",
        ),
        ([[0], *[None] * 39], "contain [0]"),
        ([0, 1], "The trusted labels (y_trusted) have shape (2,) but there are 40 rows"),
        (np.zeros((40, 1)), "The trusted labels (y_trusted) have shape (40, 1)"),
        ("yes", "The trusted labels (y_trusted) have shape ()"),
    ],
)
def test_invalid_trusted_labels_raise(trusted, message):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=re.escape(message)):
        TrustedSubset(trusted).fit(X, np.arange(40) % 2)


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        (np.zeros(40), None, "needs at least two classes"),
        (np.linspace(0, 1, 40), None, "Unknown label type"),
        (np.arange(39) % 2, None, "inconsistent numbers of samples"),
        (np.arange(40) % 2, np.zeros(40), "non-zero"),
        (np.arange(40) % 2, -np.ones(40), "Negative values"),
    ],
)
def test_invalid_input_raises(y, weights, message):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=message):
        TrustedSubset().fit(X, y, weights)


def test_labels_worse_than_chance_raise():
    X, true, observed = draw()
    with pytest.raises(ValueError, match="a random sample, not suspects, and that their"):
        TrustedSubset(1 - true).fit(X, observed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = TrustedSubset(checked(1 - observed, [0, 1])).fit(X, observed)
    assert 0.5 < few.noise_.eps_pos + few.noise_.eps_neg < 1


def test_class_without_trusted_labels_gives_a_warning():
    X, true, observed = draw()
    trusted = checked(true, np.flatnonzero(true == 1)[:30])
    with pytest.warns(UserWarning, match=r"No trusted label is 0, .* a default assumption"):
        estimator = TrustedSubset(trusted).fit(X, observed)
    low, high = estimator.interval()
    np.testing.assert_array_equal((low[0], high[0]), [[0, 0], [1, 1]])
    assert np.isnan(estimator.mean_norm_)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidence_outside_zero_and_one_raises(confidence):
    X, true, observed = draw()
    with pytest.raises(ValueError, match="confidence"):
        TrustedSubset(true).fit(X, observed).interval(confidence)


def test_intervals_widen_with_confidence():
    X, true, observed = draw()
    estimator = TrustedSubset(checked(true, random_rows(300, 50))).fit(X, observed)
    (low, high), (lower, higher) = estimator.interval(0.5), estimator.interval(0.99)
    assert (lower < low).all()
    assert (low < estimator.noise_.transition).all()
    assert (estimator.noise_.transition < high).all()
    assert (high < higher).all()


def test_parameters_and_clone():
    X, true, observed = draw()
    trusted = checked(true, random_rows(300, 50))
    estimator = TrustedSubset(y_trusted=trusted)
    assert estimator.get_params()["y_trusted"] is trusted
    assert clone(estimator).fit(X, observed).noise_ == estimator.fit(X, observed).noise_
    assert estimator.n_features_in_ == 20


# --- weights


def test_weights_equal_repeated_rows():
    X, true, observed = draw(200)
    times = np.random.default_rng(1).integers(0, 4, size=200)
    trusted = checked(true, random_rows(200, 60))
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


def test_zero_weight_rows_are_ignored():
    X, true, observed = draw(200)
    weights = (np.arange(200) % 3 > 0).astype(float)
    trusted = checked(true, random_rows(200, 60)).astype(object)
    trusted[0] = "never seen"
    kept = weights > 0
    absent = TrustedSubset(trusted[kept]).fit(X[kept], observed[kept])
    zero_weight = TrustedSubset(trusted).fit(X, observed, weights)
    assert zero_weight.noise_ == absent.noise_
    assert zero_weight.n_trusted_ == absent.n_trusted_
    suggested = zero_weight.suggest(20, random_state=0)
    np.testing.assert_array_equal(
        suggested, np.flatnonzero(kept)[absent.suggest(20, random_state=0)]
    )


# --- coverage


def binomial_floor(confidence, n):
    return confidence - 3.5 * np.sqrt(confidence * (1 - confidence) / n)


@pytest.mark.filterwarnings("ignore:No trusted label")
@pytest.mark.parametrize("m", [10, 20, 100])
@pytest.mark.parametrize(("eps_pos", "eps_neg"), [(0.4, 0.3), (0.05, 0.05), (0.0, 0.0)])
def test_intervals_of_two_classes_have_coverage(m, eps_pos, eps_neg):
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
    covered = []
    for seed in range(60):
        X, true, observed = draw(400, 10, noise, seed, mean_norm=1.2)
        estimator = TrustedSubset(checked(true, random_rows(400, m, seed + 10_000))).fit(
            X, observed
        )
        covered.append(covers(estimator, noise.transition))
    assert (np.mean(covered, axis=0) > binomial_floor(0.95, 60)).all()


@pytest.mark.filterwarnings("ignore:No trusted label")
@pytest.mark.parametrize("by", ["at random", "as suggested"])
def test_intervals_of_four_classes_have_coverage(by):
    covered, errors = [], []
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
        covered.append(covers(estimator, FOUR.transition))
        errors.append(np.abs(estimator.noise_.transition - FOUR.transition))
    assert (np.mean(covered, axis=0) > binomial_floor(0.95, 30)).all()
    assert np.mean(errors) < 0.05
    assert np.isnan(estimator.mean_norm_)


@needs_data
@pytest.mark.parametrize("domain", ["books", "kitchen"])
def test_a_hundred_trusted_labels_of_reviews(domain):
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3)
    X, y = load_amazon_reviews(domain)
    covered, errors = [], []
    for seed in range(25):
        train = random_rows(len(X), 1600, seed)
        true = y[train]
        trusted = checked(true, random_rows(1600, 100, seed + 1000))
        observed = noise.flip(true, random_state=seed)
        estimator = TrustedSubset(trusted).fit(StandardScaler().fit_transform(X[train]), observed)
        covered.append(covers(estimator, noise.transition))
        errors.append(np.abs(estimator.noise_.transition - noise.transition))
    assert np.mean(errors, axis=0).max() < 0.06
    assert (np.mean(covered, axis=0) > binomial_floor(0.95, 25)).all()


# --- which rows to check


@pytest.mark.parametrize("at_random", [True, False])
def test_suggested_rows_are_distinct_and_unchecked(at_random):
    X, true, observed = draw()
    rows = random_rows(300, 100)
    estimator = TrustedSubset(checked(true, rows)).fit(X, observed)
    suggested = estimator.suggest(200, at_random=at_random, random_state=0)
    np.testing.assert_array_equal(np.sort(suggested), np.setdiff1d(np.arange(300), rows))
    again = estimator.suggest(20, at_random=at_random, random_state=0)
    np.testing.assert_array_equal(again, suggested[:20])
    other = estimator.suggest(20, at_random=at_random, random_state=np.random.RandomState(1))
    assert set(other) != set(again)


def test_small_classes_get_suggestions_too():
    X = np.random.default_rng(0).normal(size=(24, 3))
    estimator = TrustedSubset([0, 1, *[None] * 22]).fit(X, np.arange(24) % 8 == 1)
    assert set(estimator.suggest(22)) == set(range(2, 24))


@pytest.mark.parametrize(
    ("m", "message"),
    [
        (0, "m = 0 must be a whole number of at least 1"),
        (-3, "whole number of at least 1"),
        (2.5, "whole number of at least 1"),
        (True, "whole number of at least 1"),
        (301, "m = 301 is larger than the number of unchecked rows, 300"),
    ],
)
def test_invalid_numbers_of_rows_raise(m, message):
    X, _, observed = draw()
    with pytest.raises(ValueError, match=message):
        TrustedSubset().fit(X, observed).suggest(m)


def test_suggestions_prefer_uncertain_strata():
    """If one observed class was checked, the next rows are of the other."""
    X, true, observed = draw(600)
    trusted = checked(true, np.flatnonzero(observed == 1)[:250])
    estimator = TrustedSubset(trusted).fit(X, observed)
    assert (observed[estimator.suggest(40, random_state=0)] == 0).mean() > 0.9


def test_suggested_rows_reduce_the_variance_more_than_random_ones():
    variances = {True: [], False: []}
    covered = []
    for seed in range(25):
        X, true, observed = draw(600, 20, seed=seed, mean_norm=2.0, priors=(0.15, 0.85))
        first = random_rows(600, 30, seed + 100)
        estimator = TrustedSubset(checked(true, first)).fit(X, observed)
        for at_random in (True, False):
            rows = np.append(first, estimator.suggest(70, at_random=at_random, random_state=seed))
            after = TrustedSubset(checked(true, rows)).fit(X, observed)
            variances[at_random].append((after.noise_std_**2).sum())
        covered.append(covers(after, NOISE.transition))
    gain = np.log(variances[True]) - np.log(variances[False])
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(25)
    assert gain.mean() > 0.05
    assert (np.mean(covered, axis=0) > binomial_floor(0.95, 25)).all()


# --- ‖μ‖


def test_mean_norm_equals_its_definition_over_distinct_rows():
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


def test_mean_norm_is_unbiased_in_high_dimension():
    squares = []
    for seed in range(40):
        X, y = make_mixture(60, 800, mean_norm=2.0, random_state=seed)
        squares.append(mean_norm_from_rows(X, np.array(["a", "b"])[y]) ** 2)
    error = np.std(squares, ddof=1) / np.sqrt(40)
    assert abs(np.mean(squares) - 4) < 4 * error
    assert error < 0.2


def test_noisy_labels_improve_the_mean_norm():
    combined, trusted_only = [], []
    noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.05)
    for seed in range(25):
        X, true, observed = draw(600, 200, noise, seed)
        rows = random_rows(600, 40, seed)
        combined.append(TrustedSubset(checked(true, rows)).fit(X, observed).mean_norm_)
        trusted_only.append(mean_norm_from_rows(X[rows], true[rows]))
    errors, errors_before = np.subtract(combined, 1.5), np.subtract(trusted_only, 1.5)
    assert np.mean(errors**2) < np.mean(errors_before**2) / 2
    assert abs(np.mean(combined) - 1.5) < 0.1


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.eye(4), [0, 1, 2, 2], "requires two classes; y has 3"),
        (np.eye(4), [0, 1, 1, 1], "Class 0 has one row only"),
        (np.eye(4), [0, 0, 0, 0], "needs at least two classes"),
        (np.repeat(np.eye(2), 2, axis=0), [0, 0, 1, 1], "rows of each class are identical"),
    ],
)
def test_invalid_input_of_mean_norm_raises(X, y, message):
    with pytest.raises(ValueError, match=message):
        mean_norm_from_rows(X, y)
