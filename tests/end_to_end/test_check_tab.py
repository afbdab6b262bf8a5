"""The tab "Check rows" in a browser, and the whole loop: audit, check, export, audit again."""

import csv
import io
import json

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="needs the extra unflip[cli]")

from support.audits import CLASSES, nasty_audit, nasty_ids, nasty_texts
from support.browser import CHROMIUM, needs_browser
from support.files import NAMES, program, write_csv
from unflip import LPClassifier, audit, audit_scores
from unflip.auditing.html.audit_page import write_page
from unflip.auditing.shown_rows import ShownRows
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning, TrustedSubset

pytestmark = needs_browser

N_CLASSES = 50  # of the audit with many classes


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("check") / "page.html"
    write_page(nasty_audit(), path, shown=ShownRows(texts=nasty_texts(), ids=nasty_ids()))
    return path


@pytest.fixture(scope="module")
def many_classes(tmp_path_factory):
    """Return the page of an audit of 50 classes, and the names of the classes."""
    rng = np.random.default_rng(0)
    words = ["aisle", "beach", "castle", "desert", "elevator"]
    names = np.array([f"{words[code % 5]} {code // 5}" for code in range(N_CLASSES)])
    labels = rng.integers(0, N_CLASSES, 1500)
    pred_probs = 0.5 * np.eye(N_CLASSES)[labels] + 0.5 * rng.dirichlet(np.ones(N_CLASSES), 1500)
    path = tmp_path_factory.mktemp("many") / "page.html"
    result = audit_scores(pred_probs, np.sort(names)[labels], noise=None)
    result.to_html(path, ids=[f"scene {row}" for row in range(1500)])
    return path, sorted(names)


def open_page(browser, path, **options):
    """Open the page of an audit, with a list of its errors."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda message: page.errors.append(message.text))
    page.goto(path.as_uri())
    return page


@pytest.fixture
def opened(browser, path):
    page = open_page(browser, path)
    show_row(page)
    yield page
    assert page.errors == []
    page.context.close()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def show_row(page):
    """Show the row to check: keys act on a visible row alone."""
    page.locator("#checker").evaluate("part => part.scrollIntoView({ behavior: 'instant' })")


def place(page):
    return page.locator("#check-place").text_content()


def progress(page):
    return page.locator("#check-progress").text_content()


def shown_row(page):
    return int(page.locator("#check-row h3").text_content().split()[1])


def chosen(page):
    return page.locator("#checker [aria-pressed=true]").all_text_contents()


def exported(page):
    with page.expect_download() as waiting:
        page.click("#check-export")
    assert waiting.value.suggested_filename == "checks.csv"
    content = waiting.value.path().read_bytes().decode()
    return list(csv.DictReader(io.StringIO(content, newline="")))


class TestAnswers:
    def test_rows_of_the_sample_are_shown_without_their_label(self, opened):
        rows = nasty_audit().next_checks.rows.tolist()
        assert len(rows) == 100
        assert opened.get_by_role("heading", name="Check these 100 rows").is_visible()
        for step, row in enumerate(rows[:10]):
            assert place(opened) == f"{step + 1} of 100"
            content = opened.locator("#check-row > *").all_text_contents()
            assert content == [f"Row {row} · {nasty_ids()[row]}", nasty_texts()[row]]
            press(opened, "j")
        assert chosen(opened) == []

    def test_text_is_shown_before_the_other_columns(self, browser, tmp_path):
        shown = ShownRows(texts=nasty_texts(), cells={"price": list(range(200))})
        write_page(nasty_audit(), tmp_path / "page.html", shown=shown)
        page = open_page(browser, tmp_path / "page.html")
        row = shown_row(page)
        content = page.locator("#check-row > *").all_text_contents()
        assert content == [f"Row {row}", nasty_texts()[row], f"price{row}"]
        heads = page.locator("#columns th").all_text_contents()
        assert heads[1:3] == ["Text", "Columns"]
        page.context.close()

    def test_ids_that_contain_the_labels_are_exported_but_not_shown(self, browser, tmp_path):
        codes = nasty_audit().evidence.codes
        ids = [f"{['Cat', 'dog'][code]}/{row}.png" for row, code in enumerate(codes)]
        result = nasty_audit(classes=np.array(["cat", "dog"]))
        for told in (True, False):
            write_page(result, tmp_path / "page.html", shown=ShownRows(ids=ids))
            page = open_page(browser, tmp_path / "page.html")
            row = shown_row(page)
            heading = page.locator("#check-row h3").text_content()
            assert heading == (f"Row {row}" if told else f"Row {row} · {ids[row]}")
            names = page.locator("#check-list li").all_text_contents()
            assert names[0] == (str(row) if told else ids[row])
            page.locator("#check-unsure").click()
            assert [line["id"] for line in exported(page)] == [ids[row]]
            page.context.close()
            ids[0] = "one id without its label"

    def test_keys(self, opened):
        press(opened, "1", "2", "?")
        assert place(opened) == "4 of 100"
        assert progress(opened) == "3 of 100 done, 1 unsure."
        press(opened, "ArrowLeft")
        assert chosen(opened) == ["? Unsure"]
        press(opened, "k")
        assert chosen(opened) == [f"2 {CLASSES[1]}"]
        press(opened, "1")  # change the answer, and go on with the next open row
        assert place(opened) == "4 of 100"
        press(opened, "u")
        assert (place(opened), chosen(opened)) == ("2 of 100", [f"2 {CLASSES[1]}"])
        press(opened, "u", "u", "u")
        assert (place(opened), progress(opened)) == ("1 of 100", "0 of 100 done.")
        press(opened, "u", "3", "9", "x")
        assert progress(opened) == "0 of 100 done."

    def test_first_key_scrolls_to_a_row_out_of_view(self, browser, path):
        page = open_page(browser, path, viewport={"width": 1440, "height": 300})
        assert page.locator("#check-row").bounding_box()["y"] > 300
        press(page, "1")
        assert progress(page) == "0 of 100 done."
        assert 0 <= page.locator("#check-row").bounding_box()["y"] < 300
        press(page, "1")
        assert progress(page) == "1 of 100 done."
        page.evaluate("scrollTo(0, 0)")
        press(page, "?", "?")
        assert progress(page) == "2 of 100 done, 1 unsure."
        page.context.close()

    def test_buttons(self, opened):
        opened.get_by_role("button", name=CLASSES[1]).click()
        opened.get_by_role("button", name="Unsure").click()
        opened.get_by_role("button", name="Row before").click()
        assert chosen(opened) == ["? Unsure"]
        opened.get_by_role("button", name="Undo").click()
        assert progress(opened) == "1 of 100 done."
        opened.get_by_role("button", name="Next row").click()
        press(opened, "2")  # keys work while a button has the focus
        assert progress(opened) == "2 of 100 done."

    def test_notes(self, opened):
        press(opened, "n")
        opened.keyboard.type("1 j? u")
        press(opened, "Enter", "1")
        assert progress(opened) == "1 of 100 done."
        press(opened, "k")
        assert opened.get_by_label("Note").input_value() == "1 j? u"
        assert [line["note"] for line in exported(opened)] == ["1 j? u"]

    def test_note_right_after_unsure_is_on_the_unsure_row(self, opened):
        press(opened, "1", "?", "n")
        assert (place(opened), chosen(opened)) == ("2 of 100", ["? Unsure"])
        opened.keyboard.type("why")
        press(opened, "Enter")
        assert place(opened) == "3 of 100"
        press(opened, "?", "j", "n")  # no longer right after the answer
        assert place(opened) == "5 of 100"
        opened.keyboard.type("later")
        press(opened, "Enter")
        assert place(opened) == "5 of 100"
        rows = nasty_audit().next_checks.rows
        notes = {line["row"]: line["note"] for line in exported(opened)}
        assert [notes.get(str(row)) for row in rows[:5]] == ["", "why", "", None, "later"]

    def test_answers_survive_a_reload_and_are_shared(self, opened, path):
        other = opened.context.new_page()
        other.goto(path.as_uri())
        opened.bring_to_front()
        press(opened, "1", "?", "j", "k", "n")
        opened.keyboard.type("third")
        other.get_by_text("2 of 100 done, 1 unsure.").wait_for()
        opened.reload()
        assert (place(opened), progress(opened)) == ("3 of 100", "2 of 100 done, 1 unsure.")
        assert opened.get_by_label("Note").input_value() == "third"
        press(opened, "k", "k")
        assert chosen(opened) == [f"1 {CLASSES[0]}"]

    def test_last_answer(self, opened):
        press(opened, *"1" * 100)
        assert progress(opened) == "100 of 100 done. All rows are done: export them."
        assert place(opened) == "100 of 100"

    def test_keys_are_for_the_open_tab(self, opened):
        opened.get_by_role("tab", name="Suspects").click()
        opened.locator("#rows .probability").first.click()
        press(opened, "1", "u", "?")
        opened.get_by_role("tab", name="Check rows").click()
        assert progress(opened) == "0 of 100 done."


class TestExport:
    def test_file(self, opened):
        rows = nasty_audit().next_checks.rows
        assert opened.locator("#check-export").is_disabled()
        press(opened, *"121?2121212")
        press(opened, "n")
        opened.keyboard.type("=1+1")  # a note without an answer
        lines = exported(opened)
        order = np.argsort(rows[:12])
        codes = nasty_audit().evidence.codes[rows[:12]]
        labels = ["'=spam" if key == "2" else CLASSES[0] for key in "121.2121212"]
        labels[3] = ""
        labels.append("")
        assert list(lines[0]) == ["row", "id", "observed", "label", "note"]
        assert [line["row"] for line in lines] == [str(rows[i]) for i in order]
        observed = ["<b>ham</b>", "'=spam"]
        assert [line["observed"] for line in lines] == [observed[codes[i]] for i in order]
        assert [line["label"] for line in lines] == [labels[i] for i in order]
        assert {line["note"] for line in lines} == {"", "'=1+1"}
        guarded = {"=1+1": "'=1+1", "@sum": "'@sum", "\tx": "'\tx"}
        ids = [nasty_ids()[rows[i]] for i in order]
        assert [line["id"] for line in lines] == [guarded.get(each, each) for each in ids]


class TestManyClasses:
    def test_search_by_keyboard(self, browser, many_classes):
        path, names = many_classes
        page = open_page(browser, path)
        show_row(page)
        assert page.locator("#check-classes button").count() == N_CLASSES
        page.keyboard.type("castle 3")  # typing begins a search
        press(page, "Enter")
        assert progress(page) == "1 of 100 done."
        page.keyboard.type("elev")
        press(page, "ArrowDown", "ArrowDown", "Enter")
        page.keyboard.type("4")  # in the middle of a name
        press(page, "Enter", "?")
        page.keyboard.type("nowhere")
        assert page.get_by_text("No class matches.").is_visible()
        press(page, "Enter")
        assert progress(page) == "4 of 100 done, 1 unsure."
        with_4 = [name for name in names if "4" in name]
        labels = {line["row"]: line["label"] for line in exported(page)}
        page.get_by_label("Search a class").fill("")
        press(page, "ArrowLeft")
        assert chosen(page) == ["? Unsure"]
        rows = []
        for _ in range(3):
            press(page, "ArrowLeft")
            rows.append(labels[str(shown_row(page))])
        assert rows == [with_4[0], "elevator 2", "castle 3"]
        assert page.errors == []
        page.context.close()

    def test_narrow_pages(self, browser, many_classes, path):
        for each in (many_classes[0], path):
            page = open_page(browser, each, viewport={"width": 390, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            page.locator("#check-classes button").nth(1).click()
            assert progress(page) == "1 of 100 done."
            page.context.close()


class TestRobustness:
    def test_browser_without_storage(self, browser, path):
        page = browser.new_page()
        page.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked'); }})"
        )
        page.goto(path.as_uri())
        show_row(page)
        press(page, "1")
        assert progress(page) == "1 of 100 done."
        assert "does not save answers" in page.locator("#check-saved").text_content()
        page.close()

    @pytest.mark.parametrize(
        "stored", ["no JSON", "{}", '[1, [2], [0, 9, ""], [999, 1, ""], null]']
    )
    def test_other_stored_values_are_ignored(self, browser, path, stored):
        page = browser.new_page()
        page.add_init_script(f"Storage.prototype.getItem = () => {json.dumps(stored)}")
        page.goto(path.as_uri())
        assert progress(page) == "0 of 100 done."
        page.close()

    def test_all_rows_are_checked(self, browser, tmp_path):
        X, true = make_mixture(60, 5, mean_norm=2.0, random_state=0)
        audit(X, true, trusted=true).to_html(tmp_path / "page.html")
        page = open_page(browser, tmp_path / "page.html")
        assert page.get_by_role("heading", name="Checked rows").is_visible()
        assert page.get_by_text("Every row was checked.").last.is_visible()
        press(page, "1")
        assert page.errors == []
        page.context.close()

    def test_labels_are_not_on_a_page_without_scripts(self, browser, path):
        page = open_page(browser, path, java_script_enabled=False)
        names = page.locator("#check-list li").all_text_contents()
        assert names == [nasty_ids()[row] for row in nasty_audit().next_checks.rows]
        assert not page.locator("#checker").is_visible()
        page.context.close()


@pytest.fixture(scope="module")
def data():
    """Return rows, true labels, and labels that are wrong where rows are hard."""
    X, true = make_mixture(1500, 30, mean_norm=1.5, random_state=0)
    rng = np.random.default_rng(0)
    is_hard = np.abs(X @ X[true == 1].mean(axis=0)) < 2
    return X.round(4), true, np.where(is_hard & (rng.random(1500) < 0.35), 1 - true, true)


def check(page, answers):
    """Answer all rows of the page by their true labels, and unsure where there is none."""
    keys = {label: str(key + 1) for key, label in enumerate(NAMES)}
    while progress(page).count("All rows are done") == 0:
        press(page, keys.get(answers[shown_row(page)], "?"))


class TestWholeLoop:
    """Noise of hard rows, which no noise rate describes: the intervals hold after checks alone."""

    def test_audit_check_and_audit_again(self, browser, data, tmp_path):
        X, true, observed = data
        path = tmp_path / "mails.csv"
        report = tmp_path / "report.html"
        columns = {f"x{j}": X[:, j] for j in range(30)}
        write_csv(path, **columns, label=NAMES[observed])
        options = ("--label", "label", "--out", report, "--json")
        first = json.loads(program("audit", path, *options).stdout)
        answers = NAMES[true].astype(object)
        answers[::50] = ""  # not known to the person who checks
        page = open_page(browser, report, accept_downloads=True)
        check(page, answers)
        batch = exported(page)
        write_csv(
            tmp_path / "checks.csv", **{key: [line[key] for line in batch] for key in batch[0]}
        )
        options += ("--trusted", tmp_path / "checks.csv")
        second = json.loads(program("audit", path, *options).stdout)
        n_unsure = sum(int(line["row"]) % 50 == 0 for line in batch)
        assert second["checked_rows"]["n_checked"] == 100 - n_unsure
        assert second["checked_rows"]["n_unsure"] == n_unsure > 0
        before, after = (
            answer["checked_rows"]["now"]["expected_accuracy"]["interval_95"]
            for answer in (first, second)
        )
        assert second["checked_rows"]["before"] == first["checked_rows"]["now"]
        assert after[1] - after[0] < 0.6 * (before[1] - before[0])
        low, high = second["expected_wrong"]["interval_95"]
        assert low <= (observed != true).sum() <= high

        # The next page continues the sample, and exports all of it.
        page.goto(report.as_uri())
        assert page.locator("#check .scroll tbody th").all_text_contents() == [
            "wrong labels",
            "expected accuracy",
            "suspects",
        ]
        assert page.get_by_text("The export includes the answers of earlier batches.").is_visible()
        check(page, NAMES[true])
        both = exported(page)
        assert len({line["row"] for line in both}) == len(both) == 200 - n_unsure
        assert {line["row"] for line in batch if line["label"]} < {line["row"] for line in both}
        page.context.close()

    def test_python_takes_the_file_of_the_page(self, browser, data, tmp_path):
        X, true, observed = data
        with pytest.warns(AssumedNoiseWarning, match="contradict class-conditional noise"):
            before = audit(X, observed)
        before.to_html(tmp_path / "report.html")
        page = open_page(browser, tmp_path / "report.html", accept_downloads=True)
        while "All rows are done" not in progress(page):
            press(page, str(1 + true[shown_row(page)]))
        with page.expect_download() as waiting:
            page.click("#check-export")
        waiting.value.save_as(tmp_path / "checks.csv")
        page.context.close()
        after = audit(X, observed, trusted=tmp_path / "checks.csv")
        interval = after.expected_accuracy_interval
        assert interval.width < 0.6 * before.expected_accuracy_interval.width
        trusted = np.where(after.evidence.truth >= 0, true, np.nan)
        model = LPClassifier(TrustedSubset(trusted)).fit(X, observed)
        X_new, true_new = make_mixture(20_000, 30, mean_norm=1.5, random_state=1)
        assert interval.low <= model.score(X_new, true_new) <= interval.high
