"""Several votes per row on the command line."""

import json

import numpy as np
import pytest

from support.files import NAMES, program, read_csv, write_csv
from unflip.datasets import make_mixture

N, P, UNASKED = 240, 8, 6
SKILL = np.array([0.9, 0.8, 0.7, 0.6])
COLUMNS = ("--label", "w0", "--label", "w1", "--label", "w2", "--label", "w3")
ROWS = ("--label", "label", "--item", "mail", "--annotator", "who")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write the same votes with a column for each annotator and with a row for each vote; return
    folder and truth."""
    folder = tmp_path_factory.mktemp("votes")
    X, true = make_mixture(N, P, mean_norm=1.5, random_state=0)
    rng = np.random.default_rng(0)
    asked = rng.random((N, 4)) < 0.6
    asked[np.arange(N), rng.integers(0, 4, N)] = True
    asked[-UNASKED:] = False
    said = np.where(rng.random((N, 4)) < SKILL, true[:, None], 1 - true[:, None])
    cells = np.where(asked, NAMES[said], "")
    features = {f"x{j}": X[:, j].round(4) for j in range(P)}
    mails = np.array([f"m{i}" for i in range(N)])
    truth = np.where(np.arange(N) % 3 == 0, NAMES[true], "")
    columns = {f"w{j}": cells[:, j] for j in range(4)}
    write_csv(folder / "columns.csv", mail=mails, **features, **columns, truth=truth)
    row, annotator = np.nonzero(
        asked | (np.arange(N) >= N - UNASKED)[:, None] & (np.arange(4) == 0)
    )
    by_row = {name: cells[row] for name, cells in features.items()}
    who = np.char.add("w", annotator.astype(str))
    write_csv(
        folder / "rows.csv",
        mail=mails[row],
        who=who,
        **by_row,
        label=cells[row, annotator],
        truth=truth[row],
    )
    return folder, NAMES[true], row


def answer_of(*arguments):
    return json.loads(program(*arguments, "--json").stdout)


@pytest.fixture(scope="module")
def by_column(files):
    return answer_of(
        "audit", files[0] / "columns.csv", *COLUMNS, "--trusted", "truth", "--id", "mail"
    )


@pytest.fixture(scope="module")
def by_row(files):
    return answer_of("audit", files[0] / "rows.csv", *ROWS, "--trusted", "truth")


def test_both_ways_to_write_votes_give_the_same_answer(files, by_column, by_row):
    _, _, row = files
    assert by_column["rows"] == by_row["rows"] == N
    assert by_column["votes"] == by_row["votes"]
    assert by_column["votes"]["annotators"] == 4
    assert by_column["votes"]["rows_with_votes"] == N - UNASKED
    first = {f"m{item}": int(np.flatnonzero(row == item)[0]) for item in range(N)}
    for part in ("suspects", "unlabelled"):
        assert by_column[part]
        expected = [{**line, "row": first[line["id"]]} for line in by_column[part]]
        assert by_row[part] == expected
    assert by_row["check_next"] == [first[f"m{item}"] for item in by_column["check_next"]]


def test_most_suspects_are_wrong_and_most_proposals_right(files, by_column):
    _, true, _ = files
    suspects = by_column["suspects"][: by_column["n_suspects"]]
    assert len(suspects) > 10
    assert np.mean([true[line["row"]] == line["proposed"] for line in suspects]) > 0.8
    proposed = {line["row"]: line["proposed"] for line in by_column["unlabelled"]}
    assert set(proposed) == {row for row in range(N - UNASKED, N) if row % 3}
    assert by_column["noise"]["source"] == "votes"


def test_checked_items_without_a_vote_are_no_checked_labels(files):
    said = program(
        "audit", files[0] / "columns.csv", *COLUMNS, "--trusted", "truth", "--id", "mail"
    ).stdout
    checked = sum(row % 3 == 0 for row in range(N - UNASKED))
    assert f"Of {checked} checked majority labels " in " ".join(said.split())


def test_the_summary_speaks_of_items_votes_and_annotators(files, tmp_path):
    page, suspects = tmp_path / "page.html", tmp_path / "suspects.csv"
    said = program(
        "audit", files[0] / "rows.csv", *ROWS, "--out", page, "--suspects", suspects
    ).stdout
    words = " ".join(said.split())
    n_votes = sum(row["label"] != "" for row in read_csv(files[0] / "rows.csv"))
    assert f"{N} items, {n_votes} votes of 4 annotators: " in words
    assert f"of {N - UNASKED} majority labels are wrong" in words
    assert "majority labels look wrong" in words
    assert f"No vote: {UNASKED} items have none; proposed are" in words
    assert "name it with --trusted" in words
    assert "unflip apply" not in words
    lines = [
        line for line in said.splitlines()[2:] if str(tmp_path) not in line
    ]  # names are not broken
    assert max(map(len, lines)) <= 80
    text = page.read_text(encoding="utf-8")
    assert f"of {N - UNASKED} majority labels are wrong" in text
    assert "read from the votes and the rows together" in text
    assert "name it with --trusted, and audit again" in text
    assert "--decisions" not in text
    lines = read_csv(suspects)
    assert f'"suspects":{{"row":[{lines[0]["row"]},{lines[1]["row"]},' in text
    assert "decision" not in lines[0]
    assert lines[0]["id"].startswith("m")
    assert "x0=" in lines[0]["shown"]
    assert "who=" not in lines[0]["shown"]


def test_three_classes_with_texts_rates_and_groups(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array([["red", "rose", "ruby"], ["sea", "sky", "ink"], ["leaf", "lime", "moss"]])
    true = rng.integers(0, 3, 150)
    texts = [" ".join(rng.choice(words[label], 2)) + f" {i % 5}" for i, label in enumerate(true)]
    votes = {
        f"w{j}": np.where(
            rng.random(150) < 0.1,
            "",
            np.array(["r", "s", "l"])[(true + (rng.random(150) < 0.2)) % 3],
        )
        for j in range(3)
    }
    for cells in votes.values():
        cells[-4:] = ""
    path = write_csv(tmp_path / "d.csv", text=texts, **votes, patient=np.arange(150) // 2)
    options = (
        "--text",
        "text",
        "--eps",
        "r=0.2,s=0.2,l=0.2",
        "--group",
        "patient",
        "--out",
        tmp_path / "p.html",
    )
    answer = answer_of("audit", path, *COLUMNS[:6], *options)
    assert answer["noise"]["source"] == "given"
    assert answer["suspects"][0]["id"] == ""
    assert {line["row"] for line in answer["unlabelled"]} >= set(range(146, 150))
    said = " ".join(program("audit", path, *COLUMNS[:6], *options).stdout.split())
    assert "These rates are what the given rates of each vote lead to." in said


def test_fit_and_predict(files, tmp_path):
    folder, true, _ = files
    out = tmp_path / "m.skops"
    answer = answer_of("fit", folder / "rows.csv", *ROWS, "--out", out, "--trusted", "truth")
    assert answer["rows"] == N
    assert answer["votes"]["annotators"] == 4
    said = program("fit", folder / "columns.csv", *COLUMNS, "--out", out).stdout
    assert f"votes of 4 annotators on {N} rows by" in said
    assert "Votes flipped:" in said
    program("predict", out, folder / "columns.csv", "--out", tmp_path / "p.csv")
    predicted = [line["predicted"] for line in read_csv(tmp_path / "p.csv")]
    assert np.mean(np.array(predicted) == true) > 0.85


def test_groups_tell_the_accuracy_of_a_fit_as_of_an_audit(files, tmp_path):
    mails, copies = read_csv(files[0] / "rows.csv"), tmp_path / "copies.csv"
    columns = {name: [line[name] for line in mails] for name in mails[0]}
    pairs = [int(name[1:]) // 2 for name in columns["mail"]]
    write_csv(copies, **columns, pair=pairs)
    grouped = (copies, *ROWS, "--ignore", "truth", "--group", "pair")
    audited = answer_of("audit", *grouped, "--id", "mail")["expected_accuracy"]
    fitted = answer_of("fit", *grouped, "--out", tmp_path / "m.skops")["expected_accuracy"]
    assert fitted == {"value": audited["now"], "standard_error": audited["standard_error"]}
    alone = answer_of("fit", *grouped[:-2], "--ignore", "pair", "--out", tmp_path / "m.skops")[
        "expected_accuracy"
    ]
    assert fitted["value"] != alone["value"]


def test_decisions_on_votes_are_refused(files, tmp_path):
    path = files[0] / "columns.csv"
    decisions = write_csv(
        tmp_path / "d.csv", row=[0], observed=["ham"], proposed=["spam"], decision=["accept"]
    )
    out = ("--out", tmp_path / "clean.csv")
    for votes in (COLUMNS, ("--label", "w0", "--item", "mail")):
        assert (
            "Votes leave no single label to decide on"
            in program("apply", path, decisions, *out, *votes, code=2).stderr
        )
    fit = ("fit", path, *COLUMNS, "--decisions", decisions, "--out", tmp_path / "m.skops")
    assert "Votes leave no single label to decide on" in program(*fit, code=2).stderr
    assert [found.name for found in tmp_path.iterdir()] == ["d.csv"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--label", "label", "--annotator", "who"), "--annotator who needs --item"),
        (("--label", "label", "--label", "who", "--item", "mail"), "--item takes one --label"),
        (("--label", "label", "--item", "male"), "has no column 'male': did you mean 'mail'"),
        (
            ("--label", "label", "--item", "mail", "--text", "who"),
            "both of item 'm0': give all rows of an item the sa",
        ),
        (
            ("--label", "label", "--item", "mail", "--trusted", "label"),
            "--trusted label names the column of the labe",
        ),
        (
            ("--label", "label", "--item", "mail", "--ignore", "mail"),
            "--ignore mail names the column of items or wo",
        ),
        ((*ROWS, "--group", "who"), "--group who names the column of items or annotators"),
    ],
)
def test_errors_are_one_sentence(files, arguments, says):
    done = program("audit", files[0] / "rows.csv", *arguments, code=2)
    assert says in done.stderr
    assert done.stdout == ""
