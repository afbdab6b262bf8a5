"""Computation of pieces: resumed after an interruption, skipped without data, atomic writes."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra unflip[cli]")
pytest.importorskip("matplotlib", reason="needs the extra unflip[cli]")

import pandas as pd

from unflip._utils.atomic_files import write_atomically
from unflip.cli.paper import fig5
from unflip.cli.paper.piece import Piece, Settings, Task
from unflip.cli.paper.runner import PieceError, run
from unflip.cli.paper.store import Folder, encode_part, read_part
from unflip.cli.paper.summary import _cells, write_page
from unflip.plotting import style


def toy(calls, name="toy", draws=(1, 2)):
    def compute(label, n):
        calls.append(label)
        values = np.random.default_rng(n).normal(size=n)
        return {
            "values": pd.DataFrame({"label": label, "value": values, "count": n, "none": np.nan})
        }

    def draw(tables):
        figure, axes = style.new_figure(2, 2, 1, 1)
        axes[0].plot(tables["values"].value)
        return figure

    full, quick = Settings(draws=draws[1]), Settings(draws=draws[0])
    return Piece(
        name=name,
        title="A toy",
        paper="It says <nothing> & more.",
        full=full,
        quick=quick,
        tasks=lambda settings: [
            Task(label, compute, (label, settings.draws)) for label in ("a", "b")
        ],
        draw=draw,
        summary=lambda tables: tables["values"],
        notes=lambda tables: [f"{len(tables['values'])} rows <here>."],
    )


FIG5 = replace(fig5.PIECE, quick=Settings(draws=2))
PIECES = [FIG5, toy([])]


def contents(results):
    """Return all written files except the manifests, which hold the computing time."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in sorted(results.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    results = tmp_path_factory.mktemp("whole")
    run(PIECES, results, quick=True)
    return results


class Interrupter:
    """Listener that raises KeyboardInterrupt after some parts of one piece."""

    def __init__(self, name, parts):
        self.name, self.parts, self.calls = name, parts, []

    def __call__(self, piece, done, total):
        self.calls.append((piece.name, done))
        if (piece.name, done) == (self.name, self.parts):
            raise KeyboardInterrupt


@pytest.mark.parametrize(("name", "parts"), [("toy", 0), ("fig5", 3), ("toy", 1)])
def test_interrupted_run_resumes_with_same_result(uninterrupted, tmp_path, name, parts):
    with pytest.raises(KeyboardInterrupt):
        run(PIECES, tmp_path, quick=True, listener=Interrupter(name, parts))
    assert Folder(tmp_path, "toy").manifest() is None
    seen = Interrupter("nothing", 0)
    outcomes = run(PIECES, tmp_path, quick=True, listener=seen)
    assert [outcome.state for outcome in outcomes] == [
        "finished" if name == "toy" else "computed",
        "computed",
    ]
    first = next(call for call in seen.calls if call[0] == name)
    assert first == (name, parts)  # parts that were saved are not computed again
    assert contents(tmp_path) == contents(uninterrupted)


def test_several_processes_give_the_same_bytes(uninterrupted, tmp_path):
    run([FIG5], tmp_path, quick=True, workers=2)
    whole = contents(uninterrupted)
    assert contents(tmp_path) == {name: whole[name] for name in whole if name.startswith("fig5")}


def test_finished_piece_is_not_recomputed_without_again(tmp_path):
    calls = []
    assert [outcome.state for outcome in run([toy(calls)], tmp_path)] == ["computed"]
    assert calls == ["a", "b"]
    assert [outcome.state for outcome in run([toy(calls)], tmp_path)] == ["finished"]
    # Full results also serve a quick run.
    assert [outcome.state for outcome in run([toy(calls)], tmp_path, quick=True)] == ["finished"]
    assert calls == ["a", "b"]
    run([toy(calls)], tmp_path, again=True)
    assert calls == ["a", "b"] * 2
    run([toy(calls, draws=(1, 3))], tmp_path)  # other settings are another result
    assert calls == ["a", "b"] * 3
    assert len(pd.read_csv(tmp_path / "toy" / "values.csv")) == 6
    assert not (tmp_path / "toy" / "parts").exists()


def test_quick_result_does_not_count_as_full(tmp_path):
    calls = []
    run([toy(calls)], tmp_path, quick=True)
    assert [outcome.state for outcome in run([toy(calls)], tmp_path)] == ["computed"]


@pytest.mark.parametrize("damage", ["values.csv", "manifest.json", "picture.svg"])
def test_damaged_results_are_recomputed(tmp_path, damage):
    calls = []
    run([toy(calls)], tmp_path)
    before = contents(tmp_path)
    path = tmp_path / "toy" / damage
    path.write_bytes(path.read_bytes()[:-7])
    assert [outcome.state for outcome in run([toy(calls)], tmp_path)] == ["computed"]
    assert contents(tmp_path) == before


def test_missing_data_skip_only_their_piece(tmp_path, monkeypatch):
    needy = replace(toy([], "needy"), needs_data=("amazon_reviews",))
    monkeypatch.delenv("UNFLIP_DATA", raising=False)
    skipped, computed = run([needy, toy([])], tmp_path)
    assert (skipped.state, computed.state) == ("skipped", "computed")
    assert (
        skipped.reason
        == "needy is skipped: set UNFLIP_DATA to the folder that holds amazon_reviews/."
    )
    monkeypatch.setenv("UNFLIP_DATA", str(tmp_path))
    assert f"{tmp_path / 'amazon_reviews'} does not exist" in run([needy], tmp_path)[0].reason
    assert not (tmp_path / "needy").exists()


def test_error_names_failing_piece(tmp_path):
    def fail(tables):
        raise ZeroDivisionError("no ink")

    with pytest.raises(PieceError, match="toy failed: ZeroDivisionError: no ink"):
        run([replace(toy([]), draw=fail)], tmp_path)
    assert Folder(tmp_path, "toy").manifest() is None


def test_failed_write_leaves_no_file(tmp_path, monkeypatch):
    write_atomically(tmp_path / "file", b"old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "file", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_parts_preserve_floats_exactly(tmp_path):
    table = pd.DataFrame(
        {"value": [0.1 + 0.2, np.pi * 1e-300, np.nan], "word": ["a,b", 'c"', "d"], "n": [1, 2, 3]}
    )
    path = tmp_path / "part.json"
    path.write_bytes(encode_part({"t": table}, 1.5))
    tables, seconds = read_part(path)
    pd.testing.assert_frame_equal(tables["t"], table, check_exact=True)
    assert seconds == 1.5


def test_page_escapes_text_and_lists_skipped_pieces(tmp_path):
    piece = toy([])
    run([piece], tmp_path)
    path = write_page([piece, toy([], "absent")], tmp_path, ["fig4 is skipped: no <data>."])
    text = path.read_text(encoding="utf-8")
    assert "It says &lt;nothing&gt; &amp; more." in text
    assert "4 rows &lt;here&gt;." in text
    assert "no &lt;data&gt;." in text
    assert 'href="toy/values.csv"' in text
    assert text.count("<img") == text.count("data:image/svg+xml;base64,") == 1
    assert "absent" not in text
    manifest = json.loads((tmp_path / "toy" / "manifest.json").read_text())
    assert manifest["quick"] is False
    assert "Full run" in text


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.3, 0.5], ["0.3", "0.5"]),
        ([72.694, 8.1], ["72.7", "8.1"]),
        ([0.9391, 0.7], ["0.939", "0.700"]),
        ([1e-6, 1234.567], ["1e-06", "1.23e+03"]),
        ([20, 3], ["20", "3"]),
        (["a → b", "c"], ["a → b", "c"]),
    ],
)
def test_numbers_of_a_column_have_one_format(values, shown):
    assert [row[0] for row in _cells(pd.DataFrame({"x": values}))] == shown
