"""Audits: algebra, false discovery rate, groups, test of the noise model, outlook, errors."""

import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy.special import ndtr

from support.amazon import needs_data
from unflip import Audit, LPClassifier, NoiseModel, audit, audit_scores, theory
from unflip._utils.record_tables import columns_of
from unflip.auditing import prose
from unflip.auditing.dependence import _LabelFit
from unflip.auditing.outlook import Outlook, accuracy_of, effective_dimension, separation_of
from unflip.auditing.suspects import n_suspects_at
from unflip.datasets import load_amazon_reviews, make_mixture
from unflip.estimation import AssumedNoiseWarning, TrustedSubset
from unflip.estimation.given_rates import GivenRates

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
NAMES = np.array(["bad", "good"])
THREE = NoiseModel([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]], [0.2, 0.5, 0.3])


def draw(seed=0, n=600, p=60, mean_norm=1.8):
    X, y = make_mixture(n, p, mean_norm=mean_norm, random_state=seed)
    return X, NOISE.flip(y, random_state=seed), y


def quiet(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        return function(*args, **options)


@pytest.fixture(scope="module")
def report():
    X, observed, _ = draw()
    return audit(X, NAMES[observed], noise=NOISE)


class TestAlgebra:
    def test_posterior_equals_that_of_the_classifier(self, report):
        X, observed, _ = draw()
        fitted = LPClassifier(NOISE).fit(X, observed)
        np.testing.assert_allclose(report.label_posterior, fitted.label_posterior_, atol=1e-9)
        assert report.expected_accuracy == fitted.expected_accuracy_
        assert report.expected_accuracy_std == fitted.expected_accuracy_std_

    def test_changing_a_returned_array_does_not_change_the_audit(self):
        X, observed, _ = draw()
        result = audit(X, observed, noise=NOISE)
        result.label_posterior[:] = 0.5
        assert result.expected_wrong == audit(X, observed, noise=NOISE).expected_wrong

    @pytest.mark.parametrize(
        "noise", [NoiseModel.binary(eps_pos=0.3, eps_neg=0.2, pi_neg=0.4), THREE]
    )
    def test_posterior_of_observed_probabilities_follows_bayes_rule(self, noise):
        rng = np.random.default_rng(0)
        k = noise.n_classes
        given = rng.dirichlet(np.full(k, 5.0), size=50)  # none so small that it is raised
        codes = np.arange(50) % k
        result = audit_scores(given, codes, noise=noise)
        probabilities = result.evidence.probabilities
        joint = probabilities * noise.transition.T[codes]
        expected = joint / joint.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(result.label_posterior, expected, atol=1e-9)
        # One slope and k intercepts turn the given log-odds into calibrated ones.
        before = np.log(given[:, 1:] / given[:, :1])
        after = np.log(probabilities[:, 1:] / probabilities[:, :1])
        slopes = [np.polyfit(before[:, a], after[:, a], 1)[0] for a in range(k - 1)]
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-9)
        centred = after - after.mean(axis=0) - slopes[0] * (before - before.mean(axis=0))
        np.testing.assert_allclose(centred, 0, atol=1e-9)

    def test_probabilities_of_noisy_labels_are_calibrated_for_the_true_class(self):
        rng = np.random.default_rng(0)
        noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2, pi_neg=0.5)
        log_odds = 3.0 * rng.normal(size=4000)
        true = np.column_stack([1 / (1 + np.exp(log_odds)), 1 / (1 + np.exp(-log_odds))])
        y = (rng.random(4000) < true[:, 1]).astype(int)
        result = audit_scores(true @ noise.transition, noise.flip(y, rng), noise=noise)
        accuracy = np.mean((log_odds > 0) == y)
        assert abs(result.expected_accuracy - accuracy) < 3 * result.expected_accuracy_std < 0.07

    def test_calibration_of_the_model_is_reported(self):
        rng = np.random.default_rng(0)
        log_odds = 2.0 * rng.normal(size=3000)
        y = (rng.random(3000) < 1 / (1 + np.exp(-log_odds))).astype(int)
        flat = 1 / (1 + np.exp(-log_odds / 3))  # three times underconfident
        clean = NoiseModel.none().with_priors([0.5, 0.5])
        result = audit_scores(np.column_stack([1 - flat, flat]), y, noise=clean)
        calibration = result.model_calibration
        assert calibration.slope == pytest.approx(3, rel=0.15)
        before = -np.log(np.where(y == 1, flat, 1 - flat)).mean()
        assert calibration.log_loss_before == pytest.approx(before, rel=1e-12)
        assert calibration.log_loss_after < before
        assert f"multiplied by {calibration.slope:.2f}" in str(result)

    def test_swapped_columns_raise_a_warning(self):
        rng = np.random.default_rng(0)
        codes = rng.integers(3, size=200)
        given = rng.dirichlet(np.ones(3) + 4 * np.eye(3)[0], size=200)
        given = np.array([np.roll(row, code) for row, code in zip(given, codes, strict=True)])
        names = np.array(["a", "b", "c"])[codes]
        audit_scores(given, names, noise=None)  # a warning would be an error
        with pytest.warns(UserWarning, match=r"'b' and 'c' are likelier .* swapped"):
            quiet(audit_scores, given[:, [0, 2, 1]], names, noise=None)

    def test_a_warning_if_most_labels_come_out_as_wrong(self):
        rng = np.random.default_rng(0)
        noise = NoiseModel(0.3 * np.eye(4) + 0.7 / 3 * (1 - np.eye(4)), np.full(4, 0.25))
        y = rng.integers(4, size=2000)
        given = rng.dirichlet(np.ones(4), size=2000) + 4 * np.eye(4)[y]
        with pytest.warns(UserWarning, match="Most labels come out as wrong"):
            audit_scores(given / 5, noise.flip(y, rng), noise=noise)

    def test_trusted_labels_of_an_estimator_count_as_checked(self):
        X, observed, y = draw()
        probabilities = LPClassifier(NOISE).fit(X, observed).predict_proba(X)
        trusted = np.where(np.arange(600) % 6 == 0, y, np.nan)
        result = audit_scores(probabilities, observed, noise=TrustedSubset(trusted))
        np.testing.assert_array_equal(result.checked, np.arange(0, 600, 6))

    @pytest.mark.parametrize("noise", ["estimate", THREE])
    def test_probabilities_without_signal_give_the_class_proportions(self, noise):
        accuracies = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            given = rng.dirichlet(np.ones(3), size=300)
            observed = rng.choice(3, size=300, p=THREE.observed)
            result = quiet(audit_scores, given, observed, noise=noise)
            accuracies.append(result.expected_accuracy)
            assert result.n_suspects == 0
        assert np.mean(accuracies) < THREE.priors.max() + 0.05

    def test_probabilities_of_zero_exclude_no_class(self):
        noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2, pi_neg=0.5)
        given = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.2, 0.8]]
        posterior = audit_scores(given, [1, 0, 1, 1], noise=noise).label_posterior
        assert ((posterior > 0) & (posterior < 1)).all()

    @pytest.mark.parametrize("rate", [0.05, 0.1, 0.5, 0.9])
    def test_number_of_suspects_matches_its_definition(self, rate):
        wrong = np.random.default_rng(1).beta(0.3, 0.6, size=200)
        worst = np.sort(wrong)[::-1]
        kept = [m for m in range(1, 201) if worst[:m].mean() >= 1 - rate and worst[m - 1] >= 0.5]
        assert n_suspects_at(worst, rate) == max(kept)

    def test_labels_more_likely_right_than_wrong_are_not_suspects(self):
        assert n_suspects_at(np.r_[np.ones(90), np.full(10, 0.45)], 0.1) == 90
        assert n_suspects_at(np.r_[np.ones(90), np.full(10, 0.5)], 0.1) == 100

    def test_number_of_suspects_can_be_zero_or_all(self):
        assert n_suspects_at(np.full(10, 0.3), 0.1) == 0
        assert n_suspects_at(np.ones(10), 0.1) == 10

    def test_suspects_are_sorted_and_complete(self, report):
        suspects, wrong = report.suspects, report.evidence.wrong
        assert (np.diff(suspects.probability) <= 0).all()
        np.testing.assert_array_equal(suspects.probability, wrong[suspects.row])
        assert set(np.flatnonzero(wrong > 0.5)) <= set(suspects.row)
        assert (suspects.observed != suspects.proposed).all()
        assert set(suspects.proposed) == {"bad", "good"}
        assert wrong[suspects.row[: report.n_suspects]].mean() >= 0.9

    def test_summary_of_a_single_suspect(self):
        rng = np.random.default_rng(0)
        log_odds = rng.normal(0, 4, size=600)
        positive = 1 / (1 + np.exp(-log_odds))
        labels = (rng.random(600) < positive).astype(int)
        labels[log_odds.argmax()] = 0
        result = audit_scores(
            np.column_stack([1 - positive, positive]),
            labels,
            noise=NoiseModel.binary(eps_pos=0.02, eps_neg=0.02, pi_neg=0.5),
        )
        assert result.n_suspects == 1
        probability = result.suspects.probability[0]
        assert f"1 label is suspect, wrong with probability {probability:.1%}." in str(result)

    def test_proposals_of_three_classes(self):
        right = np.repeat([[0.98, 0.01, 0.01], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]], 30, axis=0)
        true = np.vstack([[[0.0, 0.1, 0.9]], right])
        labels = ["a", *np.repeat(["a", "b", "c"], 30)]
        rare = NoiseModel(0.9 * np.eye(3) + 0.1 * THREE.transition, THREE.priors)
        result = audit_scores(true @ rare.transition, labels, noise=rare)
        assert result.suspects.row[0] == result.evidence.wrong.argmax() == 0
        assert result.suspects.proposed[0] == "b"  # c never turns into a

    def test_clean_labels_have_no_suspects(self):
        X, _, y = draw()
        result = audit(X, y, noise=None)
        assert result.n_suspects == len(result.suspects) == 0
        assert result.expected_wrong == pytest.approx(0, abs=1e-6)
        assert "No label is suspect at an expected false discovery rate of at most 10%" in str(
            result
        )


def test_false_discovery_rate_is_as_expected():
    is_wrong = []
    p_wrong = []
    for seed in range(8):
        X, observed, y = draw(seed, n=800, mean_norm=1.4)
        result = audit(X, observed, noise=NOISE, false_discovery_rate=0.15)
        suspects = result.suspects[: result.n_suspects]
        is_wrong += (observed != y)[suspects.row].tolist()
        p_wrong += suspects.probability.tolist()
    assert len(p_wrong) > 500
    error = np.sqrt(0.85 * 0.15 / len(p_wrong))
    assert abs(np.mean(is_wrong) - 0.85) < 4 * error
    assert abs(np.mean(is_wrong) - np.mean(p_wrong)) < 4 * error


def test_expected_number_of_wrong_labels_is_within_its_standard_error():
    misses = []
    for seed in range(8):
        X, observed, y = draw(seed)
        result = audit(X, observed)  # rates from the mixture
        misses.append((result.expected_wrong - (observed != y).sum()) / result.expected_wrong_std)
    assert np.abs(misses).max() < 4
    assert 0.3 < np.sqrt(np.mean(np.square(misses))) < 2


class TestGroups:
    def test_groups_reveal_wrong_labels_of_near_duplicates(self):
        centres, y = make_mixture(60, 200, mean_norm=4.0, random_state=0)
        groups = np.repeat(np.arange(60), 8)
        X = centres[groups] + 0.05 * np.random.default_rng(5).normal(size=(480, 200))
        planted = groups < 8
        observed = np.where(planted, 1 - y[groups], y[groups])
        noise = NoiseModel.binary(eps_pos=0.15, eps_neg=0.15)
        with pytest.warns(AssumedNoiseWarning, match="contradict class-conditional noise"):
            alone = audit(X, observed, noise=noise).evidence.wrong  # duplicates agree too well
        grouped = audit(X, observed, noise=noise, groups=groups).evidence.wrong
        assert (alone[planted] > 0.5).mean() == 0
        assert (grouped[planted] > 0.5).mean() > 0.5
        assert (grouped[~planted] > 0.5).mean() < 0.05

    def test_scores_do_not_depend_on_labels_of_the_same_group(self):
        X, observed, _ = draw(n=200, p=20)
        groups = np.arange(200) // 4
        other = observed.copy()
        other[:4] = 1 - other[:4]
        noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5)
        first, second = (
            audit(X, labels, noise=noise, groups=groups) for labels in (observed, other)
        )
        # The scores of the four rows are the same; only their calibration may differ.
        ratio = (
            np.diff(first.evidence.log_scores)[:, 0][:4],
            np.diff(second.evidence.log_scores)[:, 0][:4],
        )
        assert np.corrcoef(*ratio)[0, 1] > 1 - 1e-9

    def test_groups_of_one_row_change_nothing(self, report):
        X, observed, _ = draw()
        same = audit(X, NAMES[observed], noise=NOISE, groups=np.arange(600))
        np.testing.assert_array_equal(same.label_posterior, report.label_posterior)

    def test_rates_from_the_labels_use_other_groups(self):
        X, observed, _ = draw()
        result = audit(X * np.linspace(0.5, 1.5, 60), observed, groups=np.arange(600) // 2)
        assert result.noise_source == "label likelihood"
        assert abs(result.noise.eps_pos - 0.3) < 2 * result.noise_std[1, 0]
        assert 0 < result.expected_accuracy_std < 0.3

    def test_trusted_labels_of_other_groups_are_used(self):
        noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.4, pi_neg=0.5)
        groups = np.repeat(np.arange(150), 2)
        hits = []
        for seed in range(4):
            X, y = make_mixture(300, 100, mean_norm=1.2, random_state=seed)
            observed = noise.flip(y, random_state=seed)
            checked = GivenRates(noise, y_trusted=np.where(np.arange(300) < 250, y, np.nan))
            results = [
                audit(X, observed, noise=source, groups=groups) for source in (noise, checked)
            ]
            hits.append(
                [(result.evidence.log_scores.argmax(axis=1) == y).mean() for result in results]
            )
        noisy, with_trusted = np.mean(hits, axis=0)
        assert with_trusted > noisy + 0.03

    def test_near_duplicates_alone_are_no_signal(self):
        rng = np.random.default_rng(0)
        groups = np.repeat(np.arange(60), 10)
        X = rng.normal(size=(60, 30))[groups] + 0.05 * rng.normal(size=(600, 30))
        labels = rng.integers(0, 2, 60)[groups] ^ (rng.random(600) < 0.1)
        with pytest.warns(AssumedNoiseWarning):
            assert audit(X, labels).evidence.has_signal
        with pytest.warns(AssumedNoiseWarning, match="do not predict the labels"):
            result = audit(X, labels, groups=groups)
        assert not result.evidence.has_signal
        assert result.n_suspects == 0

    def test_bad_groups(self):
        X, observed, _ = draw(n=100)
        for groups, message in [
            (np.arange(99), r"groups has shape \(99,\) but y has \(100,\)"),
            (np.zeros(100), "groups has one group only"),
            (np.r_[np.nan, np.zeros(99)], "groups has missing entries"),
            (observed, "A class occurs in so few groups"),
        ]:
            with pytest.raises(ValueError, match=message):
                audit(X, observed, noise=NOISE, groups=groups)


class TestDependence:
    @staticmethod
    def p_value(seed, near_boundary):
        X, y = make_mixture(700, 60, mean_norm=1.8, random_state=seed)
        observed = NOISE.flip(y, random_state=seed)
        if near_boundary:
            observed = y.copy()
            nearest = np.argsort(np.abs(X.sum(axis=1)))[:200]
            observed[nearest] = np.random.default_rng(seed).integers(2, size=200)
        joint = np.bincount(2 * y + observed, minlength=4).reshape(2, 2)
        rates = joint / joint.sum(axis=1, keepdims=True)
        return quiet(audit, X, observed, noise=rates).dependence.p_value

    def test_class_conditional_noise_is_rarely_rejected(self):
        p_values = np.array([self.p_value(seed, False) for seed in range(40)])
        # 2 are expected, and more than 7 in less than one run of 1000.
        assert (p_values < 0.05).sum() <= 7
        assert 0.3 < p_values.mean() < 0.7

    def test_instance_dependent_noise_is_rejected(self):
        assert max(self.p_value(seed, True) for seed in range(5)) < 0.01

    def test_uncertain_rates_reject_less(self):
        X, observed, y = draw(n=1000)
        wrong = NoiseModel.binary(eps_pos=0.05, eps_neg=0.25)
        with pytest.warns(AssumedNoiseWarning, match="contradict .* with these noise rates"):
            given = audit(X, observed, noise=wrong).dependence
        trusted = np.where(np.arange(1000) % 20 == 0, y, np.nan)
        estimated = audit(X, observed, trusted=trusted).dependence  # without a warning
        assert given.p_value < 0.01 < estimated.p_value
        assert given.rejected
        assert not estimated.rejected
        assert estimated.degrees == 8

    def test_a_few_scoring_steps_are_close_to_a_new_fit(self):
        """Expected counts differ by less than a fifth of their standard errors."""
        X, observed, _ = draw(n=1000)
        evidence = audit(X, observed, noise=NOISE).evidence
        bins = np.digitize(
            evidence.log_scores[:, 1], np.quantile(evidence.log_scores[:, 1], [0.25, 0.5, 0.75])
        )
        fit = _LabelFit.to(evidence.log_scores, evidence.codes, NOISE.transition)
        for move in (-0.05, 0.05):
            other = NOISE.transition + move * np.array([[1, -1], [0, 0]])
            refitted = _LabelFit.to(evidence.log_scores, evidence.codes, other).counts(bins)
            near = fit.under(other).counts(bins)
            assert np.abs((near - refitted) / np.sqrt(refitted)).max() < 0.2
            assert np.abs((fit.counts(bins) - refitted) / np.sqrt(refitted)).max() > 0.4

    def test_few_rows_are_not_tested(self):
        X, observed, _ = draw(n=30)
        result = audit(X, observed, noise=NOISE)
        assert np.isnan(result.dependence.p_value)
        assert not result.dependence.rejected
        assert "too few rows to test this" in str(result)


class TestSensitivity:
    def test_given_rates_move_by_five_points(self, report):
        table = report.sensitivity
        np.testing.assert_allclose(table.rate[1:], [0.05, 0.15, 0.25, 0.35], atol=1e-12)
        assert table.true_class.tolist() == ["", "bad", "bad", "good", "good"]
        assert table.n_suspects[0] == report.n_suspects
        assert table.expected_wrong[0] == pytest.approx(report.expected_wrong)
        assert table.expected_accuracy[0] == pytest.approx(report.expected_accuracy, abs=1e-6)
        assert table.expected_wrong[1] < table.expected_wrong[2]
        assert (table.overlap > 0.6).all()

    def test_estimated_rates_move_by_their_errors(self):
        X, observed, _ = draw()
        result = audit(X, observed)
        expected = 1 - result.noise.transition[0, 0] + np.array([-1, 1]) * result.noise_std[0, 0]
        np.testing.assert_allclose(result.sensitivity.rate[1:3], expected, atol=1e-9)

    def test_the_page_has_the_rates_that_change_most_labels(self):
        priors = np.array([1, 2, 3, 4, 5, 6, 7, 8]) / 36
        noise = NoiseModel(0.8 * np.eye(8) + 0.2 / 8, priors)
        rng = np.random.default_rng(0)
        labels = np.arange(400) % 8
        probabilities = 3.0 * np.eye(8)[labels] + rng.gumbel(size=(400, 8))
        probabilities = np.exp(probabilities) / np.exp(probabilities).sum(axis=1, keepdims=True)
        result = audit_scores(probabilities, labels, noise=noise)
        every, main = columns_of(result.sensitivity), columns_of(result.main_sensitivity)
        kept = ~np.isin(every["true_class"], ["0", "1"])  # the smallest classes
        assert kept.sum() == 1 + 2 * 6
        for name, column in main.items():
            np.testing.assert_array_equal(column, every[name][kept])


def test_printing_fits_nothing_again(monkeypatch, tmp_path):
    X, observed, _ = draw()
    result = audit(X, observed)
    result.to_html(tmp_path / "first.html")

    def refit(*args, **options):
        raise AssertionError

    for module, name in [
        ("evidence", "recalibrated"),
        ("dependence", "minimize"),
        ("outlook", "brentq"),
    ]:
        monkeypatch.setattr(f"unflip.auditing.{module}.{name}", refit)
    monkeypatch.setattr("unflip.calibration.parameter_posterior.brentq", refit)
    str(result)
    result.to_html(tmp_path / "second.html")
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "second.html").read_bytes()
    monkeypatch.undo()
    monkeypatch.setattr("unflip.auditing.evidence.recalibrated", refit)
    str(audit(X, observed))  # only the page shows other noise rates


class TestTrusted:
    def test_checked_rows_are_certain(self):
        X, observed, y = draw()
        trusted = np.where(np.arange(600) % 5 == 0, y, np.nan)
        result = audit(X, observed, trusted=trusted)
        assert result.noise_source == "trusted rows"
        checked = ~np.isnan(trusted)
        np.testing.assert_array_equal(
            result.evidence.wrong[checked], (observed != y)[checked].astype(float)
        )
        assert not np.intersect1d(result.check_next(100), np.flatnonzero(checked)).size
        certain = np.flatnonzero(checked & (observed != y))
        assert set(result.suspects.row[-len(certain) :]) == set(certain)
        assert result.checked.tolist() == np.flatnonzero(checked).tolist()
        assert (
            f"{len(certain)} of {checked.sum()} checked labels were wrong (not the noise rate"
            in str(result)
        )

    def test_checked_rows_do_not_count_as_suspects(self):
        X, observed, y = draw()
        trusted = np.where(np.arange(600) % 5 == 0, y, np.nan)
        result = audit(X, observed, noise=NOISE, trusted=trusted)
        unchecked = np.isnan(trusted)
        listed = result.evidence.worst_first[: unchecked.sum()]
        assert unchecked[listed].all()
        marginal = result.evidence.marginal_wrong(listed)
        assert result.n_suspects == n_suspects_at(marginal, 0.1)
        assert unchecked[result.suspects.row[: result.n_suspects]].all()
        assert result.sensitivity.n_suspects[0] == result.n_suspects
        everything = audit(X, observed, noise=NOISE, trusted=y)
        assert everything.n_suspects == 0
        assert everything.accuracy_after(300) == everything.accuracy_after(0)

    def test_trusted_labels_of_a_noise_estimator_are_certain(self):
        X, observed, y = draw()
        trusted = np.where(np.arange(600) % 5 == 0, y, np.nan)
        result = audit(X, observed, noise=TrustedSubset(trusted))
        expected = audit(X, observed, trusted=trusted)
        np.testing.assert_array_equal(result.checked, expected.checked)
        np.testing.assert_array_equal(result.suspects.row, expected.suspects.row)
        np.testing.assert_array_equal(result.label_posterior, expected.label_posterior)

    def test_a_given_noise_model_is_kept(self):
        X, observed, y = draw()
        result = audit(X, observed, noise=NOISE, trusted=np.where(np.arange(600) < 50, y, np.nan))
        assert result.noise_source == "given"
        np.testing.assert_array_equal(result.noise.transition, NOISE.transition)
        assert (result.label_posterior[:50].max(axis=1) == 1).all()

    def test_trusted_labels_with_probabilities_of_any_model(self):
        X, observed, y = draw()
        probabilities = LPClassifier(NOISE).fit(X, observed).predict_proba(X) @ NOISE.transition
        trusted = np.where(np.arange(600) % 3 == 0, y, np.nan)
        result = audit_scores(probabilities, observed, trusted=trusted)
        assert result.noise_source == "trusted rows"
        assert abs(result.noise.eps_pos - 0.3) < 4 * result.noise_std[1, 0] < 0.3


class TestOutlook:
    def test_accuracy_is_that_of_the_theory(self):
        for pi_neg in (0.5, 0.2):
            noise = NoiseModel.binary(eps_pos=0.0, eps_neg=0.0, pi_neg=pi_neg)
            mixture = theory.Mixture(mean_norm=1.3, aspect=1.0, noise=noise)
            assert accuracy_of(2.6, noise.known_priors) == pytest.approx(
                float(mixture.bayes_accuracy), abs=1e-9
            )
        assert accuracy_of(1.7, np.array([0.5, 0.5])) == pytest.approx(ndtr(0.85), abs=1e-12)

    def test_three_classes_against_simulation(self):
        priors = np.array([0.5, 0.3, 0.2])
        X, y = make_mixture(100_000, 3, means=1.5 * np.eye(3), priors=priors, random_state=0)
        right = ((1.5 * X + np.log(priors)).argmax(axis=1) == y).mean()
        assert accuracy_of(1.5 * np.sqrt(2), priors) == pytest.approx(right, abs=0.005)

    def test_separation_inverts_accuracy(self):
        priors = np.array([0.3, 0.7])
        assert separation_of(accuracy_of(1.9, priors), priors) == pytest.approx(1.9, abs=1e-8)
        assert separation_of(0.5, priors) < 0.01
        assert separation_of(1.0, priors) == 30.0

    def test_outlook_agrees_with_the_theory(self):
        n, p, u = 2000, 500, 1.44
        noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5)
        plan = theory.plan(n=n, p=p, mean_norm=np.sqrt(u), noise=noise)
        quality = (1 - 0.4) ** 2
        outlook = Outlook(noise.known_priors, plan.accuracy, float(p), np.full(n, quality))
        assert outlook.after(np.arange(n)) == pytest.approx(plan.oracle_accuracy, abs=1e-6)
        assert outlook.after(np.arange(100)) == pytest.approx(
            float(plan.accuracy_of(checked=100)), abs=1e-6
        )
        nothing = np.empty(0, dtype=int)
        assert outlook.after(nothing, growth=2.0) == pytest.approx(
            float(plan.accuracy_of(rows=2 * n)), abs=1e-6
        )

    def test_new_rows_are_as_noisy_and_not_checked(self):
        information = np.linspace(0.2, 0.9, 50)
        few = Outlook(np.array([0.4, 0.6]), 0.8, 30.0, information)
        twice = Outlook(
            np.array([0.4, 0.6]),
            few.after(np.empty(0, dtype=int), 2.0),
            30.0,
            np.tile(information, 2),
        )
        assert few.after(np.arange(20), 2.0) == pytest.approx(twice.after(np.arange(20)), abs=1e-9)

    @pytest.mark.parametrize("growth", [0.5, np.inf, np.nan])
    def test_rows_can_only_be_added(self, report, growth):
        with pytest.raises(ValueError, match=r"growth = .* must be at least 1 and finite"):
            report.accuracy_after(10, growth=growth)

    def test_accuracy_rises_with_every_check(self, report):
        values = [report.accuracy_after(m) for m in range(0, 601, 50)]
        assert values[0] == pytest.approx(report.expected_accuracy, abs=1e-12)
        assert (np.diff(values) > 0).all()
        assert values[-1] < 1

    def test_effective_dimension_of_isotropic_features_is_their_number(self):
        X = np.random.default_rng(0).normal(size=(400, 300))
        assert effective_dimension(X) == pytest.approx(300, rel=0.03)
        assert effective_dimension(X * np.linspace(0, 1, 300) ** 2) < 200
        assert effective_dimension(np.outer(X[:, 0], X[0])) == pytest.approx(1.0, rel=0.01)

    def test_plan(self, report):
        plan = report.plan
        assert plan.effort[0] == "now"
        assert plan.effort.tolist()[-1] == "twice the rows"
        assert report.n_suspects in plan.checked.tolist()
        assert plan.checked[1:-2].max() <= len(report.suspects)
        assert (plan.accuracy[1:] > plan.accuracy[0]).all()

    def test_unknown_dimension(self):
        probabilities = np.tile([[0.3, 0.7], [0.8, 0.2]], (20, 1))
        codes = np.tile([1, 0], 20)
        rare = NoiseModel.binary(eps_pos=0.05, eps_neg=0.05)
        assert np.isnan(audit_scores(probabilities, codes, noise=rare).accuracy_after(3))
        assert (
            audit_scores(probabilities, codes, noise=rare, effective_dimension=5).accuracy_after(3)
            > 0.5
        )


class TestNext:
    def test_two_fifths_have_a_label_that_differs_from_the_prediction(self, report):
        differs = report.evidence.codes != report.evidence.probabilities.argmax(axis=1)
        assert differs.mean() < 0.3
        rows = report.check_next(50)
        assert len(set(rows)) == 50
        assert differs[rows].sum() == 20
        np.testing.assert_array_equal(rows, report.check_next(50))
        assert not np.array_equal(rows, report.check_next(50, random_state=1))

    def test_rows_are_not_chosen_by_their_certainty(self, report):
        """Within both groups, mean probabilities of 40 samples are those of all rows."""
        differs = report.evidence.codes != report.evidence.probabilities.argmax(axis=1)
        wrong = report.evidence.wrong
        rows = np.concatenate([report.check_next(20, random_state=seed) for seed in range(40)])
        for members in (differs, ~differs):
            drawn = wrong[rows[members[rows]]]
            error = wrong[members].std() / np.sqrt(len(drawn))
            assert abs(drawn.mean() - wrong[members].mean()) < 4 * error

    def test_advice_if_rates_are_uncertain(self):
        X, observed, _ = draw()
        weak = 0.5 * X * np.linspace(0.5, 1.5, 60) + np.random.default_rng(0).normal(size=X.shape)
        result = quiet(audit, weak, observed)
        assert result.noise_source == "label likelihood"
        assert "hardly identifiable" in result.assumption
        assert (
            f"{prose.UNCERTAIN_RATES} To measure them, and the accuracy, check the rows of "
            ".check_next(50) and pass their true labels as trusted=."
        ) in str(result)

    def test_advice_for_few_rows_can_be_followed(self):
        X, observed, _ = draw(n=80)
        trusted = np.where(np.arange(80) < 70, observed, np.nan)
        result = audit(X, observed, noise=NOISE, trusted=trusted)
        assert "the rows of .check_next(10)" in prose.next_step(result)
        assert len(result.check_next(10)) == 10
        everything = audit(X, observed, noise=NOISE, trusted=observed)
        assert "check_next" not in prose.next_step(everything)
        assert "Check rows" not in " ".join(prose.next_steps(everything, prose.PYTHON))

    def test_how_many(self, report):
        assert report.check_next(0).size == 0
        for m in (-1, 601, 2.5, True):
            with pytest.raises(ValueError, match="must be a whole number between 0 and 600"):
                report.check_next(m)
            with pytest.raises(ValueError, match="must be a whole number between 0 and 600"):
                report.accuracy_after(m)


class TestSurface:
    def test_summary(self, report):
        text = str(report)
        interval = report.expected_accuracy_interval
        after = report.plan_checks(50).interval_after
        for part in (
            "Label noise: If noise depends on the class alone, "
            f"about {report.expected_wrong:.0f} ± ",
            "'bad': 10%, 'good': 30% (given). ± is one standard error.",
            "Expected accuracy: If noise depends on the class alone, a classifier trained on these "
            f"labels gets {report.expected_accuracy:.1%} ± ",
            "No row was checked, so the accuracy on true labels is not known: "
            f"{interval.value:.0%} if these labels are like those of other data sets, between "
            f"{interval.low:.0%} and {interval.high:.0%}.",
            f"Check 50 rows for about ± {100 * after.width / 2:.0f} points.",
            f"Suspects: {report.n_suspects} labels are suspect at an expected false discovery rate "
            "of at most 10%, if noise depends on the class alone.",
            "Next step: Review the first .n_suspects rows of .suspects. To measure noise and "
            "accuracy instead of assuming how labels go wrong, check the rows of .check_next(50) "
            "and pass their true labels as trusted=.",
            "Assumption: Noise depends on the true class alone",
            "but labels alone cannot confirm it: only checked rows can.",
        ):
            assert part in text
        assert text.count("probability wrong") == 5
        assert list(report.summary) == [
            line.split(":")[0] for line in text.split("\n") if line[0] != " "
        ]
        assert repr(report).startswith("<Audit of 600 rows")

    def test_summary_after_checks_assumes_nothing_about_the_noise(self):
        X, observed, y = draw()
        trusted = np.where(np.arange(600) % 6 == 0, y, np.nan)
        strict = audit(X, observed, trusted=trusted)
        assert strict.n_suspects == 0
        assert (
            "at most 10%, with 90% confidence: too few rows were checked to be sure of it."
            in str(strict)
        )
        result = audit(X, observed, trusted=trusted, false_discovery_rate=0.3)
        assert result.n_suspects > 1
        interval = result.expected_accuracy_interval
        text = str(result)
        for part in (
            f"Label noise: About {result.expected_wrong:.0f} ± ",
            "(estimated with trusted labels). ± is one standard error.",
            "Expected accuracy: A classifier trained on these labels gets "
            f"{result.expected_accuracy:.1%} ± ",
            f"By 100 checked rows, it lies between {interval.low:.0%} and {interval.high:.0%} (95% "
            "confidence), for any label noise.",
            f"Suspects: {result.n_suspects} labels are suspect at a false discovery rate of at "
            "most 30%, with 90% confidence.",
            "For narrower intervals, check the rows of .check_next(50)",
            "Assumption: Noise may depend on the row.",
        ):
            assert part in text
        assert "class alone" not in text
        few = audit(X, observed, trusted=np.where(np.arange(600) < 6, y, np.nan))
        assert "By 6 checked rows, " in str(few)
        assert "this rests mostly on what other data sets showed" in str(few)

    def test_summary_of_many_classes_names_the_largest_noise_rates(self):
        rates = np.linspace(0.05, 0.4, 8)
        noise = NoiseModel(
            np.diag(1 - rates) + np.roll(np.diag(rates), 1, axis=1), np.full(8, 1 / 8)
        )
        probabilities = np.eye(8)[np.arange(80) % 8] * 0.6 + 0.05
        text = str(
            audit_scores(
                probabilities / probabilities.sum(1, keepdims=True), np.arange(80) % 8, noise=noise
            )
        )
        assert "7: 40%, 6: 35%, 5: 30%" in text
        assert "2: 15%, at most as high for the other 2 classes (given)" in text

    def test_frame(self, report, monkeypatch):
        pandas = pytest.importorskip("pandas")
        frame = report.to_frame()
        assert isinstance(frame, pandas.DataFrame)
        assert list(frame.columns) == ["row", "observed", "proposed", "probability"]
        frame.loc[0, "probability"] = 2.0  # a copy
        assert report.suspects.probability[0] <= 1
        X, observed, _ = draw()
        fresh = audit(X, observed, noise=NOISE)
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match="to_frame needs pandas"):
            fresh.to_frame()

    def test_it_pickles(self, report):
        again = pickle.loads(pickle.dumps(report))
        assert isinstance(again, Audit)
        np.testing.assert_array_equal(again.sensitivity.n_suspects, report.sensitivity.n_suspects)

    def test_bad_input(self):
        X, observed, _ = draw(n=100)
        for rate in (0, 1, -0.1, 1.5):
            with pytest.raises(ValueError, match="must lie strictly between 0 and 1"):
                audit(X, observed, noise=NOISE, false_discovery_rate=rate)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            audit(X, observed[:-1], noise=NOISE)
        with pytest.raises(ValueError, match="NaN"):
            audit(np.where(np.arange(60) == 3, np.nan, X), observed, noise=NOISE)
        with pytest.raises(ValueError, match="one entry for each"):
            audit(X, observed, noise=NOISE, trusted=observed[:-1])
        with pytest.raises(ValueError, match=r"^The trusted labels .* have shape"):
            audit(X, observed, trusted=observed[:-1])

    @pytest.mark.parametrize(
        ("probabilities", "message"),
        [
            ([[0.5, 0.5]], r"pred_probs has shape \(1, 2\) but y has \(2,\)"),
            ([0.5, 0.5], r"pred_probs has shape \(2,\) but y has \(2,\)"),
            (
                [[0.5, 0.5], [0.5, 0.6]],
                r"pred_probs\[1\] = \[0.5, 0.6\] is not a probability distribution",
            ),
            (
                [[1.5, -0.5], [0.5, 0.5]],
                r"pred_probs\[0\] = \[1.5, -0.5\] is not a probability distribution",
            ),
            ([[np.nan, 0.5], [0.5, 0.5]], "pred_probs has NaN"),
            ([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], "pred_probs has 3 columns but y has 2 classes"),
        ],
    )
    def test_bad_probabilities(self, probabilities, message):
        with pytest.raises(ValueError, match=message):
            audit_scores(probabilities, [0, 1], noise=NOISE)

    def test_rates_of_probabilities_follow_from_the_labels(self):
        X, observed, y = draw()
        log_odds = LPClassifier(NOISE).fit(X, observed).loo_log_odds_
        probabilities = np.column_stack([1 / (1 + np.exp(log_odds)), 1 / (1 + np.exp(-log_odds))])
        probabilities = probabilities @ NOISE.transition
        result = audit_scores(probabilities, observed)
        assert result.noise_source == "label likelihood"
        realised = np.mean(observed[y == 1] != 1)
        assert abs(result.noise.eps_pos - realised) < 3 * result.noise_std[1, 0] < 0.3
        assert abs(result.expected_wrong - np.sum(observed != y)) < 3 * result.expected_wrong_std
        with_priors = quiet(audit_scores, probabilities, observed, priors=[0.5, 0.5])
        np.testing.assert_allclose(with_priors.noise.priors, [0.5, 0.5])


@needs_data
def test_suspects_of_review_data():
    X, y = load_amazon_reviews("kitchen")
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    observed = NOISE.flip(y, random_state=0)
    result = audit(X, observed, noise=NOISE)
    assert result.n_suspects > 100
    assert (observed != y)[result.suspects.row[: result.n_suspects]].mean() > 0.8


def test_summary_of_features_without_signal():
    rng = np.random.default_rng(0)
    by_chance = audit(rng.normal(size=(150, 40)), rng.integers(2, size=150), noise=NOISE)
    assert "do not predict the labels better than chance" in str(by_chance)
    assert by_chance.n_suspects == 0
    X, observed, _ = draw()
    assert "better than chance" not in str(audit(X, observed, noise=NOISE))
