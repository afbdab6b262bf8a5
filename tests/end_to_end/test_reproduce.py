"""`unflip reproduce` from the command line."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("typer", reason="needs the extra unflip[cli]")
pytest.importorskip("pandas", reason="needs the extra unflip[cli]")

from typer.testing import CliRunner

from support.amazon import needs_data, needs_published
from support.processes import started
from unflip.cli.paper.piece import Task
from unflip.cli.paper.registry import PIECES
from unflip.cli.program import app

RUN = [sys.executable, "-m", "unflip", "reproduce"]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
LOADED = """<script>addEventListener("load", () => {
  const pictures = [...document.images];
  const loaded = pictures.filter(p => p.complete && p.naturalWidth > 100);
  document.title = loaded.length + " of " + pictures.length;
});</script>"""


def reproduce(*arguments, code=0, **environment):
    variables = {**os.environ, **environment}
    done = subprocess.run(
        [*RUN, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=variables,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def fig3(tmp_path_factory):
    results = tmp_path_factory.mktemp("fig3") / "deep" / "results"
    done = reproduce("fig3", "--quick", "--out", results)
    return results, done


def test_one_figure_from_start_to_page(fig3):
    results, done = fig3
    assert f"Page: {results / 'index.html'}" in done.stdout.replace("\n", "")
    page = (results / "index.html").read_text(encoding="utf-8")
    for words in (
        "What the paper says",
        "Differences and their causes",
        "standard errors",
        "ρ₊* = 1.57",
        "Quick run",
    ):
        assert words in page
    assert (results / "fig3" / "points.csv").read_text().startswith("p,x,simulated")
    assert (results / "fig3" / "picture.svg").read_bytes().startswith(b"<?xml")
    assert not re.search(r'(src|href)="https?:', page)


def test_finished_figure_is_not_recomputed(fig3):
    results, _ = fig3
    before = {path: path.stat().st_mtime_ns for path in (results / "fig3").iterdir()}
    assert "fig3 was finished before" in reproduce("fig3", "--quick", "--out", results).stdout
    assert {path: path.stat().st_mtime_ns for path in (results / "fig3").iterdir()} == before


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
def test_every_picture_of_the_page_loads_in_a_browser(fig3, tmp_path):
    results, _ = fig3
    page = (results / "index.html").read_text(encoding="utf-8")
    (tmp_path / "page.html").write_text(
        page.replace("</body>", f"{LOADED}</body>"), encoding="utf-8"
    )
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    command = [
        CHROMIUM,
        *options,
        "--virtual-time-budget=10000",
        "--dump-dom",
        (tmp_path / "page.html").as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    pictures = page.count("<img")
    assert pictures >= 1
    assert f"<title>{pictures} of {pictures}</title>" in done.stdout, done.stderr[-500:]


def invoke(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_unknown_piece_error_lists_pieces(tmp_path):
    done = invoke("fig3", "fig77", "--out", tmp_path / "results")
    assert done.exit_code == 2
    assert "fig77 is not a piece" in done.stderr
    assert "table1, fig1" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_out_that_is_a_file_raises(tmp_path):
    (tmp_path / "results").write_text("mine")
    done = invoke("fig5", "--out", tmp_path / "results")
    assert done.exit_code == 2
    assert "results is a file" in done.stderr
    assert (tmp_path / "results").read_text() == "mine"


def test_missing_data_skip_piece_with_message(tmp_path, monkeypatch):
    monkeypatch.setenv("UNFLIP_DATA", str(tmp_path))
    done = invoke("fig4", "--quick", "--out", tmp_path)
    assert done.exit_code == 3
    assert f"fig4 is skipped: {tmp_path / 'amazon_reviews'} does not exist" in done.stderr
    assert "fig4 is skipped" in (tmp_path / "index.html").read_text(encoding="utf-8")
    (tmp_path / "amazon_reviews").mkdir()
    done = invoke("fig4", "--quick", "--out", tmp_path, "--workers", 1)
    assert done.exit_code == 3
    assert (
        f"fig4 is skipped: {tmp_path / 'amazon_reviews' / 'books.mat'} does not exist"
        in done.stderr
    )


def test_error_names_failing_piece(tmp_path, monkeypatch):
    def fail(settings):
        raise ArithmeticError("nothing to add")

    monkeypatch.setitem(
        PIECES, "fig5", replace(PIECES["fig5"], tasks=lambda s: [Task("part", fail, (s,))])
    )
    done = invoke("fig5", "--quick", "--out", tmp_path, "--workers", 1)
    assert done.exit_code == 2
    assert done.stderr.strip() == "unflip: fig5 failed: ArithmeticError: nothing to add"


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_killed_run_resumes_with_same_result(tmp_path, ending):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    reproduce("fig1", "fig5", "fig2", "--quick", "--out", whole)
    process = started(
        [*RUN, "fig1", "fig5", "fig2", "--quick", "--out", str(broken)], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not (broken / "fig1" / "manifest.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(ending)
    process.wait(timeout=60)
    assert not (broken / "index.html").exists()
    assert (
        "fig1 was finished before"
        in reproduce("fig1", "fig5", "fig2", "--quick", "--out", broken).stdout
    )
    for path in whole.rglob("*"):
        if path.suffix in (".csv", ".svg", ".png"):
            assert (broken / path.relative_to(whole)).read_bytes() == path.read_bytes()


@needs_data
@needs_published
@pytest.mark.slow
def test_everything_quick(tmp_path):
    reproduce("all", "--quick", "--out", tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<section") == 10
    assert "48 of 48 cells" in page
    assert page.count("all 159 published accuracies exactly") == 2
