"""The paper's estimator of noise rates: algebra, moments and standard errors."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from unflip import NoiseModel, targets, theory
from unflip.datasets import make_mixture
from unflip.estimation.second_moment import (
    SecondMomentMatching,
    jackknife_covariance,
    left_out_rows,
    match_moments,
    moment_system,
    standard_errors,
)
from unflip.ridge.spectrum import decompose

RHO_PAIRS = ((0.0, 0.1), (0.0, 0.4))
NO_ROOT = "ignore:No noise rates reproduce both:UserWarning"
PRIORS = (1 / 3, 2 / 3)


def system_of(pi_neg=1 / 3, mean_norm=2.0, aspect=0.1, reg=0.1, rho_pairs=RHO_PAIRS):
    return moment_system(
        mean_norm=mean_norm, pi_neg=pi_neg, aspect=aspect, reg=reg, rho_pairs=rho_pairs
    )


def theory_moments(noise, mean_norm=2.0, aspect=0.1, reg=0.1, rho_pairs=RHO_PAIRS):
    mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise)
    return np.array(
        [
            float(theory.predict(mixture, targets=targets.from_rho(*rho), reg=reg).second_moment)
            for rho in rho_pairs
        ]
    )


def draw(n, p, eps_pos, eps_neg, seed, mean_norm=2.0):
    rng = np.random.default_rng(seed)
    X, y = make_mixture(n, p, mean_norm=mean_norm, priors=PRIORS, random_state=rng)
    return X, NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg).flip(y, rng)


@pytest.mark.parametrize("pi_neg", [0.2, 1 / 3, 0.5, 0.7])
@pytest.mark.parametrize(
    ("eps_pos", "eps_neg"), [(0.0, 0.0), (0.1, 0.2), (0.3, 0.2), (0.0, 0.6), (0.75, 0.1)]
)
@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"mean_norm": 0.5, "aspect": 2.0, "reg": 10.0},
        {"mean_norm": 3.0, "aspect": 1.0, "reg": 0.01},  # the gain of E[t·y]² is negative here
        {"rho_pairs": ((0.9, 0.6), (-1.0, 0.0))},  # a sum above 1, a negative parameter
    ],
)
def test_moments_of_the_theory_give_the_true_rates(pi_neg, eps_pos, eps_neg, setting):
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg, pi_neg=pi_neg)
    moments = theory_moments(noise, **setting)
    system = system_of(pi_neg, **setting)
    np.testing.assert_allclose(system.second_moments(eps_pos, eps_neg), moments, rtol=1e-10)
    match = match_moments(moments, system, positive_share=float(noise.observed[1]))
    np.testing.assert_allclose([match.eps_pos, match.eps_neg], [eps_pos, eps_neg], atol=1e-8)
    assert match.inside
    assert match.residual < 1e-8


def test_observed_proportions_decide_between_two_valid_solutions():
    """A second solution exists if more than half of the labels are wrong."""
    noise = NoiseModel.binary(eps_pos=0.6, eps_neg=0.35, pi_neg=1 / 3)
    system = system_of()
    moments = theory_moments(noise)
    mirror = max(system.roots(moments), key=lambda root: abs(root[0] - 0.6))
    assert min(mirror) > 0
    assert sum(mirror) < 1
    np.testing.assert_allclose(system.second_moments(*mirror), moments, rtol=1e-12)
    other = NoiseModel.binary(eps_pos=mirror[0], eps_neg=mirror[1], pi_neg=1 / 3).observed[1]
    assert match_moments(
        moments, system, positive_share=float(noise.observed[1])
    ).eps_pos == pytest.approx(0.6)
    assert match_moments(moments, system, positive_share=float(other)).eps_pos == pytest.approx(
        mirror[0]
    )


def test_balanced_classes_have_one_valid_solution():
    system = system_of(pi_neg=0.5)
    for eps_pos, eps_neg in np.random.default_rng(0).dirichlet([1, 1, 1], size=50)[:, :2]:
        sums = [sum(root) for root in system.roots(system.second_moments(eps_pos, eps_neg))]
        assert sorted(total < 1 for total in sums) == [False, True]


def test_nearest_rates_are_the_best_on_a_grid():
    system = system_of()
    grid = [(a, b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1, 101) if a + b < 1]
    for moments in (
        1.3 * system.second_moments(0, 0),
        system.second_moments(0.1, 0.1) * [0.9, 1.2],
        [0.01, 0.02],
    ):
        match = match_moments(np.asarray(moments), system, positive_share=0.5)
        misfits = [
            np.sqrt(np.mean((system.second_moments(*point) / moments - 1) ** 2)) for point in grid
        ]
        assert not match.inside
        assert min(match.eps_pos, match.eps_neg) >= 0
        assert match.eps_pos + match.eps_neg < 1
        assert 0 < match.residual <= min(misfits) + 1e-9


def test_jacobian_equals_finite_differences():
    system = system_of()
    point = np.array([0.3, 0.2])
    step = 1e-6
    differences = [
        (system.second_moments(*(point + move)) - system.second_moments(*(point - move)))
        / (2 * step)
        for move in step * np.eye(2)
    ]
    np.testing.assert_allclose(system.jacobian(*point), np.transpose(differences), rtol=1e-7)


def test_standard_errors_are_one_if_rates_are_not_identifiable():
    half_right = (0.75 * (1 - 0.2 / 1.5), 0.2)  # E[ỹy] = 1 − (4/3)ε₊ − (2/3)ε₋ = 0
    np.testing.assert_array_equal(
        standard_errors(system_of().jacobian(*half_right), 1e-8 * np.eye(2)), [1, 1]
    )
    np.testing.assert_array_equal(standard_errors(np.zeros((2, 2)), np.eye(2)), [1, 1])
    np.testing.assert_array_equal(standard_errors(np.eye(2), np.full((2, 2), np.nan)), [1, 1])
    reg = brentq(lambda g: system_of(mean_norm=3.0, aspect=1.0, reg=g).alignment_gain, 0.01, 1.0)
    gain = 1 / (1 + reg * (1 + float(theory.delta(1.0, reg))))
    # The condition in the docstring of the module, with η = 1 and ‖μ‖² = 9.
    assert 2 * gain * (1 + 9 * gain) == pytest.approx(1 + 9)


def score(X, t, row, out, alpha):
    keep = np.setdiff1d(np.arange(len(X)), out)
    gram = X[keep].T @ X[keep] + alpha * np.eye(X.shape[1])
    return X[row] @ np.linalg.solve(gram, X[keep].T @ t[keep])


@pytest.mark.filterwarnings(NO_ROOT)
@pytest.mark.parametrize("p", [8, 40])
def test_moments_and_their_jackknife_equal_refits(p):
    n, reg = 30, 0.1
    X, observed = draw(n, p, 0.2, 0.2, seed=1)
    columns = np.column_stack([targets.from_rho(*rho)[observed] for rho in RHO_PAIRS])
    brute = [np.mean([score(X, t, i, [i], n * reg) ** 2 for i in range(n)]) for t in columns.T]
    estimator = SecondMomentMatching(mean_norm=2.0, pi_neg=1 / 3, reg=reg).fit(X, observed)
    np.testing.assert_allclose(estimator.second_moments_, brute, rtol=1e-10)

    without = [
        [
            np.mean([score(X, t, i, [i, j], n * reg) ** 2 for i in range(n) if i != j])
            for j in range(n)
        ]
        for t in columns.T
    ]
    spectrum = decompose(X, fit_intercept=False)
    residual_maker = spectrum.leave_one_out(np.eye(n), [reg]).residuals[:, 0, :]
    covariance = jackknife_covariance(spectrum.leave_one_out(columns, [reg]), residual_maker)
    np.testing.assert_allclose(covariance, (n - 1) ** 2 / n * np.cov(without), rtol=1e-8)
    expected = standard_errors(
        system_of(aspect=p / n).jacobian(estimator.noise_.eps_pos, estimator.noise_.eps_neg),
        covariance,
    )
    np.testing.assert_allclose(
        estimator.noise_std_, [[expected[1]] * 2, [expected[0]] * 2], rtol=1e-8
    )


def test_jackknife_over_a_sample_of_rows():
    X, observed = draw(1000, 50, 0.2, 0.2, seed=0)
    rows = left_out_rows(1000)
    assert len(rows) == len(set(rows.tolist())) == 250
    spectrum = decompose(X, fit_intercept=False)
    columns = np.column_stack([targets.from_rho(*rho)[observed] for rho in RHO_PAIRS])
    left_out = spectrum.leave_one_out(columns, [0.1])
    maker = spectrum.leave_one_out(np.eye(1000), [0.1]).residuals
    sample = jackknife_covariance(left_out, maker[:, 0, rows])
    slack = np.diag(maker[:, 0, :])
    r = left_out.residuals[:, 0, 0]
    pairs = np.outer(slack, slack) - maker[:, 0, :] ** 2 + np.diag(np.full(1000, np.inf))
    squares = (columns[:, [0]] - (slack * r[:, None] - maker[:, 0, :] * r) / pairs) ** 2
    full = 999**2 / 1000 * np.var((squares.sum(axis=0) - columns[:, 0] ** 2) / 999, ddof=1)
    assert sample[0, 0] == pytest.approx(full, rel=4 * np.sqrt(2 / 250))


@pytest.mark.filterwarnings(NO_ROOT)
@pytest.mark.parametrize("eps_pos", [0.1, 0.3])
def test_estimates_are_unbiased_and_intervals_have_coverage(eps_pos):
    n_draws = 20
    errors, covered = [], []
    for seed in range(n_draws):
        X, observed = draw(1000, 100, eps_pos, 0.2, seed=[seed, int(10 * eps_pos)])
        estimator = SecondMomentMatching(mean_norm=2.0, pi_neg=1 / 3).fit(X, observed)
        low, high = estimator.interval(0.95)
        truth = NoiseModel.binary(eps_pos=eps_pos, eps_neg=0.2).transition
        errors.append((estimator.noise_.transition - truth)[[1, 0], [0, 1]])
        covered.append(((low <= truth) & (truth <= high))[[1, 0], [0, 1]])
    spread = np.std(errors, axis=0, ddof=1) / np.sqrt(n_draws)
    assert (np.abs(np.mean(errors, axis=0)) < 4 * spread).all()
    assert (np.sum(covered, axis=0) >= binom.ppf(0.001, n_draws, 0.95)).all()


def test_many_rows_and_features_give_precise_rates():
    X, observed = draw(2000, 1000, 0.3, 0.2, seed=0)
    estimator = SecondMomentMatching(mean_norm=2.0, pi_neg=1 / 3).fit(
        X, np.array(["no", "yes"])[observed]
    )
    assert estimator.root_inside_
    assert estimator.residual_ < 1e-8
    assert estimator.classes_.tolist() == ["no", "yes"]
    assert estimator.n_features_in_ == 1000
    assert estimator.mean_norm_ == 2.0
    assert estimator.noise_.priors[0] == 1 / 3
    errors = np.abs(
        estimator.noise_.transition - NoiseModel.binary(eps_pos=0.3, eps_neg=0.2).transition
    )
    assert (errors < 4 * estimator.noise_std_).all()
    assert estimator.noise_std_.max() < 0.2


@pytest.mark.filterwarnings(NO_ROOT)
def test_standard_errors_grow_with_rows_at_fixed_dimension():
    """The term that separates the two rates decreases with p/n."""
    few, many = (
        SecondMomentMatching(mean_norm=1.0, pi_neg=1 / 3)
        .fit(*draw(n, 50, 0.3, 0.2, seed=0, mean_norm=1.0))
        .noise_std_
        for n in (500, 8000)
    )
    assert (many > few).all()


def test_no_valid_solution_gives_a_warning():
    X, observed = draw(300, 30, 0.1, 0.1, seed=0, mean_norm=2.0)
    estimator = SecondMomentMatching(mean_norm=0.5, pi_neg=1 / 3)  # far below the true 2.0
    with pytest.warns(
        UserWarning, match=r"No noise rates reproduce both .* use CrossMoment, or another reg"
    ) as caught:
        estimator.fit(X, observed)
    assert caught[0].filename == __file__
    assert not estimator.root_inside_
    assert estimator.residual_ > 0.1
    assert np.isfinite(estimator.noise_std_).all()
    assert estimator.noise_std_.max() <= 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mean_norm": 0.0}, r"mean_norm = 0\.0 must be a positive number: pass ‖μ‖"),
        ({"mean_norm": None}, "mean_norm = None must be a positive number"),
        ({"mean_norm": [1.0, 2.0]}, r"mean_norm = \[1\.0, 2\.0\] must be one number"),
        ({"mean_norm": "large"}, "mean_norm = 'large' must hold numbers"),
        ({"mean_norm": np.inf}, "mean_norm = inf must be a positive number"),
        ({"pi_neg": 1.0}, r"pi_neg = 1\.0 must lie strictly between 0 and 1"),
        ({"pi_neg": np.nan}, "pi_neg = nan must lie strictly between 0 and 1"),
        ({"reg": 0.0}, r"reg = 0\.0 must be a positive number: pass the regularization strength"),
        ({"reg": -1}, "reg = -1 must be a positive number"),
        ({"rho_pairs": (0.0, 0.1)}, r"rho_pairs = \(0\.0, 0\.1\) must be two pairs"),
        ({"rho_pairs": "two"}, "rho_pairs = 'two' must hold numbers"),
        (
            {"rho_pairs": ((0.1, 0.2), (0.3, 0.4))},
            r"have the same difference rho_pos - rho_neg = -0\.1",
        ),
        (
            {"rho_pairs": ((0.0, 0.1), (0.5, 0.5))},
            r"rho_pos \+ rho_neg = 0\.5 \+ 0\.5 must be finite and differ from 1",
        ),
        ({"rho_pairs": ((0.0, 0.1), (np.nan, 0.5))}, "must be finite and differ from 1"),
    ],
)
def test_invalid_parameters_raise(parameters, message):
    X, observed = draw(40, 3, 0.1, 0.1, seed=0)
    estimator = SecondMomentMatching(**{"mean_norm": 2.0, "pi_neg": 0.5, **parameters})
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, observed)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((6, 2)), np.arange(6) % 3, "requires two classes, but y holds 3"),
        (np.ones((6, 2)), np.zeros(6), "needs at least two classes"),
        (np.ones((6, 2)), np.linspace(0, 1, 6), "needs class labels"),
        (np.ones((6, 2)), None, "requires y to be passed"),
        (np.full((6, 2), np.nan), np.arange(6) % 2, "contains NaN"),
        (np.zeros((6, 2)), np.arange(6) % 2, "scale the rows so that their noise has variance 1"),
    ],
)
def test_invalid_data_raise(X, y, message):
    with pytest.raises(ValueError, match=message):
        SecondMomentMatching(mean_norm=2.0, pi_neg=0.5).fit(X, y)


@pytest.mark.filterwarnings(NO_ROOT)
def test_standard_errors_are_finite_if_two_rows_alone_determine_a_direction():
    X, observed = draw(40, 3, 0.1, 0.1, seed=0)
    X = np.column_stack([X, np.zeros(40)])
    X[:2] = [0, 0, 0, 1e4]
    estimator = SecondMomentMatching(mean_norm=2.0, pi_neg=1 / 3, reg=1e-13).fit(X, observed)
    assert np.isfinite(estimator.noise_std_).all()


def test_scikit_learn_api():
    estimator = SecondMomentMatching(mean_norm=2.0, pi_neg=0.3, reg=1.0)
    assert estimator.get_params() == {
        "mean_norm": 2.0,
        "pi_neg": 0.3,
        "reg": 1.0,
        "rho_pairs": RHO_PAIRS,
    }
    assert clone(estimator).get_params() == estimator.get_params()
    assert clone(estimator.set_params(pi_neg=0.4)).pi_neg == 0.4
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    with pytest.raises(TypeError):
        SecondMomentMatching(2.0, 0.3)
