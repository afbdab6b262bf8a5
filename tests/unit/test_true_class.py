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
    normal_quantile,
    share_interval,
    sum_of_shares,
    wilson_interval,
)
from unflip.calibration.labelled_scores import LabelledScores, ModelScores
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED, UNLABELLED
from unflip.labels.noise import NoiseModel

REACH_TOLERANCE = 1e-3  # standard errors, within which a density's fall is found


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
        mean, _ = model.rows.prior
        cost = negative_log_density(model)
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


class TestReach:
    """How far a direction is followed until the log density falls as a normal one does."""

    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("standard_errors", [0.5, 1.28, 1.96])
    def test_a_normal_density_is_followed_for_the_standard_errors(self, k, standard_errors):
        model = normal_density(k)
        for gradient in np.random.default_rng(0).normal(size=(5, len(model.parameters))):
            step = standard_error(model, gradient)
            distance = model.density.reach(step, standard_errors)
            assert distance == pytest.approx(standard_errors, abs=REACH_TOLERANCE)

    @pytest.mark.parametrize("has_probabilities", [False, True])
    def test_consistent_checks_reach_farther_to_higher_accuracy(self, has_probabilities):
        """All checks agree with the predictions: only the prior speaks against more accuracy."""
        probabilities, observed, _, truth = draw(2)
        predicted = probabilities.argmax(axis=1)
        scores = ModelScores(None, predicted)
        if has_probabilities:
            scores = ModelScores.of(probabilities)
        rows = LabelledScores((scores,), observed, 2)
        model = TrueClassModel.fit(rows, np.where(truth == UNCHECKED, UNCHECKED, predicted))
        gradient = rows.gradients(model.predicted_posterior, predicted).mean(axis=0)
        step = standard_error(model, gradient)
        up = model.density.reach(step, 1.96)
        down = model.density.reach(-step, 1.96)
        assert down + REACH_TOLERANCE < 1.96 < up - REACH_TOLERANCE

    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("standard_errors", [0.8, 1.96, 3.0])
    def test_log_density_falls_by_half_the_squared_standard_errors(self, k, standard_errors):
        model = fitted(k)
        cost = negative_log_density(model)
        fall = standard_errors**2 / 2
        for gradient in np.random.default_rng(0).normal(size=(5, len(model.parameters))):
            step = standard_error(model, gradient)
            distance = model.density.reach(step, standard_errors)
            shorter = model.parameters + (distance - REACH_TOLERANCE) * step
            longer = model.parameters + (distance + REACH_TOLERANCE) * step
            assert cost(shorter) - cost(model.parameters) < fall
            assert cost(longer) - cost(model.parameters) > fall

    def test_weights_of_unequal_checks_count_in_the_density(self):
        """A step is one standard error of the sandwich, and the density has its own curvature."""
        probabilities, observed, _, truth = draw(2)
        rows = LabelledScores((ModelScores.of(probabilities),), observed, 2)
        inclusion = np.random.default_rng(0).uniform(0.05, 1.0, len(truth))
        model = TrueClassModel.fit(rows, truth, inclusion=inclusion)
        density = model.density
        hessian = np.linalg.inv(density.covariance(density.weights))
        cost = negative_log_density(model)
        for gradient in np.random.default_rng(0).normal(size=(5, len(model.parameters))):
            step = standard_error(model, gradient)
            fall = step @ hessian @ step * 1.96**2 / 2
            assert fall > 1.01 * 1.96**2 / 2
            distance = density.reach(step, 1.96)
            shorter = model.parameters + (distance - REACH_TOLERANCE) * step
            longer = model.parameters + (distance + REACH_TOLERANCE) * step
            assert cost(shorter) - cost(model.parameters) < fall
            assert cost(longer) - cost(model.parameters) > fall

    def test_no_direction_has_no_fall(self):
        model = fitted(2)
        nowhere = np.zeros(len(model.parameters))
        assert model.density.reach(nowhere, 1.96) == 1.96


class TestMoved:
    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("confidence", [0.8, 0.95])
    def test_linear_functions_of_a_normal_density_have_the_limits_of_their_interval(
        self, k, confidence
    ):
        model = normal_density(k)
        for gradient in np.random.default_rng(0).normal(size=(5, len(model.parameters))):
            error = np.sqrt(gradient @ model.covariance @ gradient)
            down, up = model.moved(gradient, confidence)
            n_errors = gradient @ np.array([down - model.parameters, up - model.parameters]).T
            quantile = normal_quantile(confidence)
            tolerance = REACH_TOLERANCE * error
            assert n_errors == pytest.approx([-quantile * error, quantile * error], abs=tolerance)

    def test_no_parameters_as_likely_change_a_linear_function_more(self):
        """All parameters at the same density lie on an ellipsoid around the mode."""
        model = normal_density(3)
        rng = np.random.default_rng(0)
        gradient = rng.normal(size=len(model.parameters))
        sphere = rng.normal(size=(2000, len(model.parameters)))
        sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
        ellipsoid = normal_quantile(0.95) * sphere @ np.linalg.cholesky(model.covariance).T
        down, up = ((moved - model.parameters) @ gradient for moved in model.moved(gradient, 0.95))
        changes = ellipsoid @ gradient
        assert down < changes.min()
        assert changes.max() < up

    def test_the_opposite_function_has_the_opposite_limits(self):
        model = fitted(3)
        gradient = np.random.default_rng(0).normal(size=len(model.parameters))
        down, up = model.moved(gradient, 0.95)
        opposite_down, opposite_up = model.moved(-gradient, 0.95)
        np.testing.assert_array_equal(opposite_down, up)
        np.testing.assert_array_equal(opposite_up, down)

    def test_a_constant_function_does_not_move(self):
        model = fitted(2)
        for moved in model.moved(np.zeros(len(model.parameters)), 0.95):
            np.testing.assert_array_equal(moved, model.parameters)


class TestShare:
    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("n_checked", [100, 400])
    def test_interval_is_that_of_the_delta_method_if_checks_determine_it(self, k, n_checked):
        """Rows without labels are one cell."""
        probabilities, _, _, truth = draw(k, n=4000, n_checked=n_checked)
        unlabelled = np.full(4000, UNLABELLED)
        rows = LabelledScores((ModelScores.of(probabilities),), unlabelled, k)
        model = TrueClassModel.fit(rows, truth)
        unchecked = np.flatnonzero(model.unchecked)
        rows = rows.subset(unchecked)
        right = model.posterior[unchecked, rows.predicted]
        gradient = rows.gradients(model.posterior[unchecked], rows.predicted).mean(axis=0)
        sampling = np.sum(right * (1 - right)) / len(right) ** 2
        variance = gradient @ model.covariance @ gradient + sampling
        expected = share_interval(right.mean(), np.sqrt(variance))
        interval = model.restricted(model.unchecked).share(rows.predicted)
        assert interval.value == pytest.approx(expected.value, abs=1e-12)
        assert interval.limits == pytest.approx(expected.limits, abs=0.03 * expected.width)

    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("noise_rate", [0.0, 0.2])
    @pytest.mark.parametrize("confidence", [0.99, 0.9999, 1.0])
    def test_consistent_checks_of_a_certain_model_have_a_narrow_interval(
        self, k, noise_rate, confidence
    ):
        """60 checks; the model is right on every row."""
        model, predicted = separable(k, noise_rate, confidence)
        interval = model.share(predicted)
        assert interval.low > 0.95
        assert interval.low < interval.value <= interval.high <= 1


class TestSuspects:
    def test_zero_for_no_rows(self):
        assert fitted(2).n_suspects(np.empty(0, dtype=np.intp), 0.1) == 0

    def test_a_larger_rate_gives_more_suspects(self):
        model = fitted(3, n=3000, n_checked=300)
        order, _ = least_likely_labels(model)
        counts = [model.n_suspects(order, rate) for rate in (0.05, 0.1, 0.3, 0.5)]
        assert counts == sorted(counts)
        assert counts[-1] > counts[0]

    def test_uncertain_parameters_give_fewer(self):
        certain = fitted(3, n=3000, n_checked=300)
        order, _ = least_likely_labels(certain)
        uncertain = replace(certain, covariance=4 * certain.covariance)
        assert uncertain.n_suspects(order, 0.2) < certain.n_suspects(order, 0.2)

    @pytest.mark.parametrize("rate", [0.05, 0.1, 0.2, 0.3, 0.4])
    def test_bisection_finds_the_largest_number_of_all(self, rate):
        """The upper 90% limit of the mean P(label right) is computed for every number of rows."""
        model = fitted(3, n=1500, n_checked=200)
        order, right = least_likely_labels(model)
        limits = []
        for m in range(1, int(np.sum(right <= 0.5)) + 1):
            rows = model.rows.subset(order[:m])
            posterior = model.posterior[order[:m]]
            gradient = rows.gradients(posterior, rows.observed).mean(axis=0)
            largest = model.moved(gradient, 0.8)[1]
            limits.append(rows.posterior(largest)[np.arange(m), rows.observed].mean())
        is_enough = np.array(limits) <= rate
        expected = int(is_enough.sum())
        assert is_enough[:expected].all()
        assert model.n_suspects(order, rate) == expected
        assert expected > 0

    def test_labels_that_are_likelier_right_are_none(self):
        """Even if the rate would allow them."""
        model = fitted(3, n=1500, n_checked=200)
        order, right = least_likely_labels(model)
        assert model.n_suspects(order, 0.9) == np.sum(right <= 0.5)

    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("rate", [0.05, 0.1])
    def test_consistent_checks_of_a_certain_model_find_all_wrong_labels(self, k, rate):
        model, predicted = separable(k, 0.2, 0.999)
        order, _ = least_likely_labels(model)
        is_wrong = model.rows.observed != predicted
        n_wrong = int(np.sum(is_wrong & model.unchecked))
        assert n_wrong > 0
        assert model.n_suspects(order, rate) == n_wrong
        assert is_wrong[order[:n_wrong]].all()

    def test_zero_without_checks_that_determine_the_parameters(self):
        few = fitted(3, n=3000, n_checked=0)
        order, right = least_likely_labels(few)
        assert np.mean(right[:20]) < 0.2  # the estimate alone would allow as many
        assert few.n_suspects(order, 0.2) == 0


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
    rows = LabelledScores((ModelScores.of(probabilities),), observed, 2, logs)
    parameters = np.zeros(len(rows.names))
    parameters[rows.names.index("omega")] = 0.5
    relative = logs - logs.max(axis=1, keepdims=True)
    np.testing.assert_allclose(rows.logits(parameters), 0.5 * relative, rtol=1e-12)
    assert "zeta" not in rows.names
    assert np.isfinite(TrueClassModel.fit(rows, truth).parameters).all()


def negative_log_density(model):
    """Return −log density of the parameters, written out."""
    rows = model.rows
    mean, std = rows.prior
    checked = np.flatnonzero(model.truth != UNCHECKED)
    weights = model.density.weights
    claimed = float(rows.models[0].claimed.mean())

    def scaled(accuracy):
        return logit((accuracy + 0.01) / 1.02)

    def cost(parameters):
        logs = log_softmax(rows.logits(parameters), axis=1)[checked, model.truth[checked]]
        right = softmax(rows.logits(parameters), axis=1)
        accuracy = right[np.arange(len(right)), rows.predicted].mean()
        claim = (scaled(accuracy) - scaled(claimed)) / 0.84
        return -weights @ logs + (((parameters - mean) / std) ** 2).sum() / 2 + claim**2 / 2

    return cost


def normal_density(k):
    """Return a model whose parameters are those of the prior: no checks, and no probabilities."""
    probabilities, observed, _, truth = draw(k, n_checked=0)
    rows = LabelledScores((ModelScores(None, probabilities.argmax(axis=1)),), observed, k)
    return TrueClassModel.fit(rows, truth)


def standard_error(model, gradient):
    """Return the step along which a function changes most, one standard error long."""
    return model.covariance @ gradient / np.sqrt(gradient @ model.covariance @ gradient)


def separable(k, noise_rate, confidence, n=1500, n_checked=60):
    """Return a model of scores that are right on every row, and the predictions."""
    rng = np.random.default_rng(k)
    true = rng.integers(0, k, n)
    probabilities = np.where(np.eye(k)[true] == 1, confidence, (1 - confidence) / (k - 1))
    is_wrong = rng.random(n) < noise_rate
    observed = np.where(is_wrong, (true + rng.integers(1, k, n)) % k, true)
    rows = LabelledScores((ModelScores.of(probabilities),), observed, k)
    truth = np.where(np.arange(n) < n_checked, true, UNCHECKED)
    return TrueClassModel.fit(rows, truth), true


def least_likely_labels(model):
    """Return the unchecked rows, most likely wrong first, and P(label right) of each."""
    unchecked = np.flatnonzero(model.unchecked)
    right = model.posterior[unchecked, model.rows.observed[unchecked]]
    order = np.argsort(right, kind="stable")
    return unchecked[order], right[order]
