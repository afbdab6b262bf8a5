"""The page of `unflip audit` says why rows are suspect: by words, columns and similar rows."""

import json
import re

import pytest

pytest.importorskip("jinja2", reason="needs the extra unflip[cli]")

from support.files import mixture_file, program, write_csv
from unflip import NoiseModel
from unflip.cli.audit_table import audit_file
from unflip.cli.files.request import Request
from unflip.datasets import make_messages
from unflip.features import word_features

RATES = "ham=0.1,spam=0.3"


def page_data(path):
    content = path.read_text(encoding="utf-8")
    return json.loads(
        re.search(r'<script type="application/json" id="report-data">(.*?)</script>', content)[1]
    )


def messages_file(path, n_rows):
    """Write messages in two columns of text, with noisy labels."""
    texts, y = make_messages(n_rows, random_state=0)
    labels = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=1)
    first, rest = zip(*(text.split(", ", 1) for text in texts), strict=True)
    write_csv(path, title=first, body=rest, label=[("ham", "spam")[code] for code in labels])
    return texts


def test_columns_of_a_table_are_reasons(tmp_path):
    mixture_file(tmp_path / "d.csv")
    options = ("--label", "label", "--eps", RATES, "--id", "name")
    program("audit", tmp_path / "d.csv", *options, "--out", tmp_path / "page.html")
    data = page_data(tmp_path / "page.html")
    assert data["suspects"]["text"] is None
    assert data["suspects"]["columns"] == [f"x{j}" for j in range(6)]
    assert len(data["suspects"]["cells"][0]) == 6
    assert set(data["details"]["names"]) <= set(data["suspects"]["columns"])
    assert data["details"]["inputs"][0][0][1] > 0
    assert len(data["details"]["nearest"][0]) == 2
    assert len(data["details"]["examples"]["cells"][0]) == 6


@pytest.mark.parametrize("has_svd", [False, True])
def test_words_are_reasons(tmp_path, monkeypatch, has_svd):
    if has_svd:
        monkeypatch.setattr(word_features, "_MOST_SPARSE_ROWS", 100)
        monkeypatch.setattr(word_features, "_N_COMPONENTS", 20)
    messages_file(tmp_path / "d.csv", 400)
    path = tmp_path / "d.csv"
    request = Request(path=path, labels=("label",), text=("title", "body"), eps=RATES)
    result = audit_file(request, lambda stage: None)
    assert result.prepared.rows.shape[1] == 20 or not has_svd
    row = result.audit.suspects["row"][0]
    explanation = result.audit.explain(row)
    text = result.shown.texts[row]
    for name in explanation.inputs["name"]:
        assert all(word in text for word in name.split())
    total = explanation.constant + explanation.inputs["contribution"].sum()
    assert total == pytest.approx(explanation.log_odds, abs=1e-10)
    options = ("--label", "label", "--text", "title", "--text", "body", "--eps", RATES)
    program("audit", path, *options, "--out", tmp_path / "page.html")
    data = page_data(tmp_path / "page.html")
    place = data["details"]["inputs"][0][0][0]
    assert data["details"]["names"][place] == explanation.inputs["name"][0]


def test_embeddings_and_kernels_have_similar_rows_alone(tmp_path):
    mixture_file(tmp_path / "d.csv")
    for option in (("--embedding", "x"), ("--features", "rbf")):
        options = ("--label", "label", "--eps", RATES, *option)
        program("audit", tmp_path / "d.csv", *options, "--out", tmp_path / "page.html")
        details = page_data(tmp_path / "page.html")["details"]
        assert details["inputs"] == details["names"] == []
        assert len(details["nearest"][0]) == 2
        assert ("not linear" in details["note"]) == ("rbf" in option)
