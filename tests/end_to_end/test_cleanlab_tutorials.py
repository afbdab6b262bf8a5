"""cleanlab's tutorials for tables and texts run with one import changed.

The code follows the steps of the tutorials, on data made here. It runs with the names of
`unflip.compat.cleanlab`, and with cleanlab's own where it is installed.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import LabelEncoder, StandardScaler

from unflip.compat import cleanlab as ours

pandas = pytest.importorskip("pandas")

EXAMS = ["first", "second", "third"]
NOTES = ["", "late", "very active", "cheated"]
TOPICS = {
    "card": "my card was declined at the shop and the bank blocked my card again",
    "transfer": "the transfer to my savings is pending and the money has not arrived",
    "refund": "please refund the fee because the merchant charged me twice",
    "password": "the app does not accept the password and I cannot log in",
}
LEFT_OUT = ("cows eat grass on green hills", "seven tall ships sailed at dawn")


def theirs():
    cleanlab = pytest.importorskip("cleanlab")
    pytest.importorskip("datasets")
    from cleanlab.classification import CleanLearning
    from cleanlab.filter import find_label_issues

    return SimpleNamespace(
        CleanLearning=CleanLearning, Datalab=cleanlab.Datalab, find_label_issues=find_label_issues
    )


@pytest.fixture(
    params=[
        "unflip",
        pytest.param("cleanlab", marks=pytest.mark.filterwarnings("ignore::Warning")),
    ]
)
def tool(request):
    return ours if request.param == "unflip" else theirs()


@pytest.fixture(scope="module")
def grades():
    """Exams with a letter by their mean; a sixth of the letters are wrong."""
    rng = np.random.default_rng(0)
    ability = rng.uniform(40, 100, size=500)
    exams = np.clip(ability[:, None] + rng.normal(scale=4, size=(500, 3)), 0, 100).round()
    letters = np.array(["F", "D", "C", "B", "A"])
    right = letters[np.searchsorted([52, 64, 76, 88], exams.mean(axis=1))]
    frame = pandas.DataFrame(exams, columns=EXAMS)
    frame["notes"] = rng.choice(NOTES, size=500)
    frame.loc[7, EXAMS] = [0.0, 100.0, 3.0]  # an outlier
    frame.loc[450] = frame.loc[12]  # an exact copy
    right[450] = right[12]
    wrong = rng.random(500) < 1 / 6
    frame["letter_grade"] = np.where(wrong, rng.choice(letters, size=500), right)
    return frame, right


@pytest.fixture(scope="module")
def requests():
    """Texts on four topics, with wrong labels, two texts on none of them and two near-copies."""
    rng = np.random.default_rng(1)
    topics = rng.choice(list(TOPICS), size=400)
    texts = [" ".join(rng.permutation(TOPICS[topic].split())[:8]) for topic in topics]
    texts[390], texts[391] = LEFT_OUT
    texts[392] = texts[20]
    texts[393] = texts[30]
    topics[392], topics[393] = topics[20], topics[30]
    wrong = rng.random(400) < 0.1
    labels = np.where(wrong, rng.choice(list(TOPICS), size=400), topics)
    return pandas.DataFrame({"text": texts, "label": labels}), topics


def encoded(frame):
    features = pandas.get_dummies(frame[[*EXAMS, "notes"]], columns=["notes"], drop_first=True)
    features[EXAMS] = StandardScaler().fit_transform(features[EXAMS])
    return features


def embedded(texts):
    words = TfidfVectorizer().fit_transform(texts)
    return TruncatedSVD(20, random_state=0).fit_transform(words)


def test_a_table_by_probabilities_and_a_robust_classifier(tool, grades):
    frame, right = grades
    features = encoded(frame)
    encoder = LabelEncoder().fit(frame["letter_grade"])
    labels = encoder.transform(frame["letter_grade"])
    clf = ExtraTreesClassifier(random_state=0)
    pred_probs = cross_val_predict(clf, features, labels, cv=5, method="predict_proba")
    ranked = tool.find_label_issues(
        labels=labels, pred_probs=pred_probs, return_indices_ranked_by="self_confidence"
    )
    worst = frame.iloc[ranked].assign(label=frame["letter_grade"].iloc[ranked]).head()
    assert (worst["label"] != right[worst.index]).all()

    train, test, train_labels, _, _, test_right = train_test_split(
        features, labels, right, test_size=0.2, random_state=0
    )
    plain = clf.fit(train, train_labels).predict(test)
    learner = tool.CleanLearning(ExtraTreesClassifier(random_state=0))
    _ = learner.fit(train, train_labels)
    robust = learner.predict(test)
    truth = encoder.transform(test_right)
    assert accuracy_score(truth, robust) > accuracy_score(truth, plain)
    issues = learner.get_label_issues()
    assert set(issues.columns) >= {
        "is_label_issue",
        "label_quality",
        "given_label",
        "predicted_label",
    }
    assert issues["label_quality"].between(0, 1).all()


def test_a_table_by_a_graph_of_nearest_rows(tool, grades):
    frame, right = grades
    labels = frame["letter_grade"]
    features = encoded(frame).astype(float)
    pred_probs = cross_val_predict(
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
        features,
        labels,
        cv=5,
        method="predict_proba",
    )
    knn_graph = (
        NearestNeighbors(n_neighbors=10).fit(features.to_numpy()).kneighbors_graph(mode="distance")
    )
    lab = tool.Datalab({"X": features.to_numpy(), "y": labels}, label_name="y")
    lab.find_issues(pred_probs=pred_probs, knn_graph=knn_graph)
    lab.report()

    of_labels = lab.get_issues("label")
    order = of_labels.sort_values("label_score").index
    table = frame.iloc[order].assign(
        given_label=labels.iloc[order], predicted_label=of_labels["predicted_label"].iloc[order]
    )
    assert (table["given_label"].head(10) != right[order[:10]]).mean() > 0.7
    assert of_labels["is_label_issue"].sum() > 20
    outliers = lab.get_issues("outlier")
    assert outliers["is_outlier_issue"][7]
    assert outliers.sort_values("outlier_score").index[0] == 7
    copies = lab.get_issues("near_duplicate")
    assert copies["is_near_duplicate_issue"][[12, 450]].all()
    assert copies["near_duplicate_score"][[12, 450]].max() < 1e-6
    assert 450 in copies.iloc[12]["near_duplicate_sets"]


def test_texts_by_a_data_audit(tool, requests):
    data, topics = requests
    embeddings = embedded(data["text"])
    labels = data["label"].to_numpy()
    pred_probs = cross_val_predict(
        LogisticRegression(C=10), embeddings, labels, method="predict_proba"
    )
    lab = tool.Datalab({"texts": data["text"].to_numpy(), "labels": labels}, label_name="labels")
    lab.find_issues(pred_probs=pred_probs, features=embeddings)
    lab.report()

    of_labels = lab.get_issues("label")
    found = of_labels[of_labels["is_label_issue"] == True]  # noqa: E712 - as in the tutorial
    assert (labels[found.index] != topics[found.index]).mean() > 0.8
    lowest = of_labels["label_score"].argsort()[:5].to_numpy()
    suggested = pandas.DataFrame(
        {"text": data["text"], "given": labels, "suggested": of_labels["predicted_label"]}
    ).iloc[lowest]
    assert (suggested["given"] != suggested["suggested"]).all()
    outliers = lab.get_issues("outlier").sort_values("outlier_score")
    assert {390, 391} <= set(outliers.index[:12])
    copies = lab.get_issues("near_duplicate")
    assert copies["is_near_duplicate_issue"][[20, 392, 30, 393]].all()
    assert 0 <= lab.get_info("non_iid")["p-value"] <= 1
    summary = lab.get_issue_summary()
    assert {"label", "outlier", "near_duplicate"} <= set(summary["issue_type"])
    names = {"is_label_issue", "label_score", "is_outlier_issue", "is_near_duplicate_issue"}
    assert names <= set(lab.get_issues().columns)
    assert len(lab.issues) == len(data)


def test_texts_by_a_robust_classifier(tool, requests):
    data, topics = requests
    raw_train, raw_test, train_labels, _, _, test_topics = train_test_split(
        data["text"].to_numpy(), data["label"].to_numpy(), topics, test_size=0.25, random_state=0
    )
    words = TfidfVectorizer().fit(raw_train)
    svd = TruncatedSVD(20, random_state=0).fit(words.transform(raw_train))
    train, test = (svd.transform(words.transform(texts)) for texts in (raw_train, raw_test))
    encoder = LabelEncoder().fit(train_labels)
    codes = encoder.transform(train_labels)
    learner = tool.CleanLearning(LogisticRegression(max_iter=400), cv_n_folds=5)
    issues = learner.find_label_issues(X=train, labels=codes)
    assert len(issues[issues["is_label_issue"] == True]) > 5  # noqa: E712 - as in the tutorial
    lowest = issues["label_quality"].argsort()[:10].to_numpy()
    shown = pandas.DataFrame(
        {
            "text": raw_train,
            "given": train_labels,
            "predicted": encoder.inverse_transform(issues["predicted_label"]),
        }
    ).iloc[lowest]
    assert (shown["given"] != shown["predicted"]).all()
    learner.fit(X=train, labels=codes, label_issues=learner.get_label_issues())
    predicted = learner.predict(test)
    assert accuracy_score(encoder.transform(test_topics), predicted) > 0.95
