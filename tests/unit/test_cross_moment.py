"""CrossMoment: closed form, influence of rows, standard errors, and invalid input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from unflip import NoiseModel, theory
from unflip.datasets import make_mixture
from unflip.estimation import CrossMoment
from unflip.estimation.cross_moment import _agreement, _rates, _Statistic, _Statistics
from unflip.ridge.spectrum import decompose
from unflip.theory.resolvent import bulk_gain

PRIORS = [1 / 3, 2 / 3]


def draw(n=1000, p=100, *, mean_norm=2.0, eps_pos=0.3, eps_neg=0.2, seed=0):
    X, y = make_mixture(n, p, mean_norm=mean_norm, priors=PRIORS, random_state=seed)
    return X, NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg).flip(y, random_state=seed), y


@pytest.mark.parametrize("reg", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("eps_pos", "eps_neg"), [(0.0, 0.0), (0.4, 0.3), (0.6, 0.2), (0.0, 0.7)])
def test_moments_of_the_theory_give_the_true_rates(eps_pos, eps_neg, reg):
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg, pi_neg=0.3)
    mixture = theory.Mixture(mean_norm=1.7, aspect=0.8, noise=noise)
    scores = theory.predict(mixture, targets="naive", reg=reg, fit_intercept=True)
    gap = float(scores.means[1] - scores.means[0])
    joint = noise.joint
    # Cov(ỹ, s) through the class
    covariance = 2 * gap * (joint[1, 1] - joint[1].sum() * joint[:, 1].sum())
    rates = _rates(noise.observed[1], covariance, 1.7**2, 0.3, gain=float(bulk_gain(0.8, reg)))
    np.testing.assert_allclose(rates, [eps_pos, eps_neg], atol=1e-10)


@pytest.mark.parametrize(("n", "p"), [(60, 20), (30, 50)])
def test_influence_equals_that_of_refits_without_a_row(n, p):
    X, codes, _ = draw(n, p)
    t = 2.0 * codes - 1
    reg = 0.7
    agreement = _agreement(decompose(X).leave_one_out(t, [reg]), p / n, reg)

    def quadratic_form(rows):
        fit = Ridge(alpha=n * reg).fit(X[rows], t[rows])
        residuals = t[rows] - fit.predict(X[rows])
        return (
            np.sum((t[rows] - t[rows].mean()) ** 2)
            - residuals @ residuals
            - n * reg * fit.coef_ @ fit.coef_
        )

    everything = np.ones(n, dtype=bool)
    moved = np.array(
        [quadratic_form(everything) - quadratic_form(np.arange(n) != i) for i in range(n)]
    )
    bulk = float(theory.resolvent.delta(p / n, reg))
    centred = t - t.mean()
    # Without row i, Σ(t − t̄)² falls by (tᵢ − t̄)²·n/(n − 1); the module writes (tᵢ − t̄)².
    expected = (1 + bulk) * (moved - centred**2 / (n - 1)) - bulk * centred**2
    np.testing.assert_allclose(agreement.influence, expected - expected.mean(), atol=1e-8)


def test_agreement_is_the_covariance_of_labels_and_leave_one_out_scores():
    X, codes, _ = draw(80, 30)
    t = 2.0 * codes - 1
    scores = []
    for i in range(80):
        rest = np.arange(80) != i
        fit = Ridge(alpha=80 * 0.5).fit(X[rest], t[rest])
        scores.append(fit.predict(X[[i]])[0] - t[rest].mean() + t.mean())
    agreement = _agreement(decompose(X).leave_one_out(t, [0.5]), 30 / 80, 0.5)
    assert agreement.value == pytest.approx(np.cov(t, scores, bias=True)[0, 1], abs=1e-10)


@pytest.mark.parametrize(
    "options", [{"mean_norm": 2.0, "pi_neg": 1 / 3}, {"pi_neg": 1 / 3}, {"mean_norm": 2.0}, {}]
)
def test_rates_are_unbiased_and_standard_errors_are_calibrated(options):
    rates, claimed = [], []
    for seed in range(40):
        X, codes, _ = draw(500, 100, seed=seed)
        estimate = CrossMoment(**options).fit(X, codes)
        rates.append([estimate.noise_.eps_pos, estimate.noise_.eps_neg])
        claimed.append([estimate.noise_std_[1, 0], estimate.noise_std_[0, 1]])
    spread = np.std(rates, axis=0, ddof=1)
    np.testing.assert_array_less(
        np.abs(np.mean(rates, axis=0) - [0.3, 0.2]), 4 * spread / np.sqrt(40)
    )
    # The standard deviation of 40 draws has a relative standard error of 11%.
    np.testing.assert_allclose(np.mean(claimed, axis=0) / spread, 1, atol=0.4)


def test_noise_rate_above_one_half_in_one_class():
    X, codes, _ = draw(4000, 100, eps_pos=0.6, eps_neg=0.2)
    estimate = CrossMoment(mean_norm=2.0, pi_neg=1 / 3).fit(X, codes)
    assert abs(estimate.noise_.eps_pos - 0.6) < 4 * estimate.noise_std_[1, 0] < 0.1


@pytest.mark.parametrize("options", [{"mean_norm": 2.0, "pi_neg": 1 / 3}, {}])
def test_origin_unit_rotation_and_names_do_not_matter(options):
    X, codes, _ = draw(400, 60)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(60, 60)))[0]
    first = CrossMoment(**options).fit(X, codes)
    second = CrossMoment(**options).fit(5 - 0.1 * X @ rotation, np.array(["no", "yes"])[codes])
    np.testing.assert_allclose(second.noise_.transition, first.noise_.transition, atol=1e-5)
    np.testing.assert_allclose(second.noise_std_, first.noise_std_, atol=1e-5)
    assert second.classes_.tolist() == ["no", "yes"]


def test_more_than_two_classes():
    means = 3 * np.eye(3, 60)
    transition = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    X, y = make_mixture(1500, 60, means=means, priors=[0.2, 0.3, 0.5], random_state=0)
    estimate = CrossMoment().fit(X, NoiseModel(transition).flip(y, random_state=0))
    np.testing.assert_array_less(
        np.abs(estimate.noise_.transition - transition), 4 * estimate.noise_std_
    )
    np.testing.assert_allclose(estimate.noise_.priors, [0.2, 0.3, 0.5], atol=0.05)
    assert estimate.noise_std_.max() < 0.05
    assert np.isnan(estimate.mean_norm_)


@pytest.mark.parametrize("options", [{"mean_norm": 2.0, "pi_neg": 1 / 3}, {}])
def test_labels_without_signal_give_a_warning_and_a_wide_interval(options):
    X, _, _ = draw(500, 50)
    codes = np.random.default_rng(1).integers(2, size=500)
    with pytest.warns(UserWarning, match="no better than chance") as caught:
        estimate = CrossMoment(**options).fit(X, codes)
    assert caught[0].filename == __file__
    low, high = estimate.interval(0.95)
    assert high[1, 0] - low[1, 0] > 0.09
    assert estimate.noise_.eps_pos + estimate.noise_.eps_neg < 1


def test_intervals_widen_with_confidence():
    X, codes, _ = draw(300, 30)
    estimate = CrossMoment(mean_norm=2.0, pi_neg=1 / 3).fit(X, codes)
    narrow, wide = estimate.interval(0.5), estimate.interval(0.99)
    assert (wide[0] <= narrow[0]).all()
    assert (wide[1] >= narrow[1]).all()
    assert (wide[1] <= 1).all()
    assert (wide[0] >= 0).all()
    with pytest.raises(ValueError, match="confidence = 95 must lie strictly between 0 and 1"):
        estimate.interval(95)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_norm": 0.0}, "mean_norm = 0.0 must be a positive finite number"),
        ({"mean_norm": "long"}, "mean_norm = 'long' must hold numbers"),
        ({"mean_norm": [1.0, 2.0]}, r"mean_norm = \[1.0, 2.0\] must be one number"),
        ({"reg": -1.0}, "reg = -1.0 must be a positive finite number"),
        ({"pi_neg": 1.0}, "pi_neg = 1.0 must lie strictly between 0 and 1"),
    ],
)
def test_invalid_options_raise(options, message):
    X, codes, _ = draw(50, 10)
    with pytest.raises(ValueError, match=message):
        CrossMoment(**{"mean_norm": 1.0, "pi_neg": 0.5, **options}).fit(X, codes)


def test_invalid_data_raise():
    X, codes, _ = draw(100, 10)
    with pytest.raises(ValueError, match="describe two classes, but y has 3"):
        CrossMoment(pi_neg=0.5).fit(X, np.arange(100) % 3)
    with pytest.raises(ValueError, match="needs at least two classes, but y has only one class, 1"):
        CrossMoment().fit(X, np.ones(100, dtype=int))
    with pytest.raises(ValueError, match="No eigenvalue of the covariance of X exceeds"):
        CrossMoment().fit(np.random.default_rng(0).normal(size=(100, 50)), codes)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        CrossMoment().fit(X, codes[:-1])


def test_clone():
    assert clone(CrossMoment(mean_norm=1.5, reg=3.0)).get_params() == {
        "mean_norm": 1.5,
        "pi_neg": None,
        "reg": 3.0,
    }


def test_standard_errors_are_finite_near_an_empty_class():
    """A proportion of the negative class that is less than its standard error below 1."""
    influence = np.tile([-1.0, 1.0], 50)
    statistics = _Statistics(
        share=_Statistic(0.2, 0.1 * influence),
        agreement=_Statistic(0.1, 0.1 * influence),
        length=_Statistic(2.0, influence),
        proportion=_Statistic(0.98, 0.5 * influence),
        gain=0.5,
    )
    assert statistics.proportion.value + statistics.proportion.error > 1
    assert np.isfinite(statistics.standard_errors()).all()
