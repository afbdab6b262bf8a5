"""Server of `unflip explore`, which is reachable from this machine only."""

from __future__ import annotations

import re
import sys
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from threading import Semaphore
from typing import Any
from urllib.parse import parse_qsl

_HOST = "127.0.0.1"
# Host headers of requests from this machine. Any other name is rejected (DNS rebinding).
_OWN_NAMES = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?")
_MAX_CONNECTIONS = 32  # served at a time, each by one thread
# The page may run its own script and connect to this server. Browsers block everything else.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)


def explore(port: int | None = None, open_browser: bool = True) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    port : int, optional
        Port of 127.0.0.1; any free one by default.
    open_browser : bool
        Whether to open the page in the browser.
    """
    if find_spec("matplotlib") is None:
        raise ImportError('explore needs matplotlib; install it with: pip install "unflip[cli]"')
    with _listening(port) as server:
        url = f"http://{_HOST}:{server.server_port}"
        print(f"unflip explore: {url} (Ctrl-C stops it)", flush=True)
        try:
            if open_browser:
                webbrowser.open(url)
            server.serve_forever()
        except KeyboardInterrupt:
            return


class _Server(ThreadingHTTPServer):
    """Serves a limited number of connections at a time; the rest wait."""

    request_queue_size = 1024  # waiting connections; the system may allow fewer

    def __init__(self, port: int) -> None:
        self._free = Semaphore(_MAX_CONNECTIONS)
        super().__init__((_HOST, port), _Page)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection as soon as fewer than the limit are running."""
        self._free.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, then admit the next one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors, except connections closed by the browser."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Page(BaseHTTPRequestHandler):
    """Handler of requests for the page and for its numbers."""

    protocol_version = "HTTP/1.1"  # one connection for all moves of a slider
    timeout = 10.0  # seconds until a silent connection is closed

    def do_GET(self) -> None:
        """Answer a request."""
        from unflip.cli.explorer.controls import document  # imports matplotlib

        hosts = self.headers.get_all("Host", [])
        path, _, query = self.path.partition("?")
        if len(hosts) != 1 or not _OWN_NAMES.fullmatch(hosts[0]):
            self._send(403, "This page is available on this machine only.")
        elif path == "/":
            self._send(200, document())
        elif path == "/answer":
            self._send(200, _answer(query))
        else:
            self._send(404, "This page does not exist.")

    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal quiet."""

    def _send(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", _POLICY),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _answer(query: str) -> str:
    from unflip.cli.explorer.controls import read_setting
    from unflip.cli.explorer.page import error_message, render

    try:
        return render(read_setting(dict(parse_qsl(query))))
    except ValueError as error:
        return error_message(str(error))


def _listening(port: int | None) -> _Server:
    if port is not None and not 0 < port < 65536:
        raise ValueError(
            f"port = {port} must lie between 1 and 65535: give another, or none for any free one."
        )
    try:
        return _Server(port or 0)
    except OSError as error:
        raise ValueError(
            f"port {port} of {_HOST} cannot be used ({error.strerror}): give another, or none for "
            "any free one."
        ) from None
