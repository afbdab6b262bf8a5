"""Theory of k classes: agreement with the binary theory, symmetries, paper settings, errors."""

import numpy as np
import pytest
from scipy.special import ndtr

from unflip import NoiseModel, targets, theory
from unflip.theory import multiclass
from unflip.theory.multiclass import MulticlassPrediction, optimal_multi_lpc, predict_multiclass

THREE = NoiseModel([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]], [0.3, 0.3, 0.4])
FOUR = NoiseModel(
    [[0.5, 0.0, 0.5, 0.0], [0.0, 0.7, 0.0, 0.3], [0.0, 0.4, 0.6, 0.0], [0.3, 0.0, 0.0, 0.7]],
    [0.3, 0.2, 0.3, 0.2],
)
LINE = {
    3: np.outer([-2.0, 0.0, 2.0], np.eye(200)[0]),
    4: np.outer([-6.0, -2.0, 2.0, 6.0], np.eye(200)[0]),
}
PAPER = {
    (10.0, True): {
        3: {"naive": 0.381, "unbiased": 0.656, "optimized": 0.403, "readout": 0.761},
        4: {"naive": 0.430, "unbiased": 0.705, "optimized": 0.754, "readout": 0.956},
    },
    (1.0, False): {
        3: {"naive": 0.520, "unbiased": 0.659, "optimized": 0.632, "readout": 0.708},
        4: {"naive": 0.407, "unbiased": 0.560, "optimized": 0.478, "readout": 0.827},
    },
}


def random_mixture(k, p=30, seed=0):
    rng = np.random.default_rng([k, seed])
    transition = rng.dirichlet(np.ones(k), size=k) / 2 + np.eye(k) / 2
    return rng.normal(size=(k, p)) * 2 / np.sqrt(p), NoiseModel(
        transition, rng.dirichlet(np.full(k, 5.0))
    )


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    ("n", "p", "reg"), [(300, 30, 0.1), (50, 50, 10.0), (20, 60, 0.0), (100, 10, 0.0)]
)
@pytest.mark.parametrize("name", ["naive", "unbiased", "optimized", (-1.0, 3.0)])
def test_two_classes_match_binary_theory(name, n, p, reg, fit_intercept):
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    mu = np.random.default_rng(0).normal(size=p)
    mu *= 1.7 / np.linalg.norm(mu)
    values = targets.resolve(name, noise)
    mixture = theory.Mixture(mean_norm=1.7, aspect=p / n, noise=noise)
    binary = theory.predict(mixture, targets=values, reg=reg, fit_intercept=fit_intercept)

    setting = {
        "means": [-mu, mu],
        "n": n,
        "noise": noise,
        "reg": reg,
        "fit_intercept": fit_intercept,
    }
    column = predict_multiclass(targets=values[:, None], **setting)
    np.testing.assert_allclose(column.means[:, 0], binary.means, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(column.covariance, [[binary.variance]], rtol=1e-10)
    assert column.readout_accuracy == pytest.approx(float(binary.best_accuracy), abs=1e-10)

    both = predict_multiclass(targets=np.column_stack([-values, values]) / 2, **setting)
    assert both.accuracy == pytest.approx(float(binary.accuracy_at(0.0)), abs=1e-10)
    if isinstance(name, str):
        table = predict_multiclass(targets=name, **setting)
        np.testing.assert_allclose(
            table.means[:, 1] - table.means[:, 0], binary.means, rtol=1e-10, atol=1e-10
        )
        assert table.accuracy == pytest.approx(float(binary.accuracy_at(0.0)), abs=1e-10)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("k", "p", "n"), [(3, 1, 10), (4, 2, 3), (5, 5, 5), (3, 30, 50)])
def test_prediction_matches_derivation(k, p, n, fit_intercept):
    """G and B of docs/theory/multiclass.md, also for fewer features than classes."""
    means, noise = random_mixture(k, p)
    aspect, reg, identity = p / n, 0.3, np.eye(k)
    centres, expected, second = means, noise.transition, np.diag(noise.observed)
    if fit_intercept:
        centres, expected = means - noise.priors @ means, expected - noise.observed
        second = second - np.outer(noise.observed, noise.observed)
    gain, share = 1 / (1 + reg * (1 + theory.delta(aspect, reg))), theory.h(aspect, reg)
    weights = np.diag(noise.priors)
    gram = centres @ centres.T
    scores = np.linalg.solve(identity + gain * gram @ weights, gain * gram @ weights @ expected)
    pulls = weights @ (expected - scores)
    cross = expected.T @ weights @ scores
    residual = second - cross - cross.T + scores.T @ weights @ scores
    covariance = (gain**2 * pulls.T @ gram @ pulls + (1 - share) * residual) / share
    prediction = predict_multiclass(
        means=means, n=n, noise=noise, targets="naive", reg=reg, fit_intercept=fit_intercept
    )
    np.testing.assert_allclose(
        prediction.means, scores + (noise.observed if fit_intercept else 0), rtol=1e-10
    )
    np.testing.assert_allclose(prediction.covariance, covariance, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", ["naive", "unbiased", "optimized"])
def test_permuted_classes_permute_the_results(name, fit_intercept):
    means, noise = random_mixture(4)
    order = np.array([2, 0, 3, 1])
    permuted = NoiseModel(noise.transition[np.ix_(order, order)], noise.priors[order])
    setting = {"n": 60, "targets": name, "reg": 0.5, "fit_intercept": fit_intercept}
    one = predict_multiclass(means=means, noise=noise, **setting)
    other = predict_multiclass(means=means[order], noise=permuted, **setting)
    np.testing.assert_allclose(other.means, one.means[np.ix_(order, order)], atol=1e-12)
    np.testing.assert_allclose(other.covariance, one.covariance[np.ix_(order, order)], atol=1e-12)
    np.testing.assert_allclose(other.class_accuracies, one.class_accuracies[order], atol=1e-10)
    assert other.accuracy == pytest.approx(one.accuracy, abs=1e-10)
    assert other.readout_accuracy == pytest.approx(one.readout_accuracy, abs=1e-8)


def test_rotations_and_with_intercept_shifts_change_nothing():
    means, noise = random_mixture(3)
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(30, 30)))
    for fit_intercept, other in ((False, means @ rotation), (True, means @ rotation + 5.0)):
        setting = {"n": 40, "noise": noise, "reg": 0.1, "fit_intercept": fit_intercept}
        np.testing.assert_allclose(
            predict_multiclass(means=other, **setting).means,
            predict_multiclass(means=means, **setting).means,
        )


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_invertible_tables_have_same_readout_accuracy(fit_intercept):
    means, noise = random_mixture(4)
    tables = ["naive", "unbiased", "optimized", np.random.default_rng(2).normal(size=(4, 4))]
    setting = {"means": means, "n": 60, "noise": noise, "reg": 0.5, "fit_intercept": fit_intercept}
    prediction = [predict_multiclass(targets=table, **setting) for table in tables]
    np.testing.assert_allclose(
        [p.readout_accuracy for p in prediction], prediction[0].readout_accuracy, atol=1e-8
    )
    assert all(p.accuracy < p.readout_accuracy + 1e-4 for p in prediction)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_common_factor_and_a_common_constant_keep_the_argmax(fit_intercept):
    means, noise = random_mixture(3)
    setting = {"means": means, "n": 60, "noise": noise, "reg": 0.5, "fit_intercept": fit_intercept}
    table = np.random.default_rng(3).normal(size=(3, 3))
    accuracies = predict_multiclass(targets=table, **setting).class_accuracies
    for same in (
        100 * table,
        1e14 * table,
        1e-14 * table,
        table + 7.0,
        table + np.array([[1.0], [2.0], [3.0]]),
    ):
        np.testing.assert_allclose(
            predict_multiclass(targets=same, **setting).class_accuracies, accuracies, atol=1e-10
        )


def test_readout_of_features_is_bayes():
    """Classes at −2, 0, 2 with N(0, 1) noise: thresholds −1 and 1 + ½ log(π₂/π₃)."""
    priors, upper = THREE.priors, 1 + np.log(0.3 / 0.4) / 2
    expected = priors @ [ndtr(1), ndtr(upper) - ndtr(-1), ndtr(2 - upper)]
    result = MulticlassPrediction(
        means=np.array([[-2.0], [0.0], [2.0]]), covariance=np.eye(1), priors=priors
    )
    assert result.readout_accuracy == pytest.approx(expected, abs=1e-12)
    assert expected == pytest.approx(0.7955, abs=1e-4)


@pytest.mark.parametrize(("reg", "fit_intercept"), PAPER)
@pytest.mark.parametrize("noise", [THREE, FOUR], ids=["3 classes", "4 classes"])
def test_settings_of_paper(noise, reg, fit_intercept):
    """The table of docs/theory/multiclass.md."""
    setting = {
        "means": LINE[noise.n_classes],
        "n": 2000,
        "noise": noise,
        "reg": reg,
        "fit_intercept": fit_intercept,
    }
    expected = PAPER[reg, fit_intercept][noise.n_classes]
    for name in ("naive", "unbiased", "optimized"):
        prediction = predict_multiclass(targets=name, **setting)
        assert prediction.accuracy == pytest.approx(expected[name], abs=6e-4)
        assert prediction.readout_accuracy == pytest.approx(expected["readout"], abs=6e-4)


@pytest.mark.parametrize(
    "noise", [THREE, pytest.param(FOUR, marks=pytest.mark.slow)], ids=["3 classes", "4 classes"]
)
@pytest.mark.parametrize(
    ("reg", "fit_intercept", "best", "worst"),
    [
        (10.0, True, {3: 0.7585, 4: 0.9209}, {3: 0.0254, 4: 0.0}),
        (1.0, False, {3: 0.6694, 4: 0.603}, {3: 0.051, 4: 0.007}),
    ],
)
def test_best_and_worst_pair(noise, reg, fit_intercept, best, worst):
    k = noise.n_classes
    setting = {
        "means": LINE[k],
        "n": 2000,
        "noise": noise,
        "reg": reg,
        "fit_intercept": fit_intercept,
    }
    reached = []
    for is_worst in (False, True):
        alpha, beta = optimal_multi_lpc(worst=is_worst, **setting)
        assert beta.sum() == pytest.approx(0, abs=1e-12)
        assert np.sum(alpha**2 + beta**2) == pytest.approx(k)
        reached.append(
            predict_multiclass(targets=targets.multi_lpc(alpha, beta), **setting).accuracy
        )
    draws = np.random.default_rng(0).normal(size=(300, 2, k))
    drawn = [
        predict_multiclass(targets=targets.multi_lpc(*pair), **setting).accuracy for pair in draws
    ]
    assert reached[1] <= min(drawn)
    assert max(drawn) <= reached[0]
    assert reached == pytest.approx([best[k], worst[k]], abs=2e-3)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_best_pair_of_two_classes_is_binary_optimum(fit_intercept):
    """It is the posterior targets, or the best threshold with an intercept; reversed, the worst."""
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    binary = theory.predict(
        theory.Mixture(mean_norm=1.7, aspect=0.5, noise=noise), reg=1.0, fit_intercept=fit_intercept
    )
    setting = {"means": 1.7 * np.eye(1, 50) * [[-1], [1]], "n": 100, "noise": noise, "reg": 1.0}
    setting |= {"fit_intercept": True} if fit_intercept else {}
    best = float(binary.best_accuracy if fit_intercept else binary.accuracy)
    for options, expected in (({}, best), ({"worst": True}, 1 - best)):
        alpha, beta = optimal_multi_lpc(**options, **setting)
        assert beta.sum() == pytest.approx(0, abs=1e-12)
        assert np.sum(alpha**2 + beta**2) == pytest.approx(2)
        table = targets.multi_lpc(alpha, beta)
        assert predict_multiclass(targets=table, **setting).accuracy == pytest.approx(
            expected, abs=1e-6
        )
    np.testing.assert_array_equal(optimal_multi_lpc(**options, **setting), (alpha, beta))


def test_pair_search_uses_standardised_scores():
    """Slopes and intercepts of a pair are standard deviations and means of its scores."""
    means, noise = random_mixture(4)
    slopes, offsets = np.array([1.0, -0.2, 3.0, 0.05]), np.array([0.3, -1.0, 0.0, 2.0])
    law = multiclass._one_hot_law(means, 60, noise, 0.5, True)
    prediction = law.regressed_on(
        targets.multi_lpc(*multiclass._pair(law, np.concatenate([slopes, offsets])))
    )
    np.testing.assert_allclose(noise.priors @ prediction.means, offsets, atol=1e-12)
    between = noise.priors @ (prediction.means - offsets) ** 2
    np.testing.assert_allclose(prediction.covariance.diagonal() + between, slopes**2, rtol=1e-10)


def test_pair_search_starts_from_scores_of_all_magnitudes():
    starts = np.array(multiclass._starts(4))
    assert starts.shape == (multiclass._N_STARTS, 8)
    np.testing.assert_allclose(np.linalg.norm(starts, axis=1), 1)
    assert 0.7 < np.log10(np.abs(starts)).std() < 1.5
    assert np.abs(starts.mean(axis=0)).max() < 0.05


def test_equal_scores_predict_first_class():
    means, noise = random_mixture(3)
    setting = {"means": means, "n": 60, "noise": noise, "reg": 0.5}
    same = predict_multiclass(targets=np.ones((3, 3)), **setting)
    np.testing.assert_array_equal(same.class_accuracies, [1, 0, 0])
    constant = predict_multiclass(
        targets=np.ones((3, 1)) * [1.0, 3.0, 2.0], fit_intercept=True, **setting
    )
    np.testing.assert_array_equal(constant.class_accuracies, [0, 1, 0])
    assert constant.readout_accuracy == pytest.approx(noise.priors.max())


def test_first_of_two_equal_scores_wins_at_any_position():
    """Scores 1 and 2 are one variable: class 1 exceeds score 0 with it, class 2 never wins."""
    law = MulticlassPrediction(
        means=np.array([[0.5, 0.0, 0.0], [-1.0, 2.0, 2.0], [0.0, 1.0, 1.0]]),
        covariance=np.array([[2.0, 0.5, 0.5], [0.5, 1.0, 1.0], [0.5, 1.0, 1.0]]),
        priors=THREE.priors,
    )
    std = np.sqrt(2.0 + 1.0 - 2 * 0.5)
    np.testing.assert_allclose(
        law.class_accuracies, [ndtr(0.5 / std), ndtr(3.0 / std), 0.0], rtol=1e-12
    )
    assert law.accuracy == pytest.approx(THREE.priors @ law.class_accuracies)


@pytest.mark.parametrize("units", [(1.0, 1.0, 1.0, 1.0), (1e-9, 1.0, 1e9, 5.0)], ids=str)
def test_readout_of_independent_scores_in_any_units(units):
    """Balanced classes at the corners of a simplex: the largest score in common units wins."""
    even = MulticlassPrediction(means=2 * np.eye(4), covariance=np.eye(4), priors=np.full(4, 1 / 4))
    scaled = MulticlassPrediction(
        means=2 * np.eye(4) * units, covariance=np.diag(units) ** 2, priors=even.priors
    )
    z = np.linspace(-9, 9, 2001)
    expected = np.sum(ndtr(z + 2) ** 3 * np.exp(-(z**2) / 2)) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    assert even.accuracy == pytest.approx(expected, abs=1e-6)
    assert scaled.readout_accuracy == pytest.approx(expected, abs=1e-6)


def test_small_noise_rates_of_distant_classes_are_accurate():
    """Only label noise spreads the scores: the variance equals that of the binary theory."""
    noise = NoiseModel.binary(eps_pos=1e-13, eps_neg=2e-13, pi_neg=0.3)
    mixture = theory.Mixture(mean_norm=1e8, aspect=0.5, noise=noise)
    setting = {
        "means": 1e8 * np.eye(1, 20) * [[-1], [1]],
        "n": 40,
        "noise": noise,
        "targets": [[-1.0], [1.0]],
    }
    for fit_intercept in (False, True):
        prediction = theory.predict(mixture, targets="naive", reg=1.0, fit_intercept=fit_intercept)
        predicted_law = predict_multiclass(reg=1.0, fit_intercept=fit_intercept, **setting)
        np.testing.assert_allclose(predicted_law.covariance, [[prediction.variance]], rtol=1e-10)


@pytest.mark.parametrize("name", ["naive", "unbiased", "optimized"])
def test_strong_regularization_only_scales_scores(name):
    """At large γ scores are multiples of each other. Also checks the default parameters."""
    means, noise = random_mixture(3)
    mild, strong = (
        predict_multiclass(means=means, n=60, noise=noise, targets=name, reg=reg)
        for reg in (1e4, 1e14)
    )
    np.testing.assert_allclose(1e10 * strong.means, mild.means, rtol=1e-3)
    np.testing.assert_allclose(strong.class_accuracies, mild.class_accuracies, rtol=1e-3)
    assert strong.readout_accuracy == pytest.approx(mild.readout_accuracy, abs=1e-3)


def test_identical_classes():
    """All rows of two identical classes are assigned to the more frequent one."""
    noise = NoiseModel.none(3).with_priors([0.2, 0.3, 0.5])
    means = np.zeros((3, 10))
    means[2, 0] = 20.0
    prediction = predict_multiclass(means=means, n=1000, noise=noise, reg=1.0)
    assert prediction.readout_accuracy == pytest.approx(0.8, abs=1e-6)


def test_ten_classes():
    means, noise = random_mixture(10, p=50)
    prediction = predict_multiclass(means=means, n=500, noise=noise, reg=1.0)
    assert 0.1 < prediction.accuracy < prediction.readout_accuracy < 1
    assert prediction.class_accuracies.shape == (10,)


SETTING = {"means": np.eye(3, 5), "n": 10, "noise": THREE, "reg": 1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"means": np.eye(4, 5)}, r"means has shape \(4, 5\).*3 classes"),
        ({"means": np.ones(3)}, r"means has shape \(3,\)"),
        ({"means": np.ones((3, 0))}, r"means has shape \(3, 0\)"),
        ({"means": np.full((3, 5), np.nan)}, "means hold a value that is not finite"),
        ({"means": [[1.0], [2.0, 3.0], [4.0]]}, "means = .* must hold numbers"),
        ({"n": 0}, "n = 0 must be a whole number of at least 1"),
        ({"n": 2.5}, "n = 2.5 must be"),
        ({"reg": -1.0}, "reg = -1.0 must be"),
        ({"reg": np.inf}, "reg = inf must be"),
        ({"reg": [1.0, 2.0]}, r"reg = \[1.0, 2.0\] must be one number"),
        ({"reg": 0.0, "n": 5}, "reg = 0 at p = n"),
        ({"noise": NoiseModel.none(3)}, "has no priors"),
        ({"noise": THREE.transition}, "must be a NoiseModel"),
    ],
)
def test_invalid_settings_raise(change, message):
    for function in (predict_multiclass, optimal_multi_lpc):
        with pytest.raises(ValueError, match=message):
            function(**(SETTING | change))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "best",
            "targets='best' is not a valid value: use 'naive', 'unbiased', 'optimized' or a table",
        ),
        (np.eye(4), r"targets has shape \(4, 4\).*3 observed classes"),
        (np.ones(3), r"targets has shape \(3,\)"),
        (np.full((3, 3), np.inf), "targets hold a value that is not finite"),
    ],
)
def test_invalid_targets_raise(table, message):
    with pytest.raises(ValueError, match=message):
        predict_multiclass(targets=table, **SETTING)


def test_accuracy_needs_one_score_per_class_and_at_most_ten_classes():
    with pytest.raises(ValueError, match="2 scores of 3 classes"):
        _ = predict_multiclass(targets=np.eye(3, 2), **SETTING).accuracy
    many = NoiseModel.none(11).with_priors(np.full(11, 1 / 11))
    with pytest.raises(ValueError, match="up to 10 classes; this mixture has 11"):
        _ = predict_multiclass(means=np.eye(11), n=100, noise=many, reg=1.0).accuracy


def test_bayes_accuracy_bounds_every_fit():
    noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1, pi_neg=0.5)
    mu = np.ones((1, 9)) / 3 * 1.3
    assert theory.multiclass_bayes_accuracy(
        means=np.vstack([-mu, mu]), noise=noise
    ) == pytest.approx(ndtr(1.3))
    for k, noise in ((3, THREE), (4, FOUR)):
        bayes = theory.multiclass_bayes_accuracy(means=LINE[k], noise=noise)
        points, priors = LINE[k][:, 0], noise.priors
        grid = np.linspace(-12, 12, 200_001)
        densities = (
            priors[:, None] * np.exp(-((grid - points[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi)
        )
        assert bayes == pytest.approx(densities.max(axis=0).sum() * (grid[1] - grid[0]), abs=1e-4)
        many = predict_multiclass(means=LINE[k], n=10**7, noise=noise, reg=0.01, fit_intercept=True)
        assert bayes - 1e-3 < many.readout_accuracy < bayes + 1e-4


@pytest.mark.parametrize("readout", ["plain", "best"])
def test_optimal_multiclass_reg(readout):
    setting = {
        "means": LINE[3],
        "n": 2000,
        "noise": THREE,
        "targets": "unbiased",
        "fit_intercept": True,
    }
    best = theory.optimal_multiclass_reg(**setting, readout=readout)

    def accuracy(reg):
        prediction = predict_multiclass(**setting, reg=reg)
        return prediction.accuracy if readout == "plain" else prediction.readout_accuracy

    reached = accuracy(1e8 if np.isinf(best) else best)
    assert all(accuracy(reg) <= reached + 2e-5 for reg in np.logspace(-4, 4, 9))
    with pytest.raises(ValueError, match="readout='fisher' is not a valid value"):
        theory.optimal_multiclass_reg(**setting, readout="fisher")


def test_common_offsets_of_features_or_scores_change_nothing():
    setting = {"n": 2000, "noise": THREE, "reg": 10.0, "fit_intercept": True}
    plain = predict_multiclass(means=LINE[3], targets="naive", **setting)
    lifted = predict_multiclass(means=LINE[3], targets=np.eye(3) + 1e5, **setting)
    assert lifted.accuracy == pytest.approx(plain.accuracy, abs=1e-4)
    moved = predict_multiclass(means=LINE[3] + 300, targets="naive", **setting)
    assert moved.readout_accuracy == pytest.approx(plain.readout_accuracy, abs=1e-4)
    bayes = theory.multiclass_bayes_accuracy(means=LINE[3], noise=THREE)
    assert theory.multiclass_bayes_accuracy(means=LINE[3] + 1e6, noise=THREE) == pytest.approx(
        bayes, abs=1e-6
    )
