"""Screenshots of the page of an audit of simulated messages: whole, and its top for README."""

from __future__ import annotations

import io
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.feature_extraction.text import TfidfVectorizer

from unflip import NoiseModel, audit
from unflip.auditing.html.audit_page import write_page
from unflip.auditing.shown_rows import ShownRows
from unflip.estimation import AssumedNoiseWarning

IMAGES = Path(__file__).resolve().parents[1] / "images"
WIDTH = 1200  # pixels
N_ROWS = 600
CLASSES = np.array(["ham", "spam"])
SUBJECTS = {
    "ham": [
        "the minutes",
        "your draft",
        "lunch",
        "the train",
        "our seminar",
        "a parcel",
        "the printer",
        "the rota",
    ],
    "spam": [
        "a prize",
        "this loan",
        "your lucky number",
        "a cream",
        "the casino",
        "a ringtone",
        "a fund",
        "a watch",
    ],
    "both": [
        "your account",
        "an order",
        "the link",
        "this offer",
        "a call",
        "your reply",
        "the invoice",
        "an update",
    ],
}
ENDINGS = [
    "is waiting",
    "for Friday",
    "before midnight",
    "is ready",
    "needs a signature",
    "as promised",
]
ENDINGS += [
    "for you only",
    "at nine",
    "with many thanks",
    "is below",
    "by the weekend",
    "is confirmed",
]


def messages() -> tuple[list[str], np.ndarray]:
    """Return messages and their true classes; most subjects are typical of the class."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, N_ROWS)
    kinds = [("ham", "spam", "both"), ("spam", "ham", "both")]
    texts = []
    for label in true:
        drawn = rng.choice(kinds[label], size=rng.integers(3, 6), p=[0.5, 0.1, 0.4])
        phrases = [f"{rng.choice(SUBJECTS[kind])} {rng.choice(ENDINGS)}" for kind in drawn]
        texts.append(", ".join(phrases).capitalize() + ".")
    return texts, true


def main() -> None:
    """Write the page and take its screenshots."""
    warnings.simplefilter("ignore", AssumedNoiseWarning)  # the page shows the warning
    texts, true = messages()
    labels = CLASSES[NoiseModel.binary(eps_pos=0.3, eps_neg=0.15).flip(true, random_state=1)]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2))
    report = audit(10 * vectorizer.fit_transform(texts), labels)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "report.html"
        ids = [f"m{i:04d}" for i in range(N_ROWS)]
        shown = ShownRows(texts=texts, ids=ids, source="messages.csv")
        words = vectorizer.get_feature_names_out()
        write_page(report, path, shown=shown, feature_names=words)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(f"{path.as_uri()}#suspects")
        page.locator("#rows .row").nth(1).click()
        for key in "ara":
            page.keyboard.press(key)
        # Otherwise the heads of the columns, which stay in view, would hide a row.
        page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
        bottom = (
            page.locator("#rows > tr")
            .nth(6)
            .evaluate("row => row.getBoundingClientRect().bottom + scrollY")
        )
        top = page.locator("#tabs").evaluate("part => part.getBoundingClientRect().top + scrollY")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": bottom}
        screenshot = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip)))
        browser.close()
    screenshot = screenshot.convert("RGB")
    screenshot.quantize(256).save(IMAGES / "audit_page.png", optimize=True)
    screenshot.crop((0, 0, WIDTH, round(top))).quantize(256).save(
        IMAGES / "audit_top.png", optimize=True
    )


if __name__ == "__main__":
    main()
