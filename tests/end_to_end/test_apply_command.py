"""`unflip apply` changes the decided labels, and nothing else."""

import os

import numpy as np

from support.files import program, write_csv
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
