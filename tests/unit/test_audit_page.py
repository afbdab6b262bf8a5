"""The HTML page of an audit: its numbers, its escaping, and its atomic writing."""

import base64
import hashlib
import json
import re
import sys
from typing import get_args

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="needs the extra unflip[cli]")

from support.audits import (
    CLASSES,
    N_DOWN,
    N_UP,
    nasty_audit,
    nasty_ids,
    nasty_texts,
    spotless,
    three_classes,
)
from unflip import NoiseModel, audit_scores
from unflip.auditing import prose
from unflip.auditing.html import page_tables
from unflip.auditing.html.audit_page import write_page
from unflip.auditing.html.score_panels import score_panels
from unflip.auditing.shown_rows import ShownRows
from unflip.estimation.automatic import Source


def written(audit, folder, *, assumptions=(), **shown):
    write_page(audit, folder / "page.html", shown=ShownRows(**shown), assumptions=assumptions)
    return (folder / "page.html").read_text(encoding="utf-8")


def embedded(content):
    return json.loads(
        re.search(r'<script type="application/json" id="report-data">(.*?)</script>', content)[1]
    )


@pytest.fixture(scope="module")
def audit():
    return nasty_audit()


@pytest.fixture(scope="module")
def content(audit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    options = {
        "texts": nasty_texts(),
        "ids": nasty_ids(),
        "source": "<script>alert(2)</script>.csv",
    }
    return written(audit, folder, **options, assumptions=["Rows came in <i>order</i>."])


class TestFigures:
    def test_suspects_are_those_of_the_audit(self, audit, content):
        data, suspects = embedded(content), audit.suspects
        shown = data["suspects"]
        assert len(shown["row"]) == N_UP + N_DOWN
        assert shown["row"] == suspects.row.tolist()
        assert CLASSES[shown["observed"]].tolist() == suspects.observed.tolist()
        assert CLASSES[shown["proposed"]].tolist() == suspects.proposed.tolist()
        np.testing.assert_allclose(shown["probability"], suspects.probability, atol=5e-7)
        assert shown["text"] == [nasty_texts()[row] for row in suspects.row]
        assert shown["id"] == [nasty_ids()[row] for row in suspects.row]
        assert data["n_suspects"] == audit.n_suspects

    def test_outlook_is_that_of_the_audit(self, audit, content):
        outlook = embedded(content)["outlook"]
        assert outlook["checked"][0] == 0
        assert outlook["checked"][-1] == 200
        assert audit.n_suspects in outlook["checked"]
        for growth, line in zip(outlook["growth"], outlook["accuracy"], strict=True):
            expected = [audit.accuracy_after(m, growth=growth) for m in outlook["checked"]]
            np.testing.assert_allclose(line, expected, atol=5e-7)

    def test_page_without_an_effective_dimension(self, tmp_path):
        content = written(three_classes(), tmp_path)
        assert embedded(content)["outlook"] is None
        assert "effective_dimension" in content

    def test_headline_and_cards(self, audit, content):
        wrong = f"{audit.expected_wrong:.0f} ± {audit.expected_wrong_std:.0f}"
        assert f"An estimated {wrong} of 200 labels are wrong" in content
        assert content.count("(standard error)") == 2
        assert f"<b>{audit.expected_accuracy:.1%}</b>" in content
        assert f"<b>{audit.n_suspects}</b>" in content
        assert prose.headline(spotless()) == "Almost all of the 60 labels are right"

    def test_advice_for_python_and_for_the_command_line(self, audit):
        python = " ".join(prose.next_steps(audit, prose.PYTHON))
        commands = " ".join(prose.next_steps(audit, prose.COMMAND_LINE))
        assert f"Review the first {audit.n_suspects} suspects" in python
        assert "audit(X, y, trusted=..., noise=result.noise)" in python
        assert "unflip" not in python
        assert "run unflip fit ... --decisions decisions.csv with the original data." in commands
        assert "a corrected copy of the data for use outside unflip, run unflip apply." in commands
        assert "trusted=" not in commands

    def test_transition_matrix_has_rates_errors_and_intervals(self):
        audit = three_classes()
        cells = page_tables.noise_cells(audit)
        assert [[cell.figure for cell in row] for row in cells][2] == ["10.0%", "20.0%", "70.0%"]
        assert {cell.error for row in cells for cell in row} == {""}
        uncertain = page_tables._cell(0.05, 0.1, is_noise=True)
        assert (uncertain.error, uncertain.interval) == ("± 10.0%", "0% to 25%")

    def test_assumptions(self, audit, content):
        assert "The noise rates were given" in content
        assert "Rows came in &lt;i&gt;order&lt;/i&gt;." in content
        assert len(page_tables.sensitivity_lines(audit)) == len(audit.sensitivity)

    def test_every_source_of_rates_is_explained(self):
        sources = {"given", "votes", "estimator", *get_args(Source)}
        assert set(prose._SOURCES) == set(prose._SOURCE_NOTES) == sources

    def test_texts_and_ids_may_be_missing(self, audit, tmp_path):
        shown = embedded(written(audit, tmp_path))["suspects"]
        assert shown["text"] is None
        assert shown["id"] is None

    def test_checked_rows_come_last(self, tmp_path):
        trusted = np.full(200, None)
        trusted[[3, 4]] = CLASSES
        audit = nasty_audit(trusted=trusted)
        content = written(audit, tmp_path)
        shown = embedded(content)["suspects"]
        assert [shown["row"][place] for place in shown["checked"]] == [4]
        assert shown["checked"] == [len(shown["row"]) - 1]
        assert shown["probability"][-1] == 1
        assert "their true label was given" in content

    def test_no_gain_is_not_negative(self, audit):
        assert page_tables.gain(audit, audit.expected_accuracy - 1e-12) == "+0.0"

    def test_long_texts_are_cut(self, audit, tmp_path):
        shown = embedded(written(audit, tmp_path, texts=["x" * 5000] * 200))["suspects"]["text"]
        assert max(map(len, shown)) < 2100
        assert shown[0].endswith("[…]")


class TestScores:
    def test_bars_count_all_rows_by_label(self, audit):
        (panel,) = score_panels(audit.evidence)
        assert panel.counts.sum(axis=1).tolist() == [100, 100]

    def test_lines_sum_to_the_counts_expected_by_the_noise_model(self):
        evidence = three_classes().evidence
        panels = score_panels(evidence)
        assert [panel.code for panel in panels] == [0, 1, 2]
        for panel in panels:
            likely = (evidence.probabilities @ evidence.noise.model.transition)[:, panel.code].sum()
            for_each_bar = (
                panel.expected.sum(axis=1) * panel.counts.shape[1] / panel.expected.shape[1]
            )
            np.testing.assert_allclose(for_each_bar, [300 - likely, likely], rtol=1e-9)

    def test_lines_match_bars_if_the_model_is_true(self):
        rng = np.random.default_rng(0)
        true = 1 / (1 + np.exp(-rng.normal(0, 2, 40_000)))
        observed = 0.8 * true + 0.1 * (1 - true)
        noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
        # The log-odds of the true class are linear in those of the scores.
        audit = audit_scores(
            np.column_stack([1 - true, true]), rng.random(40_000) < observed, noise=noise
        )
        (panel,) = score_panels(audit.evidence)
        expected = panel.expected.reshape(2, panel.counts.shape[1], -1).mean(axis=2)
        errors = (panel.counts - expected) / np.sqrt(expected + 1)
        assert np.abs(errors[:, 1:-1]).mean() < 1.3  # 0.8 by chance alone; smoothing adds some

    @pytest.mark.parametrize(("n_classes", "n_panels"), [(6, 6), (7, 0)])
    def test_many_classes_have_heat_maps_instead(self, n_classes, n_panels, tmp_path):
        rng = np.random.default_rng(0)
        codes = rng.integers(n_classes, size=300)
        scores = rng.dirichlet(np.ones(n_classes), 300)
        audit = audit_scores(scores, codes, noise=NoiseModel.none(n_classes))
        data = embedded(written(audit, tmp_path))
        assert len(data["panels"]) == n_panels
        if n_panels:
            assert data["transition"] is None
        else:
            np.testing.assert_allclose(data["transition"]["rates"], audit.noise.transition)


class TestSafety:
    def test_data_are_escaped(self, content):
        assert content.count("<script") == content.count("</script") == 2
        assert "<!--" not in content
        assert "alert(1)>" not in content
        assert "\u2028" not in content
        assert "&lt;script&gt;alert(2)&lt;/script&gt;.csv" in content
        assert "<b>ham" not in content

    def test_nothing_is_fetched(self, content):
        assert set(re.findall(r"https?://[^\s\"']*", content)) == {
            "http://www.w3.org/2000/svg"  # an XML namespace, which is not fetched
        }
        assert not re.search(
            r"\bsrc=|@import|url\(|innerHTML|\sstyle=", content.split('id="report-data"')[0]
        )

    def test_security_policy_allows_only_the_pages_script_and_style(self, content):
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', content)[1].replace(
            "&#39;", "'"
        )
        assert "default-src 'none'" in policy
        for kind, element in (
            ("script", re.search(r"<script>(.*)</script>", content, re.DOTALL)[1]),
            ("style", re.search(r"<style>(.*)</style>", content, re.DOTALL)[1]),
        ):
            digest = base64.b64encode(hashlib.sha256(element.encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy

    def test_another_report_has_another_key(self, audit, tmp_path):
        one, again = (written(audit, tmp_path, ids=nasty_ids()) for _ in range(2))
        other = written(audit, tmp_path, ids=nasty_ids()[::-1])
        assert one == again
        assert embedded(one)["key"] != embedded(other)["key"]


class TestWriting:
    def test_a_full_disk_leaves_the_old_page(self, audit, tmp_path):
        resource = pytest.importorskip("resource")
        path = tmp_path / "page.html"
        path.write_text("old")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                write_page(audit, path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"page.html": "old"}

    @pytest.mark.parametrize("name", ["texts", "ids"])
    def test_texts_and_ids_need_an_entry_for_each_row(self, audit, tmp_path, name):
        with pytest.raises(ValueError, match=f"{name} has 3 entries but the audit has 200 rows"):
            write_page(audit, tmp_path / "page.html", shown=ShownRows(**{name: ["x"] * 3}))
        assert list(tmp_path.iterdir()) == []

    def test_to_html_writes_the_page(self, audit, tmp_path):
        audit.to_html(str(tmp_path / "one.html"), texts=nasty_texts())
        assert (tmp_path / "one.html").read_text() == written(audit, tmp_path, texts=nasty_texts())

    def test_error_without_jinja_names_the_extra(self, audit, tmp_path, monkeypatch):
        monkeypatch.delitem(sys.modules, "unflip.auditing.html.audit_page")
        monkeypatch.delitem(sys.modules, "unflip.auditing.html.page_parts")
        monkeypatch.setitem(sys.modules, "jinja2", None)
        with pytest.raises(
            ImportError,
            match=re.escape('to_html needs jinja2: install it with pip install "unflip['),
        ):
            audit.to_html(tmp_path / "page.html")
