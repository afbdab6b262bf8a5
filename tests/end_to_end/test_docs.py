"""The gallery's examples run and draw; the site builds, its links lead somewhere, and it needs no
network."""

import importlib
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pytest

from support import transcripts
from support.amazon import needs_data
from support.browser import CHROMIUM, needs_browser
from unflip import NoiseModel
from unflip.datasets import load_amazon_reviews, load_sentiment_votes
from unflip.estimation import AssumedNoiseWarning, Automatic

mpl = pytest.importorskip("matplotlib", reason="pages are drawn with matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
PARTS = (
    "docs",
    "examples",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)  # that the site is made of


@pytest.fixture
def blank_canvas(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    backend = mpl.get_backend()
    plt.switch_backend("Agg")
    with mpl.rc_context():
        yield
    plt.close("all")
    plt.switch_backend(backend)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.usefixtures("blank_canvas")
def test_examples_run_and_draw(path):
    runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        assert all(ax.has_data() for ax in figure.axes)
        figure.draw_without_rendering()  # text and layout, which fail late


def test_the_gallery_has_its_examples():
    assert len(EXAMPLES) >= 6


def test_links_of_the_pages_lead_somewhere():
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "benchmarks").glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
    ]
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        if not {"gallery", "generated"} & set(page.parts)
        for link in links_of(page)
        if not urlsplit(link).scheme and not is_written(page, link)
    ]
    assert len(pages) > 40
    assert broken == []


def test_scripts_that_the_pages_name_exist():
    named = {
        (page.relative_to(ROOT).as_posix(), name)
        for page in transcripts.pages()
        for name in re.findall(
            r"\b(?:benchmarks|docs/figures|examples)/\w+\.py\b", page.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 20
    assert [(page, name) for page, name in named if not (ROOT / name).is_file()] == []


def test_tables_that_scripts_write_are_marked_as_these_expect(monkeypatch):
    """Each begins with the command that makes it and ends, and the script can replace it."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    page_tables = importlib.import_module("page_tables")
    n_tables = 0
    for page in transcripts.pages():
        text = page.read_text(encoding="utf-8")
        for command in re.findall(r"<!-- table: (.*?) -->", text):
            program, script, *arguments = command.split()
            source = (ROOT / script).read_text(encoding="utf-8")
            assert program == "python"
            assert all(f'"{part}"' in source for part in arguments)
            assert page_tables.replaced(text, command, ["| new |", "|---|"]) != text
            n_tables += 1
        assert text.count("<!-- table: ") == text.count("<!-- end of table -->"), page
    assert n_tables >= 8


def test_a_table_is_replaced_and_nothing_else(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    page_tables = importlib.import_module("page_tables")
    page = "before\n\n<!-- table: python a.py -->\n\n{}\n\n<!-- end of table -->\n\nafter\n"
    lines = page_tables.markdown([("", "one"), ("x", page_tables.short(-0.25, 0.0104))])
    assert lines == ["|  | one |", "|---|---|", "| x | −.250 ± .010 |"]
    assert page_tables.replaced(page.format("old"), "python a.py", lines) == page.format(
        "\n".join(lines)
    )
    with pytest.raises(ValueError, match="one table that begins with <!-- table: python b"):
        page_tables.replaced(page, "python b.py", lines)


@needs_data
def test_what_the_page_on_noise_rates_prints_of_real_data():
    crowd = load_sentiment_votes()
    rows, labels = load_amazon_reviews("books")
    rows, first = np.unique(rows, axis=0, return_index=True)
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
    page = (ROOT / "docs" / "noise_rates.md").read_text(encoding="utf-8")
    with pytest.warns(AssumedNoiseWarning):
        sentences = Automatic().fit(crowd.X_train, crowd.random_votes(0))
    with pytest.warns(AssumedNoiseWarning):
        books = Automatic().fit(rows, noise.flip(labels[first], random_state=0))
    assert f"sentences: {sentences.evidence_}\nbooks: {books.evidence_}\n" in page


def links_of(page):
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def is_written(page, link):
    """Whether a page of the sources, or a part of it, is there; the gallery's pages are made of its
    examples."""
    parts = urlsplit(link)
    target = (page.parent / parts.path).resolve() if parts.path else page
    if target.parent == ROOT / "docs" / "gallery":
        return target.stem == "index" or (ROOT / "examples" / f"{target.stem}.py").exists()
    return target.exists() and (not parts.fragment or parts.fragment in anchors_of(target))


def anchors_of(page):
    """Return the anchors of its headings as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site from a copy of its sources, without running the gallery once more."""
    pytest.importorskip("sphinx", reason="the site needs the extra unflip[docs]")
    folder = tmp_path_factory.mktemp("site")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(
                source,
                folder / part,
                ignore=shutil.ignore_patterns("gallery", "generated", "__pycache__"),
            )
        else:
            shutil.copy(source, folder / part)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-n", "-W", "--keep-going", "-q"]
    command += ["-D", "plot_gallery=0", str(folder / "docs"), str(folder / "html")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder / "html"


@pytest.mark.slow
def test_links_inside_the_site_lead_somewhere(site):
    pages = {path: Page.of(path) for path in site.rglob("*.html")}
    assert len(pages) > 60
    broken = [
        f"{path.relative_to(site)}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not urlsplit(link).scheme and not leads_somewhere(path, link, pages)
    ]
    assert broken == []


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site):
    loaded = {link for path in site.rglob("*.html") for link in Page.of(path).loads}
    assert any(link.endswith("site.css") for link in {urlsplit(link).path for link in loaded})
    assert [link for link in loaded if urlsplit(link).netloc] == []
    styles = "\n".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"url\(\s*['\"]?(?:https?:)?//[^)]*\)|@import[^;]*//[^;]*;", styles) == []


@pytest.mark.slow
def test_formulas_are_drawn_by_what_the_site_brings(site):
    page = Page.of(site / "theory" / "isotropic.html")
    assert any("tex-svg.js" in link for link in page.loads)
    assert (site / "_static" / "tex-svg.js").stat().st_size > 1e6  # fonts included


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("missing values", "how_to/dataframes"),
        ("notebook", "notebooks"),
        ("cleanlab", "coming_from_cleanlab"),
        ("images", "images"),
        ("CSV", "command_line"),
    ],
)
def test_the_search_lists_the_right_page_first(site, words, page):
    from playwright.sync_api import sync_playwright

    if not (site / f"{page}.html").exists():
        pytest.skip(f"docs/{page}.md is not written yet")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        opened = browser.new_page()
        opened.goto(f"{(site / 'search.html').as_uri()}?q={quote(words)}")
        first = opened.locator("#search-results li a").first.get_attribute("href")
        browser.close()
    assert urlsplit(first).path.endswith(f"{page}.html")


@dataclass
class Page(HTMLParser):
    """What a page is reachable by, points to, and loads."""

    ids: set = field(default_factory=set)
    links: list = field(default_factory=list)
    loads: list = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    @classmethod
    def of(cls, path):
        page = cls()
        page.feed(path.read_text())
        return page

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.update(values[name] for name in ("id", "name") if values.get(name))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag in ("script", "img", "iframe") and values.get("src"):
            self.loads.append(values["src"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(values["href"])


def leads_somewhere(path, link, pages):
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target not in pages:
        return target.exists()
    return not parts.fragment or unquote(parts.fragment) in pages[target].ids
