"""Displays: stored numbers, scikit-learn conventions, matplotlib imported only to draw."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("matplotlib")

from matplotlib import pyplot

from unflip import LPClassifier, NoiseModel, audit, audit_scores, evaluate, theory
from unflip.datasets import make_mixture
from unflip.estimation import CrossMoment, TrustedSubset
from unflip.plotting import (
    AccuracyPathDisplay,
    CalibrationCurveDisplay,
    NoiseMatrixDisplay,
    PlanDisplay,
    ScoreDistributionDisplay,
    SuspectsDisplay,
)

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
NAMES = np.array(["ham", "spam"])
MIXTURE = theory.Mixture(
    mean_norm=2.0, aspect=1.0, noise=NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
)

CURVE = {"confidence": [0.6, 0.9], "accuracy": [0.5, 0.8], "low": [0.3, 0.7], "high": [0.7, 1]}


def draw():
    X, y = make_mixture(500, 30, mean_norm=1.6, random_state=0)
    return X, NAMES[NOISE.flip(y, random_state=0)], y


@pytest.fixture(scope="module")
def fitted():
    X, observed, _ = draw()
    return LPClassifier(CrossMoment()).fit(X, observed)


@pytest.fixture(scope="module")
def audited():
    X, observed, _ = draw()
    return audit(X, observed)


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.ones(3), size=90)
    noise = NoiseModel(0.8 * np.eye(3) + 0.2 / 3, [0.3, 0.3, 0.4])
    return audit_scores(true @ noise.transition, np.arange(90) % 3, noise=noise)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


class TestNoiseMatrix:
    def test_cells_show_rates_and_errors(self, fitted):
        display = NoiseMatrixDisplay.from_estimator(fitted)
        rates, errors = fitted.noise_.transition, fitted.noise_std_
        assert texts(display) == [
            f"{rates[a, b]:.2f}\n± {errors[a, b]:.2f}" for a in (0, 1) for b in (0, 1)
        ]
        assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["ham", "spam"]
        assert display.figure_ is display.ax_.figure

    def test_accepts_noise_estimators_and_audits(self, audited, three):
        X, observed, _ = draw()
        estimator = CrossMoment().fit(X, observed)
        np.testing.assert_array_equal(
            NoiseMatrixDisplay.from_estimator(estimator).transition, estimator.noise_.transition
        )
        np.testing.assert_array_equal(
            NoiseMatrixDisplay.from_audit(audited).errors, audited.noise_std
        )
        # Rates that were not estimated have no errors.
        assert texts(NoiseMatrixDisplay.from_audit(three))[:2] == ["0.87", "0.07"]

    def test_unfitted_estimator_raises(self):
        with pytest.raises(NotFittedError):
            NoiseMatrixDisplay.from_estimator(LPClassifier())


class TestScoreDistribution:
    def test_draws_loo_log_odds(self, fitted):
        _, observed, _ = draw()
        display = ScoreDistributionDisplay.from_estimator(fitted, observed)
        np.testing.assert_array_equal(display.log_odds, fitted.loo_log_odds_)
        np.testing.assert_array_equal(NAMES[display.codes], observed)

    def test_components_match_true_classes(self, fitted):
        _, observed, y = draw()
        display = ScoreDistributionDisplay.from_estimator(fitted, observed)
        for true in (0, 1):
            scores = display.log_odds[y == true]
            assert abs(display.means_[true] - scores.mean()) < 4 * scores.std() / np.sqrt(
                len(scores)
            )
            for label in (0, 1):
                members = NAMES[label] == observed
                error = np.sqrt(0.25 / members.sum())
                assert abs(display.shares_[label, true] - (y[members] == true).mean()) < 3 * error

    def test_densities_integrate_to_one_and_to_share_of_wrong_labels(self, fitted):
        display = ScoreDistributionDisplay.from_estimator(fitted, draw()[1])
        grid = np.linspace(-60, 60, 4001)
        for label in (0, 1):
            whole, wrong = display.density(grid, label)
            assert np.trapezoid(whole, grid) == pytest.approx(1)
            assert np.trapezoid(wrong, grid) == pytest.approx(display.shares_[label, 1 - label])
            expected = display.shares_[label, 1 - label] * norm.pdf(
                1.0, display.means_[1 - label], display.std_
            )
            assert display.density(np.array([1.0]), label)[1][0] == pytest.approx(expected)

    def test_audit_gives_same_display(self, fitted):
        X, observed, _ = draw()
        by_audit = ScoreDistributionDisplay.from_audit(audit(X, observed, noise=fitted.noise_))
        by_fit = ScoreDistributionDisplay.from_estimator(
            LPClassifier(fitted.noise_).fit(X, observed), observed
        )
        np.testing.assert_allclose(by_audit.log_odds, by_fit.log_odds, atol=1e-9)

    def test_more_classes_and_unknown_labels_raise(self, fitted, three):
        with pytest.raises(ValueError, match="shows two classes; there are 3"):
            ScoreDistributionDisplay.from_audit(three)
        with pytest.raises(
            ValueError, match="y has 3 labels but the estimator was fitted to 500 rows"
        ):
            ScoreDistributionDisplay.from_estimator(fitted, ["ham", "spam", "ham"])
        with pytest.raises(ValueError, match="the label 'eggs'"):
            ScoreDistributionDisplay.from_estimator(
                fitted, np.where(draw()[1] == "ham", "eggs", "spam")
            )


class TestAccuracyPath:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"targets": "optimized"},
            {"readout": "plain", "targets": "naive", "fit_intercept": False},
        ],
    )
    def test_accuracy_at_reg_of_estimator_is_its_expected_accuracy(self, options):
        X, observed, _ = draw()
        clf = LPClassifier(NOISE, reg=0.3, **options).fit(X, observed)
        display = AccuracyPathDisplay.from_estimator(clf, X, observed, regs=[0.01, 0.3])
        (accuracy,), (error,) = display.accuracies.values(), display.errors.values()
        assert accuracy[1] == pytest.approx(clf.expected_accuracy_, abs=1e-9)
        assert error[1] == pytest.approx(clf.expected_accuracy_std_, abs=1e-9)
        assert accuracy[0] != accuracy[1]

    def test_trusted_labels_are_kept_in_refits(self):
        X, observed, y = draw()
        trusted = np.full(500, None)
        trusted[:200] = NAMES[y[:200]]
        clf = LPClassifier(TrustedSubset(trusted), reg=0.3).fit(X, observed)
        display = AccuracyPathDisplay.from_estimator(clf, X, observed, regs=[0.3])
        assert display.accuracies["refined"][0] == pytest.approx(clf.expected_accuracy_, abs=1e-9)

    def test_default_regs_surround_chosen_reg(self):
        X, observed, _ = draw()
        display = AccuracyPathDisplay.from_estimator(
            LPClassifier(NOISE, reg=0.3).fit(X, observed), X, observed
        )
        assert len(display.regs) > 10
        assert display.regs[0] < 0.3 < display.regs[-1]
        assert display.ax_.get_xscale() == "log"

    def test_lines_of_mixture_are_predictions(self):
        display = AccuracyPathDisplay.from_mixture(MIXTURE)
        for name in ("naive", "unbiased", "optimized"):
            for index in (0, 60, 120):
                expected = theory.predict(MIXTURE, targets=name, reg=display.regs[index]).accuracy
                assert display.accuracies[name][index] == pytest.approx(float(expected))
        clean = theory.predict(MIXTURE.clean, targets="naive", reg=display.regs).accuracy
        np.testing.assert_allclose(display.accuracies["oracle"], clean)
        assert display.limit == float(MIXTURE.bayes_accuracy)
        assert len(display.ax_.get_legend().get_texts()) == 5

    def test_several_mixtures_raise(self):
        many = theory.Mixture(mean_norm=[1.0, 2.0], aspect=1.0, noise=MIXTURE.noise)
        with pytest.raises(ValueError, match="draws one mixture"):
            AccuracyPathDisplay.from_mixture(many)


class TestSuspects:
    def test_matches_suspects_of_audit(self, audited):
        display = SuspectsDisplay.from_audit(audited)
        m = audited.n_suspects
        assert display.precision_[m - 1] >= 0.9
        # The audit counts fewer: it averages over the standard errors of the noise rates.
        assert 0 < m <= ((display.precision_ >= 0.9) & (display.probability_ >= 0.5)).sum()
        np.testing.assert_allclose(display.precision_[9], audited.suspects.probability[:10].mean())
        assert (np.diff(display.probability_) <= 0).all()
        assert f"{m} suspects" in [text.get_text() for text in display.ax_.get_legend().get_texts()]

    def test_audit_without_suspects_is_drawn(self):
        display = SuspectsDisplay(np.full(30, 0.2), n_suspects=0, false_discovery_rate=0.1).plot()
        assert display.ax_.get_xlim() == (0, 30)


class TestPlan:
    def test_matches_plan_of_audit(self, audited):
        display = PlanDisplay.from_audit(audited)
        assert display.efforts == audited.plan.effort.tolist()
        np.testing.assert_array_equal(display.accuracies, audited.plan.accuracy)
        assert texts(display)[0] == f"{audited.expected_accuracy:.1%}"

    def test_audit_without_plan_raises_with_remedy(self, three):
        with pytest.raises(ValueError, match="effective_dimension="):
            PlanDisplay.from_audit(three)


class TestCalibrationCurve:
    def test_draws_the_curve_of_an_evaluation(self):
        positive = np.random.default_rng(0).beta(0.5, 0.5, 400)
        result = evaluate(positive, (positive > 0.4).astype(int))
        display = CalibrationCurveDisplay.from_evaluation(result)
        curve = result.calibration_curve
        line = next(line for line in display.ax_.lines if line.get_label() == "accuracy")
        np.testing.assert_array_equal(line.get_xdata(), curve.confidence)
        np.testing.assert_array_equal(line.get_ydata(), curve.accuracy)
        (intervals,) = display.ax_.collections
        ends = [segment[:, 1].tolist() for segment in intervals.get_segments()]
        assert ends == [list(limits) for limits in zip(curve.low, curve.high, strict=True)]
        (left, right), (bottom, top) = display.ax_.get_xlim(), display.ax_.get_ylim()
        assert left <= curve.confidence.min() <= curve.confidence.max() <= right
        assert bottom <= curve.low.min() <= curve.high.max() <= top

    def test_bins_of_unknown_accuracy_are_not_drawn(self):
        curve = {**CURVE, "accuracy": [np.nan, 0.8], "low": [0, 0.7], "high": [1, 1]}
        display = CalibrationCurveDisplay(**curve).plot()
        line = next(line for line in display.ax_.lines if line.get_label() == "accuracy")
        assert line.get_xdata().tolist() == [0.9]
        assert len(display.ax_.collections[0].get_segments()) == 1

    def test_predictions_have_no_curve(self):
        with pytest.raises(ValueError, match="give its probabilities to evaluate"):
            CalibrationCurveDisplay.from_evaluation(evaluate([0, 1] * 20, [0, 1] * 20))

    def test_other_results_raise(self, audited):
        with pytest.raises(
            ValueError, match=r"must be an? Evaluation: give the result of unflip\.eval"
        ):
            CalibrationCurveDisplay.from_evaluation(audited)

    @pytest.mark.parametrize(
        ("name", "values", "message"),
        [
            ("confidence", [], r"confidence has shape \(0,\): give a number for each bin"),
            ("low", [0.3], "low has shape .*: give a number for each of the 2 bins of confidence"),
            ("accuracy", [0.5, 1.2], "accuracy = .* must hold numbers between 0 and 1"),
            ("confidence", [0.6, np.nan], "confidence = .* must hold numbers between 0 and 1"),
            ("high", [0.7, np.inf], "high = .* must hold numbers between 0 and 1"),
        ],
    )
    def test_other_numbers_raise(self, name, values, message):
        with pytest.raises(ValueError, match=message):
            CalibrationCurveDisplay(**{**CURVE, name: values})


def test_displays_draw_on_given_axes(audited):
    _, ax = pyplot.subplots()
    display = SuspectsDisplay.from_audit(audited, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    again = display.plot()
    assert again is display
    assert display.ax_ is not ax


def test_matplotlib_is_needed_only_to_draw(audited, monkeypatch):
    code = "import sys, unflip.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    display = SuspectsDisplay(audited.evidence.wrong, n_suspects=3, false_discovery_rate=0.1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"SuspectsDisplay needs matplotlib.*unflip\[plot\]"):
        display.plot()


class TestPipelines:
    def test_last_step_of_pipeline_is_drawn_with_transformed_rows(self):
        X, observed, _ = draw()
        pipe = make_pipeline(StandardScaler(), LPClassifier(NOISE, targets="optimized")).fit(
            3 * X, observed
        )
        rows = pipe[:-1].transform(3 * X)
        drawn = ScoreDistributionDisplay.from_estimator(pipe, observed)
        np.testing.assert_array_equal(drawn.log_odds, pipe[-1].loo_log_odds_)
        np.testing.assert_array_equal(
            NoiseMatrixDisplay.from_estimator(pipe).transition, NOISE.transition
        )
        regs = [0.1, 1.0]
        of_pipe = AccuracyPathDisplay.from_estimator(pipe, 3 * X, observed, regs=regs)
        of_last = AccuracyPathDisplay.from_estimator(pipe[-1], rows, observed, regs=regs)
        np.testing.assert_array_equal(
            of_pipe.accuracies["optimized"], of_last.accuracies["optimized"]
        )
        alone = make_pipeline(LPClassifier(NOISE)).fit(X, observed)
        assert AccuracyPathDisplay.from_estimator(alone, X, observed, regs=[1.0]).accuracies

    def test_other_last_steps_raise(self):
        X, observed, _ = draw()
        pipe = make_pipeline(StandardScaler()).fit(X)
        with pytest.raises(
            TypeError,
            match=r"a Pipeline that ends in one: estimator = StandardScaler\(\) is neither",
        ):
            ScoreDistributionDisplay.from_estimator(pipe, observed)
        with pytest.raises(NotFittedError):
            NoiseMatrixDisplay.from_estimator(make_pipeline(LPClassifier()))
