"""unflip.compat.cleanlab: the same answers as unflip's own functions, in cleanlab's shapes."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from unflip import NoiseModel, NoisyLabelClassifier, audit, audit_scores, unusual_rows
from unflip.compat.cleanlab import (
    CleanLearning,
    Datalab,
    find_label_issues,
    get_label_quality_scores,
)
from unflip.datasets import make_mixture

pytestmark = pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
NAMES = np.array(["ham", "spam"])


@pytest.fixture(scope="module")
def data():
    X, y = make_mixture(400, 15, mean_norm=2.0, random_state=0)
    labels = NOISE.flip(y, random_state=0)
    pred_probs = cross_val_predict(LogisticRegression(), X, labels, method="predict_proba")
    return X, NAMES[labels], pred_probs, NAMES[y]


class TestFunctions:
    def test_issues_are_the_suspects(self, data):
        _, labels, pred_probs, _ = data
        result = audit_scores(pred_probs, labels)
        suspects = np.asarray(result.suspects.row)[: result.n_suspects]
        mask = find_label_issues(labels, pred_probs)
        assert mask.dtype == bool
        assert len(suspects) > 10
        np.testing.assert_array_equal(np.flatnonzero(mask), np.sort(suspects))
        for name in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
            ranked = find_label_issues(labels, pred_probs, return_indices_ranked_by=name)
            np.testing.assert_array_equal(ranked, suspects)

    def test_scores_are_the_probability_that_the_label_is_right(self, data):
        _, labels, pred_probs, y = data
        scores = get_label_quality_scores(labels, pred_probs, noise=NOISE)
        assert ((scores >= 0) & (scores <= 1)).all()
        assert scores.mean() == pytest.approx((labels == y).mean(), abs=0.05)
        result = audit_scores(pred_probs, labels, noise=NOISE)
        rows = np.asarray(result.suspects.row)
        np.testing.assert_allclose(1 - scores[rows], np.asarray(result.suspects.probability))

    def test_what_is_known_and_the_false_discovery_rate_are_passed_on(self, data):
        _, labels, pred_probs, y = data
        few = find_label_issues(labels, pred_probs, noise=NOISE, false_discovery_rate=0.02)
        many = find_label_issues(labels, pred_probs, noise=NOISE, false_discovery_rate=0.4)
        assert 0 < few.sum() < many.sum()
        checked = np.where(np.arange(len(y)) < 60, y, None)
        trusted = find_label_issues(labels, pred_probs, trusted=checked)
        expected = audit_scores(pred_probs, labels, trusted=checked)
        assert trusted.sum() == expected.n_suspects

    @pytest.mark.parametrize(
        ("options", "remedy"),
        [
            ({"filter_by": "both"}, "pass false_discovery_rate= instead"),
            ({"frac_noise": 0.5}, "pass false_discovery_rate= instead"),
            ({"num_to_remove_per_class": [1, 2]}, "pass false_discovery_rate= instead"),
            ({"confident_joint": np.eye(2)}, "pass noise=, a NoiseModel"),
            ({"multi_label": True}, "audit each label as one column"),
        ],
    )
    def test_options_with_another_answer_name_what_to_use(self, data, options, remedy):
        _, labels, pred_probs, _ = data
        with pytest.raises(ValueError, match=remedy):
            find_label_issues(labels, pred_probs, **options)

    def test_harmless_options_are_accepted_and_misspelt_ones_are_not(self, data):
        _, labels, pred_probs, _ = data
        harmless = {
            "filter_by": "prune_by_noise_rate",
            "frac_noise": 1.0,
            "n_jobs": 4,
            "verbose": True,
            "rank_by_kwargs": {},
        }
        np.testing.assert_array_equal(
            find_label_issues(labels, pred_probs, **harmless), find_label_issues(labels, pred_probs)
        )
        with pytest.raises(TypeError, match="n_job is not a parameter"):
            find_label_issues(labels, pred_probs, n_job=4)
        with pytest.raises(ValueError, match="return_indices_ranked_by='entropy'"):
            find_label_issues(labels, pred_probs, return_indices_ranked_by="entropy")
        with pytest.raises(ValueError, match="method='entropy'"):
            get_label_quality_scores(labels, pred_probs, method="entropy")


class TestCleanLearning:
    def test_is_a_noisy_label_classifier(self, data):
        X, labels, _, _ = data
        forest = RandomForestClassifier(20, random_state=0)
        learner = CleanLearning(forest).fit(X, labels)
        same = NoisyLabelClassifier(forest).fit(X, labels)
        np.testing.assert_array_equal(learner.predict(X), same.predict(X))
        np.testing.assert_array_equal(learner.predict_proba(X), same.predict_proba(X))
        assert learner.score(X, labels) == same.score(X, labels)
        assert learner.model_.noise_ == same.noise_

    def test_issues_have_the_columns_of_cleanlab(self, data):
        pytest.importorskip("pandas")
        X, labels, _, y = data
        learner = CleanLearning()
        issues = learner.find_label_issues(X, labels=labels)
        assert issues.columns.tolist() == [
            "is_label_issue",
            "label_quality",
            "given_label",
            "predicted_label",
        ]
        found = issues[issues["is_label_issue"]]
        assert (y[found.index] == found["predicted_label"]).mean() > 0.8
        assert (found["given_label"] != found["predicted_label"]).all()
        assert found["label_quality"].max() <= 0.5
        np.testing.assert_array_equal(learner.get_label_issues(), issues)
        np.testing.assert_array_equal(learner.fit(X, y=labels).get_label_issues(), issues)

    def test_probabilities_replace_the_samples(self, data):
        pytest.importorskip("pandas")
        _, labels, pred_probs, _ = data
        issues = CleanLearning().find_label_issues(labels=labels, pred_probs=pred_probs)
        np.testing.assert_array_equal(
            issues["is_label_issue"], find_label_issues(labels, pred_probs)
        )
        with pytest.raises(ValueError, match="Neither X nor pred_probs"):
            CleanLearning().find_label_issues(labels=labels)

    def test_issues_that_are_passed_are_left_out(self, data):
        X, labels, _, y = data
        wrong = labels != y
        plain = LogisticRegression().fit(X[~wrong], labels[~wrong])
        for issues in (wrong, np.flatnonzero(wrong)):
            learner = CleanLearning().fit(X, labels, label_issues=issues)
            np.testing.assert_array_equal(learner.predict_proba(X), plain.predict_proba(X))
        with pytest.raises(ValueError, match="label_issues must be a mask of the 400 labels"):
            CleanLearning().fit(X, labels, label_issues=wrong[:-1])

    def test_options(self, data):
        X, labels, _, _ = data
        CleanLearning(find_label_issues_kwargs={"n_jobs": 1}).fit(X, labels)
        with pytest.raises(ValueError, match=r"pass noise=noise_matrix\.T"):
            CleanLearning().fit(X, labels, noise_matrix=np.eye(2))
        with pytest.raises(ValueError, match="filter_by='both'"):
            CleanLearning(find_label_issues_kwargs={"filter_by": "both"}).fit(X, labels)
        with pytest.raises(ValueError, match="two names of one argument"):
            CleanLearning().fit(X, labels, y=labels)
        assert not hasattr(CleanLearning(LinearSVC()), "predict_proba")

    @pytest.mark.slow
    def test_passes_the_checks_of_scikit_learn(self):
        reason = "the second argument is labels, as in cleanlab; y= works, too"
        results = check_estimator(
            CleanLearning(),
            on_skip=None,
            expected_failed_checks={"check_fit_score_takes_y": reason},
        )
        failed = {result["check_name"] for result in results if result["status"] == "xfail"}
        assert failed == {"check_fit_score_takes_y"}


class TestDatalab:
    def test_finds_the_same_as_the_functions(self, data):
        pytest.importorskip("pandas")
        X, labels, pred_probs, _ = data
        X = X.copy()
        X[5] *= 9
        X[30] = X[31]
        lab = Datalab({"label": labels}, label_name="label")
        lab.find_issues(features=X, pred_probs=pred_probs)
        issues = lab.get_issues()
        assert issues.columns.tolist() == [
            "is_label_issue",
            "label_score",
            "given_label",
            "predicted_label",
            "is_outlier_issue",
            "outlier_score",
            "is_near_duplicate_issue",
            "near_duplicate_score",
            "near_duplicate_sets",
        ]
        np.testing.assert_array_equal(
            issues["is_label_issue"], find_label_issues(labels, pred_probs)
        )
        np.testing.assert_array_equal(
            issues["label_score"], get_label_quality_scores(labels, pred_probs)
        )
        unusual = unusual_rows(X, labels)
        np.testing.assert_array_equal(issues["outlier_score"], unusual.outlier_score)
        assert np.flatnonzero(issues["is_outlier_issue"]).tolist() == [5]
        assert np.flatnonzero(issues["is_near_duplicate_issue"]).tolist() == [30, 31]
        assert [issues["near_duplicate_sets"][row].tolist() for row in (29, 30, 31)] == [
            [],
            [31],
            [30],
        ]
        summary = lab.issue_summary.set_index("issue_type")
        assert summary["num_issues"][["outlier", "near_duplicate"]].tolist() == [1, 2]
        assert lab.get_info("non_iid")["p-value"] == unusual.order_p_value
        assert set(lab.info) == {"label", "outlier", "near_duplicate", "non_iid"}
        assert lab.class_names == ["ham", "spam"]

    def test_features_alone_are_audited_by_a_fit(self, data):
        X, labels, _, _ = data
        lab = Datalab([{"label": label} for label in labels], label_name="label")
        lab.find_issues(features=X, issue_types={"label": {}})
        result = audit(X, labels)
        assert lab.get_info("label")["is_label_issue"].sum() == result.n_suspects
        assert set(lab.info) == {"label"}

    def test_without_labels_only_rows_are_checked(self, data):
        X, labels, _, _ = data
        lab = Datalab({"label": labels})
        assert not lab.has_labels
        lab.find_issues(features=X)
        assert set(lab.info) == {"outlier", "near_duplicate", "non_iid"}

    def test_a_graph_takes_the_place_of_features(self, data):
        X, labels, _, _ = data
        X = X.copy()
        X[5] *= 9
        X[30] = X[31]
        graph = NearestNeighbors(n_neighbors=10).fit(X).kneighbors_graph(mode="distance")
        lab = Datalab({"label": labels}, label_name="label")
        lab.find_issues(knn_graph=graph)
        assert np.flatnonzero(lab.info["outlier"]["is_outlier_issue"]).tolist() == [5]
        assert np.flatnonzero(lab.info["near_duplicate"]["is_near_duplicate_issue"]).tolist() == [
            30,
            31,
        ]
        assert set(lab.info) == {"outlier", "near_duplicate"}
        graph.data[0] = 0
        graph.eliminate_zeros()
        with pytest.raises(ValueError, match="the same number of nearest rows"):
            lab.find_issues(knn_graph=graph)

    def test_sets_of_many_copies_are_short(self):
        X = np.random.default_rng(0).normal(size=(200, 5))
        X[:50] = X[0]
        lab = Datalab({})
        lab.find_issues(features=X)
        sets = lab.info["near_duplicate"]["near_duplicate_sets"]
        assert max(map(len, sets)) == 10
        assert all(row not in others for row, others in enumerate(sets))

    def test_the_report_names_the_rows(self, data, capsys):
        pytest.importorskip("pandas")
        X, labels, pred_probs, _ = data
        lab = Datalab({"label": labels}, label_name="label")
        lab.find_issues(features=X, pred_probs=pred_probs)
        lab.report(num_examples=2)
        printed = capsys.readouterr().out
        worst = find_label_issues(labels, pred_probs, return_indices_ranked_by="self_confidence")
        assert "near_duplicate: 0 of 400 rows" in printed
        for row in worst[:2]:
            assert f"\n{row} " in printed
        assert f"\n{worst[2]} " not in printed

    def test_errors_say_what_to_do(self, data):
        X, labels, _, _ = data
        with pytest.raises(ValueError, match="task='regression' is not available"):
            Datalab({}, task="regression")
        with pytest.raises(ValueError, match="label_name='lable' is not a column"):
            Datalab({"label": labels}, label_name="lable")
        with pytest.raises(ValueError, match="is a path: read the file"):
            Datalab("data.csv", label_name="label")
        lab = Datalab({"label": labels}, label_name="label")
        with pytest.raises(ValueError, match="Nothing to check"):
            lab.find_issues()
        with pytest.raises(ValueError, match="issue type 'null' is not available"):
            lab.find_issues(features=X, issue_types={"null": {}})
        with pytest.raises(ValueError, match=r"pass \{\}"):
            lab.find_issues(features=X, issue_types={"outlier": {"k": 3}})
        with pytest.raises(ValueError, match="'outlier' was not checked"):
            lab.get_info("outlier")


def test_it_is_imported_on_request_only_and_without_cleanlab():
    code = (
        "import sys, unflip, unflip.compat; print('unflip.compat.cleanlab' in sys.modules); "
        "import unflip.compat.cleanlab; print({'cleanlab', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["False", "set()"]


def test_missing_labels_are_no_issues_and_have_no_quality():
    probabilities = np.tile([0.2, 0.8], (30, 1))
    labels = np.array([None, *[i % 2 for i in range(29)]], dtype=object)
    assert not find_label_issues(labels, probabilities, noise=NOISE)[0]
    with pytest.raises(ValueError, match="The label of row 0 is missing"):
        get_label_quality_scores(labels, probabilities, noise=NOISE)
