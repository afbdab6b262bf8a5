"""Malformed files and options: the program answers, or says in a sentence what is wrong, and leaves
nothing behind."""

import os
import re
from contextlib import chdir

import numpy as np
import pytest
from typer.testing import CliRunner

from support.fuzz import (
    DECISIONS,
    MODEL,
    OUTPUTS,
    Case,
    as_csv,
    as_json_lines,
    as_parquet,
    cases,
    table,
)
from unflip.cli.program import app

_SECRETS = re.compile(r"Traceback|\bError:|0x[0-9a-f]{8}|/site-packages/|\.py\b")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that `unflip fit` wrote, of the files that are drawn."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "data.csv").write_bytes(as_csv(table(np.random.default_rng(0))))
    with chdir(folder):
        done = CliRunner().invoke(app, ["fit", "data.csv", "--label", "label", "--out", MODEL])
    assert done.exit_code == 0, done.output
    return (folder / MODEL).read_bytes()


def found(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fault(case, folder):
    """Run a case; return what is wrong with how the program took it, empty where nothing is."""
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    with chdir(folder):
        done = CliRunner().invoke(app, case.arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"{type(done.exception).__name__}: {str(done.exception)[:300]}"
    if done.exit_code not in (0, 2):
        return f"exit code {done.exit_code}: {done.output[:300]}"
    if not all(letter.isprintable() for letter in done.output.replace("\n", "")):
        return f"steers the terminal: {done.output[:300]!r}"
    after = found(folder)
    if {name: after.get(name) for name in case.files} != case.files:
        return "an input was changed"
    added = sorted(after.keys() - case.files.keys())
    if done.exit_code == 0:
        return "" if set(added) <= set(OUTPUTS) else f"files {added}"
    if added:
        return f"failed, but wrote {added}"
    return "" if done.stderr.startswith("Usage:") else unclear(done, case)


def unclear(done, case):
    """Return what is wrong with an error message, empty where nothing is."""
    said = done.stderr.strip()
    sentence = said.removeprefix("unflip: ")
    if said == sentence or "\n" in said or not sentence.endswith((".", "?")) or done.stdout:
        return f"no sentence: {said[:400]!r}, {done.stdout[:100]!r}"
    if _SECRETS.search(sentence):
        return f"speaks of the inside: {sentence[:400]}"
    given = [*case.files, *case.arguments[1:]]
    named = [
        *given,
        *(word.removeprefix("--").replace("-", "_") for word in given if word.startswith("--")),
    ]
    if not any((word or ".").encode("utf-8", "replace").decode() in sentence for word in named):
        return f"names neither file nor option: {sentence[:400]}"
    return ""


def faults(model, seed, n, folder):
    told = []
    for number, case in enumerate(cases(model, seed, n)):
        here = folder / str(number)
        os.mkdir(here)
        wrong = fault(case, here)
        if wrong:
            told.append(f"{number} ({case.kind}) {' '.join(case.arguments)[:200]!r}: {wrong}")
    return "\n".join(told)


def test_a_few_of_every_kind(model, tmp_path):
    assert not faults(model, 1, 96, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_of_every_kind(model, tmp_path, seed):
    assert not faults(model, seed, 160, tmp_path)


COMMANDS = {
    "audit": ["audit", "data.csv", "--label", "label", "--out", "page.html"],
    "apply": ["apply", "data.csv", DECISIONS, "--out", "clean.csv"],
    "fit": ["fit", "data.csv", "--label", "label", "--out", "new.skops"],
    "predict": ["predict", MODEL, "data.csv", "--out", "predictions.csv"],
}


@pytest.mark.parametrize(
    ("command", "input_"),
    [
        (name, word)
        for name, words in COMMANDS.items()
        for word in ("data.csv", DECISIONS, MODEL)
        if word in words
    ],
)
def test_folders_and_missing_files_in_the_place_of_each_input(model, tmp_path, command, input_):
    good = {"data.csv": as_csv(table(np.random.default_rng(0))), DECISIONS: b"row\n", MODEL: model}
    others = {name: content for name, content in good.items() if name != input_}
    assert not fault(Case("missing", others, COMMANDS[command]), tmp_path)
    for name in others:
        (tmp_path / name).unlink()
    (tmp_path / input_).mkdir()
    with chdir(tmp_path):
        done = CliRunner().invoke(app, COMMANDS[command])
    assert done.exit_code == 2
    assert os.listdir(tmp_path) == [input_]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_locked_file_is_named(tmp_path):
    (tmp_path / "data.csv").write_bytes(as_csv(table(np.random.default_rng(0))))
    (tmp_path / "data.csv").chmod(0)
    with chdir(tmp_path):
        done = CliRunner().invoke(app, COMMANDS["audit"])
    assert done.exit_code == 2
    assert "data.csv cannot be read (Permission denied)" in done.stderr


@pytest.mark.parametrize(
    ("name", "written"), [("d.csv", as_csv), ("d.jsonl", as_json_lines), ("d.parquet", as_parquet)]
)
def test_ten_thousand_columns_are_no_harm(tmp_path, name, written):
    rng, codes = np.random.default_rng(0), np.arange(40) % 2
    columns = {f"w{j}": (rng.normal(size=40) + codes).round(2).tolist() for j in range(10_000)}
    content = written({**columns, "label": [("a", "b")[code] for code in codes]})
    assert not fault(
        Case("wide", {name: content}, ["audit", name, "--label", "label", "--out", "page.html"]),
        tmp_path,
    )
    assert (tmp_path / "page.html").exists()
