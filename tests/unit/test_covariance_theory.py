"""Theory of general covariances: the corrected theorem, special cases, thresholds and errors."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from support.paper import general_theorem
from unflip import NoiseModel, targets, theory
from unflip.theory.covariance import GeneralMixture
from unflip.theory.equivalent import CommutingMoments, DenseMoments, solve

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
NAMES = ("naive", "unbiased", "optimized")
P, N = 40, 90


def covariance(seed, p=P):
    factor = np.random.default_rng(seed).normal(size=(p, p))
    return factor @ factor.T / p + 0.1 * np.eye(p)


def data(**changes):
    mean = np.random.default_rng(9).normal(size=P) / 3
    return {
        "mean": mean,
        "cov_neg": covariance(0),
        "cov_pos": covariance(1),
        "n": N,
        "noise": NOISE,
        **changes,
    }


@pytest.mark.parametrize("reg", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["different", "equal", "commuting"])
def test_matches_corrected_theorem_of_paper(kind, name, reg):
    first = covariance(0)
    setting = data(
        cov_pos={
            "different": covariance(1),
            "equal": first,
            "commuting": first @ first + np.eye(P),
        }[kind]
    )
    values = targets.resolve(name, NOISE)
    neg, pos = theory.predict_general(**setting, targets=name, reg=reg)
    mean, nu = general_theorem(**setting, targets=values, reg=reg)
    assert neg.mean == pytest.approx(mean, rel=1e-10)
    np.testing.assert_allclose([neg.second_moment, pos.second_moment], nu, rtol=1e-10)
    assert neg.risk == pytest.approx(1 - 2 * mean + nu[0], rel=1e-10)
    printed = general_theorem(**setting, targets=values, reg=reg, cross_terms=1)[1]
    assert np.all(printed > nu)


def test_commuting_covariances_are_diagonalised_with_same_result():
    first = covariance(0)
    mixture = GeneralMixture(**data(cov_pos=np.linalg.inv(first)))
    fast = mixture.class_moments(fit_intercept=True)
    assert isinstance(fast, CommutingMoments)
    assert isinstance(GeneralMixture(**data()).class_moments(fit_intercept=True), DenseMoments)
    slow = DenseMoments(
        np.array([-1.4, 0.6])[:, None] * mixture.mean,
        np.array([first, np.linalg.inv(first)]),
        float(N),
    )
    for reg in (0.01, 1.0):
        ours, dense = (solve(moments, NOISE.priors, reg) for moments in (fast, slow))
        np.testing.assert_allclose(ours.deltas, dense.deltas, rtol=1e-10)
        np.testing.assert_allclose(ours.amplification(), dense.amplification(), rtol=1e-9)


def is_diagonalised(first, second, mean):
    """Whether two covariances are diagonalised; the prediction equals that of full matrices."""
    mixture = GeneralMixture(mean=mean, cov_neg=first, cov_pos=second, n=N, noise=NOISE)
    ours = mixture.class_moments(fit_intercept=False)
    dense = DenseMoments(np.array([-mean, mean]), np.array([first, second]), float(N))
    reg = 0.1 * float(np.trace(first + second)) / len(mean)
    solution = solve(ours, NOISE.priors, reg)
    reference = solve(dense, NOISE.priors, reg)
    np.testing.assert_allclose(solution.amplification(), reference.amplification(), rtol=1e-9)
    return isinstance(ours, CommutingMoments)


def test_common_eigenbasis_is_found_for_any_spectra_and_units():
    """Mirrored spectra, a flat spectrum, and a spectrum in other units."""
    axes, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(P, P)))
    spectrum, mean = np.linspace(1, 2, P), data()["mean"]
    rising, falling, flat = (
        (axes * values) @ axes.T for values in (spectrum, spectrum[::-1], np.ones(P))
    )
    assert is_diagonalised(rising, falling, mean)
    assert is_diagonalised(flat, falling, mean)
    assert is_diagonalised(flat, 1e-9 * falling, mean)
    assert is_diagonalised(1e-9 * falling, flat, mean)


def test_nearly_commuting_covariances_are_not_diagonalised():
    turn = np.array([[1.0, -1e-7], [1e-7, 1.0]])
    first, mean = np.diag([1.0, 2.0]), np.array([1.0, 0.5])
    assert not is_diagonalised(first, turn @ np.diag([3.0, 1.0]) @ turn.T, mean)
    # 9x² − 20x + 9 = 0 makes C₋ + √2‖C₋‖/‖C₊‖ C₊, whose eigenvectors are looked at, a multiple of
    # the identity.
    half = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    second = np.diag([(20 + np.sqrt(76)) / 18, 1.0])
    assert not is_diagonalised(half @ first @ half.T, half @ second @ half.T, mean)


def test_vector_is_diagonal_covariance():
    variances = np.linspace(0.2, 3, P)
    vector = theory.predict_general(**data(cov_neg=variances, cov_pos=2 * variances), reg=0.5)
    matrix = theory.predict_general(
        **data(cov_neg=np.diag(variances), cov_pos=np.diag(2 * variances)), reg=0.5
    )
    mixed = theory.predict_general(
        **data(cov_neg=variances, cov_pos=np.diag(2 * variances)), reg=0.5
    )
    for other in (matrix, mixed):
        np.testing.assert_allclose(
            [other.neg.variance, other.pos.variance],
            [vector.neg.variance, vector.pos.variance],
            rtol=1e-10,
        )


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_identity_covariances_approach_isotropic_theory_like_one_over_n(name, fit_intercept):
    """Only the means in the traces differ, and this difference halves when the sizes double."""
    isotropic = theory.predict(
        theory.Mixture(mean_norm=2.0, aspect=0.5, noise=NOISE),
        targets=name,
        reg=0.7,
        fit_intercept=fit_intercept,
    )
    distance = []
    for n in (1000, 2000, 4000):
        p = n // 2
        neg, _ = theory.predict_general(
            mean=np.full(p, 2 / np.sqrt(p)),
            cov_neg=np.ones(p),
            cov_pos=np.ones(p),
            n=n,
            noise=NOISE,
            targets=name,
            reg=0.7,
            fit_intercept=fit_intercept,
        )
        distance.append([neg.mean - isotropic.mean, neg.variance - isotropic.variance])
    distance = np.array(distance)
    np.testing.assert_allclose(distance[:-1] / distance[1:], 2, rtol=0.02)
    assert np.abs(distance[-1]).max() < 0.01 * float(isotropic.variance)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "covariances", [(covariance(0), covariance(1)), (np.linspace(1, 2, P),) * 2], ids=np.shape
)
@pytest.mark.parametrize("unit", [1e-8, 2.0, 1e8])
def test_feature_scale_only_rescales_reg(unit, covariances, fit_intercept):
    setting = data(cov_neg=covariances[0], cov_pos=covariances[1])
    once = theory.predict_general(**setting, reg=0.5, fit_intercept=fit_intercept)
    changes = {name: unit**2 * setting[name] for name in ("cov_neg", "cov_pos")} | {
        "mean": unit * setting["mean"]
    }
    again = theory.predict_general(
        **setting | changes, reg=0.5 * unit**2, fit_intercept=fit_intercept
    )
    assert again.accuracy == pytest.approx(float(once.accuracy), rel=1e-10)


def test_targets_do_not_matter_with_intercept():
    prediction = [
        theory.predict_general(**data(), targets=name, reg=0.5, fit_intercept=True)
        for name in NAMES
    ]
    for one in prediction[1:]:
        assert one.accuracy == pytest.approx(prediction[0].accuracy, abs=1e-10)
        assert one.best_accuracy == pytest.approx(prediction[0].best_accuracy, abs=1e-10)


def test_accuracies_per_class_and_over_both():
    pair = theory.predict_general(**data(), reg=0.5)
    mean, (v0, v1) = pair.neg.mean, (pair.neg.variance, pair.pos.variance)
    np.testing.assert_allclose(
        pair.class_accuracies_at(0.0),
        [ndtr(mean / np.sqrt(v0)), ndtr(mean / np.sqrt(v1))],
        rtol=1e-12,
    )
    assert (pair.neg.accuracy, pair.pos.accuracy) == pytest.approx(pair.class_accuracies_at(0.0))
    assert pair.accuracy == pytest.approx(NOISE.priors @ pair.class_accuracies_at(0.0))


@pytest.mark.parametrize("pi_neg", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("factor", [0.3, 1.0, 5.0])
def test_best_threshold_is_most_accurate(pi_neg, factor):
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=pi_neg)
    pair = theory.predict_general(**data(noise=noise, cov_pos=factor * covariance(0)), reg=0.5)
    accuracies = minimize_scalar(
        lambda s: -float(pair.accuracy_at(s)), bounds=(-1, 1), method="bounded"
    )
    assert float(pair.best_accuracy) >= max(-accuracies.fun, noise.priors.max()) - 1e-9
    assert float(pair.best_accuracy) == pytest.approx(float(pair.accuracy_at(pair.best_threshold)))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("objective", ["accuracy", "risk"])
def test_optimal_reg_is_finite_and_best(objective, fit_intercept):
    """With correlated features, unlike isotropic ones, a finite γ is best."""
    spectrum = np.repeat([10.0, 0.1], P // 2)
    mixture = GeneralMixture(
        **data(mean=np.full(P, 0.2), cov_neg=spectrum, cov_pos=spectrum, n=400)
    )
    options = {"targets": "unbiased", "fit_intercept": fit_intercept}
    best = float(theory.optimal_reg(mixture, objective=objective, **options))
    assert 0 < best < np.inf

    def cost(reg):
        pair = theory.predict_mixture(mixture, reg=reg, **options)
        return -pair.best_accuracy if objective == "accuracy" else pair.risk

    assert all(cost(best) < cost(factor * best) for factor in (0.01, 0.5, 2.0, 100.0))


def test_accuracy_approaches_bayes_limit():
    """More rows and clean labels approach the Bayes rule for a common covariance."""
    common = covariance(0)
    mixture = GeneralMixture(**data(cov_pos=common, n=10**9))
    bayes = mixture.bayes_accuracy
    distance = np.sqrt(mixture.mean @ np.linalg.solve(common, mixture.mean))
    assert bayes == pytest.approx(
        float(theory.Mixture(mean_norm=distance, aspect=1.0, noise=NOISE).bayes_accuracy)
    )
    assert theory.predict_mixture(mixture, reg=1e-9).best_accuracy == pytest.approx(bayes, abs=1e-5)
    few = GeneralMixture(**data(cov_pos=common))
    noisy, clean = (
        float(theory.predict_mixture(m, reg=1.0).best_accuracy) for m in (few, few.clean)
    )
    assert noisy < clean < bayes
    for different in (data(), data(cov_neg=np.ones(P), cov_pos=np.full(P, 2.0))):
        with pytest.raises(ValueError, match="needs equal covariances"):
            _ = GeneralMixture(**different).bayes_accuracy
    with pytest.raises(ValueError, match="full rank"):
        _ = GeneralMixture(**data(cov_neg=np.zeros(P), cov_pos=np.zeros(P))).bayes_accuracy


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_predictions_are_per_class(fit_intercept):
    pair = theory.predict_general(**data(), reg=0.5, fit_intercept=fit_intercept)
    for one, label in ((pair.neg, 0), (pair.pos, 1)):
        mean, target = one.means[label], 2 * label - 1
        assert one.second_moment == pytest.approx(mean**2 + one.variance)
        assert one.risk == pytest.approx((mean - target) ** 2 + one.variance)
        assert one.best_accuracy == pytest.approx(
            pair.class_accuracies_at(pair.best_threshold)[label]
        )
    assert pair.risk == pytest.approx(NOISE.priors @ [pair.neg.risk, pair.pos.risk])
    assert pair.best_accuracy == pytest.approx(
        NOISE.priors @ [pair.neg.best_accuracy, pair.pos.best_accuracy]
    )


def test_singular_covariances():
    """Diagonalised singular covariances agree with full matrices and have an optimal γ."""
    spectrum = np.concatenate([np.zeros(5), np.linspace(0.5, 2, P - 5)])
    setting = data(mean=np.full(P, 0.2), cov_neg=spectrum, cov_pos=spectrum)
    mixture = GeneralMixture(**setting)
    fast = mixture.class_moments(fit_intercept=False)
    slow = DenseMoments(fast.means, np.array([np.diag(spectrum)] * 2), float(N))
    for reg in (1e-7, 1e-3, 1.0):
        ours, dense = (solve(moments, NOISE.priors, reg) for moments in (fast, slow))
        np.testing.assert_allclose(ours.deltas, dense.deltas, rtol=1e-7)
    assert 0 < float(theory.optimal_reg(mixture)) < np.inf


@pytest.mark.parametrize("reg", [1e-9, 1e-4, 1.0])
def test_distant_means_along_features_without_variance(reg):
    """Scores miss the clean labels by γ(1 + δ)/‖μ₀‖² for the part μ₀ of μ there; δ ≈ 1."""
    spectrum = np.repeat([0.0, 1.0], P // 2)
    setting = data(mean=np.full(P, 10.0), cov_neg=spectrum, cov_pos=spectrum, n=P)
    pair = theory.predict_mixture(GeneralMixture(**setting).clean, reg=reg)
    assert float(pair.pos.mean) == pytest.approx(
        1 - 2 * reg / (P // 2 * 10.0**2), abs=1e-3 * reg + 1e-14
    )
    assert pair.accuracy == 1


@pytest.mark.parametrize("cov_pos", [covariance(1), 2 * covariance(0)], ids=["dense", "commuting"])
def test_class_variance_is_mean_square_of_features(cov_pos):
    mixture = GeneralMixture(**data(cov_pos=cov_pos))
    second = np.mean(mixture.mean**2) + np.array([np.trace(covariance(0)), np.trace(cov_pos)]) / P
    np.testing.assert_allclose(
        mixture.class_moments(fit_intercept=False).variances(), second, rtol=1e-12
    )


@pytest.mark.parametrize("kind", [DenseMoments, CommutingMoments])
def test_newton_needs_few_steps_from_isotropic_solution(kind):
    """Isotropic classes without means need one evaluation in any unit, others a few steps."""

    class Counted(kind):
        looks = 0

        def resolvent(self, weights, reg):
            type(self).looks += 1
            return super().resolvent(weights, reg)

    def looks(means, variances, n, reg):
        Counted.looks = 0
        spectra = np.array(variances)
        covariances = (
            np.array([np.diag(row) for row in spectra]) if kind is DenseMoments else spectra
        )
        solve(Counted(means, covariances, n), NOISE.priors, reg)
        return Counted.looks

    for unit, n, reg in (
        (1.0, 90.0, 0.1),
        (100.0, 20.0, 0.1),
        (0.01, 90.0, 1.0),
        (1.0, float(P), 0.5),  # δ = 1
    ):
        assert looks(np.zeros((2, P)), np.full((2, P), unit), n, reg * unit) == 1
    assert (
        looks(np.outer([-1, 1], np.ones(P)), np.outer([1, 2], np.linspace(1, 2, P)), 90.0, 0.1) <= 5
    )


def test_midpoint_accuracy_breaks_ties_of_optimal_reg():
    setting = data(mean=np.full(P, 0.01), cov_neg=np.ones(P), cov_pos=np.ones(P))
    mixture = GeneralMixture(**setting)
    best = float(theory.optimal_reg(mixture))
    assert best > 1e4  # accuracy grows with γ, as in the isotropic mixture
    assert theory.predict_mixture(mixture, reg=best).best_accuracy == pytest.approx(0.7, abs=1e-3)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_covariance_with_rounding_errors_is_valid_in_any_unit(unit):
    """All eigenvalues of a single-factor covariance but one are 0."""
    factor = np.ones((P, P))
    exact = theory.predict_general(**data(cov_pos=unit * factor), reg=unit)
    for wrong, message in (
        (np.triu(factor, 1), "is not symmetric"),
        (-np.eye(P), "is not positive semi-definite"),
    ):
        rounded = theory.predict_general(**data(cov_pos=unit * (factor + 1e-12 * wrong)), reg=unit)
        assert rounded.accuracy == pytest.approx(float(exact.accuracy), rel=1e-6)
        with pytest.raises(ValueError, match=f"cov_pos {message}"):
            theory.predict_general(**data(cov_pos=unit * (factor + 1e-3 * wrong)), reg=unit)


@pytest.mark.parametrize("n", [1, 0.5])
def test_any_positive_number_of_rows_is_valid(n):
    """Also, `predict_mixture` has the defaults of `predict_general`."""
    prediction = theory.predict_general(**data(n=n), reg=1.0)
    assert (
        0.5 < float(prediction.accuracy) < float(theory.predict_general(**data(), reg=1.0).accuracy)
    )
    predicted_law = theory.predict_mixture(GeneralMixture(**data(n=n)), reg=1.0)
    assert predicted_law.accuracy == prediction.accuracy


def test_degenerate_classes_have_finite_predictions():
    nothing = theory.predict_general(
        **data(mean=np.zeros(P), cov_neg=np.zeros((P, P)), cov_pos=np.zeros(P)), reg=1.0
    )
    assert (float(nothing.accuracy), float(nothing.best_accuracy)) == pytest.approx((0.5, 0.7))
    strong, weaker = (theory.predict_general(**data(), reg=reg) for reg in (1e120, 1e9))
    assert strong.best_accuracy == pytest.approx(float(weaker.best_accuracy), abs=1e-6)


@pytest.mark.parametrize(
    ("n", "reg"), [(200, 1e-4), (200, 1e4), (300, 1e-9), (301, 1e-12), (10, 1e-9)]
)
def test_delta_converges_for_ill_conditioned_covariances(n, reg):
    spectrum = np.logspace(-6, 2, 300)
    moments = CommutingMoments(
        np.ones((2, 300)) * [[-0.1], [0.1]], np.array([spectrum, spectrum[::-1]]), float(n)
    )
    equivalent = solve(moments, NOISE.priors, reg)
    np.testing.assert_allclose(equivalent.resolvent.traces, equivalent.deltas, rtol=1e-10)


def test_unconverged_fixed_point_raises(monkeypatch):
    monkeypatch.setattr("unflip.theory.equivalent._MAX_STEPS", 1)
    with pytest.raises(ValueError, match=r"did not converge at reg = 0\.5 .* use a larger reg"):
        theory.predict_general(**data(), reg=0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mean": np.ones((2, 2))}, "mean has shape"),
        ({"mean": np.full(P, np.nan)}, "one finite number for each feature"),
        ({"cov_neg": np.eye(3)}, r"cov_neg has shape \(3, 3\): give \(40, 40\)"),
        ({"cov_pos": np.triu(np.ones((P, P)))}, "cov_pos is not symmetric"),
        ({"cov_pos": -np.eye(P)}, "cov_pos is not positive semi-definite"),
        ({"cov_pos": -np.ones(P)}, "cov_pos has the negative variance -1"),
        ({"cov_neg": np.full((P, P), np.inf)}, "cov_neg holds NaN or infinite"),
        ({"n": 0}, "n = 0 must be positive"),
        ({"noise": NoiseModel.none()}, "needs the class proportions"),
        ({"noise": NoiseModel(np.eye(3))}, "two classes"),
        ({"reg": 0.0}, "reg = 0.0 must be one number, positive and finite"),
        ({"reg": [1.0, 2.0]}, r"reg = \[1.0, 2.0\] must be one number"),
        ({"mean": []}, "mean has shape"),
        ({"targets": "best"}, "targets='best' is not a valid value"),
    ],
)
def test_invalid_input_raises(changes, message):
    with pytest.raises(ValueError, match=message):
        theory.predict_general(**{**data(), "reg": 1.0, **changes})
