"""Tables of an audit: DataFrames, or record arrays without pandas, with the same content."""

import sys

import numpy as np
import pytest

from support.audits import nasty_audit
from unflip import Votes, audit
from unflip._utils.record_tables import columns_of, lines_of, table
from unflip.datasets import make_mixture

TABLES = ("suspects", "plan", "sensitivity", "main_sensitivity", "unlabelled", "annotators")


def voted():
    """Return an audit of three annotators, some rows without votes."""
    X, y = make_mixture(200, 10, mean_norm=2.0, random_state=0)
    rng = np.random.default_rng(0)
    votes = np.where(rng.random((200, 3)) < 0.8, y[:, None], 1 - y[:, None]).astype(object)
    votes[rng.random((200, 3)) < 0.3] = None
    return audit(X, Votes.from_columns(votes, ["Ann", "Bob", "Cleo"]))


@pytest.fixture
def without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)


@pytest.mark.parametrize("draw", [nasty_audit, voted])
def test_tables_are_equal_with_and_without_pandas(draw, monkeypatch, tmp_path):
    pandas = pytest.importorskip("pandas")
    audits = [draw(), draw()]
    names = [*TABLES, "confusions"]
    frames = [getattr(audits[0], name) for name in names]
    pages = [tmp_path / "frames.html", tmp_path / "records.html"]
    audits[0].to_html(pages[0])
    texts = [str(audits[0])]
    monkeypatch.setitem(sys.modules, "pandas", None)
    records = [getattr(audits[1], name) for name in names]
    audits[1].to_html(pages[1])
    texts.append(str(audits[1]))
    for frame, record in zip(frames, records, strict=True):
        if frame is None:
            assert record is None
            continue
        assert isinstance(frame, pandas.DataFrame)
        assert isinstance(record, np.recarray)
        assert list(columns_of(frame)) == list(columns_of(record))
        for name, column in columns_of(frame).items():
            np.testing.assert_array_equal(column, record[name])
    assert texts[0] == texts[1]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_votes_to_ask_for_are_a_table_like_the_others(monkeypatch):
    result = voted()
    monkeypatch.setitem(sys.modules, "pandas", None)
    asked = result.ask_next(3)
    assert asked.dtype.names == ("row", "annotator", "gain", "cost")


def assert_is_a_table(made):
    assert len(made) == 3
    assert made.name[:2].tolist() == ["a", "b"]
    assert made["share"][1] == 0.5
    assert [line.share for line in lines_of(made[1:])] == [0.5, 0.75]
    assert [type(value) for value in next(lines_of(made))] == [str, float, int]
    assert next(lines_of(made))._asdict() == {"name": "a", "share": 0.25, "count": 3}


def test_columns_slices_and_lines():
    assert_is_a_table(table(name=["a", "b", "c"], share=[0.25, 0.5, 0.75], count=[3, 2, 1]))


def test_columns_slices_and_lines_of_record_arrays(without_pandas):
    assert_is_a_table(table(name=["a", "b", "c"], share=[0.25, 0.5, 0.75], count=[3, 2, 1]))


def test_an_empty_table_has_its_columns():
    empty = table(row=np.empty(0, dtype=int), label=np.empty(0, dtype="<U3"))
    assert list(columns_of(empty)) == ["row", "label"]
    assert list(lines_of(empty)) == []


def test_any_string_can_be_a_label():
    labels = ["\ud800", "a\x00b", "nan", ""]
    assert table(label=labels).label.tolist() == labels
