"""Progress bars: only of slow loops, only in notebooks, and without effect on what a loop sees."""

import sys

import pytest

from unflip import LPClassifier
from unflip._utils import progress
from unflip._utils.progress import in_notebook, tracked
from unflip.datasets import make_mixture


@pytest.fixture
def notebook(monkeypatch):
    monkeypatch.setattr(progress, "in_notebook", lambda: True)


@pytest.fixture
def impatient(monkeypatch, notebook):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)


def test_scripts_have_none():
    items = [1, 2, 3]
    assert not in_notebook()
    assert tracked(items, "Waiting") is items


def test_quick_loops_have_none(notebook, capsys):
    assert list(tracked([1, 2, 3], "Waiting")) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")


def test_slow_loops_have_one(impatient, capsys):
    assert list(tracked([1, 2, 3], "Waiting")) == [1, 2, 3]
    assert "Waiting:   0%" in capsys.readouterr().err


def fail(items):
    for _ in items:
        raise KeyError


def test_an_error_in_a_loop_closes_the_bar(impatient, capsys):
    with pytest.raises(KeyError):
        fail(tracked([1, 2, 3], "Waiting"))
    assert capsys.readouterr().err.endswith("\r")  # the line is empty again


def test_they_need_tqdm(notebook, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert list(tracked([1, 2, 3], "Waiting")) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")


def test_a_fit_shows_its_rounds(impatient, capsys):
    X, y = make_mixture(200, 20, mean_norm=2.0, random_state=0)
    LPClassifier().fit(X, y)
    assert "Rounds of refinement" in capsys.readouterr().err
