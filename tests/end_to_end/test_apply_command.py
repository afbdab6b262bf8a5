"""`unflip apply` changes the decided labels, and nothing else."""

import json
import os

import numpy as np
import pytest

from support.files import program, read_csv, text_file, write_csv
from unflip.cli.files import delimited


def data_with_stray_quotes(path):
    """Write rows with a quote in an unquoted cell and separators in a quoted one; return lines."""
    rng = np.random.default_rng(0)
    lines = ["a,b,item,label,note"]
    for row in range(20):
        label = ("ham", "spam")[row % 2]
        x = rng.normal(size=2).round(3) + row % 2
        lines.append(f'{x[0]:.3f},{x[1]:.3f},12" vinyl,{label},"good, cheap, fast"')
    path.write_text("\n".join(lines) + "\n")
    return lines


def test_only_the_decided_label_between_quotes_changes(tmp_path):
    lines = data_with_stray_quotes(tmp_path / "d.csv")
    write_csv(
        tmp_path / "decisions.csv",
        row=[7],
        observed=["spam"],
        proposed=["ham"],
        decision=["accept"],
    )
    output = program(
        "apply", tmp_path / "d.csv", tmp_path / "decisions.csv", "--out", tmp_path / "clean.csv"
    ).stdout
    assert "1 label of column 'label' changed, 0 confirmed." in output
    lines[8] = lines[8].replace("spam", "ham")
    assert (tmp_path / "clean.csv").read_text() == "\n".join(lines) + "\n"


def test_a_row_is_corrected_to_another_class(tmp_path):
    write_csv(
        tmp_path / "d.csv",
        x=[0.0, 1.0, 2.5, 3.0, 4.0, 5.5],
        label=["low", "low", "mid", "mid", "high", "high"],
    )
    decisions = {"row": [0, 2], "observed": ["low", "mid"], "proposed": ["mid", "low"]}
    write_csv(tmp_path / "decisions.csv", **decisions, decision=["correct", ""], label=["high", ""])
    program(
        "apply", tmp_path / "d.csv", tmp_path / "decisions.csv", "--out", tmp_path / "clean.csv"
    )
    lines = (tmp_path / "clean.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1:4]] == ["high", "low", "mid"]
    write_csv(tmp_path / "decisions.csv", **decisions, decision=["correct", ""])
    error = program(
        "apply",
        tmp_path / "d.csv",
        tmp_path / "decisions.csv",
        "--out",
        tmp_path / "again.csv",
        code=2,
    ).stderr
    assert "write the true label into its column 'label'" in " ".join(error.split())


def test_nothing_is_written_if_another_cell_would_change(tmp_path, monkeypatch):
    data_with_stray_quotes(tmp_path / "d.csv")
    write_csv(
        tmp_path / "decisions.csv",
        row=[7],
        observed=["spam"],
        proposed=["ham"],
        decision=["accept"],
    )
    rewrite = delimited.rewrite
    monkeypatch.setattr(
        delimited, "rewrite", lambda *arguments: rewrite(*arguments).replace(b"cheap", b"ham", 1)
    )
    before = sorted(os.listdir(tmp_path))
    done = program(
        "apply",
        tmp_path / "d.csv",
        tmp_path / "decisions.csv",
        "--out",
        tmp_path / "clean.csv",
        code=2,
    )
    assert "without changes to other cells (of column 'note'), so nothing is written" in done.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_error_of_a_decision_for_an_empty_label(tmp_path):
    data_with_stray_quotes(tmp_path / "d.csv")
    write_csv(
        tmp_path / "decisions.csv", row=[7], observed=["spam"], proposed=[""], decision=["accept"]
    )
    done = program(
        "apply",
        tmp_path / "d.csv",
        tmp_path / "decisions.csv",
        "--out",
        tmp_path / "clean.csv",
        code=2,
    )
    assert (
        "The decision on row 7 (counted from 0) is the label '', which is not in column 'label'"
        in done.stderr
    )


@pytest.fixture
def checked(tmp_path):
    """Write data and checked rows of odd numbers; return the data, the checks and the labels."""
    true = text_file(tmp_path / "d.csv")
    lines = read_csv(tmp_path / "d.csv")
    observed = [line["label"] for line in lines]
    rows = range(1, 200, 2)
    checks = write_csv(
        tmp_path / "checks.csv",
        row=rows,
        observed=[observed[row] for row in rows],
        label=[true[row] if row > 1 else "" for row in rows],
    )
    write_csv(
        tmp_path / "d.csv",
        text=[line["text"] for line in lines],
        label=observed,
        truth=[true[row] if row in rows and row > 1 else "" for row in range(200)],
    )
    return tmp_path / "d.csv", checks, observed, true


@pytest.mark.parametrize("source", ["file", "column"])
def test_checked_rows_get_their_true_labels(checked, tmp_path, source):
    path, checks, observed, true = checked
    wrong = [row for row in range(2, 200) if observed[row] != true[row]]
    even = [row for row in wrong if row % 2 == 0][:3]
    both = [row for row in wrong if row % 2][:1]
    rows = even + both
    decisions = write_csv(
        tmp_path / "decisions.csv",
        row=rows,
        observed=[observed[row] for row in rows],
        proposed=[true[row] for row in rows],
        decision=["accept"] * 4,
    )
    trusted = checks if source == "file" else "truth"
    clean = tmp_path / "clean.csv"
    options = ("--out", clean, "--label", "label", "--text", "text", "--trusted", trusted)
    n_checks = sum(row % 2 for row in wrong) - 1
    done = program("apply", path, decisions, *options)
    counts = f"({4} by decisions, {n_checks} by checked rows), 0 confirmed"
    assert f"{4 + n_checks} labels of column 'label' changed {counts}" in done.stdout
    labels = [line["label"] for line in read_csv(clean)]
    changed = {row for row in range(200) if labels[row] != observed[row]}
    assert changed == {row for row in wrong if row % 2} | set(rows)
    assert all(labels[row] == true[row] for row in changed)
    # A decision that contradicts a check.
    decisions.write_text(decisions.read_text().replace("accept", "reject"))
    error = program("apply", path, decisions, *options, code=2).stderr
    assert f"The decision on row {both[0]} (counted from 0) is the label" in error
    assert f"but its true label by --trusted {trusted} is '{true[both[0]]}'" in error


def test_checked_rows_in_place_of_decisions(checked, tmp_path):
    path, checks, observed, true = checked
    clean = tmp_path / "clean.csv"
    options = ("--label", "label", "--text", "text", "--out", clean, "--json")
    answer = json.loads(program("apply", path, checks, *options).stdout)
    labels = [line["label"] for line in read_csv(clean)]
    rows = range(3, 200, 2)
    assert labels == [true[row] if row in rows else observed[row] for row in range(200)]
    assert answer["decided"] == 99
    assert answer["changed"] == sum(observed[row] != true[row] for row in rows)
    assert answer["changed_by_checked_rows"] == 0


def test_accuracy_needs_the_columns_of_the_audit(checked, tmp_path):
    path, checks, *_ = checked
    lines = read_csv(path)
    texts = [f"{line['text']} {row}" for row, line in enumerate(lines)]
    stars = np.random.default_rng(0).integers(1, 6, size=200)
    write_csv(path, text=texts, stars=stars, label=[line["label"] for line in lines])

    def answer(*options):
        out = ("--label", "label", "--out", tmp_path / "clean.csv", "--json")
        return json.loads(program("apply", path, checks, *out, *options).stdout)

    without = answer()
    assert without["expected_accuracy"] is None
    assert "column 'text' looks like text" in without["why_no_accuracy"]
    assert "--text text, or else --ignore text" in without["why_no_accuracy"]
    assert answer("--text", "text")["expected_accuracy"] is not None
    assert answer("--ignore", "text")["expected_accuracy"] is not None
