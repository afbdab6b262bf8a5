"""Ctrl-C, kill and a full disk at any moment leave old or complete new files, and no process."""

import errno
import os
import signal
from contextlib import chdir, contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from support.files import mixture_file, program, write_csv
from support.fuzz import as_csv
from support.processes import ended, living, started_until, until
from unflip.cli.program import app
from unflip.datasets import make_mixture

COMMANDS = {
    "audit": [
        "audit",
        "mails.csv",
        "--label",
        "label",
        "--suspects",
        "s.csv",
        "--out",
        "page.html",
    ],
    "fit": ["fit", "mails.csv", "--label", "label", "--out", "new.skops"],
    "predict": ["predict", "m.skops", "mails.csv", "--out", "p.csv"],
    "apply": ["apply", "mails.csv", "d.csv", "--out", "clean.csv"],
}
OUTPUTS = {
    "audit": ["s.csv", "page.html"],
    "fit": ["new.skops"],
    "predict": ["p.csv"],
    "apply": ["clean.csv"],
}
FITTING = {
    "audit": ("unflip.cli.audit_table", "audit"),
    "fit": ("unflip.cli.fit_table", "_fit"),
    "predict": ("unflip.model.table_model:TableModel", "predict"),
    "apply": ("unflip.cli.fit_table", "_fit"),
}
MOMENTS = {
    "reading": lambda command: ("unflip.cli.files.tables", "read_content"),
    "fitting": FITTING.__getitem__,
    "writing": lambda command: ("os", "fsync"),
    "renaming": lambda command: ("os", "replace"),
}
QUICK = [("audit", "renaming", signal.SIGINT), ("fit", "writing", signal.SIGKILL)]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    true = mixture_file(folder / "mails.csv")
    row = next(
        i
        for i, line in enumerate((folder / "mails.csv").read_text().splitlines()[1:])
        if "ham" in line
    )
    write_csv(folder / "d.csv", row=[row], observed=["ham"], proposed=["spam"], decision=["accept"])
    program("fit", folder / "mails.csv", "--label", "label", "--out", folder / "m.skops")
    assert len(true) == 300
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(inputs, tmp_path):
    """A folder with the inputs, and older outputs with the same names."""
    here = tmp_path / "here"
    here.mkdir()
    for name, content in inputs.items():
        (here / name).write_bytes(content)
    for name in chain.from_iterable(OUTPUTS.values()):
        (here / name).write_bytes(b"old")
    return here


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_stopped(command, moment, ending, folder):
    before = contents(folder)
    process = started_until(
        *MOMENTS[moment](command), "wait", folder.parent / "mark", COMMANDS[command], cwd=folder
    )
    code, output = ended(process, ending)
    assert code == (130 if ending == signal.SIGINT else -ending)
    assert "Traceback" not in output
    assert living(process.pid) == []
    after = contents(folder)
    left = after.keys() - before.keys()
    assert {name: after[name] for name in before} == before
    if ending == signal.SIGINT or (moment != "renaming" and hasattr(os, "O_TMPFILE")):
        assert left == set()
    assert all(name.startswith(".unflip-") for name in left)
    with chdir(folder):
        program(*COMMANDS[command])
    assert all((folder / name).read_bytes() != b"old" for name in OUTPUTS[command])


@pytest.mark.parametrize(("command", "moment", "ending"), QUICK)
def test_stopped_at_the_last_moment(folder, command, moment, ending):
    check_stopped(command, moment, ending, folder)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_stopped_at_any_moment(folder, command, moment, ending):
    check_stopped(command, moment, ending, folder)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("command", ["audit", "fit"])
def test_stopped_during_the_fit(folder, command, ending):
    X, y = make_mixture(2000, 600, mean_norm=1.0, random_state=0)
    columns = {f"x{j}": X[:, j].round(3).tolist() for j in range(X.shape[1])}
    (folder / "mails.csv").write_bytes(
        as_csv({**columns, "label": np.array(["ham", "spam"])[y].tolist()})
    )
    before = contents(folder)
    process = started_until(
        *FITTING[command], "go on", folder.parent / "mark", COMMANDS[command], cwd=folder
    )
    code, output = ended(process, ending)
    assert code == (130 if ending == signal.SIGINT else -ending)
    assert "Traceback" not in output
    assert living(process.pid) == []
    assert contents(folder) == before


REPRODUCE = ["reproduce", "fig6", "--quick", "--workers", "2", "--out"]


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    results = tmp_path_factory.mktemp("complete")
    program(*REPRODUCE, results)
    return results


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_reproduction_leaves_no_worker_and_can_be_resumed(complete, tmp_path, ending):
    results = tmp_path / "results"
    words = [*REPRODUCE, results]
    process = started_until(
        "unflip.cli.paper.runner", "_compute", "go on", tmp_path / "mark", words
    )
    until(lambda: any(results.rglob("*.json")), process)
    code, output = ended(process, ending)
    assert code == (130 if ending == signal.SIGINT else -ending)
    assert "Traceback" not in output
    until(lambda: not living(process.pid))
    assert not (results / "fig6" / "manifest.json").exists()
    assert not (results / "index.html").exists()
    program(*words)
    for path in complete.rglob("*.csv"):
        assert (results / path.relative_to(complete)).read_bytes() == path.read_bytes()


@contextmanager
def small_files(monkeypatch):
    """Limit files to 100 bytes."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        yield "File too large"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def full_disk(monkeypatch):
    """Let writes to the disk fail."""

    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        yield "No space left on device"


@pytest.mark.parametrize("full", [small_files, full_disk])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_leaves_the_old_files(folder, monkeypatch, command, full):
    before = contents(folder)
    with chdir(folder), full(monkeypatch) as reason:
        done = CliRunner().invoke(app, COMMANDS[command])
    assert done.exit_code == 2
    assert f"unflip: {OUTPUTS[command][0]} cannot be written or read ({reason})" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert contents(folder) == before


@pytest.mark.parametrize("full", [small_files, full_disk])
@pytest.mark.parametrize(
    "words",
    [
        ["reproduce", "fig1", "--quick", "--workers", "1"],
        pytest.param(["demo", "--out", "d.html"], marks=pytest.mark.slow),
    ],
)
def test_a_full_disk_leaves_no_new_files(tmp_path, monkeypatch, words, full):
    with chdir(tmp_path), full(monkeypatch) as reason:
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert f"({reason})" in done.stderr or f": {reason}." in done.stderr
    assert "Traceback" not in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_two_files_of_one_command_appear_together(folder, monkeypatch):
    before = contents(folder)
    handles = []

    def fail_at_second(handle):
        handles.append(handle)
        if len(handles) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail_at_second)
    with chdir(folder):
        assert CliRunner().invoke(app, COMMANDS["audit"]).exit_code == 2
    assert contents(folder) == before


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no unnamed files")
def test_a_file_has_no_name_until_it_is_complete(folder, monkeypatch):
    before = contents(folder)
    seen = []
    fsync = os.fsync

    def record_contents(descriptor):
        seen.append(contents(folder))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record_contents)
    with chdir(folder):
        assert CliRunner().invoke(app, COMMANDS["fit"]).exit_code == 0
    assert seen == [before]
    assert contents(folder).keys() == before.keys()


def test_file_permissions(folder):
    (folder / "s.csv").chmod(0o640)
    (folder / "page.html").unlink()
    mask = os.umask(0o077)
    try:
        with chdir(folder):
            program(*COMMANDS["audit"])
    finally:
        os.umask(mask)
    modes = {name: Path(folder / name).stat().st_mode & 0o777 for name in OUTPUTS["audit"]}
    assert modes == {"s.csv": 0o640, "page.html": 0o600}
