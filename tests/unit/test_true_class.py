"""The model of the true class that checked rows calibrate."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit, softmax
from scipy.stats import binomtest

from unflip.calibration.interval import (
    Interval,
    share_interval,
    sum_of_shares,
    wilson_interval,
)
from unflip.calibration.labelled_scores import LabelledScores, ModelScores
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED, UNLABELLED
from unflip.labels.noise import NoiseModel


def draw(k, n=400, seed=0, n_checked=60):
    """Return probabilities, labels, true classes, and the true classes of checked rows."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(k, 0.6), n)
    true = (rng.random(n)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    wrong = rng.random(n) < 0.5 * (1 - probabilities.max(axis=1))  # errors on hard rows
    observed = np.where(wrong, rng.integers(0, k, n), true)
    truth = np.full(n, UNCHECKED)
    checked = rng.permutation(n)[:n_checked]
    truth[checked] = true[checked]
    return probabilities, observed, true, truth


def fitted(k, **options):
    probabilities, observed, _, truth = draw(k, **options)
    return TrueClassModel.fit(LabelledScores((ModelScores.of(probabilities),), observed, k), truth)


class TestIntervals:
    def test_wilson_of_scipy(self):
        expected = binomtest(17, 20).proportion_ci(0.95, method="wilson")
        interval = wilson_interval(17 / 20, 20)
        assert interval.low == pytest.approx(expected.low, abs=1e-12)
        assert interval.high == pytest.approx(expected.high, abs=1e-12)

    def test_share_is_symmetric_on_the_logit_scale(self):
        interval = share_interval(0.9, 0.02)
        assert logit(0.9) - logit(interval.low) == pytest.approx(logit(interval.high) - logit(0.9))
        assert interval.high - 0.9 < 0.9 - interval.low

    def test_sum_of_independent_normal_shares(self):
        parts = [Interval(0.5, 0.4, 0.6), Interval(0.2, 0.1, 0.3)]
        total = sum_of_shares(parts, [0.5, 0.3], np.eye(2), certain=0.1)
        assert total.value == pytest.approx(0.1 + 0.25 + 0.06)
        assert total.high - total.value == pytest.approx(np.hypot(0.05, 0.03))

    def test_correlated_parts_add_up(self):
        parts = [Interval(0.5, 0.4, 0.6), Interval(0.2, 0.1, 0.3)]
        total = sum_of_shares(parts, [0.5, 0.5], np.ones((2, 2)))
        assert total.width == pytest.approx(0.2)

    def test_limits_stay_within_0_and_1(self):
        total = sum_of_shares([Interval(0.99, 0.0, 1.0)], [1.0], np.eye(1))
        assert 0 <= total.low <= total.high <= 1


class TestDesign:
    @pytest.mark.parametrize("k", [2, 4])
    def test_logits_are_the_equation(self, k):
        probabilities, observed, _, _ = draw(k, n=7)
        rows = LabelledScores((ModelScores.of(probabilities),), observed, k)
        names = rows.names
        rng = np.random.default_rng(1)
        parameters = rng.normal(size=len(names))
        value = dict(zip(names, parameters, strict=True))
        intercepts = parameters[-k:]
        logs = np.log(np.maximum(probabilities, 1e-4))
        logs -= logs.mean(axis=1, keepdims=True)
        predicted = probabilities.argmax(axis=1)
        for i, a in np.ndindex(7, k):
            o = observed[i]
            p = predicted[i]
            expected = (value["beta"] + value["beta_d"] * (o != p)) * logs[i, a] + intercepts[a]
            expected += value["gamma"] * (a == o) + value["delta"] * (a == p)
            expected += value.get("zeta", 0.0) * (a == o == p)
            assert rows.logits(parameters)[i, a] == pytest.approx(expected, abs=1e-12)

    def test_zeta_is_for_more_than_two_classes(self):
        assert "zeta" not in fitted(2).rows.names
        assert "zeta" in fitted(3).rows.names

    @pytest.mark.parametrize("k", [2, 3])
    def test_features_agree(self, k):
        model = fitted(k)
        rows = model.rows
        classes = np.random.default_rng(0).integers(0, k, len(rows.observed))
        every = np.arange(len(classes))
        design = rows.design(every)
        posterior = model.predicted_posterior
        np.testing.assert_allclose(rows.features_of(classes), design[every, classes], atol=1e-14)
        np.testing.assert_allclose(
            rows.mean_features(posterior), np.einsum("nk,nkd->nd", posterior, design), atol=1e-12
        )
        np.testing.assert_allclose(
            design @ model.parameters, rows.logits(model.parameters), atol=1e-12
        )

    def test_gradients_are_derivatives(self):
        model = fitted(3)
        classes = model.rows.observed
        every = np.arange(len(classes))
        step = 1e-6
        gradients = model.rows.gradients(model.predicted_posterior, classes)
        for j in range(len(model.parameters)):
            moved = np.eye(len(model.parameters))[j] * step
            up = model.rows.posterior(model.parameters + moved)[every, classes]
            down = model.rows.posterior(model.parameters - moved)[every, classes]
            np.testing.assert_allclose(gradients[:, j], (up - down) / (2 * step), atol=1e-8)

    def test_class_conditional_noise_is_inside(self):
        """Two classes: β = 1, γ and c by the rates give the posterior of Bayes' rule."""
        probabilities, observed, _, _ = draw(2)
        probabilities = np.clip(probabilities, 1e-3, 1 - 1e-3)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
        joint = probabilities * noise.transition.T[observed]
        bayes = joint / joint.sum(axis=1, keepdims=True)
        rows = LabelledScores((ModelScores.of(probabilities),), observed, 2)
        logs = np.log(noise.transition)
        gamma = (logs[0, 0] + logs[1, 1] - logs[0, 1] - logs[1, 0]) / 2
        shift = (logs[1, 0] + logs[1, 1] - logs[0, 0] - logs[0, 1]) / 2
        value = {"beta": 1.0, "gamma": gamma}
        parameters = np.array([value.get(name, 0.0) for name in rows.names])
        parameters[-1] = shift
        np.testing.assert_allclose(rows.posterior(parameters), bayes, atol=1e-12)

    def test_rows_without_label_have_no_label_feature(self):
        probabilities, observed, _, truth = draw(3)
        observed = observed.copy()
        observed[:50] = UNLABELLED
        rows = LabelledScores((ModelScores.of(probabilities),), observed, 3)
        assert (rows.cells[:50] == 2).all()
        model = TrueClassModel.fit(rows, truth)
        gamma = rows.names.index("gamma")
        moved = np.eye(len(rows.names))[gamma]
        change = rows.logits(model.parameters + moved) - rows.logits(model.parameters)
        assert not change[:50].any()
        assert model.correct_labels.value == pytest.approx(
            model.restricted(observed != UNLABELLED).correct_labels.value
        )


class TestFit:
    @pytest.mark.parametrize("k", [2, 3])
    def test_mode_of_the_posterior(self, k):
        """Newton's mode is that of a general optimizer on the written-out density."""
        model = fitted(k)
        rows = model.rows
        mean, std = rows.prior
        checked = np.flatnonzero(model.truth != UNCHECKED)
        claimed = float(rows.models[0].claimed.mean())
        spread = np.hypot(0.57, 0.01 / (claimed * (1 - claimed)))

        def cost(parameters):
            logs = log_softmax(rows.logits(parameters), axis=1)[checked, model.truth[checked]]
            right = softmax(rows.logits(parameters), axis=1)
            accuracy = right[np.arange(len(right)), rows.predicted].mean()
            claim = (logit(accuracy) - logit(claimed)) / spread
            return -logs.sum() + (((parameters - mean) / std) ** 2).sum() / 2 + claim**2 / 2

        best = minimize(cost, mean, method="BFGS", options={"gtol": 1e-9})
        np.testing.assert_allclose(model.parameters, best.x, atol=2e-5)

    def test_without_checks_it_is_the_prior(self):
        model = fitted(3, n_checked=0)
        std = model.rows.prior[1]
        assert (np.diag(model.covariance) <= std**2 + 1e-12).all()
        assert model.expected_accuracy.width > 0.2

    def test_checked_rows_are_certain(self):
        model = fitted(3)
        checked = model.truth != UNCHECKED
        np.testing.assert_array_equal(model.posterior[checked].argmax(axis=1), model.truth[checked])
        assert (model.posterior[checked].max(axis=1) == 1).all()

    def test_all_rows_checked_leave_no_doubt(self):
        probabilities, observed, true, _ = draw(3)
        model = TrueClassModel.fit(
            LabelledScores((ModelScores.of(probabilities),), observed, 3), true
        )
        accuracy = model.share(model.rows.predicted)
        assert accuracy.value == pytest.approx(np.mean(model.rows.predicted == true), abs=1e-12)
        assert accuracy.width == pytest.approx(0, abs=1e-12)
        counted = np.array([np.bincount(observed[true == a], minlength=3) for a in range(3)])
        np.testing.assert_allclose(
            model.transition()[0], counted / counted.sum(axis=1, keepdims=True), atol=1e-12
        )

    def test_more_checks_give_narrower_intervals(self):
        widths = [fitted(2, n=3000, n_checked=m).expected_accuracy.width for m in (0, 20, 100, 400)]
        assert all(narrow < wide for wide, narrow in pairwise(widths))

    def test_equal_inclusion_changes_nothing(self):
        probabilities, observed, _, truth = draw(2)
        rows = LabelledScores((ModelScores.of(probabilities),), observed, 2)
        plain = TrueClassModel.fit(rows, truth)
        weighted = TrueClassModel.fit(rows, truth, inclusion=np.full(len(truth), 0.2))
        np.testing.assert_allclose(weighted.parameters, plain.parameters, atol=1e-9)
        np.testing.assert_allclose(weighted.covariance, plain.covariance, atol=1e-9)

    def test_unequal_inclusion_widens(self):
        """Weights far from equal carry less information (Kish)."""
        probabilities, observed, _, truth = draw(2)
        rows = LabelledScores((ModelScores.of(probabilities),), observed, 2)
        inclusion = np.random.default_rng(0).uniform(0.01, 1.0, len(truth))
        plain = TrueClassModel.fit(rows, truth)
        weighted = TrueClassModel.fit(rows, truth, inclusion=inclusion)
        assert weighted.expected_accuracy.width > plain.expected_accuracy.width

    def test_weights_are_duplicates(self):
        probabilities, observed, _, truth = draw(2, n=200)
        rows = LabelledScores((ModelScores.of(probabilities),), observed, 2)
        weighted = TrueClassModel.fit(rows, truth, counts=np.full(200, 2.0))
        every = np.repeat(np.arange(200), 2)
        doubled = TrueClassModel.fit(rows.subset(every), truth[every])
        np.testing.assert_allclose(weighted.parameters, doubled.parameters, atol=1e-8)
        assert weighted.expected_accuracy.width == pytest.approx(doubled.expected_accuracy.width)

    def test_labels_of_classes_may_be_renamed(self):
        probabilities, observed, _, truth = draw(3)
        order = np.array([2, 0, 1])  # new number of each class
        model = fitted(3)
        renamed = TrueClassModel.fit(
            LabelledScores(
                (ModelScores.of(probabilities[:, order.argsort()]),), order[observed], 3
            ),
            np.where(truth == UNCHECKED, UNCHECKED, order[truth]),
        )
        assert renamed.expected_accuracy.value == pytest.approx(model.expected_accuracy.value)
        np.testing.assert_allclose(renamed.posterior[:, order], model.posterior, atol=1e-8)


class TestSuspects:
    def test_zero_for_no_rows(self):
        assert fitted(2).n_suspects(np.empty(0, dtype=np.intp), 0.1) == 0

    def test_a_larger_rate_gives_more_suspects(self):
        model = fitted(3, n=3000, n_checked=300)
        unchecked = np.flatnonzero(model.unchecked)
        right = model.posterior[unchecked, model.rows.observed[unchecked]]
        order = unchecked[np.argsort(right, kind="stable")]
        counts = [model.n_suspects(order, rate) for rate in (0.05, 0.1, 0.3, 0.5)]
        assert counts == sorted(counts)
        assert counts[-1] > counts[0]

    def test_uncertain_parameters_give_fewer(self):
        certain = fitted(3, n=3000, n_checked=300)
        unchecked = np.flatnonzero(certain.unchecked)
        right = certain.posterior[unchecked, certain.rows.observed[unchecked]]
        order = unchecked[np.argsort(right, kind="stable")]
        uncertain = replace(certain, covariance=4 * certain.covariance)
        assert uncertain.n_suspects(order, 0.2) < certain.n_suspects(order, 0.2)


class TestFunctional:
    def test_a_mean_agrees_with_the_share(self):
        """One cell, so that the delta method and the steps of one error are comparable."""
        probabilities, _, _, truth = draw(2, n_checked=200)
        observed = probabilities.argmax(axis=1)  # label and prediction always agree
        model = TrueClassModel.fit(
            LabelledScores((ModelScores.of(probabilities),), observed, 2),
            np.where(truth == UNCHECKED, UNCHECKED, observed),
        )
        every = np.arange(len(observed))
        direct = model.functional(lambda q: float(q[every, observed].mean()))
        assert direct.value == pytest.approx(model.share(observed).value)

    def test_own_class_proportions_change_nothing(self):
        model = fitted(2, n_checked=150)
        right = model.posterior[np.arange(len(model.truth)), model.rows.predicted]
        accuracy = model.accuracy_for(model.weights @ model.posterior)
        assert accuracy.value == pytest.approx(float(model.weights @ right), abs=1e-12)

    def test_other_class_proportions_weight_the_recalls(self):
        model = fitted(2, n_checked=150)
        is_predicted = np.eye(2)[model.rows.predicted]
        recalls = (model.posterior * is_predicted).sum(axis=0) / model.posterior.sum(axis=0)
        priors = np.array([0.9, 0.1])
        assert model.accuracy_for(priors).value == pytest.approx(priors @ recalls, abs=1e-12)

    def test_expected_information(self):
        """Checks that are still to be made narrow the interval as much as such checks did."""
        probabilities, observed, true, truth = draw(2, n=4000, n_checked=100)
        rows = LabelledScores((ModelScores.of(probabilities),), observed, 2)
        before = TrueClassModel.fit(rows, truth)
        more = np.flatnonzero(truth == UNCHECKED)[:200]
        predicted = before.after(more, np.ones(200)).expected_accuracy.width
        truth[more] = true[more]
        realised = TrueClassModel.fit(rows, truth).expected_accuracy.width
        assert predicted == pytest.approx(realised, rel=0.15)
        assert predicted < 0.8 * before.expected_accuracy.width


def test_two_models_share_the_weight_of_one():
    probabilities, observed, _, truth = draw(3)
    one = ModelScores.of(probabilities)
    rows = LabelledScores((one, one), observed, 3)
    mean, _ = rows.prior
    names = np.array(rows.names)
    assert mean[names == "beta"].sum() == pytest.approx(1.0)
    model = TrueClassModel.fit(rows, truth)
    assert np.isfinite(model.parameters).all()


def test_predictions_alone():
    probabilities, observed, true, truth = draw(2, n=2000, n_checked=200)
    predicted = probabilities.argmax(axis=1)
    rows = LabelledScores((ModelScores(None, predicted),), observed, 2)
    assert "beta" not in rows.names
    interval = TrueClassModel.fit(rows, truth).share(predicted)
    assert interval.low <= np.mean(predicted == true) <= interval.high


def test_votes_add_their_log_likelihood():
    probabilities, observed, _, truth = draw(2)
    logs = np.log(np.clip(expit(np.random.default_rng(0).normal(size=(400, 2))), 0.01, 1))
    rows = LabelledScores((ModelScores.of(probabilities),), observed, 2, logs, 4.0)
    mean, _ = rows.prior
    assert mean[rows.names.index("omega")] == pytest.approx(0.7 / 2)
    assert "zeta" not in rows.names
    assert np.isfinite(TrueClassModel.fit(rows, truth).parameters).all()
