"""The HTML page of an evaluation: its numbers, its drawing, its escaping, and its writing."""

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="needs the extra unflip[cli]")

from support.audits import NASTY
from unflip import evaluate
from unflip.auditing.evaluation import evaluation_prose as prose
from unflip.auditing.evaluation import noisy_metrics
from unflip.auditing.evaluation.uncertain_truth import SampledTruth
from unflip.auditing.html import evaluation_page
from unflip.auditing.html.evaluation_page import CalibrationChart, page, write_page

CLASSES = np.array(["ham", "spam"])


def binary(n=400, n_checked=80, classes=CLASSES, seed=0):
    """Return probabilities, noisy labels and trusted labels of random rows."""
    rng = np.random.default_rng(seed)
    positive = rng.beta(0.6, 0.6, n)
    true = (rng.random(n) < positive).astype(int)
    labels = np.where(rng.random(n) < 0.2, 1 - true, true)
    trusted = np.full(n, None)
    trusted[:n_checked] = classes[true[:n_checked]]
    return np.column_stack([1 - positive, positive]), classes[labels], trusted


def several(k=4, n=500):
    """Return an evaluation of several classes, the last of which is never predicted."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(k, 0.4), n)
    codes = np.array([rng.choice(k, p=row) for row in shares])
    return evaluate(shares[:, :-1].argmax(axis=1), codes)


def counted():
    """Return an evaluation by the checked rows alone, with none of them in some bins."""
    evaluation = evaluate(*binary(n_checked=12))
    truth = SampledTruth(evaluation.fitted.truth, 2, np.zeros(evaluation.n_rows, dtype=int))
    return replace(evaluation, truth=truth)


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(*binary())


@pytest.fixture(scope="module")
def content(evaluation):
    return page(evaluation, source="data.csv").decode()


class Elements(HTMLParser):
    """The elements of a page, with the names of their attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, tuple(name for name, _ in attrs)))


def elements(content):
    parser = Elements()
    parser.feed(content.decode())
    parser.close()
    return parser.found


def rows_of(content, section):
    """Return the cells of each line of the table of a section."""
    part = content.split(f'<section id="{section}"')[1].split("</section>")[0]
    body = part.split("<tbody>")[1].split("</tbody>")[0]
    return [
        [
            " ".join(re.sub("<[^>]*>", " ", cell).split())
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)
        ]
        for line in body.split("</tr>")[:-1]
    ]


class TestFigures:
    def test_title_and_cards(self, evaluation, content):
        interval = evaluation.accuracy
        limits = f"{interval.low:.1%} to {interval.high:.1%}"
        assert (
            f"<h1>{limits} accurate on true labels, {evaluation.agreement:.1%} against the noisy "
            "labels</h1>"
        ) in content
        assert f"<b>{interval.value:.1%}</b> 95% interval {limits}" in content
        assert f"<b>{evaluation.correct_labels.value:.1%}</b>" in content
        assert "<b>80</b> of 400 rows" in content
        assert "<title>Model evaluation of data.csv</title>" in content

    def test_metrics_are_those_of_the_evaluation(self, evaluation, content):
        noisy = noisy_metrics.by_name(evaluation)
        lines = rows_of(content, "metrics")
        assert [line[0] for line in lines] == [
            "accuracy",
            "balanced accuracy",
            "F1 of &#39;spam&#39;",
            "ROC AUC",
            "log loss (lower is better)",
            "Brier score (lower is better)",
        ]
        assert [line[1:] for line in lines] == [
            [
                f"{interval.value:.3f}",
                f"{interval.low:.3f} to {interval.high:.3f}",
                f"{noisy[name]:.3f}",
            ]
            for name, interval in evaluation.metrics.items()
        ]

    def test_precision_and_recall(self, evaluation, content):
        assert rows_of(content, "classes") == [
            [
                label,
                *(
                    f"{rate.value:.3f} {rate.low:.3f} to {rate.high:.3f}"
                    for rate in (evaluation.precision[code], evaluation.recall[code])
                ),
            ]
            for code, label in enumerate(CLASSES.tolist())
        ]

    def test_confusion_matrix(self, evaluation, content):
        low, high = evaluation.confusion_interval
        counts = evaluation.confusion
        assert rows_of(content, "confusion") == [
            [
                CLASSES[a],
                *(f"{counts[a, b]:.0f} {low[a, b]:.0f} to {high[a, b]:.0f}" for b in (0, 1)),
            ]
            for a in (0, 1)
        ]
        cells = evaluation_page.confusion_cells(evaluation)
        assert [[cell.is_noise for cell in line] for line in cells] == [
            [False, True],
            [True, False],
        ]
        share = counts[0, 1] / counts[0].sum()
        assert cells[0][1].heat == round(10 * np.sqrt(share))

    def test_classes_without_predictions_have_no_precision(self):
        evaluation = several()
        assert np.isnan(evaluation.precision[3].value)
        content = page(evaluation).decode()
        assert rows_of(content, "classes")[3][:2] == ["3", "– –"]
        assert "nan" not in content.lower()
        assert "F1, mean of the classes" in content

    def test_calibration_curve_needs_probabilities(self):
        content = page(several()).decode()
        assert "calibration" not in content.lower().split("<main>")[1]
        assert "<svg" not in content

    def test_checks_that_contradict_the_model(self):
        evaluation = counted()
        assert not evaluation.is_model_based
        content = page(evaluation).decode()
        assert "contradict the model of the true class" in content
        assert "nan" not in content.lower()


class TestDrawing:
    def test_points_are_those_of_the_curve(self, evaluation):
        chart = CalibrationChart.of(evaluation)
        curve = evaluation.calibration_curve
        shares = [float(tick.text.rstrip("%")) / 100 for tick in chart.ticks]
        x = np.polynomial.Polynomial.fit(shares, [tick.x for tick in chart.ticks], 1)
        y = np.polynomial.Polynomial.fit(shares, [tick.y for tick in chart.ticks], 1)
        drawn = [point.x for point in chart.points]
        np.testing.assert_allclose(drawn, x(curve.confidence), atol=0.2)
        for name, field in (("y", "accuracy"), ("low", "low"), ("high", "high")):
            expected = y(curve[field])
            drawn = [getattr(point, name) for point in chart.points]
            np.testing.assert_allclose(drawn, expected, atol=0.2)

    def test_everything_is_inside_the_axes(self, evaluation):
        for chart in (CalibrationChart.of(evaluation), CalibrationChart.of(counted())):
            for point in chart.points:
                assert chart.left <= point.x <= chart.right
                assert chart.top <= point.high <= point.y <= point.low <= chart.bottom

    def test_axes_end_at_one(self):
        positive = np.tile([0.999, 0.001], 100)
        certain = evaluate(positive, (positive > 0.5).astype(int), (positive > 0.5).astype(int))
        chart = CalibrationChart.of(certain)
        assert [tick.text for tick in chart.ticks] == ["90%", "100%"]
        assert (chart.ticks[-1].x, chart.ticks[-1].y) == (chart.right, chart.top)

    def test_bins_without_checks_are_in_the_table_only(self):
        evaluation = counted()
        curve = evaluation.calibration_curve
        known = np.isfinite(curve.accuracy)
        assert 0 < known.sum() < len(curve)
        content = page(evaluation).decode()
        assert content.count("<circle") == content.count('class="interval"') == known.sum()
        lines = rows_of(content, "calibration")
        assert [line[1:3] == ["–", "–"] for line in lines] == (~known).tolist()
        assert [line[0] for line in lines] == [f"{value:.3f}" for value in curve.confidence]

    def test_drawing_is_described_for_screen_readers(self, content):
        svg = ElementTree.fromstring(re.search(r"<svg.*?</svg>", content, re.DOTALL)[0])
        assert svg.get("role") == "img"
        described = {element.get("id"): element.text for element in svg}
        title, description = svg.get("aria-labelledby").split()
        assert described[title] == "Calibration curve"
        assert (
            "Accuracy on true labels by confidence, in 10 groups of rows" in described[description]
        )


class TestAdvice:
    def test_rows_to_check(self, evaluation, content):
        rows = evaluation.check_next(50).tolist()
        listed = content.split('<ul class="names">')[1]
        assert re.findall(r"<li>(\d+)</li>", listed) == list(map(str, rows))
        assert "pass their true labels as trusted=" in content
        assert "Rows are counted from 0." in content

    def test_ids_and_commands(self, evaluation):
        ids = [f"id {row}" for row in range(400)]
        content = page(evaluation, ids=ids, by_command=True).decode()
        listed = content.split('<ul class="names">')[1]
        rows = evaluation.check_next(50).tolist()
        assert re.findall(r"<li>(.*?)</li>", listed) == [f"id {row}" for row in rows]
        assert "put their true labels into a column and pass its name with --trusted" in content
        assert "trusted=" not in content
        assert "counted from 0" not in content

    def test_no_rows_after_many_checks(self):
        assert "Rows to check" in page(evaluate(*binary(n_checked=199))).decode()
        assert "Rows to check" not in page(evaluate(*binary(n_checked=200))).decode()

    def test_one_row_is_left(self):
        content = page(evaluate(*binary(n=150, n_checked=149))).decode()
        assert "the row listed below" in content
        assert "check this row, pass its true label as trusted=" in content

    def test_assumptions(self, evaluation, content):
        for sentence in prose.assumptions(evaluation, has_inclusion=False):
            assert f"<li>{sentence}</li>" in content
        assert "not because their label looked wrong" in content
        probabilities, labels, trusted = binary()
        weighted = page(evaluate(probabilities, labels, trusted, inclusion=np.full(400, 0.2)))
        assert "chosen with the probabilities that were passed" in weighted.decode()
        assert "The trusted labels" not in page(evaluate(probabilities, labels)).decode()

    def test_warning_about_checks_of_suspects(self):
        probabilities, labels, _ = binary()
        own = np.where(labels == "spam", probabilities[:, 1], probabilities[:, 0])
        chosen = np.argsort(own)[:15]
        trusted = np.full(400, None)
        trusted[chosen] = np.where(labels == "spam", "ham", "spam")[chosen]
        with pytest.warns(UserWarning, match="not a random sample"):
            evaluation = evaluate(probabilities, labels, trusted)
        assert prose.selected(prose.PYTHON) in page(evaluation).decode()
        by_command = page(evaluation, by_command=True).decode()
        assert prose.selected(prose.COMMAND_LINE) in by_command
        weighted = evaluate(probabilities, labels, trusted, inclusion=np.full(400, 0.1))
        assert "not a random sample" not in page(weighted).decode()


class TestSafety:
    @pytest.mark.parametrize("attack", [*NASTY, '" onclick="x', "</title><svg onload=x>"])
    def test_names_are_escaped(self, attack):
        harmless = "ham" if attack < "spam" else "tame"  # the same order of the classes
        names = [np.array([name, "spam"]) for name in (harmless, attack)]
        plain, attacked = (
            elements(page(evaluate(*binary(classes=each)), ids=[each[0]] * 400, source=each[0]))
            for each in names
        )
        assert attacked == plain

    def test_nothing_is_run_or_fetched(self, content):
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', content)[1]
        assert "default-src &#39;none&#39;" in policy.replace("'", "&#39;")
        assert "script-src" not in policy
        assert "<script" not in content
        assert not re.search(r"https?://|\bsrc=|@import|url\(|\sstyle=|\son\w+=", content)


class TestWriting:
    def test_to_html_writes_the_page(self, evaluation, tmp_path):
        evaluation.to_html(str(tmp_path / "one.html"))
        write_page(evaluation, tmp_path / "two.html")
        assert (tmp_path / "one.html").read_bytes() == page(evaluation)
        assert (tmp_path / "two.html").read_bytes() == page(evaluation)

    def test_a_failure_leaves_the_old_page(self, evaluation, tmp_path, monkeypatch):
        path = tmp_path / "page.html"
        path.write_text("old")
        monkeypatch.setattr(evaluation_page, "rendered", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_page(evaluation, path)
        assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"page.html": "old"}

    def test_error_without_jinja_names_the_extra(self, evaluation, tmp_path, monkeypatch):
        monkeypatch.delitem(sys.modules, "unflip.auditing.html.evaluation_page")
        monkeypatch.delitem(sys.modules, "unflip.auditing.html.page_parts")
        monkeypatch.setitem(sys.modules, "jinja2", None)
        with pytest.raises(ImportError, match="to_html needs jinja2: install it with pip"):
            evaluation.to_html(tmp_path / "page.html")
