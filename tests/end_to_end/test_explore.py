"""The page of `unflip explore` in a browser: it shows the theory's numbers, asks nobody else, and stops at Ctrl-C."""

import os
import shutil
import signal
import socket
import sys
import time
from contextlib import contextmanager

import pytest

from support.processes import started
from unflip import NoiseModel, theory

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# Ends the server at once, with a code of its own, where it calls any other machine.
SERVER = """
import os, sys
def watch(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in ("127.0.0.1", "::1"):
        os._exit(77)
sys.addaudithook(watch)
from unflip.explorer.command import explore
explore(int(sys.argv[1]), open_browser=False)
"""


@contextmanager
def served():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server = started([sys.executable, "-c", SERVER, str(port)], start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while server.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        assert server.poll() is None
        yield port, server
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def expected(n, *, fit_intercept=False):
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    mixture = theory.Mixture(mean_norm=2.0, aspect=500 / n, noise=noise)
    return f"{float(theory.predict(mixture, reg=10.0, fit_intercept=fit_intercept).accuracy):.2%}"


@pytest.mark.slow
def test_the_page_shows_the_theory_asks_nobody_and_stops():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    asked = []
    with served() as (port, server), playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 375, "height": 800})
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"http://127.0.0.1:{port}")
        number = page.locator("#unflip-accuracy")
        playwright.expect(number).to_have_text(expected(1000), timeout=60_000)
        page.get_by_role("slider").first.press("ArrowRight")
        playwright.expect(number).to_have_text(expected(1500), timeout=20_000)
        page.get_by_role("checkbox").click()
        playwright.expect(number).to_have_text(expected(1500, fit_intercept=True), timeout=20_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        server.send_signal(signal.SIGINT)  # with the page still open
        assert server.wait(timeout=30) == 0
        browser.close()
    assert len(asked) >= 3  # the page and two moves
    assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in asked)
    with pytest.raises(ProcessLookupError):
        os.killpg(server.pid, 0)
