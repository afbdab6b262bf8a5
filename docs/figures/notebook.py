"""Screenshot of the audit that the example notebook shows."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "audit_in_a_notebook.ipynb"
PICTURE = ROOT / "docs" / "images" / "notebook.png"
WIDTH = 860  # pixels


def main() -> None:
    """Run the notebook, and take a screenshot of its first output."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        resources = {"metadata": {"path": folder}}
        notebook = NotebookClient(nbformat.read(EXAMPLE, 4), resources=resources).execute()
        html = next(
            output.data["text/html"]
            for cell in notebook.cells
            for output in cell.get("outputs", [])
            if "text/html" in output.get("data", {})
        )
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": WIDTH, "height": 600})
        page.set_content(f'<body style="font: 14px system-ui; margin: 16px">{html}</body>')
        screenshot = Image.open(io.BytesIO(page.locator("body").screenshot()))
        browser.close()
    screenshot.convert("RGB").quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
