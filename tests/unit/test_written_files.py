"""Atomic writes of files, also through symbolic links."""

import os

import pytest

from support.files import mixture_file, program, read_csv, write_csv
from unflip._utils.atomic_files import write_atomically


@pytest.fixture
def linked(tmp_path):
    """Return a folder with a link to a link to a file in another folder."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "run.csv").write_bytes(b"old")
    (tmp_path / "store" / "run.csv").chmod(0o640)
    (tmp_path / "between.csv").symlink_to("store/run.csv")
    (tmp_path / "latest.csv").symlink_to(tmp_path / "between.csv")
    return tmp_path


def test_the_target_of_a_link_is_replaced_and_the_link_stays(linked, monkeypatch):
    folders = []
    real = os.replace
    monkeypatch.setattr(
        os,
        "replace",
        lambda part, path: (folders.append((part.parent, path.parent)), real(part, path)),
    )
    write_atomically(linked / "latest.csv", b"new")
    assert os.readlink(linked / "latest.csv") == str(linked / "between.csv")
    assert os.readlink(linked / "between.csv") == os.path.join("store", "run.csv")
    assert (linked / "store" / "run.csv").read_bytes() == b"new"
    assert (linked / "store" / "run.csv").stat().st_mode & 0o777 == 0o640
    # In one folder, so that renaming is atomic.
    assert folders == [(linked / "store", linked / "store")]
    assert os.listdir(linked / "store") == ["run.csv"]


def test_a_failed_write_through_a_link_keeps_the_old_file(linked, monkeypatch):
    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*latest.csv"):
        write_atomically(linked / "latest.csv", b"new")
    assert (linked / "store" / "run.csv").read_bytes() == b"old"
    assert os.listdir(linked / "store") == ["run.csv"]


def test_a_link_to_a_missing_file_creates_it(tmp_path):
    (tmp_path / "latest.csv").symlink_to("run.csv")
    write_atomically(tmp_path / "latest.csv", b"new")
    assert (tmp_path / "latest.csv").is_symlink()
    assert (tmp_path / "run.csv").read_bytes() == b"new"


def test_loops_of_links_and_pipes_raise(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(OSError, match=r"symbolic links: .*one"):
        write_atomically(tmp_path / "one", b"new")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match=f"not a regular file: .*{name}"):
            write_atomically(tmp_path / name, b"new")
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "pipe").is_fifo()


@pytest.fixture
def decided(tmp_path, monkeypatch):
    """Return a folder with data and one decision."""
    mixture_file(tmp_path / "d.csv", n=40)
    observed = read_csv(tmp_path / "d.csv")[0]["label"]
    other = {"ham": "spam", "spam": "ham"}[observed]
    write_csv(
        tmp_path / "decisions.csv",
        row=[0],
        observed=[observed],
        proposed=[other],
        decision=["accept"],
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_write_through_links(decided):
    (decided / "clean.csv").symlink_to("run.csv")
    output = program("apply", "d.csv", "decisions.csv", "--out", "clean.csv").stdout
    assert output.startswith("clean.csv: 1 label")
    assert (decided / "clean.csv").is_symlink()
    assert len(read_csv(decided / "run.csv")) == 40


@pytest.mark.parametrize(
    ("leads_to", "message"),
    [
        ("d.csv", "new.skops is the input file d.csv: choose another name"),
        (
            "decisions.csv",
            "new.skops is the input file decisions.csv: choose another name",
        ),
        (
            "new.skops",
            "new.skops cannot be written (Too many levels of symbolic links): choose another name",
        ),
        (
            "none/new.skops",
            "none is not a folder: create it first, or choose another name than new.skops",
        ),
        ("folder", "new.skops is a folder: name a file"),
        (os.devnull, "new.skops cannot be written (not a regular file): choose another name"),
    ],
)
def test_errors_for_links_that_cannot_be_written(decided, leads_to, message):
    (decided / "folder").mkdir()
    (decided / "new.skops").symlink_to(leads_to)
    words = [
        "fit",
        "d.csv",
        "--label",
        "label",
        "--decisions",
        "decisions.csv",
        "--out",
        "new.skops",
    ]
    before = sorted(os.listdir(decided))
    assert message in program(*words, code=2).stderr
    assert sorted(os.listdir(decided)) == before
    assert os.readlink(decided / "new.skops") == leads_to


def test_error_for_data_in_a_loop_of_links(tmp_path, monkeypatch):
    (tmp_path / "d.csv").symlink_to("d.csv")
    monkeypatch.chdir(tmp_path)
    output = program("audit", "d.csv", "--label", "label", "--out", "page.html", code=2).stderr
    assert "d.csv cannot be read (Too many levels of symbolic links)" in output
