"""The HTML page of an audit in a browser: list, decisions, export, and no network access."""

import csv
import io
import json
import re
from types import SimpleNamespace

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
from support.browser import CHROMIUM, needs_browser
from unflip import NoiseModel
from unflip import audit as find_errors
from unflip.auditing.html.audit_page import write_page
from unflip.auditing.shown_rows import ShownRows
from unflip.datasets import make_mixture

pytestmark = needs_browser

TABS = ("Check rows", "Suspects", "Noise and accuracy")
PANELS = ("#check", "#suspects", "#details")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def audit():
    return nasty_audit()


@pytest.fixture(scope="module")
def path(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    shown = ShownRows(texts=nasty_texts(), ids=nasty_ids(), source="data.csv")
    write_page(audit, path, shown=shown)
    return path


def suspects_of(path):
    """Return the address of the tab of suspects."""
    return f"{path.as_uri()}#suspects"


def watch(page):
    """Collect console messages, requests and dialogs of a page."""
    seen = SimpleNamespace(console=[], requests=[], dialogs=[])
    page.on("console", lambda message: seen.console.append(message.text))
    page.on("pageerror", lambda error: seen.console.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
    return seen


@pytest.fixture
def opened(browser, path):
    """Open the page; after the test, assert that it wrote no message and fetched nothing else."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    seen = watch(page)
    page.goto(suspects_of(path))
    yield page
    local = ("data:,", "blob:")
    assert {url for url in seen.requests if not url.startswith(local)} == {path.as_uri()}
    assert seen.console == []
    assert seen.dialogs == []
    context.close()


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()


def wait_for_scroll_to(page, part):
    page.wait_for_function(
        """part => {
          const { top, bottom } = document.querySelector(part).getBoundingClientRect();
          return top >= 0 && bottom <= innerHeight;
        }""",
        arg=part,
    )


def visible_panels(page):
    return [panel for panel in PANELS if page.locator(panel).is_visible()]


def shown_rows(page):
    return [int(text) for text in page.locator("#rows td.row").all_text_contents()]


def place(page):
    return page.locator(".place").first.text_content()


def wait_for_place(page, text):
    page.locator(".place", has_text=re.compile(f"^{text}$")).first.wait_for()


def row(page, number):
    return page.locator("#rows tr", has=page.locator("td.row", has_text=re.compile(f"^{number}$")))


def decision(page, number):
    return row(page, number).get_attribute("data-decision")


def focused_row(page):
    return page.evaluate(
        "Number(document.activeElement.closest('tr')?.querySelector('td.row').textContent ?? -1)"
    )


def progress(page):
    return page.locator("#progress").text_content()


def exported(page):
    with page.expect_download() as waiting:
        page.click("#export")
    assert waiting.value.suggested_filename == "decisions.csv"
    content = waiting.value.path().read_bytes().decode()
    return list(csv.DictReader(io.StringIO(content, newline="")))


class TestTabs:
    def test_click_shows_one_part(self, browser, path):
        page = browser.new_page()
        page.goto(path.as_uri())
        assert visible_panels(page) == ["#check"]
        for name, panel in zip(TABS, PANELS, strict=True):
            open_tab(page, name)
            assert visible_panels(page) == [panel]
            assert page.get_by_role("tab", selected=True).text_content() == name
            assert page.get_by_role("tabpanel", name=name).is_visible()
        page.reload()
        assert visible_panels(page) == ["#details"]
        page.close()

    def test_keys(self, opened):
        opened.get_by_role("tab", name="Suspects").focus()
        for key, panel in [
            ("ArrowRight", "#details"),
            ("ArrowRight", "#check"),
            ("ArrowLeft", "#details"),
            ("Home", "#check"),
            ("End", "#details"),
        ]:
            opened.keyboard.press(key)
            assert visible_panels(opened) == [panel]
            assert f"#{opened.evaluate('document.activeElement.hash.slice(1)')}" == panel
        opened.keyboard.press("Shift+Tab")
        assert opened.evaluate("document.activeElement.role") != "tab"  # one tab stop

    @pytest.mark.parametrize(
        ("part", "panel"), [("outlook", "#details"), ("suspects", "#suspects"), ("%", "#check")]
    )
    def test_address_opens_the_tab_of_its_part(self, browser, path, part, panel):
        page = browser.new_page()
        seen = watch(page)
        page.goto(f"{path.as_uri()}#{part}")
        assert visible_panels(page) == [panel]
        if part == "outlook":
            wait_for_scroll_to(page, "#outlook-heading")
        page.evaluate("location.hash = '#noise'")
        page.locator("#noise").wait_for()
        assert visible_panels(page) == ["#details"]
        assert seen.console == []
        page.close()

    def test_page_without_scripts_and_print_show_all_parts(self, browser, path, opened):
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(path.as_uri())
        assert visible_panels(page) == list(PANELS)
        context.close()
        opened.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert visible_panels(opened) == list(PANELS)
        assert opened.locator("svg[role=img]").count() == 2  # charts, too
        opened.evaluate("dispatchEvent(new Event('afterprint'))")
        assert visible_panels(opened) == ["#suspects"]


class TestList:
    def test_worst_suspects_come_first_and_texts_are_escaped(self, opened, audit):
        assert shown_rows(opened) == audit.suspects.row[:50].tolist()
        assert place(opened) == "1–50 of 120"
        assert opened.locator("#rows .text").all_text_contents() == [
            nasty_texts()[i] for i in audit.suspects.row[:50]
        ]
        assert opened.locator("#rows .id").all_text_contents() == [
            nasty_ids()[i] for i in audit.suspects.row[:50]
        ]
        assert opened.locator("#rows .observed").first.text_content() in CLASSES

    def test_sorting(self, opened):
        for number in (1, 2):
            opened.click("#columns .row button")
            assert shown_rows(opened) == sorted(range(N_UP + N_DOWN), reverse=number == 2)[:50]
        assert opened.locator("#columns .row").get_attribute("aria-sort") == "descending"
        opened.click("#columns .observed button")
        assert set(opened.locator("#rows .observed").all_text_contents()) == {CLASSES[0]}

    def test_searching(self, opened):
        opened.fill("#search", "OF ROW 17")
        wait_for_place(opened, "1–1 of 1")
        assert shown_rows(opened) == [17]
        opened.fill("#search", "<SCRIPT>alert")
        wait_for_place(opened, "1–15 of 15")
        opened.fill("#search", "nowhere")
        opened.get_by_text("No row matches these filters.").wait_for()
        opened.click("#reset")
        assert place(opened) == "1–50 of 120"

    def test_filters(self, opened, audit):
        opened.select_option("#filter-observed", label=f"{CLASSES[1]} ({N_DOWN})")
        assert place(opened) == f"1–{N_DOWN} of {N_DOWN}"
        opened.select_option("#filter-proposed", label=f"{CLASSES[1]} ({N_UP})")
        assert place(opened) == "0 of 0"
        opened.select_option("#filter-observed", "")
        assert place(opened) == f"1–50 of {N_UP}"
        opened.select_option("#filter-proposed", "")
        opened.fill("#least", "0.9")
        n_listed = (audit.suspects.probability.round(6) >= 0.9).sum()
        assert 0 < n_listed < 50
        assert place(opened) == f"1–{n_listed} of {n_listed}"
        opened.fill("#least", "0")
        opened.check("#only-act")
        assert place(opened) == f"1–{audit.n_suspects} of {audit.n_suspects}"

    def test_pages(self, opened, audit):
        opened.locator("[data-turn='1']").first.click()
        assert shown_rows(opened) == audit.suspects.row[50:100].tolist()
        opened.locator("[data-turn='1']").last.click()
        assert place(opened) == "101–120 of 120"
        assert opened.locator("[data-turn='1']").first.is_disabled()


class TestDecisions:
    def test_click_and_undo(self, opened):
        first, second = shown_rows(opened)[:2]
        row(opened, first).get_by_text("Accept").click()
        row(opened, second).get_by_text("Reject").click()
        assert (decision(opened, first), decision(opened, second)) == ("accept", "reject")
        assert row(opened, first).locator(".accept").get_attribute("aria-pressed") == "true"
        assert progress(opened) == "1 accepted, 1 rejected, 118 undecided"
        row(opened, first).get_by_text("Accept").click()
        assert decision(opened, first) == ""
        assert progress(opened) == "0 accepted, 1 rejected, 119 undecided"

    def test_focus_stays_on_a_pressed_button(self, opened):
        opened.keyboard.press("j")
        opened.keyboard.press("Tab")
        opened.keyboard.press("Enter")
        assert decision(opened, shown_rows(opened)[0]) == "accept"
        assert opened.evaluate("document.activeElement.textContent") == "Accept"

    def test_keys(self, opened):
        rows = shown_rows(opened)
        opened.keyboard.press("j")  # enters the table
        assert focused_row(opened) == rows[0]
        opened.keyboard.press("a")
        opened.keyboard.press("r")
        assert [decision(opened, number) for number in rows[:3]] == ["accept", "reject", ""]
        assert focused_row(opened) == rows[2]
        opened.keyboard.press("ArrowDown")
        opened.keyboard.press("j")
        assert focused_row(opened) == rows[4]
        opened.keyboard.press("k")
        opened.keyboard.press("ArrowUp")
        assert focused_row(opened) == rows[2]
        opened.keyboard.press("u")
        assert focused_row(opened) == rows[1]
        assert [decision(opened, number) for number in rows[:3]] == ["accept", "", ""]
        opened.keyboard.press("r")
        opened.keyboard.press("k")
        opened.keyboard.press("a")  # change the decision
        opened.keyboard.press("u")
        assert decision(opened, rows[1]) == "reject"

    def test_the_focus_can_be_seen(self, opened):
        opened.keyboard.press("j")
        style = opened.evaluate("getComputedStyle(document.activeElement).outline")
        assert "solid" in style
        assert "0px" not in style

    def test_keys_turn_the_page(self, opened, audit):
        row(opened, int(audit.suspects.row[49])).locator(".probability").click()
        opened.keyboard.press("j")
        assert place(opened) == "51–100 of 120"
        assert focused_row(opened) == audit.suspects.row[50]
        opened.keyboard.press("k")
        assert focused_row(opened) == audit.suspects.row[49]

    def test_keys_stop_at_the_ends(self, opened):
        opened.keyboard.press("j")
        opened.keyboard.press("k")
        assert focused_row(opened) == shown_rows(opened)[0]
        opened.locator("[data-turn='1']").first.click()
        opened.locator("[data-turn='1']").first.click()
        opened.locator("#rows tr").last.locator(".row").click()
        last = focused_row(opened)
        opened.keyboard.press("j")
        opened.keyboard.press("a")
        assert focused_row(opened) == last
        assert decision(opened, last) == "accept"

    def test_typing_into_the_search_decides_nothing(self, opened):
        opened.locator("#search").press_sequentially("aruj")
        opened.get_by_text("No row matches these filters.").wait_for()
        assert progress(opened) == "0 accepted, 0 rejected, 120 undecided"

    def test_next_undecided_row_takes_the_place_of_a_decided_one(self, opened):
        first, second, third = shown_rows(opened)[:3]
        opened.select_option("#filter-decision", "none")
        opened.locator("#rows tr").first.locator(".row").click()
        opened.keyboard.press("a")
        assert shown_rows(opened)[:2] == [second, third]
        assert focused_row(opened) == second
        opened.keyboard.press("u")
        assert shown_rows(opened)[:2] == [first, second]
        assert focused_row(opened) == first
        opened.keyboard.press("r")
        opened.select_option("#filter-decision", "reject")
        assert shown_rows(opened) == [first]

    def test_decisions_are_shared_between_windows_and_survive_a_reload(self, opened, path):
        first, second = shown_rows(opened)[:2]
        other = opened.context.new_page()
        other.goto(suspects_of(path))
        opened.bring_to_front()
        opened.keyboard.press("j")
        opened.keyboard.press("a")
        opened.keyboard.press("r")
        assert progress(opened) == "1 accepted, 1 rejected, 118 undecided"
        # Wait until the browser has stored the decisions.
        other.get_by_text("1 accepted, 1 rejected, 118 undecided").wait_for()
        assert (decision(other, first), decision(other, second)) == ("accept", "reject")
        opened.reload()
        assert (decision(opened, first), decision(opened, second)) == ("accept", "reject")
        opened.keyboard.press("j")
        opened.keyboard.press("u")
        assert (decision(opened, first), decision(opened, second)) == ("accept", "")


class TestExport:
    def test_export_has_the_decisions_and_no_formula(self, opened, audit):
        assert opened.locator("#export").is_disabled()
        opened.click("#columns .row button")
        opened.locator("#rows tr").first.locator(".row").click()
        for key in "araraar":
            opened.keyboard.press(key)
        lines = exported(opened)
        assert list(lines[0]) == ["row", "id", "observed", "proposed", "decision", "label"]
        assert [line["row"] for line in lines] == [str(i) for i in range(7)]
        assert [line["decision"][0] for line in lines] == list("araraar")
        assert [line["id"] for line in lines] == [
            "'=1+1",
            "-5",
            "'@sum",
            "+4e3",
            "'\tx",
            'plain, "quoted"',
            "a\nb",
        ]
        assert {line["observed"] for line in lines} == {CLASSES[0]}
        assert {line["proposed"] for line in lines} == {"'=spam"}
        for line in lines:
            assert line["label"] == line["proposed" if line["decision"] == "accept" else "observed"]

    def test_export_without_ids(self, browser, audit, tmp_path):
        write_page(audit, tmp_path / "plain.html")
        page = browser.new_page()
        page.goto(suspects_of(tmp_path / "plain.html"))
        page.locator("#rows .reject").first.click()
        (line,) = exported(page)
        assert (line["row"], line["id"]) == (str(audit.suspects.row[0]), "")
        page.close()


class TestOutlook:
    def test_slider_shows_the_accuracy_of_the_audit(self, opened, audit):
        open_tab(opened, "Noise and accuracy")
        answer = opened.locator("#outlook-answer b")
        assert opened.locator("#checked-count").text_content() == str(audit.n_suspects)
        assert answer.text_content() == f"{audit.accuracy_after(audit.n_suspects):.1%}"
        opened.focus("#checked")
        opened.keyboard.press("End")
        assert answer.text_content() == f"{audit.accuracy_after(200):.1%}"
        opened.keyboard.press("Home")
        assert answer.text_content() == f"{audit.expected_accuracy:.1%}"
        opened.select_option("#growth", label="5 times as many")
        assert answer.text_content() == f"{audit.accuracy_after(0, growth=5):.1%}"
        assert audit.accuracy_after(0, growth=5) > audit.expected_accuracy + 0.005


class TestReading:
    def test_page_never_scrolls_horizontally(self, opened):
        for width in (1440, 1199, 961, 960, 767, 375, 320):
            opened.set_viewport_size({"width": width, "height": 800})
            for tab in TABS:
                open_tab(opened, tab)
                assert opened.evaluate("document.documentElement.scrollWidth") <= width
            room = opened.locator("#panels").evaluate("panels => panels.clientWidth")
            opened.locator(f"#panels svg[width='{room}']").wait_for()

    def test_transition_matrix_of_three_classes_fits_beside_the_scores(self, browser, tmp_path):
        X, true = make_mixture(600, 4, means=2.2 * np.eye(3, 4), random_state=0)
        observed = np.array(["a", "b", "c"])[
            NoiseModel(0.7 * np.eye(3) + 0.1).flip(true, random_state=0)
        ]
        # With trusted labels, the rates have standard errors, which need more space.
        trusted = np.where(np.arange(600) < 200, np.array(["a", "b", "c"])[true], None)
        write_page(find_errors(X, observed, trusted=trusted), tmp_path / "page.html")
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(suspects_of(tmp_path / "page.html"))
        open_tab(page, "Noise and accuracy")
        for width in (1440, 1200, 1000):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.locator("#noise .scroll").evaluate(
                "part => part.scrollWidth <= part.clientWidth"
            )
        page.close()

    def test_checked_rows_come_last(self, browser, tmp_path):
        trusted = np.full(200, None)
        trusted[4] = CLASSES[1]
        write_page(nasty_audit(trusted=trusted), tmp_path / "page.html")
        page = browser.new_page(viewport={"width": 375, "height": 800})
        page.goto(suspects_of(tmp_path / "page.html"))
        assert 4 not in shown_rows(page)[:3]
        page.select_option("#sort-choice", label="Probability wrong ↑")
        assert shown_rows(page)[0] == 4
        page.close()

    def test_light_dark_and_print(self, opened):
        light, dark = "rgb(255, 255, 255)", "rgb(21, 24, 28)"
        for media, scheme, ground in (
            ("screen", "light", light),
            ("screen", "dark", dark),
            ("print", "dark", light),
        ):
            opened.emulate_media(media=media, color_scheme=scheme)
            assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == ground

    def test_sorting_and_decisions_on_a_narrow_page(self, browser, path):
        page = browser.new_page(viewport={"width": 375, "height": 800})
        page.goto(suspects_of(path))
        page.select_option("#sort-choice", label="Row ↑")
        assert shown_rows(page)[:3] == [0, 1, 2]
        row(page, 1).get_by_text("Reject").click()
        assert decision(page, 1) == "reject"
        page.close()


class TestRobustness:
    def test_security_policy_blocks_network_requests(self, browser, path):
        page = browser.new_page()
        seen = watch(page)
        page.goto(suspects_of(path))
        assert (
            page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')")
            == "blocked"
        )
        page.evaluate(
            "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))"
        )
        assert any("Content Security Policy" in message for message in seen.console)
        page.close()

    def test_browser_without_storage(self, browser, path):
        page = browser.new_page()
        seen = watch(page)
        page.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked'); }})"
        )
        page.goto(suspects_of(path))
        page.locator("#rows .accept").first.click()
        assert progress(page) == "1 accepted, 0 rejected, 119 undecided"
        assert "does not save decisions" in page.locator("#saved").text_content()
        assert seen.console == []
        page.close()

    def test_other_stored_values_are_ignored(self, browser, path):
        for stored in ("no JSON", "{}", '[1, [2], [7, "burn"], [9999, "accept"], null]'):
            page = browser.new_page()
            seen = watch(page)
            page.add_init_script(f"Storage.prototype.getItem = () => {json.dumps(stored)}")
            page.goto(suspects_of(path))
            assert progress(page) == "0 accepted, 0 rejected, 120 undecided"
            assert seen.console == []
            page.close()

    @pytest.mark.parametrize(("audit_of", "n_panels"), [(three_classes, 3), (spotless, 1)])
    def test_several_classes_and_no_suspects(self, browser, tmp_path, audit_of, n_panels):
        write_page(audit_of(), tmp_path / "page.html")
        page = browser.new_page()
        seen = watch(page)
        page.goto(suspects_of(tmp_path / "page.html"))
        assert page.get_by_text("No label is suspect.").is_visible() == (audit_of is spotless)
        open_tab(page, "Noise and accuracy")
        page.wait_for_selector("#panels svg")
        assert page.locator("#panels svg").count() == n_panels
        for key in "jaruk":
            page.keyboard.press(key)
        assert seen.console == []
        page.close()
