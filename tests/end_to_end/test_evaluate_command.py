"""The command `unflip evaluate`."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

from support.files import program, read_csv, write_csv
from unflip import evaluate

CLASSES = np.array(["ham", "spam"])
N = 600


def predictions_file(path, n_checked=100, **changes):
    """Write predictions with noisy labels; return the true labels and the probabilities of spam."""
    rng = np.random.default_rng(0)
    positive = rng.beta(0.5, 0.5, N).round(3)
    true = CLASSES[(rng.random(N) < positive).astype(int)]
    is_wrong = rng.random(N) < 0.2
    labels = np.where(is_wrong, np.where(true == "ham", "spam", "ham"), true)
    truth = np.full(N, "", dtype=object)
    truth[:n_checked] = true[:n_checked]  # the rows are in random order
    columns = {
        "name": [f"r{i}" for i in range(N)],
        "label": labels,
        "predicted": CLASSES[(positive > 0.5).astype(int)],
        "p(ham)": [f"{1 - share:.3f}" for share in positive],
        "p(spam)": [f"{share:.3f}" for share in positive],
        "truth": truth,
        "chance": [n_checked / N] * N,
    }
    write_csv(path, **columns | changes)
    return true, positive


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("predictions") / "p.csv"


@pytest.fixture(scope="module", autouse=True)
def truth(path):
    return predictions_file(path)


PREDICTED = ("--label", "label", "--prediction", "predicted")
PROBABILITIES = ("--label", "label", "--probabilities", "p(")
CHECKED = (*PROBABILITIES, "--trusted", "truth")


def answer_to(*arguments):
    return json.loads(program("evaluate", *arguments, "--json").stdout)


def one_paragraph(text):
    return " ".join(text.split())


def test_intervals_contain_the_metrics_on_true_labels(path, truth):
    true, positive = truth
    predicted = CLASSES[(positive > 0.5).astype(int)]
    expected = {
        "accuracy": accuracy_score(true, predicted),
        "f1": f1_score(true, predicted, pos_label="spam"),
        "roc_auc": roc_auc_score(true == "spam", positive),
        "log_loss": log_loss(true == "spam", positive),
    }
    answer = answer_to(path, *CHECKED)
    for name, value in expected.items():
        metric = answer["metrics"][name]
        assert metric["low"] < value < metric["high"]
        assert metric["low"] < metric["value"] < metric["high"]
    assert answer["n_checked"] == 100
    assert answer["is_model_based"] is True


def test_metrics_against_noisy_labels_are_those_of_scikit_learn(path, truth):
    _, positive = truth
    labels = np.array([row["label"] for row in read_csv(path)])
    predicted = CLASSES[(positive > 0.5).astype(int)]
    metrics = answer_to(path, *CHECKED)["metrics"]
    expected = {
        "accuracy": accuracy_score(labels, predicted),
        "f1": f1_score(labels, predicted, pos_label="spam"),
        "roc_auc": roc_auc_score(labels == "spam", positive),
    }
    for name, value in expected.items():
        assert metrics[name]["against_noisy_labels"] == pytest.approx(value)


def test_json_has_all_results_of_the_library(path, truth):
    _, positive = truth
    rows = read_csv(path)
    labels = np.array([row["label"] for row in rows])
    trusted = np.array([row["truth"] or None for row in rows], dtype=object)
    result = evaluate(np.column_stack([1 - positive, positive]), labels, trusted)
    answer = answer_to(path, *CHECKED)
    assert answer["rows"] == N
    assert sum(answer["labels"].values()) == N
    assert answer["predictions"] == {"kind": "probabilities", "columns": ["p(ham)", "p(spam)"]}
    assert list(answer["metrics"]) == list(result.metrics)
    for name, interval in result.metrics.items():
        shown = answer["metrics"][name]
        assert (shown["value"], shown["low"], shown["high"]) == pytest.approx(interval.numbers)
    assert answer["correct_labels"]["value"] == pytest.approx(result.correct_labels.value)
    assert answer["classes"]["spam"]["recall"]["low"] == pytest.approx(result.recall[1].low)
    assert answer["classes"]["ham"]["precision"]["value"] == pytest.approx(
        result.precision[0].value
    )
    confusion = answer["confusion"]
    assert confusion["classes"] == ["ham", "spam"]
    np.testing.assert_allclose(confusion["rows"], result.confusion)
    np.testing.assert_allclose(confusion["low"], result.confusion_interval[0])
    np.testing.assert_allclose(confusion["high"], result.confusion_interval[1])
    curve = result.calibration_curve
    assert [line["accuracy"] for line in answer["calibration_curve"]] == pytest.approx(
        curve.accuracy.tolist()
    )
    assert [line["n_rows"] for line in answer["calibration_curve"]] == curve.n_rows.tolist()
    assert answer["check_next"] == result.check_next(50).tolist()
    assert answer["notes"] == []
    assert answer["page"] is None


def test_predictions_without_checks(path):
    answer = answer_to(path, *PREDICTED)
    assert answer["predictions"] == {"kind": "labels", "columns": ["predicted"]}
    assert list(answer["metrics"]) == ["accuracy", "balanced_accuracy", "f1"]
    assert answer["calibration_curve"] == []
    assert answer["n_checked"] == 0
    output = one_paragraph(program("evaluate", path, *PREDICTED).stdout)
    assert "No row was checked, so the intervals say what is usual on other data sets." in output
    assert "For narrower intervals, check these 50 rows (a random sample), put their" in output
    assert "Trusted labels" not in output
    assert "log loss" not in output
    assert "calibration curve" not in output


def test_more_checks_give_narrower_intervals(path):
    unchecked = answer_to(path, *PROBABILITIES)["metrics"]["accuracy"]
    checked = answer_to(path, *CHECKED)["metrics"]["accuracy"]
    assert checked["high"] - checked["low"] < 0.5 * (unchecked["high"] - unchecked["low"])


def test_summary(path):
    answer = answer_to(path, *CHECKED)
    output = program("evaluate", path, *CHECKED).stdout
    accuracy = answer["metrics"]["accuracy"]
    for part in (
        f"600 rows, labels {answer['labels']['ham']} 'ham', {answer['labels']['spam']} 'spam'.",
        "Probabilities: columns 'p(ham)', 'p(spam)'.",
        "Trusted labels: 100 of 600 rows.",
        f"Accuracy on true labels: {accuracy['value']:.1%}, 95% interval {accuracy['low']:.1%} to "
        f"{accuracy['high']:.1%}. Against the noisy labels it is "
        f"{accuracy['against_noisy_labels']:.1%}.",
        "metric true labels 95% interval noisy labels",
        f"accuracy {accuracy['value']:.3f} {accuracy['low']:.3f} to {accuracy['high']:.3f} "
        f"{accuracy['against_noisy_labels']:.3f}",
        "F1 of 'spam'",
        "log loss (lower is better)",
        "class precision 95% interval recall 95% interval",
        f"spam {answer['classes']['spam']['precision']['value']:.3f}",
        "of the noisy labels are correct, 95% interval",
        "Intervals: All 600 rows are used, calibrated by 100 checked rows.",
        "Add --out report.html to write a page with the confusion matrix and the calibration",
    ):
        assert part in one_paragraph(output)
    lines = [line for line in output.splitlines() if str(path.parent) not in line]
    assert max(map(len, lines)) <= 80


def test_rows_to_check_are_named_by_their_ids(path):
    first = answer_to(path, *CHECKED)["check_next"][:5]
    by_row = one_paragraph(program("evaluate", path, *CHECKED).stdout)
    assert f"Rows: {', '.join(map(str, first))}, ... (counted from 0; --json lists all" in by_row
    by_id = one_paragraph(program("evaluate", path, *CHECKED, "--id", "name").stdout)
    assert f"Rows: {', '.join(f'r{row}' for row in first)}, ... (--json lists all" in by_id


def test_no_more_checks_are_advised_after_many(tmp_path):
    path = tmp_path / "p.csv"
    predictions_file(path, n_checked=300)
    output = program("evaluate", path, *CHECKED).stdout
    assert "check these" not in output
    assert len(answer_to(path, *CHECKED)["check_next"]) == 50


def test_all_rows_checked(tmp_path):
    path = tmp_path / "p.csv"
    true, positive = predictions_file(path, n_checked=N)
    answer = answer_to(path, *CHECKED)
    accuracy = np.mean((positive > 0.5) == (true == "spam"))
    for limit in ("value", "low", "high"):
        assert answer["metrics"]["accuracy"][limit] == pytest.approx(accuracy, abs=1e-6)
    assert answer["check_next"] == []
    program("evaluate", path, *CHECKED, "--out", tmp_path / "page.html")


def test_page_is_written(path, tmp_path):
    page = tmp_path / "page.html"
    output = one_paragraph(
        program("evaluate", path, *CHECKED, "--id", "name", "--out", page).stdout
    )
    assert f"Open {page} to see all results." in output
    content = page.read_text(encoding="utf-8")
    answer = answer_to(path, *CHECKED, "--out", page)
    accuracy = answer["metrics"]["accuracy"]
    assert answer["page"] == str(page)
    assert f"<b>{accuracy['value']:.1%}</b>" in content
    assert f"<b>{path}</b>" in content
    assert f"<li>r{answer['check_next'][0]}</li>" in content
    assert "--trusted" in content
    assert "trusted=" not in content


def test_checks_of_suspects_are_noted_unless_their_probability_is_known(path, tmp_path):
    rows = read_csv(path)
    own = np.array([float(row[f"p({row['label']})"]) for row in rows])
    differs = np.array([row["label"] != row["predicted"] for row in rows])
    chosen = np.flatnonzero(differs)[np.argsort(own[differs])[:20]]
    truth = np.full(N, "", dtype=object)
    truth[chosen] = [rows[row]["predicted"] for row in chosen]
    other = tmp_path / "p.csv"
    predictions_file(other, truth=truth)
    done = program("evaluate", other, *CHECKED, "--out", tmp_path / "page.html")
    assert done.stderr.startswith("Note: The checked rows are not a random sample")
    assert "--inclusion" in done.stderr
    assert "inclusion=" not in done.stderr
    assert "The checked rows are not a random sample" in (tmp_path / "page.html").read_text()
    assert answer_to(other, *CHECKED)["notes"] != []
    known = program("evaluate", other, *CHECKED, "--inclusion", "chance")
    assert known.stderr == ""


def test_similar_labels_are_noted(path, tmp_path):
    rows = read_csv(path)
    labels = [row["label"] for row in rows]
    labels[10] = "Ham"
    labels[20] = "Ham"
    predictions_file(tmp_path / "p.csv", label=labels)
    done = program("evaluate", tmp_path / "p.csv", *PREDICTED)
    assert "The label 'Ham', in 2 rows, differs from 'ham' only by case" in done.stderr


def test_several_classes(tmp_path):
    rng = np.random.default_rng(0)
    classes = [f"class {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    shares = rng.dirichlet(np.full(26, 0.1), 800)
    labels = [classes[rng.choice(26, p=row)] for row in shares]
    columns = {f"p {name}": shares[:, j].round(6) for j, name in enumerate(classes)}
    # No row is predicted as the last class.
    predicted = [classes[row[:-1].argmax()] for row in shares]
    write_csv(tmp_path / "p.csv", label=labels, predicted=predicted, **columns)
    output = program(
        "evaluate", tmp_path / "p.csv", "--label", "label", "--probabilities", "p "
    ).stdout
    assert "F1, mean of the classes" in output
    assert "  class t " in output
    assert "  class u " not in output
    assert "  ... and 6 more (--json lists all)" in output
    answer = answer_to(tmp_path / "p.csv", *PREDICTED)
    assert answer["classes"]["class z"]["precision"] == {"value": None, "low": None, "high": None}
    assert answer["classes"]["class z"]["recall"]["value"] == pytest.approx(0, abs=1e-5)


def test_predictions_of_unflip_predict_can_be_evaluated(tmp_path):
    rng = np.random.default_rng(0)
    labels = CLASSES[rng.integers(0, 2, 200)]
    x = (labels == "spam") * 2 + rng.normal(size=200)
    write_csv(tmp_path / "d.csv", x=x, z=rng.normal(size=200), label=labels)
    program("fit", tmp_path / "d.csv", "--label", "label", "--out", tmp_path / "m.skops")
    program("predict", tmp_path / "m.skops", tmp_path / "d.csv", "--out", tmp_path / "p.csv")
    rows = read_csv(tmp_path / "p.csv")
    write_csv(
        tmp_path / "p.csv", label=labels, **{name: [row[name] for row in rows] for name in rows[0]}
    )
    answer = answer_to(tmp_path / "p.csv", *PROBABILITIES)
    assert answer["predictions"]["columns"] == ["p(ham)", "p(spam)"]
    assert answer["metrics"]["accuracy"]["against_noisy_labels"] > 0.7


def test_malicious_names_are_harmless(tmp_path):
    attack = "<script>alert(1)</script>\x1b[31m"
    rng = np.random.default_rng(0)
    labels = np.array([attack, "spam"])[rng.integers(0, 2, 60)]
    write_csv(tmp_path / "p.csv", label=labels, predicted=labels[::-1])
    done = program("evaluate", tmp_path / "p.csv", *PREDICTED, "--out", tmp_path / "p.html")
    assert "\x1b" not in done.stdout
    assert "<script" not in (tmp_path / "p.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({}, ("none.csv", *PREDICTED), "none.csv does not exist"),
        ({}, ("p.csv", "--prediction", "predicted"), "Name the column of labels of p.csv with"),
        ({}, ("p.csv", "--label", "label"), "Name the predictions of p.csv: pass their column"),
        (
            {},
            ("p.csv", *PREDICTED, "--probabilities", "p("),
            "--prediction and --probabilities exclude each other",
        ),
        (
            {},
            ("p.csv", "--label", "label", "--prediction", "predictd"),
            "p.csv has no column 'predictd': did you mean 'predicted'",
        ),
        ({}, ("p.csv", *PREDICTED, "--trusted", "true"), "has no column 'true'"),
        (
            {},
            ("p.csv", "--label", "label", "--probabilities", "q("),
            "p.csv has no column with the prefix 'q(': check --probabilities",
        ),
        ({}, ("p.csv", *PREDICTED, "--inclusion", "chance"), "--inclusion chance needs --trusted"),
        (
            {"label": ["ham", "", *["ham", "spam"] * 299]},
            ("p.csv", *PREDICTED),
            "Column 'label' of p.csv has no label in row 1 (counted from 0)",
        ),
        (
            {"predicted": ["ham"] * 599 + [""]},
            ("p.csv", *PREDICTED),
            "Column 'predicted' of p.csv has no prediction in row 599",
        ),
        (
            {"predicted": ["ham"] * 599 + ["eggs"]},
            ("p.csv", *PREDICTED),
            "has 'eggs' in row 599 (counted from 0), which is not a label of column 'label'",
        ),
        (
            {"p(ham)": ["nan"] * 600},
            ("p.csv", *PROBABILITIES),
            "has 'nan' in row 0 (counted from 0), which is not",
        ),
        (
            {"p(ham)": ["0.9"] * 600},
            ("p.csv", *PROBABILITIES),
            "in row 0 (counted from 0): probabilities must be non-negative and sum to 1",
        ),
        (
            {"truth": ["eggs"] * 600},
            ("p.csv", *CHECKED),
            "'truth' of p.csv has 'eggs' in row 0 (counted from 0), which is not a label",
        ),
        ({"truth": [""] * 600}, ("p.csv", *CHECKED), "has no trusted label: fill in some, or omit"),
        (
            {"chance": [0] * 600},
            ("p.csv", *CHECKED, "--inclusion", "chance"),
            "Column 'chance' of p.csv has '0' in row 0 (counted from 0), which is not a",
        ),
        ({"name": ["r"] * 600}, ("p.csv", *PREDICTED, "--id", "name"), "has 'r' in rows 0 and 1"),
        ({}, ("p.csv", *PREDICTED, "--out", "page.pdf"), "page.pdf must end in .html or .htm"),
        ({}, ("p.csv", *PREDICTED, "--out", "none/page.html"), "none is not a folder"),
    ],
)
def test_errors_are_one_sentence_and_nothing_is_written(
    tmp_path, monkeypatch, changes, arguments, message
):
    predictions_file(tmp_path / "p.csv", **changes)
    monkeypatch.chdir(tmp_path)
    if "--out" not in arguments:
        arguments = (*arguments, "--out", "page.html")
    done = program("evaluate", *arguments, code=2)
    assert message in done.stderr
    assert done.stderr.startswith("unflip: ")
    assert done.stdout == ""
    assert os.listdir(tmp_path) == ["p.csv"]


def test_in_a_process_of_its_own(path):
    pytest.importorskip("typer", reason="needs the extra unflip[cli]")
    command = [sys.executable, "-m", "unflip", "evaluate", str(path), *CHECKED, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows"] == N
    assert done.stderr == ""
