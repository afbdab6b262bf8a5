"""The commands `unflip audit` and `unflip apply`."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.files import mixture_file, program, read_csv, text_file, write_csv
from unflip import NoiseModel
from unflip.auditing import prose
from unflip.cli.audit_table import audit_file
from unflip.cli.files.request import Request
from unflip.datasets import make_mixture

RATES = ("--eps", "ham=0.1,spam=0.3")
REVIEWS = Path(os.environ.get("UNFLIP_DATA", "data")) / "blitzer_sentiment" / "reviews.json.gz"


@pytest.fixture(scope="module")
def numeric(tmp_path_factory):
    path = tmp_path_factory.mktemp("numeric") / "mails.csv"
    return path, mixture_file(path)


@pytest.fixture(scope="module")
def answer(numeric):
    return json.loads(
        program("audit", numeric[0], "--label", "label", *RATES, "--id", "name", "--json").stdout
    )


def test_most_suspects_are_wrong(numeric, answer):
    path, true = numeric
    observed = np.array([row["label"] for row in read_csv(path)])
    rows = [line["row"] for line in answer["suspects"][: answer["n_suspects"]]]
    wrong = observed != true
    assert wrong[rows].mean() > 0.8
    assert (
        abs(answer["expected_wrong"]["value"] - wrong.sum())
        < 4 * answer["expected_wrong"]["standard_error"]
    )
    assert answer["noise"]["noise_rate"] == pytest.approx({"ham": 0.1, "spam": 0.3})
    assert answer["features"]["columns"] == [f"x{j}" for j in range(6)]
    assert answer["suspects"][0]["id"] == f"r{rows[0]}"


def test_summary(numeric):
    output = program("audit", numeric[0], "--label", "label").stdout
    for part in (
        "300 rows, labels ",
        "Label noise: If noise depends on the class alone, about ",
        "labels are wrong. Noise rates by true class: 'ham': ",
        "Expected accuracy: If noise depends on the class alone, a classifier ",
        "No row was checked, so the accuracy on true labels is not known: ",
        "Suspects: ",
        "Next steps: ",
        "--out report.html",
        "Columns not used: name",
    ):
        assert part in " ".join(output.split())
    # File names are not broken into lines.
    lines = [line for line in output.splitlines() if str(numeric[0].parent) not in line]
    assert max(map(len, lines)) <= 80


def test_from_suspects_to_clean_data(tmp_path):
    path = tmp_path / "mails.csv"
    true = mixture_file(path, p=60, mean_norm=1.5)
    before = path.read_bytes()
    suspects = tmp_path / "suspects.csv"
    page = tmp_path / "page.html"
    clean = tmp_path / "clean.csv"
    output = program(
        "audit", path, "--label", "label", *RATES, "--out", page, "--suspects", suspects
    ).stdout
    assert (
        f"unflip apply {path} decisions.csv --out clean.csv --label label --eps ham=0.1,spam=0.3"
        in output
    )
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    lines = read_csv(suspects)
    parts = [line["part"] for line in lines]
    n_uncertain = parts.count("uncertain")
    assert n_uncertain > 1
    assert (
        f"suspects.csv lists the {parts.count('suspect')} suspects and {n_uncertain} more rows for "
        "which another class is more likely."
    ) in " ".join(output.split())
    for line in lines:
        line["decision"] = "accept" if true[int(line["row"])] == line["proposed"] else "reject"
    write_csv(suspects, **{name: [line[name] for line in lines] for name in lines[0]})
    answer = json.loads(program("apply", path, suspects, "--out", clean, *RATES, "--json").stdout)
    assert answer["label"] == "label"
    assert answer["changed"] == sum(line["decision"] == "accept" for line in lines)
    assert (
        answer["expected_accuracy"]["after"]["value"]
        > answer["expected_accuracy"]["before"]["value"]
    )
    assert path.read_bytes() == before
    old = before.splitlines()
    new = clean.read_bytes().splitlines()
    changed = [i for i, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
    assert len(changed) == answer["changed"]
    assert all(new[i].split(b",")[-1].decode() == true[i - 1] for i in changed)
    assert all(new[i].split(b",")[:-1] == old[i].split(b",")[:-1] for i in changed)


def test_labels_are_proposed_for_unlabelled_rows(tmp_path):
    path = tmp_path / "mails.csv"
    true = mixture_file(path)
    rows = read_csv(path)
    for row in rows[:40]:
        row["label"] = ""
    write_csv(path, **{name: [row[name] for row in rows] for name in rows[0]})
    suspects = tmp_path / "suspects.csv"
    answer = json.loads(
        program("audit", path, "--label", "label", *RATES, "--suspects", suspects, "--json").stdout
    )
    proposed = {line["row"]: line["proposed"] for line in answer["unlabelled"]}
    assert sorted(proposed) == list(range(40))
    assert np.mean([label == true[row] for row, label in proposed.items()]) > 0.85
    assert min(line["row"] for line in answer["suspects"]) >= 40
    output = program("audit", path, "--label", "label", *RATES).stdout
    assert "Without a label: 40 rows. Proposed labels: " in output
    result = audit_file(Request(path=path, labels=("label",), eps=RATES[1]), lambda stage: None)
    assert result.shown.ids is None
    assert result.shown.texts is None
    assert result.shown.cells["name"][40] == "r40"
    assert list(result.shown.cells)[:2] == ["name", "x0"]
    lines = read_csv(suspects)
    assert [line["part"] for line in lines[-40:]] == ["unlabelled"] * 40
    for line in lines:
        line["decision"] = "accept" if line["part"] == "unlabelled" else ""
    write_csv(suspects, **{name: [line[name] for line in lines] for name in lines[0]})
    program("apply", path, suspects, "--out", tmp_path / "clean.csv")
    assert [row["label"] for row in read_csv(tmp_path / "clean.csv")][:40] == [
        proposed[row] for row in range(40)
    ]


def test_ignored_columns_are_not_read(numeric, tmp_path):
    path = tmp_path / "mails.csv"
    rows = read_csv(numeric[0])
    rows[7]["x2"] = "n/k"
    write_csv(path, **{name: [row[name] for row in rows] for name in rows[0]})
    error = program("audit", path, "--label", "label", code=2).stderr
    assert "has 'n/k' in row 7 (counted from 0), which is not a number" in error
    assert "--ignore x2" in error
    options = ("--label", "label", "--ignore", "x2", "--ignore", "x0", "--id", "name")
    answer = json.loads(program("audit", path, *options, "--json").stdout)
    assert answer["features"]["columns"] == ["x1", "x3", "x4", "x5"]
    assert answer["features"]["left_out"] == []
    output = program("audit", path, *options, "--out", tmp_path / "p.html").stdout
    assert output.count("--ignore x2 --ignore x0") == 3
    train = f"unflip fit {path} --decisions decisions.csv --out model.skops --label label --id name"
    assert train in output
    assert f"unflip apply {path} decisions.csv --out clean.csv --label label --id name" in output
    program("fit", path, *options, "--out", tmp_path / "m.skops")
    program("predict", tmp_path / "m.skops", path, "--json")


def test_checked_rows_are_listed_last(numeric, tmp_path):
    path = tmp_path / "mails.csv"
    true = numeric[1]
    rows = read_csv(numeric[0])
    truth = [true[i] if i % 5 == 0 else "" for i in range(len(rows))]
    write_csv(path, **{name: [row[name] for row in rows] for name in rows[0]}, truth=truth)
    wrong = [i for i, row in enumerate(rows) if truth[i] and truth[i] != row["label"]]
    options = ("--label", "label", "--trusted", "truth")
    answer = json.loads(
        program("audit", path, *options, "--suspects", tmp_path / "s.csv", "--json").stdout
    )
    parts = [line["part"] for line in answer["suspects"]]
    assert parts == sorted(parts, key=["suspect", "uncertain", "checked"].index)
    assert parts.count("suspect") == answer["n_suspects"] > 0
    assert sorted(line["row"] for line in answer["suspects"] if line["part"] == "checked") == wrong
    assert [line["part"] for line in read_csv(tmp_path / "s.csv")] == parts
    output = program("audit", path, *options, "--suspects", tmp_path / "s.csv").stdout
    text = " ".join(output.split())
    assert f"{len(wrong)} of 60 checked labels were wrong (not the noise rate" in text
    assert (
        f"s.csv lists the {parts.count('suspect')} suspects and {len(wrong)} rows with a wrong "
        "label according to --trusted."
    ) in text


def test_advice_on_the_terminal_and_on_the_page(tmp_path):
    path = tmp_path / "mails.csv"
    page = tmp_path / "page.html"
    X, true = make_mixture(200, 6, mean_norm=2.0, random_state=0)
    X[:, 0] = np.sinh(X[:, 0])  # not Gaussian
    noise = NoiseModel.binary(eps_pos=0.45, eps_neg=0.4)
    labels = np.array(["ham", "spam"])[noise.flip(true, random_state=0)]
    write_csv(path, **{f"x{j}": X[:, j] for j in range(6)}, label=labels)
    options = ("audit", path, "--label", "label")
    answer = json.loads(program(*options, "--json").stdout)
    assert answer["noise"]["source"] == "anchor rows"
    assert len(answer["check_next"]) == 50
    first = ", ".join(map(str, answer["check_next"][:5]))
    advice = f"{prose.UNCERTAIN_RATES} To measure them, and the accuracy, "
    rates = "Or pass the noise rates with --eps, or the true class proportions with --priors."
    assert (
        f"{advice}add --out report.html and check a random sample of rows on that page. Or put the "
        "true labels of these 50 rows into a column and pass its name with --trusted: "
        f"{first}, ... (--json lists all under check_next). {rates}"
    ) in " ".join(program(*options).stdout.split())
    output = " ".join(program(*options, "--out", page).stdout.split())
    assert (
        f"{advice}check the rows of the first tab of {page} (a random sample), export them, and "
        f"audit again: unflip audit {path} --out {page} --label label --trusted checks.csv"
    ) in output
    assert rates in output
    assert (
        "--eps"
        not in program(*options, "--eps", "ham=0.4,spam=0.4", "--out", page).stdout.rpartition(
            "again:"
        )[2]
    )
    content = page.read_text(encoding="utf-8")
    assert "audit again with --trusted checks.csv" in content
    assert "trusted=" not in content
    assert "priors=" not in content
    assert "--priors" not in program(*options, "--priors", "ham=0.5,spam=0.5").stdout
    text_file(tmp_path / "films.csv")
    program("audit", tmp_path / "films.csv", "--label", "label", "--text", "text", "--out", page)
    assert "unflip fit ... --decisions decisions.csv" in page.read_text(encoding="utf-8")


def test_three_classes(tmp_path):
    X, true = make_mixture(300, 4, means=3 * np.eye(3, 4), random_state=0)
    names = np.array(["a", "b", "c"])
    noise = NoiseModel(0.7 * np.eye(3) + 0.1)
    observed = noise.flip(true, random_state=0)
    write_csv(tmp_path / "d.csv", **{f"x{j}": X[:, j] for j in range(4)}, label=names[observed])
    arguments = (
        "audit",
        tmp_path / "d.csv",
        "--label",
        "label",
        "--eps",
        "a=0.2,b=0.2,c=0.2",
        "--json",
    )
    answer = json.loads(program(*arguments).stdout)
    np.testing.assert_allclose(answer["noise"]["transition"], noise.transition)
    suspects = answer["suspects"][: answer["n_suspects"]]
    assert np.mean([names[true[line["row"]]] == line["proposed"] for line in suspects]) > 0.75
    assert all(line["probability_proposed"] <= line["probability_wrong"] for line in suspects)


def test_texts_trusted_rows_and_groups(tmp_path):
    path = tmp_path / "films.csv"
    true = text_file(path)
    rows = read_csv(path)
    truth = [label if i % 4 == 0 else "" for i, label in enumerate(true)]
    texts = [row["text"] for row in rows]
    labels = [row["label"] for row in rows]
    write_csv(
        path, text=texts, label=labels, truth=truth, patient=[i // 2 for i in range(len(rows))]
    )
    options = ("--text", "text", "--trusted", "truth", "--group", "patient", "--json")
    answer = json.loads(program("audit", path, "--label", "label", *options).stdout)
    assert answer["noise"]["source"] == "trusted rows"
    suspects = [line["row"] for line in answer["suspects"][: answer["n_suspects"]]]
    n_wrong = sum(labels[i] != true[i] and not truth[i] for i in range(len(rows)))
    assert len(suspects) > n_wrong / 2  # the words separate the classes
    assert np.mean([labels[row] != true[row] for row in suspects]) > 0.8
    low, high = answer["expected_accuracy"]["interval_95"]
    assert low > 0.8  # the classifier is right on all of 50 checked rows
    assert high > 0.99


@pytest.mark.parametrize("options", [RATES, (), ("--trusted", "truth")])
def test_groups_are_used_in_audit_apply_and_fit(numeric, tmp_path, options):
    """Each row occurs twice, so without groups its duplicate would confirm its label."""
    path = tmp_path / "mails.csv"
    page = tmp_path / "p.html"
    suspects = tmp_path / "s.csv"
    rows = [row for row in read_csv(numeric[0])[:150] for _ in range(2)]
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != "name"}
    truth = [numeric[1][i // 2] if i % 6 < 2 else "" for i in range(300)]
    write_csv(path, patient=[i // 2 for i in range(300)], **columns, truth=truth)
    grouped = (*options, "--group", "patient")
    if "truth" not in options:
        grouped += ("--ignore", "truth")
    answer = json.loads(
        program(
            "audit", path, "--label", "label", *grouped, "--suspects", suspects, "--json"
        ).stdout
    )
    assert (
        "--group patient"
        in program("audit", path, "--label", "label", *grouped, "--out", page).stdout
    )
    lines = read_csv(suspects)
    assert lines
    write_csv(
        suspects,
        **{
            name: [line[name] or "accept" * (name == "decision") for line in lines]
            for name in lines[0]
        },
    )
    applied = json.loads(
        program("apply", path, suspects, "--out", tmp_path / "c.csv", *grouped, "--json").stdout
    )
    assert applied["expected_accuracy"]["before"]["value"] == pytest.approx(
        answer["expected_accuracy"]["now"]
    )
    assert applied["confirmed"] == 0
    arguments = ("fit", path, "--label", "label", *grouped, "--out", tmp_path / "m.skops", "--json")
    fitted = json.loads(program(*arguments).stdout)
    assert fitted["expected_accuracy"] == pytest.approx(applied["expected_accuracy"]["before"])
    assert fitted["noise_rate"] == pytest.approx(answer["noise"]["noise_rate"])
    assert "patient" not in fitted["features"]["columns"]
    decided = json.loads(program(*arguments, "--decisions", suspects).stdout)
    assert decided["expected_accuracy"] == pytest.approx(applied["expected_accuracy"]["after"])
    program("predict", tmp_path / "m.skops", path, "--json")


def test_json_lines_and_parquet_give_the_same_result(numeric, answer, tmp_path):
    from pyarrow import csv, parquet

    rows = csv.read_csv(numeric[0])
    parquet.write_table(rows, tmp_path / "mails.parquet")
    lines = "".join(json.dumps(row) + "\n" for row in rows.to_pylist())
    (tmp_path / "mails.jsonl").write_text(lines, encoding="utf-8")
    for name in ("mails.parquet", "mails.jsonl"):
        options = ("--label", "label", *RATES, "--id", "name", "--json")
        other = json.loads(program("audit", tmp_path / name, *options).stdout)
        assert other["suspects"] == answer["suspects"]


def test_malicious_cells_are_harmless(tmp_path):
    path = tmp_path / "films.csv"
    text_file(path)
    rows = read_csv(path)
    attack = "=cmd|' /C calc'!A0 <script>alert(1)</script>\x1b[31m"
    texts = [f"{attack} {row['text']}" for row in rows]
    labels = ["=1+1" if row["label"] == "ham" else "<script>x" for row in rows]
    write_csv(path, text=texts, label=labels)
    suspects = tmp_path / "s.csv"
    page = tmp_path / "p.html"
    output = program(
        "audit", path, "--label", "label", "--text", "text", "--suspects", suspects, "--out", page
    ).stdout
    assert "\x1b" not in output
    assert "<script>alert(1)" not in page.read_text(encoding="utf-8")
    lines = read_csv(suspects)
    assert {line["shown"][:2] for line in lines} == {"'="}
    assert {line["observed"] for line in lines} <= {"'=1+1", "<script>x"}
    for line in lines:
        line["decision"] = "accept"
    write_csv(suspects, **{name: [line[name] for line in lines] for name in lines[0]})
    program("apply", path, suspects, "--out", tmp_path / "clean.csv")
    changed = [row["label"] for row in read_csv(tmp_path / "clean.csv")]
    assert set(changed) == {"=1+1", "<script>x"}
    assert sum(one != other for one, other in zip(labels, changed, strict=True)) == len(lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.csv", "--label", "label"), "none.csv does not exist"),
        ((".", "--label", "label"), "is a folder"),
        (
            ("mails.csv",),
            "Name the column of labels of mails.csv with --label: its columns are 'name', 'x0'",
        ),
        (("mails.csv", "--label", "labl"), "has no column 'labl': did you mean 'label'"),
        (("mails.csv", "--label", "x0"), "different labels in 300 rows"),
        (("mails.csv", "--label", "label", "--trusted", "truth"), "has no column 'truth'"),
        (
            ("mails.csv", "--label", "label", "--trusted", "label"),
            "--trusted label is the column of labels",
        ),
        (("mails.csv", "--label", "label", "--ignore", "none"), "has no column 'none'"),
        (("mails.csv", "--label", "label", "--id", "label"), "a different id in each row"),
        (("mails.csv", "--label", "label", "--eps", "ham=0.1"), "has no value for 'spam'"),
        (("mails.csv", "--label", "label", "--priors", "ham=0.1,spam=0.1"), "sums to 0.2"),
        (("mails.csv", "--label", "label", "--out", "mails.csv"), "must end in .html"),
        (("mails.csv", "--label", "label", "--suspects", "mails.csv"), "is the input file"),
        (("mails.csv", "--label", "label", "--suspects", "none/s.csv"), "none is not a folder"),
    ],
)
def test_errors_are_one_sentence_and_nothing_is_written(
    numeric, tmp_path, monkeypatch, arguments, message
):
    (tmp_path / "mails.csv").write_bytes(numeric[0].read_bytes())
    monkeypatch.chdir(tmp_path)
    done = program("audit", *arguments, code=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert os.listdir(tmp_path) == ["mails.csv"]


def test_inputs_are_never_overwritten(numeric, tmp_path, monkeypatch):
    path = tmp_path / "mails.csv"
    path.write_bytes(numeric[0].read_bytes())
    write_csv(tmp_path / "d.csv", row=[0], observed=["ham"], proposed=["spam"], decision=["accept"])
    (tmp_path / "soft.csv").symlink_to(path)
    os.link(path, tmp_path / "hard.csv")
    monkeypatch.chdir(tmp_path)
    for out in ("mails.csv", "soft.csv", "hard.csv", "../" + tmp_path.name + "/mails.csv", "d.csv"):
        assert (
            "is the input file"
            in program("apply", "mails.csv", "d.csv", "--out", out, code=2).stderr
        )
    assert (
        "must end in .csv"
        in program("apply", "mails.csv", "d.csv", "--out", "clean.parquet", code=2).stderr
    )
    assert path.read_bytes() == numeric[0].read_bytes()


def test_in_a_process_of_its_own(numeric):
    pytest.importorskip("typer", reason="needs the extra unflip[cli]")
    command = [
        sys.executable,
        "-m",
        "unflip",
        "audit",
        str(numeric[0]),
        "--label",
        "label",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows"] == 300
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.skipif(not REVIEWS.is_file(), reason=f"{REVIEWS} is not there: set UNFLIP_DATA")
@pytest.mark.parametrize("options", [(), ("--eps", "negative=0.1,positive=0.3")])
def test_nine_of_ten_first_suspects_of_reviews_are_wrong(tmp_path, options):
    with gzip.open(REVIEWS) as file:
        reviews = [review for review in json.load(file) if review["domain"] == "kitchen"]
    true = np.array([review["label"] for review in reviews])
    observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(true, random_state=0)
    texts = [f"{review['title']}\n{review['text']}" for review in reviews]
    write_csv(tmp_path / "r.csv", text=texts, label=np.array(["negative", "positive"])[observed])
    answer = json.loads(
        program(
            "audit", tmp_path / "r.csv", "--label", "label", "--text", "text", *options, "--json"
        ).stdout
    )
    first = [line["row"] for line in answer["suspects"][:200]]
    assert (observed != true)[first].mean() >= 0.9
