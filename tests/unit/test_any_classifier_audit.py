"""Audits by any classifier."""

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from support.any_classifier import (
    CATEGORIES,
    NOISE,
    THREE,
    TREE,
    circles,
    moons,
    three_blobs,
)
from unflip import NoisyLabelClassifier, Votes, audit
from unflip.estimation import AssumedNoiseWarning


class TestAudit:
    @staticmethod
    def suspects(report):
        return report.suspects.row[: report.n_suspects]

    @pytest.mark.parametrize("noise", ["estimate", NOISE], ids=["estimate", "known"])
    def test_it_reports_the_attributes_of_the_classifier(self, noise):
        X, observed, _ = circles()
        report = audit(X, observed, noise=noise, estimator=SVC())
        fitted = NoisyLabelClassifier(SVC(), noise).fit(X, observed)
        assert report.noise == fitted.noise_
        assert report.noise_source == fitted.rates_.source
        np.testing.assert_array_equal(report.noise_std, fitted.noise_std_)
        assert report.expected_accuracy == pytest.approx(fitted.expected_accuracy_, abs=1e-12)
        assert report.expected_accuracy_std == pytest.approx(
            fitted.expected_accuracy_std_, abs=1e-12
        )
        np.testing.assert_allclose(report.label_posterior, fitted.label_posterior_, atol=1e-9)
        assert np.isnan(report.accuracy_after(10))

    def test_suspects_are_sorted_and_mostly_wrong(self):
        X, observed, y = circles(500)
        report = audit(X, observed, estimator=RandomForestClassifier(20, random_state=0))
        wrong = observed != y
        rows = self.suspects(report)
        assert 0.8 * wrong.sum() < report.n_suspects < 1.2 * wrong.sum()
        error = np.sqrt(0.1 * 0.9 / report.n_suspects)
        assert wrong[rows].mean() > 0.9 - 2 * error
        probabilities = report.suspects.probability
        assert (np.diff(probabilities) <= 0).all()
        np.testing.assert_array_equal(report.suspects.observed, observed[report.suspects.row])
        np.testing.assert_array_equal(
            report.suspects.proposed,
            report.label_posterior[report.suspects.row].argmax(axis=1),
        )

    def test_several_classes_have_names(self):
        X, observed, y = three_blobs(cluster_std=0.5)
        names = np.array(["cat", "dog", "owl"])
        report = audit(X, names[observed], noise=THREE, estimator=TREE)
        rows = self.suspects(report)
        assert (observed != y)[rows].mean() > 0.9
        assert (report.suspects.proposed[: len(rows)] == names[y[rows]]).mean() > 0.9

    def test_rows_of_a_group_are_scored_by_fits_to_other_groups(self):
        groups = np.arange(400) // 4
        centres, truth = make_circles(100, noise=0.05, factor=0.4, random_state=0)
        X = centres[groups] + 0.01 * np.random.default_rng(0).normal(size=(400, 2))
        y = truth[groups]
        observed = NOISE.flip(y, random_state=0)
        report = audit(X, observed, noise=NOISE, estimator=SVC(), groups=groups)
        fitted = NoisyLabelClassifier(SVC(), NOISE).fit(X, observed, groups=groups)
        np.testing.assert_allclose(report.label_posterior, fitted.label_posterior_, atol=1e-9)
        rows = self.suspects(report)
        assert (observed != y)[rows].mean() > 0.9
        assert len(rows) > 0.8 * (observed != y).sum()

    def test_the_report_is_printed_and_written(self, tmp_path):
        pytest.importorskip("jinja2")
        X, observed, _ = circles()
        report = audit(X, observed, noise=NOISE, estimator=TREE)
        text = str(report)
        assert "Suspects: " in text
        assert "nan" not in text
        page = tmp_path / "audit.html"
        report.to_html(page)
        written = page.read_text(encoding="utf-8")
        assert "<html" in written
        assert ">nan<" not in written

    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    def test_an_expected_accuracy_that_is_not_known_is_not_printed(self):
        X, _, _ = moons(2)
        report = audit(X, [0, 1], estimator=TREE)
        assert np.isnan(report.expected_accuracy)
        assert "nan" not in str(report)

    def test_one_label_of_a_class_is_printed_with_an_accuracy_and_is_suspect(self):
        X, observed, _ = moons()
        names = np.array(["no", "yes"])[observed].astype(object)
        names[0] = "yse"
        report = audit(X, names, noise="estimate", estimator=SVC())
        assert "nan" not in str(report)
        assert report.suspects.row[0] == 0

    def test_trusted_labels_may_be_passed(self):
        X, observed, y = moons()
        trusted = np.where(np.arange(300) % 5 == 0, y, np.nan)
        report = audit(X, observed, trusted=trusted, estimator=TREE)
        assert report.noise_source == "trusted rows"
        checked = np.flatnonzero(np.arange(300) % 5 == 0)
        np.testing.assert_array_equal(report.label_posterior[checked], np.eye(2)[y[checked]])

    def test_features_that_are_not_numeric(self):
        rng = np.random.default_rng(0)
        level = rng.integers(12, size=600)
        y = level % 2
        observed = NOISE.flip(y, random_state=0)
        X = np.array([f"level {i}" for i in level], dtype=object)[:, None]
        report = audit(X, observed, noise=NOISE, estimator=CATEGORIES)
        rows = self.suspects(report)
        assert (observed != y)[rows].mean() > 0.9
        assert len(rows) > 0.6 * (observed != y).sum()

    def test_votes_raise(self):
        X, observed, _ = circles()
        votes = Votes.from_columns(np.column_stack([observed, observed]))
        with pytest.raises(ValueError, match="Votes need LPClassifier: omit estimator"):
            audit(X, votes, estimator=TREE)

    def test_a_warning_of_assumed_rates_names_the_line_of_the_caller(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        with pytest.warns(AssumedNoiseWarning, match="do not predict the labels") as caught:
            report = audit(X, rng.integers(2, size=200), estimator=TREE)
        assert caught[0].filename == __file__
        assert report.n_suspects == 0
