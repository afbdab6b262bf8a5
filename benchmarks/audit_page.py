"""Time to write and to open the page of an audit with 100,000 suspects, in Chromium."""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from unflip import Audit, NoiseModel
from unflip.auditing.evidence import Evidence, Noise, ScoredRows
from unflip.auditing.html.audit_page import write_page
from unflip.auditing.shown_rows import ShownRows
from unflip.calibration.observations import Observations
from unflip.labels.codes import UNCHECKED

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
# Each returns the milliseconds until the list is redrawn.
STEPS = {
    "sort by text": "() => timed(() => document.querySelector('#columns .text button').click())",
    "filter": "() => timed(() => document.querySelector('#only-act').click())",
    "accept": "() => timed(() => document.querySelector('#rows .accept').click())",
    "accept all": "() => timed(() => document.querySelector('#accept-all').click())",
    "undo": "() => timed(() => document.querySelector('#undo').click())",
}
SET_LEAST = """() => {
  const slider = document.querySelector('#least');
  slider.value = 0.5;
  slider.dispatchEvent(new Event('input'));
}"""
SEARCH = """() => new Promise((done) => {
  const field = document.querySelector('#search');
  const rows = document.querySelector('#rows');
  const start = performance.now();
  new MutationObserver(() => done(performance.now() - start)).observe(rows, { childList: true });
  field.value = 'order again';
  field.dispatchEvent(new Event('input'));
})"""


def audit_of(n_suspects, n_classes):
    """Return an audit with that many suspects, and a few other rows."""
    rng = np.random.default_rng(0)
    n = n_suspects + n_suspects // 50
    codes = rng.integers(n_classes, size=n)
    others = (codes + rng.integers(1, n_classes, size=n)) % n_classes
    likeliest = np.where(np.arange(n) < n_suspects, others, codes)
    share = rng.uniform(0.95, 0.99, n)
    probabilities = np.repeat((1 - share)[:, None] / (n_classes - 1), n_classes, axis=1)
    probabilities[np.arange(n), likeliest] = share
    priors = np.full(n_classes, 1 / n_classes)
    noise = NoiseModel(0.7 * np.eye(n_classes) + 0.3 / n_classes, priors)
    logs = np.log(probabilities)
    observations = Observations(codes, np.ones(n), float(n), priors_known=True)
    evidence = Evidence(
        classes=np.array([f"class {place:02d}" for place in range(n_classes)]),
        codes=codes,
        truth=np.full(n, UNCHECKED),
        probabilities=probabilities,
        log_scores=logs,
        noise=Noise(
            model=noise,
            errors=np.zeros((n_classes, n_classes)),
            source="given",
            assumption="",
            priors_given=True,
        ),
        class_conditional_accuracy=float(share.mean()),
        class_conditional_accuracy_std=0.01,
        dimension=100,
        n_effective=float(n),
        scored=ScoredRows(logs, observations, priors),
    )
    audit = Audit(evidence)
    assert len(audit.suspects) == n_suspects
    return audit


def page_of(n_suspects, folder, n_words, n_classes):
    """Write the page of an audit with that many suspects; return its path and the seconds."""
    rng = np.random.default_rng(0)
    audit = audit_of(n_suspects, n_classes)
    labels = audit.evidence.codes
    texts = [" ".join(rng.choice(WORDS, n_words)) for _ in labels]
    ids = [f"review-{i:06d}" for i in range(len(labels))]
    start = time.perf_counter()
    shown = ShownRows(texts=texts, ids=ids, source="reviews.csv")
    write_page(audit, folder / "page.html", shown=shown)
    return folder / "page.html", time.perf_counter() - start


def opening_seconds(browser, path):
    """Return the seconds until the first rows appear, in a fresh context."""
    page = browser.new_context().new_page()
    start = time.perf_counter()
    page.goto(f"{path.as_uri()}#suspects")
    page.wait_for_selector("#rows tr")
    seconds = time.perf_counter() - start
    page.context.close()
    return seconds


def step_milliseconds(browser, path):
    """Return the milliseconds of each step: sort, filter, decide, search."""
    page = browser.new_page()
    page.goto(f"{path.as_uri()}#suspects")
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
    page.evaluate(SET_LEAST)
    return {name: page.evaluate(step) for name, step in {**STEPS, "search": SEARCH}.items()}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suspects", type=int, default=100_000, help="number of suspects")
    parser.add_argument("--classes", type=int, default=50, help="number of classes")
    parser.add_argument("--words", type=int, default=40, help="words per text")
    parser.add_argument("--repeats", type=int, default=5, help="times the page is opened")
    options = parser.parse_args()
    if CHROMIUM is None:
        parser.exit(message="Chromium is not installed: the page cannot be opened.\n")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path, seconds = page_of(options.suspects, Path(folder), options.words, options.classes)
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
