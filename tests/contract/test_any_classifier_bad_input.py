"""Bad input of NoisyLabelClassifier: each error names the value and the remedy."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from support.any_classifier import CATEGORIES, NOISE, TREE, Convertible, circles
from unflip import LPClassifier, NoisyLabelClassifier
from unflip.estimation import TrustedSubset

SQUARES = make_pipeline(PolynomialFeatures(2), StandardScaler(), LogisticRegression())


class TestBadInput:
    @pytest.mark.parametrize("cv", [1, 0, -1, 2.5, "5", True, [([0], [1])]], ids=repr)
    def test_a_wrong_number_of_folds(self, cv):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=r"cv = .* must be a whole number of at least 2"):
            NoisyLabelClassifier(TREE, cv=cv).fit(X, observed)

    @pytest.mark.parametrize(
        ("pred_probs", "message"),
        [
            (np.full((299, 2), 0.5), r"pred_probs has shape \(299, 2\)"),
            (np.full((300, 3), 1 / 3), r"pred_probs has shape \(300, 3\)"),
            (np.full(300, 0.5), r"pred_probs has shape \(300,\)"),
            (np.full((300, 2), 0.6), r"sum to 1, but row 0 is \[0.6, 0.6\]"),
            (np.tile([1.5, -0.5], (300, 1)), r"sum to 1, but row 0 is \[1.5, -0.5\]"),
            (np.full((300, 2), np.nan), r"sum to 1, but row 0 is \[nan, nan\]"),
            (np.where(np.arange(300)[:, None] < 7, [0.5, 0.5], [0.5, np.inf]), "row 7 is .*inf"),
            ("abc", "pred_probs = 'abc' must hold numbers"),
        ],
        ids=["rows", "columns", "vector", "sum", "negative", "missing", "infinite", "text"],
    )
    def test_wrong_probabilities(self, pred_probs, message):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=message):
            NoisyLabelClassifier(TREE, NOISE).fit(X, observed, pred_probs=pred_probs)

    @pytest.mark.parametrize("features", ["cubic", 3, None, PolynomialFeatures], ids=str)
    def test_wrong_features(self, features):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=r"features=.* is not a valid value: use 'linear'"):
            NoisyLabelClassifier(TREE, features=features).fit(X, observed)

    @pytest.mark.parametrize(
        "features",
        [NeighborhoodComponentsAnalysis(), LinearDiscriminantAnalysis()],
        ids=["components", "discriminant"],
    )
    @pytest.mark.parametrize(
        "model", [NoisyLabelClassifier(TREE), LPClassifier()], ids=["any", "own"]
    )
    def test_features_that_need_labels(self, model, features):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=r"features=.* needs labels, which would leak into"):
            clone(model).set_params(features=features).fit(X, observed)

    @pytest.mark.parametrize(
        ("noise", "message"),
        [
            ("guess", "noise='guess' is not known"),
            (0.3, r"noise=0.3 is not known"),
            ([0.3, 0.1], r"noise=\[0.3, 0.1\] is not known"),
            (np.eye(3), "The noise model has 3 classes but y has 2"),
            ([[0.8, 0.3], [0.2, 0.8]], "Row 0 of transition sums to 1.1"),
        ],
        ids=["name", "number", "rates", "classes", "sum"],
    )
    @pytest.mark.parametrize("numeric", [True, False], ids=["numbers", "texts"])
    def test_wrong_noise(self, noise, message, numeric):
        X, observed, _ = circles()
        rows = X if numeric else np.where(X > 0, "a", "b")
        estimator = TREE if numeric else CATEGORIES
        with pytest.raises(ValueError, match=message):
            NoisyLabelClassifier(estimator, noise).fit(rows, observed)

    @pytest.mark.parametrize("cv", [None, 5])
    @pytest.mark.parametrize(
        "estimator",
        [DecisionTreeClassifier, LinearRegression(), StandardScaler(), None, "tree", 5],
        ids=["class", "regressor", "transformer", "None", "name", "number"],
    )
    def test_a_wrong_estimator(self, estimator, cv):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=r"^estimator=.* must be a classifier with fit and"):
            NoisyLabelClassifier(estimator, cv=cv).fit(X, observed)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (np.zeros(300, dtype=int), "at least two classes, but y has only one class, 0"),
            (np.where(np.arange(300) == 2, None, "yes"), "only one class, 'yes', in labelled rows"),
            (np.full(300, np.nan), "y has no label: all 300 are missing"),
            (np.linspace(0, 1, 300), "the type of the target is continuous"),
            (np.eye(2)[np.arange(300) % 2], r"y should be a 1d array.*\(300, 2\)"),
            (np.zeros(299), r"inconsistent numbers of samples: \[300, 299\]"),
        ],
        ids=["one class", "missing", "NaN", "continuous", "table", "short"],
    )
    def test_wrong_labels(self, labels, message):
        X, _, _ = circles()
        with pytest.raises(ValueError, match=message):
            NoisyLabelClassifier(TREE).fit(X, labels)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.zeros(300), "at least one non-zero"),
            (np.full(300, -1.0), "Negative values in data passed to `sample_weight`"),
            (np.ones(30), r"sample_weight.shape == \(30,\)"),
            (np.where(np.arange(300) == 2, np.nan, 1.0), "sample_weight contains NaN"),
        ],
        ids=["zeros", "negative", "short", "missing"],
    )
    def test_wrong_weights(self, weights, message):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=message):
            NoisyLabelClassifier(TREE).fit(X, observed, sample_weight=weights)

    def test_weights_that_leave_one_class(self):
        X, observed, _ = circles()
        weights = (observed == 1).astype(float)
        with pytest.raises(
            ValueError, match="only one class, 1, in labelled rows of positive weight"
        ):
            NoisyLabelClassifier(TREE).fit(X, observed, sample_weight=weights)

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (np.arange(30), r"groups has shape \(30,\) but y has \(300,\)"),
            (np.zeros(300), "groups has one group only"),
            (np.where(np.arange(300) == 2, np.nan, 1.0), "groups has missing entries"),
        ],
        ids=["short", "one", "missing"],
    )
    def test_wrong_groups(self, groups, message):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=message):
            NoisyLabelClassifier(TREE).fit(X, observed, groups=groups)

    @pytest.mark.parametrize("grouped", ["one", "each"])
    @pytest.mark.parametrize(
        "estimator", [TREE, LogisticRegression(), CATEGORIES], ids=["tree", "logistic", "texts"]
    )
    def test_groups_that_hold_a_class_alone(self, estimator, grouped):
        X, observed, _ = circles()
        rows = np.where(X > 0, "a", "b") if estimator is CATEGORIES else X
        groups = observed if grouped == "each" else np.where(observed == 1, 0, 1 + np.arange(300))
        with pytest.raises(ValueError, match="A class occurs in so few groups"):
            NoisyLabelClassifier(estimator, NOISE).fit(rows, observed, groups=groups)

    @pytest.mark.parametrize(
        ("cv", "n", "reason"),
        [(None, 300, "cv=None leaves them out"), (5, 2, "each class has one sample only")],
        ids=["no folds", "one sample"],
    )
    def test_features_that_are_not_numeric_need_folds_or_probabilities(self, cv, n, reason):
        X, _, _ = circles(n)
        texts = np.where(X > 0, "a", "b")
        labels = np.arange(n) % 2
        model = NoisyLabelClassifier(CATEGORIES, None, cv=cv)
        with pytest.raises(ValueError, match=f"not numeric, .* but {reason}: pass pred_probs, enc"):
            model.fit(texts, labels)
        model.fit(texts, labels, pred_probs=np.full((n, 2), 0.5))
        assert model.cv_share_ == 1

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinite_features(self, value):
        X, observed, _ = circles()
        X[3, 1] = value
        for rows in (X, X.tolist(), sparse.csr_array(X)):
            with pytest.raises(ValueError, match="Input contains infinity"):
                NoisyLabelClassifier(TREE, NOISE).fit(rows, observed)

    def test_a_vector_of_features(self):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=r"Reshape your data: X.reshape\(-1, 1\)"):
            NoisyLabelClassifier(TREE, NOISE).fit(X[:, 0], observed)
        fitted = NoisyLabelClassifier(TREE, NOISE, cv=None).fit(X, observed)
        for method in ("predict", "predict_proba"):
            for sample in (X[0], Convertible(X[0])):
                with pytest.raises(ValueError, match="Reshape your data"):
                    getattr(fitted, method)(sample)

    def test_features_that_are_not_numeric_and_a_noise_estimator(self):
        X, observed, y = circles()
        model = NoisyLabelClassifier(CATEGORIES, TrustedSubset(y))
        with pytest.raises(ValueError, match="need numeric features: encode X as numbers"):
            model.fit(np.where(X > 0, "a", "b"), observed)

    def test_priors_that_contradict_the_noise_model(self):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match=r"priors=.* contradict those of the noise model"):
            NoisyLabelClassifier(TREE, NOISE.with_priors([0.5, 0.5]), priors=[0.3, 0.7]).fit(
                X, observed
            )

    def test_masked_rows(self):
        X, observed, _ = circles()
        with pytest.raises(ValueError, match="X is a masked array, which is not supported"):
            NoisyLabelClassifier(TREE).fit(np.ma.masked_greater(X, 1), observed)

    def test_rows_with_another_number_of_features(self):
        X, observed, _ = circles()
        fitted = NoisyLabelClassifier(TREE, NOISE).fit(X, observed)
        with pytest.raises(ValueError, match="X has 1 features, but NoisyLabelClassifier"):
            fitted.predict(X[:, :1])
