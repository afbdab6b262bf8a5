"""Isotropic theory: exact identities, the paper's formulas, and the optimum."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from support.paper import theorem
from unflip import NoiseModel, targets, theory

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
MODELS = [
    NOISE,
    NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5),
    NoiseModel.binary(eps_pos=0.0, eps_neg=0.6, pi_neg=0.8),
    NoiseModel.binary(eps_pos=0.6, eps_neg=0.3, pi_neg=0.1),
]
SETTINGS = [(2.0, 0.1, 0.1), (1.0, 1.0, 10.0), (0.5, 3.0, 0.01), (4.0, 20.0, 1.0)]
NAMES = ("naive", "unbiased", "optimized")


@pytest.mark.parametrize(
    ("rho_pos", "rho_neg"), [(0, 0), (0.2, 0.0), (0.4, 0.3), (0.0, -1.57), (-2.0, 0.5)]
)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("noise", MODELS, ids=repr)
def test_without_intercept_matches_theorem_of_paper(noise, setting, rho_pos, rho_neg):
    mean_norm, aspect, reg = setting
    mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise)
    ours = theory.predict(mixture, targets=targets.from_rho(rho_pos, rho_neg), reg=reg)
    mean, second = theorem(
        rho_pos=rho_pos, rho_neg=rho_neg, noise=noise, mean_norm=mean_norm, aspect=aspect, reg=reg
    )
    assert ours.mean == pytest.approx(mean, rel=1e-10, abs=1e-10)
    assert ours.second_moment == pytest.approx(second, rel=1e-10)
    assert ours.risk == pytest.approx(1 - 2 * mean + second, rel=1e-10)
    assert ours.accuracy == pytest.approx(ndtr(mean / np.sqrt(second - mean**2)), rel=1e-10)
    assert ours.accuracy_at(0.0) == pytest.approx(ours.accuracy, rel=1e-10)
    assert ours.means[0] == -ours.means[1]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("noise", MODELS, ids=repr)
def test_targets_do_not_matter_with_intercept(noise, setting):
    mean_norm, aspect, reg = setting
    mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise)
    predictions = [
        theory.predict(mixture, targets=t, reg=reg, fit_intercept=True)
        for t in (*NAMES, (-3.0, 0.1), (5.0, 9.0))
    ]
    for prediction in predictions[1:]:
        assert prediction.accuracy == pytest.approx(predictions[0].accuracy, abs=1e-12)
        assert prediction.best_accuracy == pytest.approx(predictions[0].best_accuracy, abs=1e-12)


@pytest.mark.parametrize("noise", MODELS, ids=repr)
@pytest.mark.parametrize("rho_neg", [0.0, 0.4, -2.0])
def test_optimal_rho_matches_numerical_search(noise, rho_neg):
    mixture = theory.Mixture(mean_norm=1.5, aspect=1.0, noise=noise)

    def separation(difference):
        """Return the separation of targets with ρ₊ − ρ₋ = difference; their scale is arbitrary."""
        return -float(
            theory.predict(mixture, targets=(difference - 1, difference + 1), reg=1.0).separation
        )

    grid = np.sinh(np.linspace(-5, 5, 41))
    best = int(np.argmin([separation(difference) for difference in grid]))
    result = minimize_scalar(separation, bracket=grid[best - 1 : best + 2], tol=1e-12).x
    assert float(theory.optimal_rho(noise, rho_neg)) == pytest.approx(
        result + rho_neg, rel=1e-6, abs=1e-6
    )
    t_neg, t_pos = targets.optimized(noise)
    assert (t_pos + t_neg) / (t_pos - t_neg) == pytest.approx(
        float(theory.optimal_rho(noise)), abs=1e-10
    )


@pytest.mark.parametrize("noise", [m for m in MODELS if m.priors[0] != 0.5], ids=repr)
def test_worst_rho_is_random_guessing(noise):
    mixture = theory.Mixture(mean_norm=1.5, aspect=1.0, noise=noise)
    worst = targets.from_rho(float(theory.worst_rho(noise, 0.1)), 0.1)
    assert theory.predict(mixture, targets=worst, reg=1.0).accuracy == pytest.approx(0.5, abs=1e-10)
    assert theory.worst_rho(noise, 0.1) - theory.worst_rho(noise) == pytest.approx(0.1)


def test_worst_rho_does_not_exist_for_balanced_classes():
    with pytest.raises(ValueError, match="balanced"):
        theory.worst_rho(MODELS[1])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("noise", MODELS, ids=repr)
def test_separation_grows_with_reg_to_its_limit(noise, name, fit_intercept):
    """The theorem behind optimal_reg: |separation| is largest at γ = ∞, with either sign."""
    mixture = theory.Mixture(mean_norm=1.5, aspect=0.7, noise=noise)
    regs = np.append(np.logspace(-4, 8, 100), np.inf)
    size = np.abs(
        theory.predict(mixture, targets=name, reg=regs, fit_intercept=fit_intercept).separation
    )
    assert np.all(np.diff(size) > -1e-12)
    moments = theory.isotropic.target_moments(
        targets.resolve(name, noise), noise, fit_intercept=fit_intercept
    )
    c, u = moments.alignment, 1.5**2
    assert size[-1] == pytest.approx(
        2 * abs(c) * u / np.sqrt(c**2 * u + 0.7 * moments.power), rel=1e-12
    )
    best = theory.optimal_reg(mixture, targets=name, fit_intercept=fit_intercept)
    assert best == (np.inf if c > 0 else 0)
    assert (c > 0) == (name != "naive" or fit_intercept or noise is not MODELS[3])
    limit = theory.predict(mixture, targets=name, reg=np.inf, fit_intercept=fit_intercept)
    assert limit.accuracy_at(sum(limit.means) / 2) == pytest.approx(limit.accuracy)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_reg_of_least_risk(fit_intercept):
    mixture = theory.Mixture(
        mean_norm=np.array([[0.5], [2.0]]), aspect=np.array([0.1, 1.0, 4.0]), noise=NOISE
    )
    best = theory.optimal_reg(
        mixture, targets="unbiased", objective="risk", fit_intercept=fit_intercept
    )
    assert best.shape == (2, 3)
    risk = theory.predict(mixture, targets="unbiased", reg=best, fit_intercept=fit_intercept).risk
    for factor in (0.9, 1.1):
        nearby = theory.predict(
            mixture, targets="unbiased", reg=factor * best, fit_intercept=fit_intercept
        ).risk
        assert np.all(nearby > risk)


def test_reg_of_least_risk_may_be_zero_or_infinite():
    # E[t·y] < 0: scores of zero have the least risk.
    misaligned = NoiseModel.binary(eps_pos=0.6, eps_neg=0.3, pi_neg=0.1)
    mixture = theory.Mixture(mean_norm=1.0, aspect=1.0, noise=misaligned)
    assert theory.optimal_reg(mixture, targets="naive", objective="risk") == np.inf
    easy = theory.Mixture(mean_norm=3.0, aspect=1e-4, noise=NOISE)  # scores are too small already
    assert theory.optimal_reg(easy, targets="naive", objective="risk") == 0


def test_low_dimension_reaches_bayes():
    for mean_norm in (0.5, 1.0, 2.0):
        mixture = theory.Mixture(mean_norm=mean_norm, aspect=1e-9, noise=NOISE)
        for name in NAMES:
            assert theory.predict(mixture, targets=name, reg=0.1).accuracy == pytest.approx(
                ndtr(mean_norm), abs=1e-6
            )


def test_predictions_broadcast():
    mixture = theory.Mixture(
        mean_norm=np.array([1.0, 2.0])[:, None, None],
        aspect=np.array([0.5, 2.0])[:, None],
        noise=NOISE,
    )
    regs = np.array([0.1, 1.0, 10.0])
    table = theory.predict(mixture, targets="naive", reg=regs)
    assert table.accuracy.shape == (2, 2, 3)
    one = theory.Mixture(mean_norm=2.0, aspect=0.5, noise=NOISE)
    for name in ("accuracy", "best_accuracy", "risk", "second_moment", "variance"):
        single = getattr(theory.predict(one, targets="naive", reg=10.0), name)
        assert getattr(table, name)[1, 0, 2] == pytest.approx(single, rel=1e-14)


def test_best_threshold_beats_midpoint_and_works_without_signal():
    mixture = theory.Mixture(mean_norm=np.array([0.0, 0.3, 2.0]), aspect=1.0, noise=NOISE)
    prediction = theory.predict(mixture, reg=1.0)
    assert prediction.best_accuracy[0] == pytest.approx(0.7)  # no signal: the larger class
    assert prediction.accuracy[0] == 0.5
    assert np.all(prediction.best_accuracy >= prediction.accuracy)
    cuts = np.linspace(-1, 1, 4001)[:, None]
    assert np.all(prediction.accuracy_at(cuts).max(axis=0) <= prediction.best_accuracy + 1e-9)
    assert prediction.accuracy_at(cuts).max(axis=0)[2] == pytest.approx(
        prediction.best_accuracy[2], abs=1e-5
    )


@pytest.mark.parametrize("name", NAMES)
def test_second_moment_and_risk_with_intercept(name):
    """E[score²] = V + π₁π₂(2m)² + E[t]², and E[(score − y)²] = E[score²] − 2E[score·y] + 1."""
    mixture = theory.Mixture(mean_norm=1.3, aspect=0.6, noise=NOISE)
    prediction = theory.predict(mixture, targets=name, reg=0.4, fit_intercept=True)
    (pi_neg, pi_pos), gap = NOISE.priors, prediction.means[1] - prediction.means[0]
    mean_target = NOISE.observed @ targets.resolve(name, NOISE)
    assert prediction.second_moment == pytest.approx(
        prediction.variance + pi_neg * pi_pos * gap**2 + mean_target**2, rel=1e-12
    )
    agreement = pi_pos * prediction.means[1] - pi_neg * prediction.means[0]
    assert prediction.risk == pytest.approx(prediction.second_moment - 2 * agreement + 1, rel=1e-12)


def test_very_rare_class_has_no_separation():
    """The label quality, of the order of the squared prior, underflows float64 to 0."""
    rare = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=1e-200)
    mixture = theory.Mixture(mean_norm=1.0, aspect=1.0, noise=rare)
    prediction = theory.predict(mixture, reg=1.0, fit_intercept=True)
    assert (prediction.separation, prediction.accuracy, prediction.best_accuracy) == (0, 0.5, 1)
    # As for any targets with an intercept.
    assert theory.optimal_reg(mixture, fit_intercept=True) == np.inf


def test_distant_means_have_finite_predictions():
    far, farther = (
        theory.predict(theory.Mixture(mean_norm=norm, aspect=0.5, noise=NOISE), reg=1.0)
        for norm in (1e10, 1e50)
    )
    for name in ("mean", "variance", "risk", "accuracy"):
        assert getattr(farther, name) == pytest.approx(getattr(far, name), rel=1e-12)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: theory.Mixture(mean_norm=-1.0, aspect=1.0, noise=NOISE),
            "mean_norm = -1 must be zero or positive",
        ),
        (
            lambda: theory.Mixture(mean_norm=1e60, aspect=1.0, noise=NOISE),
            r"mean_norm holds 1e\+60, beyond 1e\+50",
        ),
        (
            lambda: theory.Mixture(mean_norm=1.0, aspect=1.0, noise=NoiseModel(np.eye(3))),
            "two classes",
        ),
        (
            lambda: theory.Mixture(mean_norm=1.0, aspect=1.0, noise=NoiseModel.none()),
            "needs the class proportions",
        ),
        (
            lambda: theory.Mixture(mean_norm=1.0, aspect=0.0, noise=NOISE),
            "aspect = 0 must be positive",
        ),
        (
            lambda: theory.Mixture(mean_norm="2", aspect=None, noise=NOISE),
            "aspect = nan must be positive",
        ),
        (
            lambda: theory.Mixture(mean_norm=1.0, aspect=1.0, noise=[[1, 0], [0, 1]]),
            "must be a NoiseModel",
        ),
        (lambda: _predict(reg="loo"), "reg = 'loo' must hold numbers"),
        (
            lambda: theory.optimal_reg(_mixture(), targets="nope"),
            "targets='nope' is not a valid value",
        ),
        (
            lambda: _predict(loss="hinge"),
            "loss='hinge' is not a valid value: use 'squared', 'logistic'",
        ),
        (lambda: _predict(targets="best"), "targets='best' is not a valid value"),
        (lambda: _predict(reg=0.0), "reg = 0 at aspect = 1"),
        (lambda: _predict(reg=-1.0), "reg = -1"),
        (
            lambda: theory.optimal_reg(_mixture(), objective="auc"),
            "objective='auc' is not a valid value",
        ),
    ],
)
def test_invalid_input_raises(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def _mixture():
    return theory.Mixture(mean_norm=1.0, aspect=1.0, noise=NOISE)


def _predict(**options):
    return theory.predict(_mixture(), **{"reg": 1.0, **options})
