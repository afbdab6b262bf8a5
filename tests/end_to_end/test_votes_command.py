"""Votes on the command line."""

import json

import numpy as np
import pytest

from support.files import NAMES, mixture_file, program, read_csv, write_csv
from unflip.datasets import make_mixture

N, P, UNASKED = 240, 8, 6
SKILL = np.array([0.9, 0.8, 0.7, 0.6])
COLUMNS = ("--label", "w0", "--label", "w1", "--label", "w2", "--label", "w3")
ROWS = ("--label", "label", "--item", "mail", "--annotator", "who")
GIVEN = np.array([0, 0, 0, 1, 1, 1])  # the only label of each rule
RULES = [f"rule{j}" for j in range(len(GIVEN))]
# How often each rule votes on ham, and on spam.
RULE_RATES = np.array([[0.8, 0.7, 0.6, 0.05, 0.05, 0.05], [0.5, 0.4, 0.4, 0.4, 0.4, 0.4]])
N_RULED = 400
RULE_ROWS = ("--label", "label", "--item", "item", "--annotator", "who")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write votes with a column per annotator and with a row per vote; return folder and truth."""
    folder = tmp_path_factory.mktemp("votes")
    X, true = make_mixture(N, P, mean_norm=1.5, random_state=0)
    rng = np.random.default_rng(0)
    asked = rng.random((N, 4)) < 0.6
    asked[np.arange(N), rng.integers(0, 4, N)] = True
    asked[-UNASKED:] = False
    voted = np.where(rng.random((N, 4)) < SKILL, true[:, None], 1 - true[:, None])
    cells = np.where(asked, NAMES[voted], "")
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


def test_both_layouts_of_votes_give_the_same_result(files, by_column, by_row):
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
    unchecked = [line for line in by_column["suspects"] if line["part"] != "checked"]
    is_right = np.array([true[line["row"]] == line["proposed"] for line in unchecked])
    assert len(is_right) > 15
    assert is_right.mean() > 0.8
    # The false discovery rate is kept with 90% confidence, so fewer of them are suspects.
    n_suspects = by_column["n_suspects"]
    assert len(is_right) / 3 < n_suspects < len(is_right)
    assert is_right[:n_suspects].mean() >= 0.9
    proposed = {line["row"]: line["proposed"] for line in by_column["unlabelled"]}
    assert set(proposed) == {row for row in range(N - UNASKED, N) if row % 3}
    assert by_column["noise"]["source"] == "votes"


def test_checked_items_without_votes_are_not_counted(files):
    output = program(
        "audit", files[0] / "columns.csv", *COLUMNS, "--trusted", "truth", "--id", "mail"
    ).stdout
    checked = sum(row % 3 == 0 for row in range(N - UNASKED))
    assert f" of {checked} checked majority labels were wrong (not the noise rate" in " ".join(
        output.split()
    )


def test_summary_of_items_votes_and_annotators(files, tmp_path):
    page = tmp_path / "page.html"
    suspects = tmp_path / "suspects.csv"
    output = program(
        "audit", files[0] / "rows.csv", *ROWS, "--out", page, "--suspects", suspects
    ).stdout
    words = " ".join(output.split())
    n_votes = sum(row["label"] != "" for row in read_csv(files[0] / "rows.csv"))
    assert f"{N} items, {n_votes} votes of 4 annotators: " in words
    assert f"of {N - UNASKED} majority labels are wrong" in words
    assert "majority labels are suspect at an expected false discovery rate of" in words
    assert f"Without a vote: {UNASKED} items. Proposed labels: " in words
    assert "pass its name with --trusted" in words
    assert "unflip apply" not in words
    # File names are not broken into lines.
    lines = [line for line in output.splitlines()[2:] if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 80
    text = page.read_text(encoding="utf-8")
    assert f"of {N - UNASKED} majority labels are wrong" in text
    assert "estimated from the votes and the features" in text
    assert "pass its name with --trusted, and audit again" in text
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
    output = " ".join(program("audit", path, *COLUMNS[:6], *options).stdout.split())
    assert "(computed from the given rates of each vote)" in output


def test_fit_and_predict(files, tmp_path):
    folder, true, _ = files
    out = tmp_path / "m.skops"
    answer = answer_of("fit", folder / "rows.csv", *ROWS, "--out", out, "--trusted", "truth")
    assert answer["rows"] == N
    assert answer["votes"]["annotators"] == 4
    output = program("fit", folder / "columns.csv", *COLUMNS, "--out", out).stdout
    assert f"votes of 4 annotators on {N} rows.\nFeatures: " in output
    assert "Noise rates of the votes by true class: 'ham': " in output
    program("predict", out, folder / "columns.csv", "--out", tmp_path / "p.csv")
    predicted = [line["predicted"] for line in read_csv(tmp_path / "p.csv")]
    assert np.mean(np.array(predicted) == true) > 0.85


def test_expected_accuracy_with_groups_is_that_of_the_audit(files, tmp_path):
    mails = read_csv(files[0] / "rows.csv")
    path = tmp_path / "grouped.csv"
    columns = {name: [line[name] for line in mails] for name in mails[0]}
    pairs = [int(name[1:]) // 2 for name in columns["mail"]]
    write_csv(path, **columns, pair=pairs)
    grouped = (path, *ROWS, "--ignore", "truth", "--group", "pair")
    audited = answer_of("audit", *grouped, "--id", "mail")["expected_accuracy"]
    fitted = answer_of("fit", *grouped, "--out", tmp_path / "m.skops")["expected_accuracy"]
    assert fitted == {"value": audited["now"], "standard_error": audited["standard_error"]}
    alone = answer_of("fit", *grouped[:-2], "--ignore", "pair", "--out", tmp_path / "m.skops")[
        "expected_accuracy"
    ]
    assert fitted["value"] != alone["value"]


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    """Write rules that abstain, in three layouts; return folder, majority labels and truth."""
    folder = tmp_path_factory.mktemp("rules")
    X, true = make_mixture(N_RULED, P, mean_norm=1.0, random_state=1)
    rng = np.random.default_rng(1)
    voted = rng.random((N_RULED, len(GIVEN))) < RULE_RATES[true]
    features = {f"x{j}": X[:, j].round(4) for j in range(P)}
    for name, mark in (("empty", ""), ("marked", "-1")):
        cells = np.where(voted, NAMES[GIVEN], mark)
        write_csv(folder / f"{name}.csv", **features, **dict(zip(RULES, cells.T, strict=True)))
    by_row = {name: np.repeat(values, len(GIVEN)) for name, values in features.items()}
    write_csv(
        folder / "rows.csv",
        item=np.repeat(np.arange(N_RULED), len(GIVEN)),
        who=np.tile(RULES, N_RULED),
        **by_row,
        label=cells.ravel(),
    )
    counts = np.column_stack([voted[:, code == GIVEN].sum(axis=1) for code in (0, 1)])
    has_majority = counts[:, 0] != counts[:, 1]
    return folder, np.where(has_majority, NAMES[counts.argmax(axis=1)], ""), NAMES[true]


def accuracy_of_corrected(answer, majority, true):
    corrected = majority.copy()
    for line in answer["suspects"]:
        corrected[line["row"]] = line["proposed"]
    return np.mean((corrected == true)[majority != ""])


def test_abstentions_correct_the_votes_of_rules(rules):
    folder, majority, true = rules
    before = np.mean((majority == true)[majority != ""])
    answer = answer_of("audit", folder / "empty.csv", "--label", "rule*", "--abstentions")
    assert accuracy_of_corrected(answer, majority, true) > before + 0.05
    assert answer["votes"]["abstentions"] is True
    assert answer["votes"]["annotators"] == len(RULES)
    assert answer["notes"] == []


def test_rules_without_abstentions_are_an_error(rules, tmp_path):
    folder, _, _ = rules
    for command in (("audit",), ("fit", "--out", tmp_path / "m.skops")):
        done = program(*command, folder / "empty.csv", "--label", "rule*", code=2)
        assert done.stderr.endswith("if these are rules that abstain, pass --abstentions.\n")


def test_a_label_marks_abstentions_in_each_layout(rules):
    folder, _, _ = rules
    expected = answer_of("audit", folder / "empty.csv", "--label", "rule*", "--abstentions")
    marked = answer_of("audit", folder / "marked.csv", "--label", "rule*", "--abstain", "-1")
    assert marked == expected | {"file": str(folder / "marked.csv")}
    by_row = answer_of("audit", folder / "rows.csv", *RULE_ROWS, "--abstain=-1")
    assert by_row["votes"] == expected["votes"]
    assert by_row["noise"] == expected["noise"]
    found = [(line["id"], line["proposed"]) for line in by_row["suspects"]]
    assert found == [(str(line["row"]), line["proposed"]) for line in expected["suspects"]]
    # Read as a class, -1 is reported.
    done = program("audit", folder / "marked.csv", "--label", "rule*")
    assert "if '-1' marks an abstention, pass --abstain -1." in done.stderr


def test_fit_with_abstentions(rules, tmp_path):
    folder, _, true = rules
    out = tmp_path / "m.skops"
    accuracies = []
    for file, *options in (("empty", "--abstentions"), ("marked", "--abstain", "-1")):
        path = folder / f"{file}.csv"
        answer = answer_of("fit", path, "--label", "rule*", *options, "--out", out)
        assert answer["votes"]["abstentions"] is True
        program("predict", out, path, "--out", tmp_path / "p.csv")
        predicted = [line["predicted"] for line in read_csv(tmp_path / "p.csv")]
        accuracies.append(np.mean(np.array(predicted) == true))
    assert accuracies[0] > 0.8
    assert accuracies[0] == accuracies[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--label", "rule1", "--abstentions"), "--abstentions needs votes: name the column of "),
        (("--label", "rule1*", "--abstain", "-1"), "--abstain -1 needs votes: name the column of "),
        (
            ("--label", "rule*", "--abstain", "ABSTAIN"),
            "--abstain ABSTAIN is no label of columns 'rule0', 'rule1', 'rule2', 'rule3', ",
        ),
        (
            ("--label", "rule*", "--abstain", "-1", "--eps", "ham=0.1,spam=0.1"),
            "--eps and --abstain -1 exclude each other",
        ),
        (("--label", "rule*", "--label", "rule1"), "Column 'rule1' is named twice"),
        (("--label", "lf*"), "has no column 'lf*': its columns are 'x0', 'x1', "),
        (("--label", "rules*"), "has no column 'rules*': did you mean 'rule"),
    ],
)
def test_errors_of_abstentions_and_wildcards(rules, arguments, message):
    for command in (("audit",), ("fit", "--out", "none.skops")):
        done = program(*command, rules[0] / "marked.csv", *arguments, code=2)
        assert message in done.stderr
        assert done.stdout == ""


def test_a_wildcard_with_one_match_is_a_column_of_labels(tmp_path):
    mixture_file(tmp_path / "mails.csv")
    path = tmp_path / "mails.csv"
    suspects = tmp_path / "s.csv"
    done = program("audit", path, "--label", "lab*", "--suspects", suspects)
    assert "unflip fit" in done.stdout
    assert "--label label" in done.stdout
    assert "lab*" not in done.stdout
    lines = read_csv(suspects)
    lines[0]["decision"] = "accept"
    write_csv(suspects, **{name: [line[name] for line in lines] for name in lines[0]})
    fit = ("fit", path, "--label", "lab*", "--decisions", suspects, "--out", tmp_path / "m.skops")
    assert answer_of(*fit)["votes"] is None


def test_decisions_on_votes_raise_an_error(files, tmp_path):
    path = files[0] / "columns.csv"
    decisions = write_csv(
        tmp_path / "d.csv", row=[0], observed=["ham"], proposed=["spam"], decision=["accept"]
    )
    out = ("--out", tmp_path / "clean.csv")
    for votes in (COLUMNS, ("--label", "w0", "--item", "mail")):
        assert (
            "Decisions need one label per row, not votes"
            in program("apply", path, decisions, *out, *votes, code=2).stderr
        )
    fit = ("fit", path, *COLUMNS, "--decisions", decisions, "--out", tmp_path / "m.skops")
    assert "Decisions need one label per row, not votes" in program(*fit, code=2).stderr
    assert [file.name for file in tmp_path.iterdir()] == ["d.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--label", "label", "--annotator", "who"), "--annotator who needs --item"),
        (("--label", "label", "--label", "who", "--item", "mail"), "--item needs one --label"),
        (("--label", "label", "--item", "male"), "has no column 'male': did you mean 'mail'"),
        (
            ("--label", "label", "--item", "mail", "--text", "who"),
            "both of item 'm0': give all rows of an item the same features",
        ),
        (
            ("--label", "label", "--item", "mail", "--trusted", "label"),
            "--trusted label is the column of labels",
        ),
        (
            ("--label", "label", "--item", "mail", "--ignore", "mail"),
            "--ignore mail is the column of items or annotators",
        ),
        ((*ROWS, "--group", "who"), "--group who is the column of items or annotators"),
    ],
)
def test_errors_are_one_sentence(files, arguments, message):
    done = program("audit", files[0] / "rows.csv", *arguments, code=2)
    assert message in done.stderr
    assert done.stdout == ""
