"""`unflip explore`: numbers in a browser, no other connections, stop on Ctrl-C."""

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.processes import started, until
from unflip import NoiseModel, theory
from unflip.cli.explorer.command import _MAX_CONNECTIONS, _Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# Exits the server with code 77 if it connects to any other machine.
SERVER = """
import os, sys
def watch(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        if arguments[1][0] not in ("127.0.0.1", "::1"):
            os._exit(77)
sys.addaudithook(watch)
from unflip.cli.explorer import command
command._Page.timeout = float(sys.argv[2])
command.explore(int(sys.argv[1]), open_browser=False)
"""


@contextmanager
def served(patience=60.0):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    words = [sys.executable, "-c", SERVER, str(port), str(patience)]
    server = started(words, start_new_session=True, stderr=subprocess.PIPE)
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
        server.stderr.close()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def ask(connection, path="/answer"):
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )


def status(connection):
    with connection.makefile("rb") as answer:
        line = answer.readline()
        answer.read()
    return line.split()[1:2]


def stopped(server):
    """Stop the server as Ctrl-C does; return its exit code and stderr."""
    server.send_signal(signal.SIGINT)
    stderr = server.communicate(timeout=60)[1].decode()
    return server.returncode, stderr


def n_threads(server):
    text = Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"Threads:\s+(\d+)", text)[1])


def test_silent_connections_use_few_threads():
    if not Path("/proc/self/status").exists():
        pytest.skip("needs a system that tells the number of threads")
    with served() as (port, server), ExitStack() as silent:
        for _ in range(300):
            silent.enter_context(connected(port)).sendall(b"GET / HTTP/1.1\r\nHost: loc")
        until(lambda: n_threads(server) >= _MAX_CONNECTIONS, server)
        for _ in range(20):
            time.sleep(0.02)
            assert n_threads(server) <= _MAX_CONNECTIONS + 1  # the one that listens
        assert stopped(server) == (0, "")


def test_silent_connections_time_out():
    assert 0 < _Page.timeout <= 30
    with served(patience=0.2) as (port, server), ExitStack() as silent:
        for _ in range(2 * _MAX_CONNECTIONS):
            silent.enter_context(connected(port)).sendall(b"GET / HTTP/1.1\r\nHost: loc")
        with connected(port) as connection:
            ask(connection)
            assert status(connection) == [b"200"]
        assert stopped(server) == (0, "")


def test_two_hundred_requests_at_once_are_all_answered():
    limit = Path("/proc/sys/net/core/somaxconn")
    if not limit.exists() or int(limit.read_text()) < 256:
        pytest.skip("needs a system that lets 200 connections wait")
    with served() as (port, server), ExitStack() as opened:
        server.send_signal(signal.SIGSTOP)  # so that all of them wait
        try:
            asking = [opened.enter_context(connected(port)) for _ in range(200)]
            for connection in asking:
                ask(connection)
        finally:
            server.send_signal(signal.SIGCONT)
        assert {tuple(status(connection)) for connection in asking} == {(b"200",)}
        assert stopped(server) == (0, "")


def test_closed_connections_cause_no_errors():
    with served() as (port, server):
        for _ in range(30):
            with connected(port) as connection:
                # Reset the connection when it is closed.
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                ask(connection, "/")
        for path in ("/", "//[", "/answer?n=1e999&p=%ff"):
            with connected(port) as connection:
                ask(connection, path)
                assert status(connection) == [b"404" if path == "//[" else b"200"]
        assert stopped(server) == (0, "")


def expected(n, *, fit_intercept=False):
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    mixture = theory.Mixture(mean_norm=2.0, aspect=500 / n, noise=noise)
    return f"{float(theory.predict(mixture, reg=10.0, fit_intercept=fit_intercept).accuracy):.2%}"


@pytest.mark.slow
def test_page_shows_theory_connects_nowhere_else_and_stops():
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
