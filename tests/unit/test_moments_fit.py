"""LPClassifier.from_moments gives the same fits as the rows."""

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.special import ndtr
from sklearn.linear_model import Ridge

from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset
from unflip.ridge.moments import Moments
from unflip.ridge.score_sums import ScoreSums
from unflip.ridge.selection import candidate_regs, loo_alignment, loo_squared_error
from unflip.ridge.spectrum import CannotLeaveOutError, GramSpectrum, decompose

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
PRIORS = np.array([0.4, 0.6])
NORM = 1.5


def sample(n=600, p=40, seed=0, priors=PRIORS):
    X, y = make_mixture(n, p, mean_norm=NORM, priors=priors, random_state=seed)
    return X, y, NOISE.flip(y, seed)


X, TRUE, Y = sample()
MOMENTS = Moments.from_rows(X, Y, 2)
SEVERAL = NoiseModel([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.0, 0.1, 0.9]])


def three_classes(n, p=20, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.choice(3, size=n, p=[0.3, 0.3, 0.4])
    centres = 2.2 * np.eye(3, p)
    return rng.normal(size=(n, p)) + centres[true], true, SEVERAL.flip(true, seed)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", [None, np.random.default_rng(0).uniform(0.1, 2, size=600)])
def test_naive_targets_with_the_plain_readout_are_ridge(fit_intercept, weights):
    moments = Moments.from_rows(X + 1, Y, 2, weights)
    actual = LPClassifier.from_moments(
        moments, None, targets="naive", readout="plain", reg=0.3, fit_intercept=fit_intercept
    )
    total = 600 if weights is None else weights.sum()
    ridge = Ridge(alpha=0.3 * total, fit_intercept=fit_intercept).fit(X + 1, 2 * Y - 1, weights)
    np.testing.assert_allclose(actual.coef_[0], ridge.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(actual.intercept_, ridge.intercept_, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("targets", ["naive", "unbiased", "optimized", (-1.0, 2.0)])
def test_plain_fits_equal_those_of_rows(targets, fit_intercept):
    options = {"targets": targets, "readout": "plain", "reg": 0.3, "fit_intercept": fit_intercept}
    sums, rows = (
        LPClassifier.from_moments(MOMENTS, NOISE, **options),
        LPClassifier(NOISE, **options).fit(X, Y),
    )
    np.testing.assert_allclose(sums.coef_, rows.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sums.intercept_, rows.intercept_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sums.targets_, rows.targets_)
    assert sums.noise_ == rows.noise_
    assert sums.n_effective_ == pytest.approx(rows.n_effective_)


@pytest.mark.parametrize("targets", ["naive", "unbiased", "optimized", np.diag([1.0, 2.0, 3.0])])
def test_plain_fits_of_several_classes_equal_those_of_rows(targets):
    rows, _, labels = three_classes(500)
    noise = SEVERAL.with_priors([0.3, 0.3, 0.4])
    options = {"targets": targets, "readout": "plain", "reg": 0.3}
    sums = LPClassifier.from_moments(Moments.from_rows(rows, labels, 3), noise, **options)
    exact = LPClassifier(noise, **options).fit(rows, labels)
    np.testing.assert_allclose(sums.coef_, exact.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sums.intercept_, exact.intercept_, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sums_of_scores_are_exact_for_rows_of_equal_leverage(fit_intercept):
    # Rows of ±1 along orthogonal axes have equal leverages at any scales, so leave-one-out scores
    # from sums are exact.
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    rows = hadamard(64)[:, 1:21] * np.geomspace(0.1, 3, 20) @ axes
    codes = rng.integers(3, size=64)
    moments, table = Moments.from_rows(rows, codes, 3), rng.normal(size=(3, 2))
    spectrum = GramSpectrum.from_moments(moments, fit_intercept=fit_intercept)
    regs = candidate_regs(spectrum)
    sums = ScoreSums.of(moments, spectrum, table, regs)
    exact = decompose(rows, fit_intercept=fit_intercept)
    np.testing.assert_allclose(regs, candidate_regs(exact))
    scores, ones = exact.leave_one_out(table[codes], regs).corrected_scores, np.ones(64)
    alignment = loo_alignment(scores.__getitem__, table[codes], ones, centred=fit_intercept)
    np.testing.assert_allclose(sums.criterion_values(scale_free=True), alignment, rtol=1e-9)
    error = loo_squared_error(scores.__getitem__, table[codes], ones)
    np.testing.assert_allclose(-sums.criterion_values(scale_free=False) / 64, error, rtol=1e-9)
    middle = sums.scores(25)
    means = np.array([scores[codes == b, 25].mean(axis=0) for b in range(3)])
    np.testing.assert_allclose(middle.means, means, rtol=1e-9)
    np.testing.assert_allclose(middle.total, np.cov(scores[:, 25].T, bias=True), rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": False}, {"readout": "plain", "targets": "unbiased"}],
    ids=["", "origin", "plain"],
)
def test_reg_equals_that_of_exact_leave_one_out_for_similar_rows(options):
    actual = LPClassifier.from_moments(MOMENTS, NOISE, **options).reg_
    exact = LPClassifier(NOISE, **{"targets": "optimized", **options}).fit(X, Y).reg_
    # At most one candidate apart.
    assert abs(np.log(actual / exact)) <= 1.01 * np.log(1e8) / 49


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_gaussian_readout_agrees_with_that_of_rows(fit_intercept):
    rows, _, labels = sample(n=8000, p=50, seed=1)
    new = sample(n=5000, p=50, seed=2)[0]
    options = {"targets": "optimized", "fit_intercept": fit_intercept}
    sums = LPClassifier.from_moments(Moments.from_rows(rows, labels, 2), NOISE, **options)
    exact = LPClassifier(NOISE, **options, reg=sums.reg_).fit(rows, labels)
    cosine = (
        sums.coef_[0] @ exact.coef_[0] / np.linalg.norm(sums.coef_) / np.linalg.norm(exact.coef_)
    )
    assert abs(cosine - 1) < 1e-10
    assert (sums.predict(new) == exact.predict(new)).mean() > 0.99


def test_the_gaussian_readout_of_several_classes_agrees_with_that_of_rows():
    rows, _, labels = three_classes(20_000)
    new = three_classes(5000, seed=1)[0]
    noise = SEVERAL.with_priors([0.3, 0.3, 0.4])
    sums = LPClassifier.from_moments(Moments.from_rows(rows, labels, 3), noise)
    exact = LPClassifier(noise, targets="optimized", reg=sums.reg_).fit(rows, labels)
    assert (sums.predict(new) == exact.predict(new)).mean() > 0.98
    assert np.abs(sums.predict_proba(new) - exact.predict_proba(new)).mean() < 0.02


def test_with_an_intercept_all_tables_give_one_gaussian_classifier():
    rows, _, labels = three_classes(400)
    moments = Moments.from_rows(rows, labels, 3)
    noise = SEVERAL.with_priors([0.3, 0.3, 0.4])
    fits = [
        LPClassifier.from_moments(moments, noise, targets=name, reg=0.3)
        for name in ("naive", "unbiased")
    ]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fits[0].expected_accuracy_, fits[1].expected_accuracy_, rtol=1e-2)


def true_accuracy(classifier):
    """Exact accuracy on clean labels of a linear rule in the isotropic mixture of `sample`."""
    coef, constant = classifier.coef_[0], classifier.intercept_[0]
    along, spread = NORM * coef.sum() / np.sqrt(len(coef)), np.linalg.norm(coef)
    return float(PRIORS @ ndtr(np.array([along - constant, along + constant]) / spread))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"readout": "plain", "targets": "unbiased"}]
)
@pytest.mark.parametrize(("n", "p"), [(600, 40), (500, 250), (3000, 100)])
def test_the_expected_accuracy_is_within_its_standard_error(options, n, p):
    # The mean over draws must be the truth, up to 4 standard errors of that mean, and the standard
    # error must be no smaller than the errors made, and not twice as large.
    errors, stated = [], []
    for seed in range(60):
        rows, _, labels = sample(n, p, seed)
        actual = LPClassifier.from_moments(Moments.from_rows(rows, labels, 2), NOISE, **options)
        errors.append(actual.expected_accuracy_ - true_accuracy(actual))
        stated.append(actual.expected_accuracy_std_)
    size = np.sqrt(np.mean(np.square(errors)))
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(60)
    assert 0.5 < size / np.mean(stated) < 1 + 3 * 0.09  # standard error of 60 draws: 9%


def test_two_classes_have_the_accuracy_of_the_normal_law():
    actual = LPClassifier.from_moments(MOMENTS, NOISE, reg=1.0)
    spectrum = GramSpectrum.from_moments(MOMENTS, fit_intercept=True)
    table = actual.targets_[:, None]
    scores = ScoreSums.of(MOMENTS, spectrum, table, np.array([1.0])).scores()
    low, high = (np.linalg.inv(actual.noise_.posterior) @ scores.means)[:, 0]
    pi_neg, pi_pos = actual.noise_.priors
    std = np.sqrt(scores.total[0, 0] - pi_neg * pi_pos * (high - low) ** 2)
    cut = (low + high) / 2 + std**2 * np.log(pi_neg / pi_pos) / (high - low)
    accuracy = pi_neg * ndtr((cut - low) / std) + pi_pos * ndtr((high - cut) / std)
    assert actual.expected_accuracy_ == pytest.approx(accuracy, rel=1e-9)


def test_several_classes_have_the_accuracy_of_the_normal_law():
    rows, _, labels = three_classes(20_000)
    actual = LPClassifier.from_moments(Moments.from_rows(rows, labels, 3), SEVERAL)
    new, true, _ = three_classes(40_000, seed=1)
    gap = actual.expected_accuracy_ - actual.score(new, true)
    assert abs(gap) < 3 * np.hypot(actual.expected_accuracy_std_, 0.5 / np.sqrt(40_000))
    assert actual.expected_accuracy_std_ < 0.02


def test_priors_costs_and_proportions_change_the_decision():
    balanced = LPClassifier.from_moments(MOMENTS, NOISE, deployment_priors="balanced", reg=1.0)
    plain = LPClassifier.from_moments(MOMENTS, NOISE, reg=1.0)
    np.testing.assert_allclose(balanced.coef_, plain.coef_)
    shift = np.log(plain.noise_.priors[0] / plain.noise_.priors[1])
    np.testing.assert_allclose(balanced.intercept_ - plain.intercept_, shift)
    costly = LPClassifier.from_moments(MOMENTS, NOISE, costs=[[0, 5], [1, 0]], reg=1.0)
    np.testing.assert_allclose(costly.intercept_ - plain.intercept_, -np.log(5))
    np.testing.assert_allclose(costly.predict_proba(X), plain.predict_proba(X))
    assert costly.expected_accuracy_ < plain.expected_accuracy_
    reference = LPClassifier.from_moments(MOMENTS, NOISE, priors=PRIORS)
    np.testing.assert_allclose(reference.noise_.priors, PRIORS)
    rows, _, labels = three_classes(400)
    moments = Moments.from_rows(rows, labels, 3)
    costs = np.ones((3, 3)) - np.eye(3) + np.diag([9.0, 9.0], 1)
    careful = LPClassifier.from_moments(moments, SEVERAL, costs=costs)
    assert (
        careful.expected_accuracy_ < LPClassifier.from_moments(moments, SEVERAL).expected_accuracy_
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "noise='estimate' needs rows: give a NoiseModel"),
        ({"noise": TrustedSubset()}, "needs rows: give a NoiseModel"),
        ({"noise": None, "targets": "refined"}, "needs a second pass over the rows"),
        ({"noise": None, "loss": "logistic"}, "loss='logistic' needs rows in every step"),
        ({"noise": None, "reg": "theory"}, "reg='theory' needs rows"),
        ({"noise": None, "reg": -1.0}, "must be 'loo', 'theory' or a finite number"),
        ({"noise": SEVERAL}, "has 3 classes but y has 2"),
        (
            {"noise": None, "readout": "plain", "costs": [[0, 1], [1, 0]]},
            "readout='plain' keeps it at 0",
        ),
        ({"noise": None, "reg": 1e20}, "scores are lost in rounding"),
        ({"noise": None, "targets": (1.0, -1.0)}, "t_neg < t_pos"),
    ],
)
def test_unsupported_options_raise(options, message):
    with pytest.raises(ValueError, match=message):
        LPClassifier.from_moments(MOMENTS, **options)


def test_moments_without_two_classes_or_rows_raise():
    with pytest.raises(ValueError, match="at least two classes"):
        LPClassifier.from_moments(Moments.from_rows(X, 0 * Y, 1), None)
    with pytest.raises(ValueError, match="no rows of positive weight"):
        LPClassifier.from_moments(Moments.from_rows(X[:0], Y[:0], 2), None)
    with pytest.raises(CannotLeaveOutError, match="cannot be left out"):
        LPClassifier.from_moments(Moments.from_rows(X[:40], Y[:40], 2), None, reg=1e-14)


def test_rates_that_contradict_the_labels_warn():
    with pytest.warns(UserWarning, match="leave no true row in class 1"):
        actual = LPClassifier.from_moments(MOMENTS, NoiseModel.binary(eps_pos=0.0, eps_neg=0.7))
    assert actual.noise_.priors[1] < 0.01


def test_an_absent_class_is_rarely_predicted():
    rows, _, labels = three_classes(400)
    seen = labels < 2
    actual = LPClassifier.from_moments(Moments.from_rows(rows[seen], labels[seen], 3), None)
    assert (actual.predict(rows) < 2).mean() > 0.9
    assert actual.noise_.priors[2] < 0.01


def test_a_single_class_is_predicted_everywhere():
    only = Moments.from_rows(X[:50], np.zeros(50, dtype=int), 2)
    actual = LPClassifier.from_moments(only, None)
    assert not actual.predict(X).any()
    assert actual.predict_proba(X)[:, 1].max() < 0.05
    assert actual.expected_accuracy_ == pytest.approx(actual.noise_.priors[0])


def test_attributes_of_rows_are_absent():
    actual = LPClassifier.from_moments(MOMENTS, NOISE)
    for name in ("loo_decision_", "label_posterior_", "loo_log_odds_"):
        assert not hasattr(actual, name)
    assert actual.n_features_in_ == 40
    assert actual.noise_estimator_ is None
    assert not actual.noise_std_.any()


def test_labels_names_and_files_come_through(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"gene {j}" for j in range(40)])
    labels = np.where(Y == 1, "tumour", "normal")
    Moments.from_chunks([(frame, labels)]).save(tmp_path / "sums.npz")
    actual = LPClassifier.from_moments(Moments.load(tmp_path / "sums.npz"), NOISE)
    assert actual.classes_.tolist() == ["normal", "tumour"]
    assert list(actual.feature_names_in_) == list(frame.columns)
    expected = LPClassifier.from_moments(MOMENTS, NOISE).predict(X)
    assert (actual.predict(frame) == np.array(["normal", "tumour"])[expected]).all()


def test_moments_of_any_namespace_give_the_same_fit():
    xp = pytest.importorskip("array_api_strict")
    strict = Moments.from_rows(xp.asarray(X), xp.asarray(Y), 2)
    np.testing.assert_allclose(
        LPClassifier.from_moments(strict, NOISE).coef_,
        LPClassifier.from_moments(MOMENTS, NOISE).coef_,
        rtol=1e-8,
    )


@pytest.mark.parametrize("value", [0.3, 1 / 3e5])
def test_constant_features_have_zero_coefficients_at_reg_0(value):
    weights = np.random.default_rng(0).uniform(0.5, 2, size=60)
    moments = Moments.from_rows(np.full((60, 3), value), Y[:60], 2, weights)
    np.testing.assert_array_equal(LPClassifier.from_moments(moments, NOISE, reg=0.0).coef_, 0)


@pytest.mark.parametrize("constant", [1 / 3, 123.456])
def test_a_constant_column_is_constant_in_sums_of_parts(constant):
    rng = np.random.default_rng(0)
    rows, weights = (
        np.column_stack([rng.normal(size=600), np.full(600, constant)]),
        rng.uniform(0.5, 2, size=600),
    )
    first, *others = (Moments.from_rows(rows[i::5], Y[i::5], 2, weights[i::5]) for i in range(5))
    spectrum = GramSpectrum.from_moments(sum(others, first), fit_intercept=True)
    assert spectrum.n_varying == 1
    np.testing.assert_allclose(
        spectrum.solve(sum(others, first), np.array([-1.0, 1.0]), [0.0]).coef[1], 0, atol=1e-12
    )
