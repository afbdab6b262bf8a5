"""unflip apply: the decided labels change, and nothing else."""

import os

import numpy as np

from support.files import program, write_csv
from unflip.cli.files import delimited


def data_with_stray_quotes(path):
    """Write rows with a quote within an unquoted cell and separators within a quoted one; return
    their lines."""
    rng = np.random.default_rng(0)
    lines = ["a,b,item,label,note"]
    for row in range(20):
        label, x = ("ham", "spam")[row % 2], rng.normal(size=2).round(3) + row % 2
        lines.append(f'{x[0]:.3f},{x[1]:.3f},12" vinyl,{label},"good, cheap, fast"')
    path.write_text("\n".join(lines) + "\n")
    return lines


def test_a_label_between_stray_and_true_quotes_is_changed_and_nothing_else(tmp_path):
    lines = data_with_stray_quotes(tmp_path / "d.csv")
    write_csv(
        tmp_path / "decisions.csv",
        row=[7],
        observed=["spam"],
        proposed=["ham"],
        decision=["accept"],
    )
    said = program(
        "apply", tmp_path / "d.csv", tmp_path / "decisions.csv", "--out", tmp_path / "clean.csv"
    ).stdout
    assert "1 label of column 'label' changed" in said
    lines[8] = lines[8].replace("spam", "ham")
    assert (tmp_path / "clean.csv").read_text() == "\n".join(lines) + "\n"


def test_nothing_is_written_where_another_cell_would_change(tmp_path, monkeypatch):
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
        delimited, "rewrite", lambda *asked: rewrite(*asked).replace(b"cheap", b"ham", 1)
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
    assert "(column 'note' would differ), and nothing is written" in done.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_a_decision_for_no_label_is_named(tmp_path):
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
    assert "The decision on row 7 gives it the label ''" in done.stderr
