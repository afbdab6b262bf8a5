"""Theory of convex losses: agreement with the squared loss, the fixed point, limits and errors."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from unflip import NoiseModel, targets, theory
from unflip.losses import LOGISTIC, SQUARED, Loss, TargetLoss
from unflip.theory.convex import optimal_convex_targets, predict_convex, prox

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
CLEAN = NoiseModel.binary(eps_pos=0.0, eps_neg=0.0, pi_neg=0.5)
SKEWED = NoiseModel.binary(eps_pos=0.6, eps_neg=0.3, pi_neg=0.1)
MIXTURE = theory.Mixture(mean_norm=2.0, aspect=1.0, noise=NOISE)
NAMES = ("naive", "unbiased", "optimized")
INTERCEPT = pytest.mark.parametrize("fit_intercept", [False, True], ids=["origin", "intercept"])

EXPONENTIAL = Loss(
    "exponential",
    lambda s, y: np.exp(-np.asarray(y) * s),
    lambda s, y: -np.asarray(y) * np.exp(-np.asarray(y) * s),
    lambda s, y: np.exp(-np.asarray(y) * s),
)
SQUARED_HINGE = Loss(
    "squared hinge",
    lambda s, y: np.maximum(1 - np.asarray(y) * s, 0) ** 2,
    lambda s, y: -2 * np.asarray(y) * np.maximum(1 - np.asarray(y) * s, 0),
    lambda s, y: 2.0 * (np.asarray(y) * s < 1),
)


@INTERCEPT
@pytest.mark.parametrize("values", [*NAMES, (-3.0, 0.1)], ids=str)
@pytest.mark.parametrize("noise", [NOISE, CLEAN, SKEWED], ids=repr)
@pytest.mark.parametrize(
    "setting", [(2.0, 0.1, 0.1), (1.0, 1.0, 10.0), (0.5, 3.0, 0.01), (0.0, 20.0, 1.0)]
)
def test_squared_loss_matches_ridge_theory(setting, noise, values, fit_intercept):
    mean_norm, aspect, reg = setting
    mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise)
    ours = predict_convex(
        mixture, targets=values, reg=reg, loss=SQUARED, fit_intercept=fit_intercept
    )
    prediction = theory.predict(mixture, targets=values, reg=reg, fit_intercept=fit_intercept)
    np.testing.assert_allclose(ours.means, prediction.means, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours.variance, prediction.variance, rtol=1e-10)
    np.testing.assert_allclose(ours.accuracy, prediction.accuracy, rtol=1e-10)
    np.testing.assert_allclose(ours.best_accuracy, prediction.best_accuracy, rtol=1e-10)


@INTERCEPT
def test_scaling_loss_and_reg_together_changes_nothing(fit_intercept):
    """k times the logistic loss at kγ, as a custom loss, equals the logistic loss at γ."""
    triple = Loss(
        "triple",
        *(
            lambda s, y, f=f: 3 * f(s, y)
            for f in (LOGISTIC.value, LOGISTIC.gradient, LOGISTIC.curvature)
        ),
    )
    ours = predict_convex(
        MIXTURE, targets="naive", reg=0.3, loss=triple, fit_intercept=fit_intercept
    )
    prediction = predict_convex(
        MIXTURE, targets="naive", reg=0.1, loss=LOGISTIC, fit_intercept=fit_intercept
    )
    np.testing.assert_allclose(ours.means, prediction.means, rtol=1e-9)
    np.testing.assert_allclose(ours.variance, prediction.variance, rtol=1e-9)


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
@pytest.mark.parametrize("target", [-1.0, 0.3, 5.0])
@pytest.mark.parametrize("kappa", [1e-3, 1.0, 30.0, 1e3])
def test_prox_solves_its_equation(loss, target, kappa):
    r = np.concatenate([-np.logspace(3, -3, 50), [0.0], np.logspace(-3, 3, 50)])
    perturbed = TargetLoss(loss, target)
    s = prox(perturbed, r, kappa)
    assert np.abs(s + kappa * perturbed.gradient(s) - r).max() <= 1e-10


@pytest.mark.parametrize(
    ("loss", "most"), [(SQUARED, 4), (LOGISTIC, 20)], ids=["squared", "logistic"]
)
@pytest.mark.parametrize("kappa", [1e-3, 1.0, 1e3])
def test_prox_needs_few_newton_steps(loss, most, kappa):
    """A parabola needs one step, and one more for rounding."""
    looks = []
    counted = Loss(
        "counted",
        loss.value,
        lambda s, y: (looks.append(y), loss.gradient(s, y))[1],
        loss.curvature,
    )
    prox(TargetLoss(counted, 0.3), np.linspace(-50, 50, 101), kappa)
    assert len(looks) / 2 <= most  # the loss of either label is looked at each time


def test_prox_stops_at_kink_without_root():
    hinge = Loss(
        "hinge",
        SQUARED.value,
        lambda s, y: -np.asarray(y) * (np.asarray(y) * s < 1),
        lambda s, y: 0.0 * s,
    )
    assert prox(TargetLoss(hinge, 1.0), 0.5, 2.0) == pytest.approx(1.0)


@INTERCEPT
@pytest.mark.parametrize(
    ("values", "mean_norm", "aspect", "reg"),
    [("naive", 2.0, 1.0, 0.1), ("optimized", 1.0, 0.2, 1.0), ("unbiased", 4.0, 3.0, 0.01)],
)
def test_prediction_solves_fixed_point_equations(values, mean_norm, aspect, reg, fit_intercept):
    """Checked by integrals over r on a plain grid; the last setting needs the continuation in γ."""
    mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=NOISE)
    law = predict_convex(
        mixture, targets=values, reg=reg, loss=LOGISTIC, fit_intercept=fit_intercept
    )
    t, z = targets.resolve(values, NOISE), np.linspace(-9, 9, 4001)
    y = np.array([-1.0, 1.0])[:, None, None]
    r = np.reshape(law.means, (2, 1, 1)) + np.sqrt(law.variance) * z
    weights = NOISE.joint[:, :, None] * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    loss = TargetLoss(LOGISTIC, t[:, None])

    def stiffness(kappa):
        curvature = loss.curvature(prox(loss, r, kappa))
        return np.sum(weights * curvature / (1 + kappa * curvature)) + 2 * reg

    kappa = brentq(
        lambda kappa: kappa * stiffness(kappa) - aspect, 0, aspect / (2 * reg), rtol=1e-14
    )
    pull = -loss.gradient(prox(loss, r, kappa))
    alignment, total = np.sum(weights * pull * y), stiffness(kappa)
    assert (law.means[1] - law.means[0]) / 2 == pytest.approx(
        mean_norm**2 * alignment / total, rel=1e-7
    )
    spread = mean_norm**2 * alignment**2 + aspect * np.sum(weights * pull**2)
    assert law.variance == pytest.approx(spread / total**2, rel=1e-7)
    if fit_intercept:
        assert np.sum(weights * pull) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
@INTERCEPT
def test_fixed_point_converges_for_all_regs_and_dimensions(fit_intercept, loss):
    """The equations hold to 1e-9, and the accuracy is at most the best of any convex loss."""
    for name, aspect, mean_norm in itertools.product(NAMES, (0.05, 1.0, 20.0), (0.0, 4.0)):
        mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=NOISE)
        law = predict_convex(
            mixture, targets=name, reg=[1e-3, 1.0, 1e3], loss=loss, fit_intercept=fit_intercept
        )
        assert np.isfinite(law.variance).all()
        assert (law.variance > 0).all()
        best = theory.predict(mixture, reg=np.inf, fit_intercept=fit_intercept).accuracy
        assert (law.accuracy <= best + 1e-9).all()


def test_logistic_fit_to_clean_balanced_labels_is_symmetric():
    mixture = theory.Mixture(mean_norm=1.5, aspect=0.7, noise=CLEAN)
    origin = predict_convex(mixture, targets=(-1, 1), reg=0.1, loss=LOGISTIC)
    intercept = predict_convex(mixture, targets=(-1, 1), reg=0.1, loss=LOGISTIC, fit_intercept=True)
    assert origin.means[0] == -origin.means[1]
    np.testing.assert_allclose(intercept.means, origin.means, rtol=1e-9)
    np.testing.assert_allclose(intercept.variance, origin.variance, rtol=1e-9)


def test_swapping_classes_negates_scores():
    swapped = theory.Mixture(
        mean_norm=2.0, aspect=1.0, noise=NoiseModel.binary(eps_pos=0.3, eps_neg=0.4, pi_neg=0.7)
    )
    one = predict_convex(MIXTURE, targets="unbiased", reg=0.1, loss=LOGISTIC, fit_intercept=True)
    two = predict_convex(swapped, targets="unbiased", reg=0.1, loss=LOGISTIC, fit_intercept=True)
    np.testing.assert_allclose(two.means, (-one.means[1], -one.means[0]), rtol=1e-9)
    np.testing.assert_allclose(two.variance, one.variance, rtol=1e-9)


def test_low_dimension_is_population_logistic_regression():
    """Clean labels follow the logistic model with w = 2μ, the limit of many rows and γ → 0."""
    mixture = theory.Mixture(mean_norm=1.0, aspect=1e-6, noise=CLEAN)
    law = predict_convex(mixture, targets="naive", reg=1e-9, loss=LOGISTIC)
    assert law.mean == pytest.approx(2.0, rel=1e-4)
    assert law.variance == pytest.approx(4.0, rel=1e-4)
    assert law.accuracy == pytest.approx(ndtr(1.0), abs=1e-5)


def test_rounding_of_huge_targets_is_not_reported_as_concavity():
    """The curvature of the loss is rounded differently for the two labels."""

    def curvature(s, y):
        probability = expit(y * s)
        return probability * (1 - probability)

    rounded = Loss("rounded", LOGISTIC.value, LOGISTIC.gradient, curvature)
    laws = [
        predict_convex(MIXTURE, targets=(-1e8, 1e8), reg=1.0, loss=loss)
        for loss in (rounded, LOGISTIC)
    ]
    assert float(laws[0].accuracy) == pytest.approx(float(laws[1].accuracy), rel=1e-6)


@INTERCEPT
@pytest.mark.parametrize(
    "scale", [0.01, 1e3, 1e6], ids=["weak targets", "strong targets", "huge targets"]
)
def test_logistic_loss_with_small_and_large_targets_is_ridge(scale, fit_intercept):
    """Near 0 the loss is s²/8: ridge at 8γ. For large scores it is linear: ridge at γ = ∞."""
    values = scale * (
        targets.optimized(NOISE)
        - (NOISE.observed @ targets.optimized(NOISE) if fit_intercept else 0)
    )
    ours = predict_convex(
        MIXTURE, targets=values, reg=1.0, loss=LOGISTIC, fit_intercept=fit_intercept
    ).accuracy
    limit = 8.0 if scale < 1 else np.inf
    ridge = theory.predict(MIXTURE, targets=values, reg=limit, fit_intercept=fit_intercept).accuracy
    assert ours == pytest.approx(ridge, abs=1e-3)
    assert (
        ours
        <= theory.predict(MIXTURE, targets=values, reg=np.inf, fit_intercept=fit_intercept).accuracy
    )


@INTERCEPT
@pytest.mark.parametrize("centre", [0.0, 0.6])
@pytest.mark.parametrize("spread", [1e-10, 1e-4])
def test_close_targets_match_quadratic_approximation(spread, centre, fit_intercept):
    """The logistic loss is about (k/2)(s − t′)² with k = σ(1 − σ) and t′ = s₀ + (t − t₀)/2k."""
    # Without an intercept, scores are small only if the targets are.
    middle = centre if fit_intercept else 0.0
    share = (1 + middle) / 2
    curvature, score = share * (1 - share), np.log(share / (1 - share))
    deviations = spread * np.array([-1.0, 2.0])
    options = {"fit_intercept": fit_intercept}
    ours = predict_convex(MIXTURE, targets=middle + deviations, reg=0.3, loss=LOGISTIC, **options)
    ridge = theory.predict(
        MIXTURE, targets=deviations / (2 * curvature), reg=2 * 0.3 / curvature, **options
    )
    np.testing.assert_allclose(
        np.array(ours.means) - score, ridge.means, rtol=10 * spread, atol=1e-15
    )
    np.testing.assert_allclose(ours.variance, ridge.variance, rtol=10 * max(spread, 1e-6))
    np.testing.assert_allclose(ours.separation, ridge.separation, rtol=10 * max(spread, 1e-6))


@INTERCEPT
@pytest.mark.parametrize("reg", [0.01, 1.0, 100.0])
def test_posterior_targets_with_infinite_reg_are_optimal(reg, fit_intercept):
    best = theory.predict(
        MIXTURE, targets="optimized", reg=np.inf, fit_intercept=fit_intercept
    ).separation
    for name in (*NAMES, (-0.5, 1.3), (-20.0, 19.0)):
        law = predict_convex(
            MIXTURE, targets=name, reg=reg, loss=LOGISTIC, fit_intercept=fit_intercept
        )
        assert law.separation < best


def test_arrays_broadcast():
    mixture = theory.Mixture(mean_norm=np.array([[1.0], [2.0]]), aspect=1.0, noise=NOISE)
    table = predict_convex(mixture, reg=[0.1, 1.0, 10.0], loss=LOGISTIC)
    assert table.mean.shape == table.variance.shape == table.accuracy.shape == (2, 3)
    assert table.accuracy[1, 2] == predict_convex(MIXTURE, reg=10.0, loss=LOGISTIC).accuracy
    assert predict_convex(MIXTURE, reg=10.0, loss=LOGISTIC).accuracy.shape == ()


def test_optimal_targets_of_squared_loss_are_posterior():
    np.testing.assert_allclose(
        optimal_convex_targets(MIXTURE, reg=1.0, loss=SQUARED), targets.optimized(NOISE), rtol=1e-5
    )
    strong = optimal_convex_targets(MIXTURE, reg=1.0, loss=SQUARED, power=50.0)
    assert NOISE.observed @ strong**2 == pytest.approx(50.0)
    assert strong[1] / strong[0] == pytest.approx(
        np.divide(*targets.optimized(NOISE)[::-1]), rel=1e-5
    )


@pytest.mark.parametrize("turned", [False, True], ids=["both positive", "both negative"])
def test_optimal_targets_may_have_the_same_sign(turned):
    """If one class is frequent and the other is observed more often, both targets have its sign."""
    flips = (
        {"eps_pos": 0.25, "eps_neg": 0.7, "pi_neg": 0.8}
        if turned
        else {"eps_pos": 0.7, "eps_neg": 0.25, "pi_neg": 0.2}
    )
    noise = NoiseModel.binary(**flips)
    posterior = targets.optimized(noise)
    assert np.prod(np.sign(posterior)) == 1
    mixture = theory.Mixture(mean_norm=2.0, aspect=1.0, noise=noise)
    np.testing.assert_allclose(
        optimal_convex_targets(mixture, reg=1.0, loss=SQUARED), posterior, rtol=1e-5
    )


@pytest.mark.parametrize("reg", [0.01, 1.0])
def test_optimal_targets_of_logistic_loss_are_near_posterior(reg):
    posterior = targets.optimized(NOISE)
    best = optimal_convex_targets(MIXTURE, reg=reg, loss=LOGISTIC)
    assert NOISE.observed @ best**2 == pytest.approx(NOISE.observed @ posterior**2)
    gain = [
        predict_convex(MIXTURE, targets=t, reg=reg, loss=LOGISTIC).accuracy
        for t in (posterior, best)
    ]
    assert 0 < gain[1] - gain[0] < 1e-4
    np.testing.assert_allclose(best, posterior, atol=0.02)


def test_invalid_input_raises():
    for reg in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="must be positive and finite"):
            predict_convex(MIXTURE, reg=reg, loss=LOGISTIC)
    with pytest.raises(ValueError, match="is not a valid value"):
        predict_convex(MIXTURE, targets="best", reg=1.0, loss=LOGISTIC)
    several = [
        theory.Mixture(**{"mean_norm": 2.0, "aspect": 1.0, name: [1.0, 2.0]}, noise=NOISE)
        for name in ("mean_norm", "aspect")
    ]
    for mixture, reg in ((MIXTURE, [1.0, 2.0]), *((mixture, 1.0) for mixture in several)):
        with pytest.raises(ValueError, match="one mean_norm"):
            optimal_convex_targets(mixture, reg=reg, loss=LOGISTIC)
    for power in (-1.0, 0.0, np.inf, np.nan):
        with pytest.raises(
            ValueError,
            match=rf"power = {power} must lie between 1e-09 and 1e\+09",
        ):
            optimal_convex_targets(MIXTURE, reg=1.0, loss=LOGISTIC, power=power)


def test_concave_loss_raises():
    assert predict_convex(MIXTURE, targets="optimized", reg=1.0, loss=EXPONENTIAL).accuracy > 0.8
    with pytest.raises(
        ValueError, match=r"exponential loss with target t = .* is not convex: its curvature is -"
    ):
        predict_convex(MIXTURE, targets="unbiased", reg=1.0, loss=EXPONENTIAL)
    with pytest.raises(ValueError, match=r"target t = 3 is not convex"):
        predict_convex(MIXTURE, targets=(-0.5, 3.0), reg=1.0, loss=EXPONENTIAL)
    with pytest.raises(ValueError, match=r"target t = -3 is not convex"):
        predict_convex(MIXTURE, targets=(-3.0, 0.5), reg=1.0, loss=EXPONENTIAL)


def test_intercept_far_from_origin():
    """It equals the shift of the targets of the squared loss."""
    near, far = (
        predict_convex(
            MIXTURE, targets=(shift - 1.0, shift + 2.0), reg=1.0, loss=SQUARED, fit_intercept=True
        )
        for shift in (0.0, 500.0)
    )
    np.testing.assert_allclose(np.array(far.means) - 500.0, near.means, rtol=1e-9)
    np.testing.assert_allclose(far.variance, near.variance, rtol=1e-9)


def test_infinite_intercept_raises():
    with pytest.raises(ValueError, match="no finite intercept"):
        predict_convex(MIXTURE, targets=(0.5, 3.0), reg=1.0, loss=LOGISTIC, fit_intercept=True)


def test_loss_too_rough_for_quadrature_raises():
    with pytest.raises(
        ValueError, match=r"squared hinge loss was not found .* continuous curvature"
    ):
        predict_convex(MIXTURE, targets="naive", reg=0.1, loss=SQUARED_HINGE)


@INTERCEPT
def test_predict_accepts_every_loss(fit_intercept):
    by_name = theory.predict(MIXTURE, reg=0.5, loss="logistic", fit_intercept=fit_intercept)
    for loss in (LOGISTIC, "logistic"):
        by_hand = predict_convex(MIXTURE, reg=0.5, loss=loss, fit_intercept=fit_intercept)
        assert by_name.accuracy == by_hand.accuracy
    with pytest.raises(
        ValueError, match="loss=None is not a valid value: use 'squared', 'logistic'"
    ):
        theory.predict(MIXTURE, reg=0.5, loss=None)
    squared = theory.predict(MIXTURE, reg=np.inf, loss=SQUARED, fit_intercept=fit_intercept)
    assert (
        squared.accuracy
        == theory.predict(MIXTURE, reg=np.inf, fit_intercept=fit_intercept).accuracy
    )


def test_optimal_reg_of_logistic_loss():
    """For accuracy the largest γ, as for the squared loss; for the risk a finite one."""
    # 1e3 is the upper end of the search.
    assert theory.optimal_reg(MIXTURE, loss="logistic") == pytest.approx(1e3)
    best = float(theory.optimal_reg(MIXTURE, loss="logistic", targets="unbiased", objective="risk"))

    def risk(reg):
        return float(theory.predict(MIXTURE, targets="unbiased", reg=reg, loss="logistic").risk)

    assert risk(best) < min(risk(best / 2), risk(best * 2))
