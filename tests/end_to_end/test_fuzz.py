"""Malformed files and options: the program works, or prints one sentence and writes nothing."""

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

_INTERNALS = re.compile(r"Traceback|\bError:|0x[0-9a-f]{8}|/site-packages/|\.py\b")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that was fitted to a valid file."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "data.csv").write_bytes(as_csv(table(np.random.default_rng(0))))
    with chdir(folder):
        done = CliRunner().invoke(app, ["fit", "data.csv", "--label", "label", "--out", MODEL])
    assert done.exit_code == 0, done.output
    return (folder / MODEL).read_bytes()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fault(case, folder):
    """Run a case; return what the program did wrong, or an empty string."""
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    with chdir(folder):
        done = CliRunner().invoke(app, case.arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"{type(done.exception).__name__}: {str(done.exception)[:300]}"
    if done.exit_code not in (0, 2):
        return f"exit code {done.exit_code}: {done.output[:300]}"
    if not all(letter.isprintable() for letter in done.output.replace("\n", "")):
        return f"prints control characters: {done.output[:300]!r}"
    after = contents(folder)
    if {name: after.get(name) for name in case.files} != case.files:
        return "an input was changed"
    added = sorted(after.keys() - case.files.keys())
    if done.exit_code == 0:
        return "" if set(added) <= set(OUTPUTS) else f"files {added}"
    if added:
        return f"failed, but wrote {added}"
    return "" if done.stderr.startswith("Usage:") else unclear(done, case)


def unclear(done, case):
    """Return what is wrong with an error message, or an empty string."""
    error = done.stderr.strip()
    sentence = error.removeprefix("unflip: ")
    if error == sentence or "\n" in error or not sentence.endswith((".", "?")) or done.stdout:
        return f"not one sentence: {error[:400]!r}, {done.stdout[:100]!r}"
    if _INTERNALS.search(sentence):
        return f"shows internals: {sentence[:400]}"
    words = [*case.files, *case.arguments[1:]]
    options = [word.removeprefix("--") for word in words if word.startswith("--")]
    words += [option.replace("-", "_") for option in options]
    if not any((word or ".").encode("utf-8", "replace").decode() in sentence for word in words):
        return f"names neither file nor option: {sentence[:400]}"
    return ""


def faults(model, seed, n, folder):
    problems = []
    for number, case in enumerate(cases(model, seed, n)):
        here = folder / str(number)
        os.mkdir(here)
        problem = fault(case, here)
        if problem:
            problems.append(f"{number} ({case.kind}) {' '.join(case.arguments)[:200]!r}: {problem}")
    return "\n".join(problems)


def test_a_few_cases_of_every_kind(model, tmp_path):
    assert not faults(model, 1, 96, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_cases_of_every_kind(model, tmp_path, seed):
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
def test_folders_and_missing_files_as_inputs(model, tmp_path, command, input_):
    valid = {"data.csv": as_csv(table(np.random.default_rng(0))), DECISIONS: b"row\n", MODEL: model}
    others = {name: content for name, content in valid.items() if name != input_}
    assert not fault(Case("missing", others, COMMANDS[command]), tmp_path)
    for name in others:
        (tmp_path / name).unlink()
    (tmp_path / input_).mkdir()
    with chdir(tmp_path):
        done = CliRunner().invoke(app, COMMANDS[command])
    assert done.exit_code == 2
    assert os.listdir(tmp_path) == [input_]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_error_of_a_file_without_permission(tmp_path):
    (tmp_path / "data.csv").write_bytes(as_csv(table(np.random.default_rng(0))))
    (tmp_path / "data.csv").chmod(0)
    with chdir(tmp_path):
        done = CliRunner().invoke(app, COMMANDS["audit"])
    assert done.exit_code == 2
    assert "data.csv cannot be read (Permission denied)" in done.stderr


@pytest.mark.parametrize(
    ("name", "written"), [("d.csv", as_csv), ("d.jsonl", as_json_lines), ("d.parquet", as_parquet)]
)
def test_ten_thousand_columns(tmp_path, name, written):
    rng = np.random.default_rng(0)
    codes = np.arange(40) % 2
    columns = {f"w{j}": (rng.normal(size=40) + codes).round(2).tolist() for j in range(10_000)}
    content = written({**columns, "label": [("a", "b")[code] for code in codes]})
    assert not fault(
        Case("wide", {name: content}, ["audit", name, "--label", "label", "--out", "page.html"]),
        tmp_path,
    )
    assert (tmp_path / "page.html").exists()
