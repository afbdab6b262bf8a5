"""The details of suspects on the page of an audit: reasons, any class, heat maps, accessibility."""

import csv
import io

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="needs the extra unflip[cli]")

from sklearn.feature_extraction.text import TfidfVectorizer

from support.browser import CHROMIUM, needs_browser
from unflip import NoiseModel, audit
from unflip._utils.record_tables import lines_of
from unflip.auditing.html.audit_page import write_page
from unflip.auditing.shown_rows import ShownRows
from unflip.cli.files.decision_files import read_decisions
from unflip.datasets import make_messages, make_mixture

pytestmark = needs_browser

FRUIT = np.array(["apple", "banana", "cherry"])


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM)
        yield opened
        opened.close()


def texts_page(path):
    """Write a page of messages; return the audit, the messages and the words."""
    texts, y = make_messages(500, random_state=0)
    noise = NoiseModel.binary(eps_pos=0.25, eps_neg=0.15)
    labels = np.array(["billing", "delivery"])[noise.flip(y, random_state=1)]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2)
    result = audit(5 * vectorizer.fit_transform(texts), labels, noise=noise)
    words = vectorizer.get_feature_names_out()
    ids = [f"m{i:03d}" for i in range(len(texts))]
    result.to_html(path, texts=texts, ids=ids, feature_names=words)
    return result, texts, words


def table_page(path):
    """Write a page of numbers and images of three classes; return its audit."""
    X, y = make_mixture(200, 4, means=2.2 * np.eye(3, 4), random_state=0)
    noise = NoiseModel(0.7 * np.eye(3) + 0.1)
    result = audit(X, FRUIT[noise.flip(y, random_state=0)], noise=noise)
    shown = ShownRows(
        cells={f"size {j}": X[:, j].tolist() for j in range(3)} | {"kind": ["<i>big</i>"] * 200},
        images=list(np.random.default_rng(0).integers(17, size=(200, 8, 8))),
    )
    names = ["size 0", "size 1", "size 2", "kind"]
    write_page(result, path, shown=shown, feature_names=names)
    return result


def many_classes_page(path):
    """Write a page of twelve classes; return its audit."""
    X, y = make_mixture(500, 14, means=3.5 * np.eye(12, 14), random_state=0)
    noise = NoiseModel(0.8 * np.eye(12) + 0.2 / 12)
    names = np.array([f"kind {i:02d}" for i in range(12)])
    result = audit(X, names[noise.flip(y, random_state=0)], noise=noise)
    result.to_html(path)
    return result


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages by kind: path, and what its function returns."""
    folder = tmp_path_factory.mktemp("pages")
    writers = {"texts": texts_page, "table": table_page, "many": many_classes_page}
    return {
        name: (folder / f"{name}.html", write(folder / f"{name}.html"))
        for name, write in writers.items()
    }


@pytest.fixture
def open_page(browser, pages):
    """Open a page at its suspects; after the test, assert that it wrote no message."""
    contexts, messages = [], []

    def opened(name, width=1440, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(f"{pages[name][0].as_uri()}#suspects")
        page.wait_for_selector("#rows tr")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert messages == []


def active(page):
    return page.locator("#rows tr.active")


def row_number(row):
    return int(row.locator("td.row").text_content())


def decisions(page, count):
    return [row.get_attribute("data-decision") for row in page.locator("#rows > tr").all()[:count]]


def progress(page):
    return page.locator("#progress").text_content()


def exported(page, folder):
    with page.expect_download() as waiting:
        page.click("#export")
    path = folder / "decisions.csv"
    waiting.value.save_as(path)
    return path, list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))


class TestReasons:
    def test_words_are_those_of_the_explanation(self, open_page, pages):
        result, texts, words = pages["texts"][1]
        page = open_page("texts")
        for _ in range(4):
            page.keyboard.press("j")
            row = row_number(active(page))
            inputs = result.explain(row, feature_names=words).inputs
            shares = dict(zip(inputs["name"], inputs["share"], strict=True))
            toward = [name for name in inputs["name"] if shares[name] > 0][:5]
            lines = active(page).locator(".why tbody tr")
            listed = lines.locator("th").all_text_contents()
            assert listed[: len(toward)] == toward
            assert lines.first.locator(".share").text_content() == f"{shares[toward[0]]:+.0%}"
            marks = active(page).locator("mark").all_text_contents()
            assert marks
            assert all(mark.lower() in texts[row].lower() for mark in marks)
            assert active(page).locator("td.text").text_content() == texts[row]
        assert page.locator(".detail").count() == 1

    def test_similar_rows_are_those_of_the_explanation(self, open_page, pages):
        result, texts, _ = pages["texts"][1]
        page = open_page("texts")
        nearest = result.explain(row_number(active(page))).nearest
        shown = active(page).locator(".similar li")
        assert shown.count() == len(nearest) == 2
        for item, (row, label, _) in zip(shown.all(), lines_of(nearest), strict=True):
            assert item.locator("b").text_content() == label
            assert f"m{row:03d}" in item.text_content()
            assert texts[row] in item.text_content()

    def test_rows_of_a_table_are_tables(self, open_page, pages):
        result = pages["table"][1]
        page = open_page("table")
        row = row_number(active(page))
        lines = active(page).locator(".why tbody tr")
        names = lines.locator("th").all_text_contents()
        assert sorted(names) == ["kind", "size 0", "size 1", "size 2"]
        inputs = result.explain(row, feature_names=["size 0", "size 1", "size 2", "kind"]).inputs
        shares = dict(zip(inputs["name"], inputs["share"], strict=True))
        largest = max(shares, key=lambda name: abs(shares[name]))
        assert names[0] == largest
        assert "<i>big</i>" in lines.locator("td").all_text_contents()
        page.fill("#search", "<i>BIG")
        page.wait_for_timeout(200)
        assert page.locator("#rows > tr").count() > 1

    def test_images_are_thumbnails(self, open_page):
        page = open_page("table")
        for image in (page.locator("td.image img").first, page.locator(".similar img").first):
            assert image.get_attribute("src").startswith("data:image/png;base64,")
            assert image.evaluate("image => image.naturalWidth") == 8
        assert active(page).locator(".similar li").count() == 2


class TestAnyClass:
    def test_another_class_is_exported_and_read_back(self, open_page, pages, tmp_path):
        suspects = pages["table"][1].suspects
        page = open_page("table")
        observed, proposed = suspects["observed"][0], suspects["proposed"][0]
        (third,) = set(FRUIT) - {observed, proposed}
        choice = active(page).locator("select.choice")
        choice.select_option(label=third)
        assert progress(page).startswith("0 accepted, 0 rejected, 1 corrected")
        assert third in active(page).locator("td.decision").text_content()
        page.reload()
        assert decisions(page, 1) == ["correct"]
        path, (line,) = exported(page, tmp_path)
        assert (line["decision"], line["label"]) == ("correct", third)
        (decision,) = read_decisions(path)
        assert (decision.row, decision.observed, decision.label) == (
            suspects["row"][0],
            observed,
            third,
        )

    def test_the_observed_or_proposed_class_is_a_decision_as_before(self, open_page, pages):
        suspects = pages["table"][1].suspects
        page = open_page("table")
        page.keyboard.press("j")
        page.keyboard.press(str(FRUIT.tolist().index(suspects["proposed"][0]) + 1))
        page.keyboard.press(str(FRUIT.tolist().index(suspects["observed"][1]) + 1))
        assert decisions(page, 3) == ["accept", "reject", ""]

    def test_keys_find_a_class_by_its_letters(self, open_page, pages):
        suspects = pages["many"][1].suspects
        page = open_page("many")
        page.keyboard.press("j")
        page.keyboard.press("c")
        assert page.evaluate("document.activeElement.className") == "choice"
        taken = {suspects["observed"][0], suspects["proposed"][0]}
        name = next(name for name in ("kind 10", "kind 11", "kind 09") if name not in taken)
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        assert decisions(page, 1) == ["correct"]
        assert page.locator("#rows .other-decision b").text_content() == name
        assert row_number(active(page)) == suspects["row"][1]
        assert page.evaluate("document.activeElement.className").startswith("active") or (
            page.evaluate("document.activeElement.tagName") == "TR"
        )

    def test_letters_of_a_name_go_to_the_choice_if_decided_rows_are_hidden(self, open_page, pages):
        page = open_page("table")
        page.select_option("#filter-decision", "none")
        page.keyboard.press("j")
        page.keyboard.press("c")
        page.keyboard.type("banana")
        page.keyboard.press("Enter")
        made = [kind for kind in decisions(page, None) if kind]
        assert len(made) == 1
        assert f"{len(pages['table'][1].suspects) - 1} undecided" in progress(page)

    def test_two_classes_need_no_choice(self, open_page):
        page = open_page("texts")
        assert active(page).locator("select.choice").count() == 0
        assert "another class" not in page.locator("#help").text_content()
        page.keyboard.press("j")
        page.keyboard.press("1")
        assert progress(page).startswith("0 accepted, 0 rejected")
        active(page).get_by_role("button", name="Unsure").click()
        assert "1 unsure" in progress(page)

    def test_unsure_is_not_exported_and_undo_goes_back_several_steps(self, open_page, tmp_path):
        page = open_page("table")
        page.keyboard.press("j")
        for key in ("a", "?", "r"):
            page.keyboard.press(key)
        assert decisions(page, 4) == ["accept", "unsure", "reject", ""]
        assert "1 unsure" in progress(page)
        _, lines = exported(page, tmp_path)
        assert sorted(line["decision"] for line in lines) == ["accept", "reject"]
        page.click("#undo")
        page.click("#undo")
        assert decisions(page, 3) == ["accept", "", ""]
        page.locator("#rows .unsure").click()
        page.select_option("#filter-decision", "unsure")
        assert page.locator("#rows > tr").count() == 1

    def test_accept_all_above_a_probability_is_one_step(self, open_page, pages):
        suspects = pages["table"][1].suspects
        page = open_page("table")
        accept_all = page.locator("#accept-all")
        assert accept_all.is_disabled()
        page.locator("#rows .reject").first.click()
        page.fill("#least", "0.9")
        count = int((suspects["probability"].round(6) >= 0.9).sum()) - 1
        assert count > 5
        assert accept_all.text_content() == f"Accept {count} rows ≥ 0.90"
        accept_all.click()
        assert progress(page).startswith(f"{count} accepted, 1 rejected")
        assert accept_all.is_disabled()
        page.click("#undo")
        assert progress(page).startswith("0 accepted, 1 rejected")
        page.click("#undo")
        assert page.locator("#undo").is_disabled()


def test_active_row_stays_in_view(open_page):
    for width in (1440, 390):
        page = open_page("texts", width)
        page.keyboard.press("j")
        for key in "aararraaj?kkkkkkkkkkk":
            page.keyboard.press(key)
            top, bottom, header = page.evaluate(
                """() => {
                  const { top, bottom } = document.activeElement.getBoundingClientRect();
                  const head = document.querySelector("table.suspects > thead");
                  return [top, bottom, head.getBoundingClientRect().height];
                }"""
            )
            assert top >= header - 1
            assert bottom <= 900 or bottom - top > 900 - header
            assert top < 200 or bottom <= 900


class TestHeatMap:
    def test_cell_lists_its_suspects(self, open_page, pages):
        suspects = pages["many"][1].suspects
        page = open_page("many")
        page.get_by_role("tab", name="Noise and accuracy").click()
        observed, proposed = suspects["observed"][0], suspects["proposed"][0]
        count = int(((suspects["observed"] == observed) & (suspects["proposed"] == proposed)).sum())
        words = "1 suspect" if count == 1 else f"{count} suspects"
        cell = page.get_by_role(
            "gridcell", name=f"Label {observed}, proposed {proposed}: {words}", exact=True
        )
        assert cell.text_content() == str(count)
        cell.hover()
        assert words in page.locator("#confusion-map .heat-words").text_content()
        cell.click()
        page.locator("#rows tr").first.wait_for()
        assert page.locator("#rows > tr").count() == count
        assert set(page.locator("#rows .observed .label").all_text_contents()) == {observed}

    def test_keys_move_and_open(self, open_page):
        page = open_page("many")
        page.get_by_role("tab", name="Noise and accuracy").click()
        page.locator("#transition-map td").first.focus()
        for key, place in (("ArrowRight", 1), ("ArrowDown", 13), ("End", 23), ("Home", 12)):
            page.keyboard.press(key)
            cells = "[...document.querySelectorAll('#transition-map td')]"
            assert page.evaluate(f"{cells}.indexOf(document.activeElement)") == place
        words = page.locator("#transition-map .heat-words").text_content()
        assert words.startswith("True class kind 01, label kind 00: ")
        page.locator("#confused button").first.focus()
        page.keyboard.press("Enter")
        page.locator("#rows tr").first.wait_for()
        assert 0 < page.locator("#rows > tr").count() < 50


def violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    return [
        (each["id"], each["nodes"][0]["html"][:200])
        for each in axe.run(page).response["violations"]
    ]


QUICK = [("table", 1440, "light"), ("many", 390, "dark")]
ALL = [
    (name, width, scheme)
    for name in ("texts", "table", "many")
    for width in (1440, 390)
    for scheme in ("light", "dark")
]


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [*QUICK, *(pytest.param(*each, marks=pytest.mark.slow) for each in ALL if each not in QUICK)],
)
def test_axe_finds_no_fault_in_any_tab(open_page, name, width, scheme):
    page = open_page(name, width, color_scheme=scheme)
    page.keyboard.press("j")
    for key in "ar?":
        page.keyboard.press(key)
    for tab in ("Suspects", "Check rows", "Noise and accuracy"):
        page.get_by_role("tab", name=tab).click()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
