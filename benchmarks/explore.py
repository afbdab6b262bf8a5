"""Time from a slider move to the redrawn page of `unflip explore`, in headless Chromium.

A move is a press of an arrow key. The clock runs in the page, from the key event until the second
frame after the text of the answer has changed. This includes the request to the server, the theory,
the drawing and the browser's own work.
"""

import argparse
import csv
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from unflip.cli.explorer.answer import Setting
from unflip.cli.explorer.page import render

SLIDERS = ("n", "p", "mean_norm", "reg", "eps_pos", "eps_neg", "pi_neg", "rho")
TARGET = 0.200  # seconds, for 95% of the moves
CLOCK = """() => {
  let pressed = 0, before = document.querySelector('.unflip-answer').innerHTML;
  window.redraws = [];
  addEventListener('keydown', () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    const now = document.querySelector('.unflip-answer')?.innerHTML;
    if (!now || now === before) return;
    before = now;
    if (!pressed) return;
    const start = pressed;
    pressed = 0;
    const done = () => window.redraws.push(performance.now() - start);
    requestAnimationFrame(() => requestAnimationFrame(done));
  }).observe(document, {subtree: true, childList: true, characterData: true});
}"""


@contextmanager
def served():
    """Start the server, yield its address, and stop it with SIGINT."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    code = f"from unflip.cli.explorer.command import explore; explore({port}, open_browser=False)"
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if time.monotonic() > deadline or server.poll() is not None:
                raise SystemExit("The server of the page did not start.")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=30)


def redraws(page, n_moves, pause):
    """Move each slider back and forth; return the milliseconds of each move."""
    times = {}
    page.evaluate(CLOCK)
    for index, name in enumerate(SLIDERS):
        if name == "rho":  # rho only affects the targets "LPC"
            page.locator("select").select_option("LPC")
            page.wait_for_timeout(1000)
        page.get_by_role("slider").nth(index).focus()
        page.evaluate("() => { window.redraws = []; }")
        for move in range(n_moves):
            page.keyboard.press("ArrowRight" if move % 2 == 0 else "ArrowLeft")
            page.wait_for_function(f"window.redraws.length > {move}")
            page.wait_for_timeout(pause)
        times[name] = page.evaluate("window.redraws")
    return times


def main():
    """Measure the times, print and store them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--moves", type=int, default=20, help="moves of each slider")
    parser.add_argument(
        "--pause", type=int, default=150, help="milliseconds between a redraw and the next move"
    )
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="path of the browser")
    parser.add_argument(
        "--shots", type=Path, help="folder for screenshots, 375 and 1440 pixels wide"
    )
    parser.add_argument("--out", type=Path, default=Path("results/explore.csv"), help="CSV file")
    options = parser.parse_args()

    render(Setting())
    start = time.perf_counter()
    for _ in range(20):
        render(Setting())
    drawing = (time.perf_counter() - start) / 20
    with served() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=["--no-sandbox"]
        )
        # The content security policy of the page forbids injected scripts, such as the clock.
        page = browser.new_page(viewport={"width": 1440, "height": 900}, bypass_csp=True)
        page.goto(url)
        page.wait_for_selector("#unflip-accuracy", timeout=60_000)
        page.wait_for_timeout(1000)
        for width, height in ((1440, 900), (375, 1500)) if options.shots else ():
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(500)
            page.screenshot(path=options.shots / f"explore_{width}.png")
        page.set_viewport_size({"width": 1440, "height": 900})
        times = redraws(page, options.moves, options.pause)
        browser.close()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["slider", "milliseconds"])
        writer.writerows(
            (name, round(value, 1)) for name, values in times.items() for value in values
        )
    print(
        f"{platform.machine()}; theory and drawing alone: {1e3 * drawing:.1f} ms; from key press "
        "to frame, milliseconds:"
    )
    for name, values in {**times, "all": list(chain(*times.values()))}.items():
        median, late, worst = np.quantile(values, [0.5, 0.95, 1.0])
        verdict = "PASS" if late < 1e3 * TARGET else "MISS"
        summary = f"median {median:4.0f}, 95% {late:4.0f}, worst {worst:4.0f}"
        print(f"  {name:10s} {len(values):4d} moves: {summary}  {verdict}")


if __name__ == "__main__":
    main()
