"""Numbers near the limits of float64: digits of a 60-digit reference, or a clear error.

Warnings are errors, so NumPy's warnings fail these tests.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import unflip
from support import precise
from unflip import LPClassifier, Moments, NoiseModel, audit, estimation, targets, theory
from unflip.datasets import make_mixture
from unflip.ridge.spectrum import DualSpectrum, PrimalSpectrum, decompose
from unflip.theory.orthant import orthant_probability

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.3)
CLEAN = NoiseModel.binary(eps_pos=0.0, eps_neg=0.0, pi_neg=0.3)
ASPECTS = [1e-4, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0, 1e4]
REGS = [0.0, 1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e12]
SETTINGS = [pair for pair in itertools.product(ASPECTS, REGS) if pair != (1.0, 0.0)]


class TestTheory:
    @pytest.mark.parametrize(("aspect", "reg"), SETTINGS)
    def test_delta_and_h(self, aspect, reg):
        delta, h, _ = precise.delta_and_h(aspect, reg)
        assert theory.delta(aspect, reg) == pytest.approx(float(delta), rel=1e-14)
        assert theory.h(aspect, reg) == pytest.approx(float(h), rel=1e-14)

    @pytest.mark.parametrize("noise", [NOISE, CLEAN], ids=["noisy", "clean"])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("mean_norm", [1e-3, 1.0, 1e3, 1e6])
    def test_scores(self, noise, fit_intercept, mean_norm):
        for (aspect, reg), name in itertools.product(SETTINGS, ["naive", "optimized"]):
            mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise)
            prediction = theory.predict(mixture, targets=name, reg=reg, fit_intercept=fit_intercept)
            values = targets.resolve(name, noise)
            low, high, variance, separation = precise.score_law(
                mean_norm, aspect, reg, noise, values, fit_intercept=fit_intercept
            )
            np.testing.assert_allclose(
                prediction.means, (low, high), rtol=1e-13, atol=1e-15 * np.abs(values).max()
            )
            np.testing.assert_allclose(prediction.variance, variance, rtol=1e-13)
            np.testing.assert_allclose(prediction.separation, separation, rtol=1e-13)
            assert 0 <= prediction.accuracy <= 1
            assert 0 <= prediction.best_accuracy <= 1

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("aspect", [1e-4, 1.0, 1e4])
    @pytest.mark.parametrize("mean_norm", [0.0, 1e-3, 1.0, 100.0])
    def test_losses_agree_at_strong_regularization(self, fit_intercept, aspect, mean_norm):
        """Scores are then so small that every loss acts like the squared loss."""
        mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=NOISE)
        limit = theory.predict(mixture, reg=np.inf, fit_intercept=fit_intercept)
        for reg in (1e6, 1e8, 1e12) if aspect <= 1 else (1e10, 1e12):
            prediction = theory.predict(
                mixture, reg=reg, loss="logistic", fit_intercept=fit_intercept
            )
            assert prediction.separation == pytest.approx(
                float(limit.separation), rel=1e-4 if mean_norm > 1 else 1e-5
            )
            assert prediction.variance > 0

    @pytest.mark.parametrize("noise", [NOISE, CLEAN], ids=["noisy", "clean"])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("shape", [(10_000, 1), (200, 100), (100, 100), (1, 1000)])
    def test_scores_of_two_classes_among_several(self, noise, fit_intercept, shape):
        contrast = np.array([-1.0, 1.0])
        for reg, mean_norm in itertools.product(REGS[1:], [1e-3, 1.0, 100.0]):
            n, p = shape
            mean = np.append(mean_norm, np.zeros(p - 1))
            options = {"targets": "optimized", "reg": reg, "fit_intercept": fit_intercept}
            prediction = theory.predict_multiclass(means=[-mean, mean], n=n, noise=noise, **options)
            values = targets.optimized(noise)
            *_, variance, _ = precise.score_law(
                mean_norm, p / n, reg, noise, values, fit_intercept=fit_intercept
            )
            assert contrast @ prediction.covariance @ contrast == pytest.approx(variance, rel=1e-11)
            assert 0 <= prediction.accuracy <= 1
            assert 0 <= prediction.readout_accuracy <= 1 + 1e-12

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("mean_norm", [1e6, 1e8, 1e40])
    def test_separated_classes(self, mean_norm, fit_intercept):
        """Only label noise causes errors, so the accuracy does not depend on the distance."""
        noise = NoiseModel(0.7 * np.eye(3) + 0.1, [0.3, 0.3, 0.4])
        options = {"n": 50, "noise": noise, "reg": 1.0, "fit_intercept": fit_intercept}
        far, farther = (
            theory.predict_multiclass(means=factor * mean_norm * np.eye(3, 10), **options)
            for factor in (1, 100)
        )
        np.testing.assert_allclose(farther.means, far.means, rtol=1e-6)
        np.testing.assert_allclose(farther.covariance, far.covariance, rtol=1e-6, atol=1e-12)
        assert farther.accuracy == pytest.approx(far.accuracy, abs=1e-6)
        assert far.readout_accuracy > 0.99

    @pytest.mark.parametrize(
        "predict",
        [
            lambda far: theory.Mixture(mean_norm=far, aspect=1.0, noise=NOISE),
            lambda far: theory.plan(n=10, p=10, mean_norm=far, noise=NOISE),
            lambda far: theory.predict_multiclass(
                means=[[far], [-far]], n=10, noise=NOISE, reg=1.0
            ),
            lambda far: theory.multiclass_bayes_accuracy(means=[[far], [-far]], noise=NOISE),
            lambda far: theory.predict_general(
                mean=[far], cov_neg=[1.0], cov_pos=[2.0], n=9, noise=NOISE, reg=1.0
            ),
        ],
        ids=["Mixture", "plan", "multiclass", "bayes", "general"],
    )
    @pytest.mark.parametrize("far", [1e100, 1e200])
    def test_raises_if_powers_of_distances_overflow(self, predict, far):
        with pytest.raises(
            ValueError,
            match=r"mean.* holds 1e\+.00, beyond 1e\+50: give means in units of the noise",
        ):
            predict(far)

    @pytest.mark.parametrize("pi_neg", [1e-12, 1e-300, 1 - 1e-12])
    def test_very_rare_class(self, pi_neg):
        noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=pi_neg)
        plan = theory.plan(n=100, p=50, mean_norm=1.0, noise=noise)
        assert plan.accuracy == pytest.approx(1.0)
        assert plan.equivalent_rows(10) > 1e10
        assert 0 <= plan.clean_rows <= 100
        for loss, name in (("squared", "optimized"), ("logistic", "naive")):
            mixture = theory.Mixture(mean_norm=1.0, aspect=1.0, noise=noise)
            prediction = theory.predict(mixture, targets=name, reg=1.0, loss=loss)
            assert prediction.best_accuracy == pytest.approx(1.0)

    @pytest.mark.parametrize("bound", [5e-324, 1e-310, 1e-300, 1e-20])
    def test_orthants_close_to_an_axis(self, bound):
        correlated = np.array([[1.0, 0.5], [0.5, 1.0]])
        assert orthant_probability([bound, 0.0], correlated) == pytest.approx(1 / 3)
        assert orthant_probability([-bound, bound], correlated) == pytest.approx(1 / 3)

    @pytest.mark.parametrize("bound", [10.0, 50.0, 1e10, 1e300])
    def test_orthants_far_from_an_axis(self, bound):
        even = (np.eye(3) + 1) / 2
        assert orthant_probability([bound, bound, 0.0], even) == pytest.approx(0.5, abs=1e-4)
        assert orthant_probability([bound, bound, bound], even) == pytest.approx(1.0, abs=1e-4)
        assert orthant_probability([-bound, bound, bound], even) == pytest.approx(0.0, abs=1e-4)

    def test_raises_for_too_many_classes(self):
        k = 50
        noise = NoiseModel(0.8 * np.eye(k) + 0.2 / k, np.full(k, 1 / k))
        prediction = theory.predict_multiclass(means=2 * np.eye(k), n=1000, noise=noise, reg=1.0)
        assert np.linalg.eigvalsh(prediction.covariance).min() >= -1e-12
        with pytest.raises(ValueError, match="up to 10 classes; this mixture has 50"):
            _ = prediction.accuracy


def ill_conditioned(shape, condition, seed=0):
    """Return rows away from the origin whose Gram matrix has this condition number."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(size, min(shape))))[0] for size in shape)
    return (left * np.logspace(0, -np.log10(condition) / 2, min(shape))) @ right.T + 0.1


class TestRidge:
    """Fits against normal equations in 60 digits, with the accuracy that a Gram matrix allows."""

    @pytest.mark.parametrize("spectrum", [PrimalSpectrum, DualSpectrum])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("shape", [(14, 5), (5, 9)])
    @pytest.mark.parametrize("condition", [1e2, 1e8, 1e16])
    @pytest.mark.parametrize("reg", REGS[1:])
    def test_any_reg_and_condition(self, reg, condition, shape, fit_intercept, spectrum):
        X, t = ill_conditioned(shape, condition), np.random.default_rng(1).normal(size=shape[0])
        rows = spectrum(X, None, fit_intercept=fit_intercept)
        result = rows.path(t, [reg])
        coef, intercept = precise.ridge(X, t, reg, fit_intercept=fit_intercept)
        amplified = 1 + float(rows.variances.max()) / reg
        assert np.abs(result.coef[:, 0, 0] - coef).max() <= 1e-14 * amplified * np.abs(coef).max()
        across = np.abs(X.mean(axis=0)) @ np.abs(coef)
        assert abs(result.intercept[0, 0] - intercept) <= 1e-14 * amplified * (
            np.abs(t).max() + across
        )

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("shape", [(14, 5), (8, 8), (5, 9)])
    @pytest.mark.parametrize("reg", [1e-8, 1e-3, 1.0, 1e12])
    def test_leave_one_out_scores(self, reg, shape, fit_intercept):
        X, t = ill_conditioned(shape, 1e2), np.random.default_rng(1).normal(size=shape[0])
        rows = decompose(X, fit_intercept=fit_intercept)
        result, amplified = rows.leave_one_out(t, [reg]), 1 + float(rows.variances.max()) / reg
        for i in range(shape[0]):
            expected = precise.left_out(X, t, reg, i, fit_intercept=fit_intercept)
            assert result.scores[i, 0, 0] == pytest.approx(
                expected, abs=1e-13 * amplified * np.abs(t).max()
            )

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_reg_0(self, fit_intercept):
        X, t = ill_conditioned((14, 5), 1e4), np.random.default_rng(1).normal(size=14)
        result = decompose(X, fit_intercept=fit_intercept).path(t, [0.0])
        coef, _ = precise.ridge(X, t, 0.0, fit_intercept=fit_intercept)
        np.testing.assert_allclose(
            result.coef[:, 0, 0], coef, rtol=0, atol=1e-11 * np.abs(coef).max()
        )

    def test_reg_0_if_the_gram_matrix_loses_a_direction(self):
        X, t = ill_conditioned((14, 5), 1e18), np.random.default_rng(1).normal(size=14)
        with pytest.raises(
            ValueError, match=r"reg=0 needs a Gram matrix of full rank.*use a positive reg"
        ):
            decompose(X).path(t, [0.0])


X, TRUE = make_mixture(60, 10, mean_norm=1.5, random_state=0)
KNOWN = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)
Y = KNOWN.flip(TRUE, random_state=0)
SIGNS = 2.0 * Y - 1
PLAIN = {"targets": "naive", "readout": "plain"}
ESTIMATORS = {
    "CrossMoment": lambda: estimation.CrossMoment(),
    "CrossMoment-given": lambda: estimation.CrossMoment(mean_norm=1.5, pi_neg=0.5),
    "Automatic": lambda: estimation.Automatic(),
    "TrustedSubset": lambda: estimation.TrustedSubset(np.where(np.arange(60) < 30, TRUE, np.nan)),
}
# Warnings of assumed noise rates and of few rows.
quiet = pytest.mark.filterwarnings("ignore::UserWarning")


def assert_sound(clf, rows):
    for name in (
        "coef_",
        "intercept_",
        "loo_decision_",
        "label_posterior_",
        "loo_log_odds_",
        "targets_",
    ):
        assert np.isfinite(getattr(clf, name)).all(), name
    table = clf.predict_proba(rows)
    assert ((table >= 0) & (table <= 1)).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-12)
    assert 0 <= clf.expected_accuracy_ <= 1
    assert 0 <= clf.expected_accuracy_std_ < np.inf


@quiet
class TestScales:
    @pytest.mark.parametrize("reg", REGS)
    def test_any_reg_with_plain_readout(self, reg):
        clf = LPClassifier(KNOWN, reg=reg, **PLAIN).fit(X, Y)
        coef, intercept = precise.ridge(X, SIGNS, reg)
        np.testing.assert_allclose(clf.coef_[0], coef, rtol=1e-11, atol=1e-13 * np.abs(coef).max())
        np.testing.assert_allclose(clf.intercept_, intercept, rtol=1e-11)
        assert_sound(clf, X)

    @pytest.mark.parametrize("kind", ["naive", "refined"])
    @pytest.mark.parametrize("reg", [1e6, 1e9, 1e12])
    def test_directions_at_strong_regularization_have_a_limit(self, reg, kind):
        limit = LPClassifier(KNOWN, reg=1e5, targets=kind).fit(X, Y)
        clf = LPClassifier(KNOWN, reg=reg, targets=kind).fit(X, Y)
        assert_sound(clf, X)
        np.testing.assert_allclose(
            clf.coef_, limit.coef_, rtol=0, atol=1e-4 * np.abs(limit.coef_).max()
        )

    @pytest.mark.parametrize("kind", ["naive", "refined"])
    @pytest.mark.parametrize("readout", ["plain", "gaussian"])
    def test_raises_if_scores_underflow(self, readout, kind):
        """The fit has a limit, but its scores would be rounding errors."""
        with pytest.raises(
            ValueError, match=r"reg=1e\+20 is above 1e\+12 times the variance .* lower reg"
        ):
            LPClassifier(KNOWN, reg=1e20, targets=kind, readout=readout).fit(X, Y)

    @pytest.mark.parametrize("loss", ["squared", "logistic"])
    @pytest.mark.parametrize("kind", ["naive", "refined"])
    @pytest.mark.parametrize("reg", [1.0, "loo"])
    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_features_in_any_unit(self, scale, reg, kind, loss):
        options = {"targets": kind, "loss": loss}
        now = LPClassifier(KNOWN, reg=reg, **options).fit(X, Y)
        then = LPClassifier(KNOWN, reg=reg if reg == "loo" else reg * scale**2, **options).fit(
            scale * X, Y
        )
        np.testing.assert_allclose(scale * then.coef_, now.coef_, rtol=1e-7)
        assert_sound(then, scale * X)

    @pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e154, 1e300])
    def test_raises_if_squares_of_features_over_or_underflow(self, scale):
        with pytest.raises(
            ValueError, match=r"The largest magnitude in X is .*, whose square over- or underflows"
        ):
            LPClassifier(KNOWN).fit(scale * X, Y)

    @pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
    def test_audits_in_any_unit(self, scale):
        now, then = audit(X, Y, noise=KNOWN), audit(scale * X, Y, noise=KNOWN)
        np.testing.assert_allclose(then.label_posterior, now.label_posterior, atol=1e-7)
        for rows in (scale * X, csr_array(scale * X), scale * np.tile(X, 7)):
            report = audit(rows, Y, noise=KNOWN)
            assert report.accuracy_after(10) == pytest.approx(now.accuracy_after(10), rel=1e-3)

    @pytest.mark.parametrize("name", ESTIMATORS)
    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_rates_in_any_unit(self, name, scale):
        now, then = (ESTIMATORS[name]().fit(rows, Y) for rows in (X, scale * X))
        np.testing.assert_allclose(then.noise_.transition, now.noise_.transition, atol=1e-7)

    @pytest.mark.parametrize("scale", [1e-170, 1e170])
    @pytest.mark.parametrize("name", ["CrossMoment", "CrossMoment-given", "Automatic"])
    def test_rates_raise_if_squares_over_or_underflow(self, name, scale):
        with pytest.raises(
            ValueError, match=r"The largest magnitude in X is .*, whose square over- or underflows"
        ):
            ESTIMATORS[name]().fit(scale * X, Y)

    @pytest.mark.parametrize("scale", [1e-170, 1e170])
    def test_mixtures_raise_if_squares_over_or_underflow(self, scale):
        for estimate in (
            lambda rows: estimation.spectral_mixture(rows),
            lambda rows: estimation.estimate_mixture(rows, Y, KNOWN),
            lambda rows: estimation.SecondMomentMatching(mean_norm=1.5, pi_neg=0.5).fit(rows, Y),
        ):
            with pytest.raises(ValueError, match="whose square over- or underflows float64"):
                estimate(scale * X)

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_mean_norms_and_mixtures_in_any_unit(self, scale):
        assert estimation.mean_norm_from_rows(scale * X, TRUE) == pytest.approx(
            estimation.mean_norm_from_rows(X, TRUE)
        )
        result, expected = (estimation.spectral_mixture(rows) for rows in (scale * X, X))
        assert result.mean_norm == pytest.approx(expected.mean_norm)
        assert result.noise_std == pytest.approx(scale * expected.noise_std)
        mixture, usual = (estimation.estimate_mixture(rows, Y, KNOWN) for rows in (scale * X, X))
        np.testing.assert_allclose(np.asarray(mixture.mean) / scale, usual.mean, rtol=1e-9)

    @pytest.mark.parametrize("scale", [1e-150, 1e-130, 1e130])
    @pytest.mark.parametrize("reg", [1.0, "loo"])
    def test_moments_in_any_unit(self, scale, reg):
        now, then = (
            LPClassifier.from_moments(
                Moments.from_chunks([(unit * X, Y)]),
                KNOWN,
                reg=reg if reg == "loo" else reg * unit**2,
            )
            for unit in (1.0, scale)
        )
        np.testing.assert_allclose(scale * then.coef_, now.coef_, rtol=1e-8)
        assert then.expected_accuracy_ == pytest.approx(now.expected_accuracy_)

    @pytest.mark.parametrize("scale", [1e-160, 1e-200])
    def test_moments_raise_if_squares_underflow(self, scale):
        with pytest.raises(ValueError, match="whose square over- or underflows float64"):
            LPClassifier.from_moments(Moments.from_chunks([(scale * X, Y)]), KNOWN)
        with pytest.raises(ValueError, match="whose square over- or underflows float64"):
            LPClassifier(KNOWN, targets="naive").partial_fit(scale * X, Y, classes=[0, 1])

    @pytest.mark.parametrize("scale", [1e141, 1e200])
    def test_moments_raise_if_squares_overflow(self, scale):
        with pytest.raises(ValueError, match="whose square is too large: rescale the columns"):
            Moments.from_chunks([(scale * X, Y)])


class TestSeparatedClasses:
    """Proportions that differ from the priors by a few rows must not move the threshold."""

    @pytest.mark.parametrize("distance", [10.0, 100.0, 1000.0])
    @pytest.mark.parametrize("k", [2, 5])
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_every_row_is_classified_correctly(self, k, distance, seed):
        rng = np.random.default_rng(seed)
        means = distance * rng.normal(size=(k, 20))
        share = rng.dirichlet(np.full(k, 3.0))
        y = np.append(np.repeat(np.arange(k), 6), rng.choice(k, 200 - 6 * k, p=share))
        train, new = (means[y] + rng.normal(size=(200, 20)) for _ in range(2))
        noise = NoiseModel(np.full((k, k), 0.3 / (k - 1)) + (0.7 - 0.3 / (k - 1)) * np.eye(k))
        clf = LPClassifier(noise).fit(train, noise.flip(y, random_state=seed))
        np.testing.assert_array_equal(clf.predict(train), y)
        np.testing.assert_array_equal(clf.predict(new), y)
        assert clf.expected_accuracy_ > 0.999


@quiet
class TestDtypes:
    @pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-30, 1.0, 1e30, 2e37])
    @pytest.mark.parametrize("kind", ["naive", "refined"])
    def test_single_precision_in_any_unit(self, scale, kind):
        rows = (X * scale).astype(np.float32)
        single, double = (
            LPClassifier(KNOWN, targets=kind).fit(data, Y)
            for data in (rows, rows.astype(np.float64))
        )
        np.testing.assert_allclose(
            single.coef_, double.coef_, rtol=0, atol=1e-4 * np.abs(double.coef_).max()
        )
        assert_sound(single, rows)
        assert audit(rows, Y, noise=KNOWN).label_posterior.min() >= 0

    @pytest.mark.parametrize(
        "dtype", [bool, np.int8, np.uint8, np.int16, np.uint32, np.int64, np.float16]
    )
    def test_every_numeric_dtype(self, dtype):
        rows = (np.abs(10 * X) % 100 if dtype is not bool else X > 0).astype(dtype)
        clf, expected = (LPClassifier(KNOWN).fit(data, Y) for data in (rows, rows.astype(float)))
        np.testing.assert_array_equal(clf.coef_, expected.coef_)
        actual, reference = (
            Moments.from_chunks([(data, Y)]) for data in (rows, rows.astype(float))
        )
        np.testing.assert_array_equal(actual.scatter, reference.scatter)

    def test_largest_integers(self):
        rows = np.where(X > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
        clf, expected = (LPClassifier(KNOWN).fit(data, Y) for data in (rows, rows.astype(float)))
        np.testing.assert_array_equal(clf.coef_, expected.coef_)


@quiet
class TestShapes:
    @pytest.mark.parametrize("kind", ["naive", "refined"])
    @pytest.mark.parametrize(
        "noise", [None, NoiseModel.binary(eps_pos=0.2, eps_neg=0.001), "estimate"]
    )
    def test_class_of_three_rows(self, noise, kind):
        rng = np.random.default_rng(0)
        rows, labels = rng.normal(size=(500, 20)), np.repeat([1, 0], [3, 497])
        rows[:3] += 1
        clf = LPClassifier(noise, targets=kind).fit(rows, labels)
        assert_sound(clf, rows)
        assert clf.expected_accuracy_ > 0.98  # that of the larger class
        assert 0 <= audit(rows, labels, noise=noise).expected_wrong <= 500

    def test_twenty_rows_with_a_hundred_thousand_features(self):
        rng = np.random.default_rng(0)
        rows, signs = rng.integers(-3, 4, size=(20, 100_000)), np.tile([-1.0, 1.0], 10)
        for reg in (1e-6, 1.0, 1e6):
            coef = precise.ridge_of_counts(rows, signs, reg)
            clf = LPClassifier(None, reg=reg, **PLAIN).fit(rows, signs)
            np.testing.assert_allclose(clf.coef_[0], coef, rtol=0, atol=1e-12 * np.abs(coef).max())
        assert_sound(LPClassifier(KNOWN).fit(rows.astype(np.float32), signs), rows)
        assert 0 <= audit(rows, signs, noise=KNOWN).expected_wrong <= 20

    @pytest.mark.slow
    def test_a_million_rows_with_five_features(self):
        rng = np.random.default_rng(0)
        signs = rng.choice([-1.0, 1.0], size=1_000_000)
        rows = rng.integers(-50, 51, size=(1_000_000, 5)) + (signs > 0)[:, None] * np.arange(5)
        for reg in (0.0, 1e-6, 1.0, 1e6):
            coef = precise.ridge_of_counts(rows, signs, reg)
            clf = LPClassifier(None, reg=reg, **PLAIN).fit(rows, signs)
            np.testing.assert_allclose(clf.coef_[0], coef, rtol=1e-10)
        assert_sound(
            LPClassifier(KNOWN).fit(rows, KNOWN.flip((signs > 0).astype(int), 0)), rows[:1000]
        )

    @pytest.mark.parametrize("reg", [1e-3, 1.0])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_repeated_and_zero_columns(self, fit_intercept, reg):
        rows = np.column_stack([X[:20, :3], X[:20, :3], np.zeros((20, 2))])
        clf = LPClassifier(None, reg=reg, fit_intercept=fit_intercept, **PLAIN).fit(rows, Y[:20])
        coef, intercept = precise.ridge(rows, SIGNS[:20], reg, fit_intercept=fit_intercept)
        np.testing.assert_allclose(clf.coef_[0], coef, rtol=0, atol=1e-11)
        np.testing.assert_allclose(clf.intercept_, intercept, rtol=0, atol=1e-11)
        np.testing.assert_allclose(clf.coef_[0, :3], clf.coef_[0, 3:6], rtol=0, atol=1e-11)
        with pytest.raises(
            ValueError, match=r"span 3 of 6 varying features: .* drop collinear features"
        ):
            LPClassifier(None, reg=0.0, fit_intercept=fit_intercept, **PLAIN).fit(rows, Y[:20])

    def test_fifty_classes(self):
        rng, k = np.random.default_rng(0), 50
        true = np.arange(200) % k
        rows = 3 * rng.normal(size=(k, 20))[true] + rng.normal(size=(200, 20))
        noise = NoiseModel(0.8 * np.eye(k) + 0.2 / k, np.full(k, 1 / k))
        labels = noise.flip(true, random_state=0)
        clf = LPClassifier(noise, reg=0.1, **PLAIN).fit(rows, labels)
        coef, intercept = precise.ridge(rows, labels == 49, 0.1)
        np.testing.assert_allclose(clf.coef_[49], coef, rtol=0, atol=1e-12)
        assert clf.intercept_[49] == pytest.approx(intercept, abs=1e-12)
        assert_sound(clf, rows)
        decoded = LPClassifier(noise, reg=0.1, targets="naive").fit(rows, labels)
        assert_sound(decoded, rows)
        assert decoded.score(rows, true) > 0.95


def test_suppressed_warnings_have_a_comment():
    silent = re.compile(r"errstate\(|simplefilter\(\"ignore|filterwarnings\(\"ignore")
    for path in sorted(Path(unflip.__file__).parent.rglob("*.py")):
        lines = ["", *path.read_text().splitlines()]
        for number, line in enumerate(lines[1:], 1):
            has_comment = "#" in line or lines[number - 1].strip().startswith("#")
            assert has_comment or not silent.search(line), f"{path.name}:{number}: {line.strip()}"
