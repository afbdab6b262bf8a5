"""Outputs of a notebook that is run by a kernel, and what IPython shows of each object."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

from support.audits import CLASSES, nasty_audit, nasty_ids, nasty_texts
from unflip import LPClassifier, NoiseModel, NoisyLabelClassifier, audit, audit_scores
from unflip.auditing.shown_rows import ShownRows
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset

EXAMPLE = Path(__file__).parents[2] / "docs" / "audit_in_a_notebook.ipynb"
N_SHOWN = 8
VOID = {"img", "path"}


class Reader(HTMLParser):
    """Elements and text of HTML; raises AssertionError if an element is not closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self._open = [], [], []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.text.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def shown(result):
    pytest.importorskip("jinja2")
    html = result._repr_html_()
    assert len(html.encode()) < 100_000
    return Reader(html)


def digits_like(n=300, k=4):
    """Return an audit of k classes, with an image of each row."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    X = 3 * np.eye(k)[y] @ rng.normal(size=(k, 64)) / 2 + rng.normal(size=(n, 64))
    labels = np.where(rng.random(n) < 0.2, rng.permutation(y), y)
    result = audit(X, labels, noise=NoiseModel(0.8 * np.eye(k) + 0.2 / k))
    return result.showing(images=rng.random((n, 8, 8)))


class TestAudit:
    def test_it_shows_numbers_picture_and_first_suspects(self):
        result = nasty_audit().showing(ids=nasty_ids(), texts=nasty_texts())
        page = shown(result)
        text = " ".join(page.text)
        assert f"An estimated {result.expected_wrong:.0f}" in text
        assert f"{result.expected_accuracy:.1%}" in text
        assert f"The first {N_SHOWN} of {len(result.suspects)} rows of" in text
        assert f"{result.suspects.probability[0]:.1%}" in page.text
        assert len(page.all("svg")) == 1
        assert len(page.all("tr")) == 1 + N_SHOWN

    def test_texts_of_the_data_are_escaped(self):
        result = replace(
            nasty_audit(),
            shown=ShownRows(
                ids=nasty_ids(),
                texts=nasty_texts(),
                cells={"<script>alert(3)</script>": nasty_texts()},
            ),
        )
        page = shown(result)
        assert not page.all("script")
        assert not page.all("img")
        assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
        first = int(result.suspects.row[0])
        assert nasty_ids()[first].encode("utf-8", "replace").decode() in page.text
        assert CLASSES[0] in page.text
        assert "<script>alert(3)</script>" in page.text

    def test_more_classes_show_noise_rates_and_images(self):
        pytest.importorskip("PIL")
        result = digits_like()
        page = shown(result)
        assert not page.all("svg")
        assert len(page.all("img")) == min(N_SHOWN, len(result.suspects))
        assert all(image["src"].startswith("data:image/") for image in page.all("img"))
        rates = [text for text in page.text if re.fullmatch(r"\d+%", text)]
        assert rates == ["15%"] * 4

    def test_long_texts_are_cut(self):
        texts = ["word " * 10_000] * 200
        shown(replace(nasty_audit(), shown=ShownRows(texts=texts, cells={"x" * 9000: texts})))

    def test_there_is_something_to_show_of_each_row(self):
        with pytest.raises(ValueError, match="texts has 3 entries but the audit has 200 rows"):
            nasty_audit().showing(texts=["a", "b", "c"])

    def test_no_suspects(self):
        probabilities = np.tile([[0.9, 0.1], [0.1, 0.9]], (50, 1))
        noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1)
        page = shown(audit_scores(probabilities, np.tile([0, 1], 50), noise=noise))
        assert not page.all("table")

    def test_it_fits_no_model(self, drawn, monkeypatch):
        pytest.importorskip("jinja2")
        result = audit(*drawn[:2])

        def fit(*args, **options):
            raise AssertionError

        for estimator in (LPClassifier, LogisticRegression):
            monkeypatch.setattr(estimator, "fit", fit)
        monkeypatch.setattr("unflip.auditing.evidence.recalibrated", fit)
        assert result._repr_html_()

    def test_without_jinja2_there_is_the_text(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "unflip.auditing.html.notebook_view", None)
        assert nasty_audit()._repr_html_() is None


@pytest.fixture(scope="module")
def drawn():
    X, y = make_mixture(300, 20, mean_norm=2.0, random_state=0)
    return X, NoiseModel.binary(eps_pos=0.2, eps_neg=0.1).flip(y, random_state=0), y


class TestClassifiers:
    @pytest.mark.parametrize("model", [LPClassifier(), NoisyLabelClassifier(LogisticRegression())])
    def test_a_fit_shows_its_expected_accuracy(self, model, drawn):
        assert "Expected accuracy" not in model._repr_html_()
        model.fit(*drawn[:2])
        accuracy = f"<b>{model.expected_accuracy_:.1%}</b> ± {model.expected_accuracy_std_:.1%}"
        rate = f"1: {model.noise_.eps_pos:.0%} ± {model.noise_std_[1, 1]:.0%}"
        for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
            assert f"Expected accuracy on clean labels: {accuracy}, if noise depends on" in html
            assert rate in html
            assert "sk-top-container" in html

    def test_checked_rows_give_an_interval(self, drawn):
        X, observed, y = drawn
        trusted = np.where(np.arange(300) < 100, y, np.nan)
        clf = LPClassifier(TrustedSubset(trusted)).fit(X, observed)
        interval = clf.expected_accuracy_interval_
        assert f"(95% interval {interval.low:.1%} to {interval.high:.1%})" in clf._repr_html_()

    def test_names_of_classes_are_escaped_and_many_are_cut(self):
        rng = np.random.default_rng(0)
        names = np.array([f"<i>{a}</i>" for a in range(8)])
        y = np.arange(400) % 8
        X = 4 * np.eye(8)[y] + rng.normal(size=(400, 8))
        html = LPClassifier(noise=0.9 * np.eye(8) + 0.1 / 8).fit(X, names[y])._repr_html_()
        paragraph = html[: html.index("</p>")]
        assert "The 6 largest noise rates of 8 classes: &lt;i&gt;0&lt;/i&gt;: 9%" in paragraph
        assert "<i>" not in paragraph

    def test_text_display_stays_text(self, drawn):
        clf = LPClassifier().fit(*drawn[:2])
        with config_context(display="text"):
            assert not hasattr(clf, "_repr_html_")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Return the example notebook, run by a kernel in an empty folder."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    for module in ("pandas", "jinja2", "PIL", "tqdm"):
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(EXAMPLE, as_version=4)
    slow = (
        "import time\nfrom unflip._utils import progress\n"
        "progress._PATIENCE = -1.0\n"
        "print(list(progress.tracked(range(3), 'Waiting')))"
    )
    notebook.cells.append(nbformat.v4.new_code_cell(slow))
    client = nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(folder)}})
    return client.execute(), folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestKernel:
    def test_the_example_runs_and_shows_the_audit(self, executed):
        notebook, folder = executed
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        html = [
            each["data"]["text/html"] for each in outputs if "text/html" in each.get("data", {})
        ]
        audit_html, suspects, plan, classifier = html[:4]
        assert '<div class="unflip-audit">' in audit_html
        assert '<table border="1" class="dataframe">' in suspects
        assert audit_html.count('<img src="data:image/png') == N_SHOWN
        assert "check all rows" in plan
        assert "Expected accuracy on clean labels" in classifier
        assert (folder / "digits.html").read_bytes().startswith(b"<!doctype html>")
        assert len(json.dumps(html[0])) < 100_000

    def test_a_slow_loop_shows_a_bar(self, executed):
        notebook, _ = executed
        outputs = notebook.cells[-1].outputs
        assert [each.text for each in outputs if each.get("name") == "stdout"] == ["[0, 1, 2]\n"]
        assert "Waiting" in json.dumps(outputs)
