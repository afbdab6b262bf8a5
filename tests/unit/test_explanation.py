"""Why a row is suspect: contributions that sum to its log-odds, and its nearest rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from unflip import LPClassifier, NoiseModel, audit, audit_scores
from unflip._utils.record_tables import lines_of
from unflip.auditing.nearest_rows import nearest_rows
from unflip.datasets import make_messages, make_mixture

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)


class Words:
    """Words behind components of an SVD, as a table's transformer has them."""

    def __init__(self, texts, n_components):
        self.vectorizer = TfidfVectorizer().fit(texts)
        self.svd = TruncatedSVD(n_components, random_state=0)
        self.svd.fit(self.vectorizer.transform(texts))

    @property
    def named_features_(self):
        return self.vectorizer.get_feature_names_out()

    def transform(self, texts):
        return self.svd.transform(self.vectorizer.transform(texts))

    def named_rows(self, texts):
        return self.vectorizer.transform(texts)

    def named_weights(self, weights):
        return weights @ self.svd.components_


def binary_rows(kind):
    """Return 300 rows of a kind, and their noisy labels."""
    X, y = make_mixture(300, 5, mean_norm=2.5, random_state=0)
    if kind == "sparse":
        X = csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    if kind == "single precision":
        X = X.astype(np.float32)
    return X, NOISE.flip(y, random_state=0)


def four_classes():
    X, y = make_mixture(400, 6, means=2.5 * np.eye(4, 6), random_state=0)
    noise = NoiseModel(0.7 * np.eye(4) + 0.075, np.full(4, 0.25))
    labels = np.array(["a", "b", "c", "d"])[noise.flip(y, random_state=0)]
    return X, labels, noise


def total(explanation):
    return explanation.constant + explanation.inputs["contribution"].sum()


class TestContributions:
    @pytest.mark.parametrize("kind", ["dense", "sparse", "single precision"])
    def test_sum_to_the_log_odds_of_the_classifier(self, kind):
        X, labels = binary_rows(kind)
        result = audit(X, labels, noise=NOISE)
        scores = LPClassifier(NOISE).fit(X, labels).decision_function(X)
        for row in (*result.suspects["row"][:5], 7):
            explanation = result.explain(row)
            sign = 1 if explanation.proposed == 1 else -1
            assert explanation.log_odds == pytest.approx(sign * scores[row], abs=1e-10)
            assert total(explanation) == pytest.approx(explanation.log_odds, abs=1e-10)

    def test_sum_to_the_difference_of_two_of_four_classes(self):
        X, labels, noise = four_classes()
        result = audit(X, labels, noise=noise)
        fitted = LPClassifier(noise).fit(X, labels)
        values = dict(zip(fitted.classes_, fitted.decision_function(X).T, strict=True))
        suspects = result.suspects
        for row, proposed in zip(suspects["row"][:9], suspects["proposed"][:9], strict=True):
            explanation = result.explain(row)
            assert explanation.proposed == proposed
            assert explanation.observed == labels[row]
            difference = values[proposed][row] - values[labels[row]][row]
            assert explanation.log_odds == pytest.approx(difference, abs=1e-10)
            assert total(explanation) == pytest.approx(difference, abs=1e-10)

    def test_constant_is_the_log_odds_of_the_reference_row(self):
        X, labels = binary_rows("dense")
        fitted = LPClassifier(NOISE).fit(X, labels)
        result = audit(X, labels, noise=NOISE)
        for row in range(5):
            explanation = result.explain(row)
            sign = 1 if explanation.proposed == 1 else -1
            mean_score = fitted.decision_function(X.mean(axis=0, keepdims=True))[0]
            assert explanation.constant == pytest.approx(sign * mean_score, abs=1e-10)
        X, labels = binary_rows("sparse")
        fitted = LPClassifier(NOISE).fit(X, labels)
        explanation = audit(X, labels, noise=NOISE).explain(0)
        sign = 1 if explanation.proposed == 1 else -1
        assert explanation.constant == pytest.approx(sign * fitted.intercept_[0], abs=1e-10)

    def test_inputs_have_names_order_and_shares(self):
        X, labels = binary_rows("dense")
        result = audit(X, labels, noise=NOISE)
        row = result.suspects["row"][0]
        explanation = result.explain(row, feature_names=list("abcde"))
        assert set(explanation.inputs["name"]) == set("abcde")
        contributions = explanation.inputs["contribution"]
        assert (np.diff(contributions) <= 0).all()
        np.testing.assert_allclose(
            explanation.inputs["share"], contributions / np.abs(contributions).sum()
        )
        assert "feature 0" in list(result.explain(row).inputs["name"])
        name, contribution, _ = next(lines_of(explanation.inputs))
        assert f"{name}: {contribution:+.2f}" in str(explanation)

    def test_words_behind_an_svd(self):
        texts, y = make_messages(400, random_state=0)
        words = Words(texts, 20)
        X = words.transform(texts)
        labels = NOISE.flip(y, random_state=0)
        result = audit(X, labels, noise=NOISE).explained_by(words, texts)
        row = result.suspects["row"][0]
        explanation = result.explain(row)
        present = set(words.vectorizer.build_analyzer()(texts[row]))
        assert set(explanation.inputs["name"]) <= present
        assert total(explanation) == pytest.approx(explanation.log_odds, abs=1e-10)
        sign = 1 if explanation.proposed == 1 else -1
        intercept = LPClassifier(NOISE).fit(X, labels).intercept_[0]
        assert explanation.constant == pytest.approx(sign * intercept, abs=1e-10)

    def test_kernel_features_have_neighbours_alone(self):
        X, labels = binary_rows("dense")
        result = audit(X, labels, noise=NOISE, features="rbf")
        explanation = result.explain(result.suspects["row"][0])
        assert len(explanation.inputs) == 0
        assert len(explanation.nearest) == 2
        assert "not linear" in str(explanation)

    def test_rows_on_disk_are_not_compared(self, tmp_path):
        X, labels = binary_rows("dense")
        np.save(tmp_path / "rows.npy", X)
        result = audit(np.load(tmp_path / "rows.npy", mmap_mode="r"), labels, noise=NOISE)
        explanation = result.explain(0)
        assert len(explanation.inputs) == len(explanation.nearest) == 0
        assert "not an array in the memory" in explanation.note

    def test_errors_say_what_to_do(self):
        X, labels = binary_rows("dense")
        result = audit(X, labels, noise=NOISE)
        with pytest.raises(ValueError, match="row = 300 must be a whole number between 0 and 299"):
            result.explain(300)
        with pytest.raises(ValueError, match="2 names but X has 5 columns: pass one for each"):
            result.explain(0, feature_names=["a", "b"])
        scores = audit_scores(np.full((10, 2), 0.5), [0, 1] * 5, noise=NOISE)
        with pytest.raises(ValueError, match=r"use audit\(X, y\)"):
            scores.explain(0)


class TestNearestRows:
    @pytest.mark.parametrize("is_sparse", [False, True])
    def test_agree_with_all_distances(self, is_sparse):
        rng = np.random.default_rng(0)
        X = np.where(rng.random((9000, 6)) < 0.4, rng.normal(size=(9000, 6)), 0.0) + 1e-3
        queries = np.array([3, 4500, 8999])
        candidates = rng.random(9000) < 0.5
        candidates[queries] = True
        distances = cdist(X[queries], X, "cosine" if is_sparse else "euclidean")
        distances[:, ~candidates] = np.inf
        distances[np.arange(3), queries] = np.inf
        nearest = nearest_rows(csr_array(X) if is_sparse else X, queries, candidates, 2)
        np.testing.assert_array_equal(nearest.rows, np.argsort(distances, axis=1)[:, :2])
        np.testing.assert_allclose(nearest.distances, np.sort(distances, axis=1)[:, :2], atol=1e-7)

    def test_fewer_candidates_than_neighbours(self):
        nearest = nearest_rows(np.eye(3), np.array([0]), np.array([True, True, False]), 2)
        np.testing.assert_array_equal(nearest.rows, [[1, -1]])

    def test_labels_of_neighbours_are_confident(self):
        X, labels, noise = four_classes()
        result = audit(X, labels, noise=noise)
        posterior = result.label_posterior
        for row in result.suspects["row"][:10]:
            for neighbour, label, _ in lines_of(result.explain(row).nearest):
                assert label == labels[neighbour]
                assert posterior[neighbour, "abcd".index(label)] >= 0.95
