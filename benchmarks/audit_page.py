"""Time to write and to open the HTML page of an audit with 50,000 suspects, in Chromium."""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from unflip import NoiseModel, audit_scores
from unflip.auditing.html.audit_page import write_page
from unflip.auditing.shown_rows import ShownRows

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
LIMIT = 3.0  # seconds to open
WORDS = (
    "the",
    "delivery",
    "came",
    "late",
    "but",
    "service",
    "was",
    "kind",
    "and",
    "I",
    "would",
    "order",
    "again",
)
NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.3, pi_neg=0.5)
# Each returns the milliseconds until the list is redrawn.
STEPS = {
    "sort by text": "() => timed(() => document.querySelector('#columns .text button').click())",
    "filter": "() => timed(() => document.querySelector('#only-act').click())",
    "accept": "() => timed(() => document.querySelector('#rows .accept').click())",
}
SEARCH = """() => new Promise((done) => {
  const field = document.querySelector('#search');
  const rows = document.querySelector('#rows');
  const start = performance.now();
  new MutationObserver(() => done(performance.now() - start)).observe(rows, { childList: true });
  field.value = 'order again';
  field.dispatchEvent(new Event('input'));
})"""


def page_of(n_suspects, folder, n_words):
    """Write the page of an audit with that many suspects; return its path and the seconds."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [n_suspects, n_suspects // 50])
    sure = rng.uniform(0.6, 0.69, len(labels))
    audit = audit_scores(
        np.column_stack([1 - sure, sure]), labels, noise=NOISE, effective_dimension=100
    )
    assert len(audit.suspects) == n_suspects
    texts = [" ".join(rng.choice(WORDS, n_words)) for _ in labels]
    ids = [f"review-{i:06d}" for i in range(len(labels))]
    start = time.perf_counter()
    shown = ShownRows(texts=texts, ids=ids, source="reviews.csv")
    write_page(audit, folder / "page.html", shown=shown)
    return folder / "page.html", time.perf_counter() - start


def opening_seconds(browser, path):
    """Return the seconds until the first rows and charts appear, in a fresh context."""
    page = browser.new_context().new_page()
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("#rows tr")
    page.wait_for_selector("#outlook-chart svg")
    seconds = time.perf_counter() - start
    page.context.close()
    return seconds


def step_milliseconds(browser, path):
    """Return the milliseconds of each step: sort, filter, accept, search."""
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("#rows tr")
    page.evaluate(
        """() => {
          window.timed = (act) => {
            const start = performance.now();
            act();
            return performance.now() - start;
          };
        }"""
    )
    return {name: page.evaluate(step) for name, step in {**STEPS, "search": SEARCH}.items()}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suspects", type=int, default=50_000, help="number of suspects")
    parser.add_argument("--words", type=int, default=40, help="words per text")
    parser.add_argument("--repeats", type=int, default=5, help="times the page is opened")
    options = parser.parse_args()
    if CHROMIUM is None:
        parser.exit(message="Chromium is not installed: the page cannot be opened.\n")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path, seconds = page_of(options.suspects, Path(folder), options.words)
        print(
            f"{options.suspects} suspects, {path.stat().st_size / 1e6:.1f} MB, written in "
            f"{seconds:.2f} s"
        )
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        opened = [opening_seconds(browser, path) for _ in range(options.repeats)]
        median = statistics.median(opened)
        worst = max(opened)
        verdict = "PASS" if worst < LIMIT else "MISS"
        print(
            f"opened in {median:.2f} s (median of {len(opened)}), at most {worst:.2f} s: {verdict} "
            f"at {LIMIT:g} s"
        )
        for name, milliseconds in step_milliseconds(browser, path).items():
            print(f"{name}: {milliseconds:.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()
