"""`unflip explore`: serve the page on this machine alone, until Ctrl-C."""

from __future__ import annotations

import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from urllib.parse import parse_qsl, urlsplit

_HOST = "127.0.0.1"
# The page may run its own script and ask this server; whatever else it were made to load is refused by the browser.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


def explore(port: int | None = None, open_browser: bool = True) -> None:
    """Serve the page and, if wanted, open it in the browser; returns once Ctrl-C has stopped the server.

    Parameters
    ----------
    port : int, optional
        Port of 127.0.0.1 to serve at; any free one by default.
    open_browser : bool
        Whether to open the page.
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


class _Page(BaseHTTPRequestHandler):
    """The page itself, and its answers."""

    protocol_version = "HTTP/1.1"  # one connection for all moves of a slider

    def do_GET(self) -> None:
        """Answer a request."""
        from unflip.explorer.controls import document  # imports matplotlib

        host, asked = self.headers.get("Host", "").rsplit(":", 1)[0], urlsplit(self.path)
        if host not in (_HOST, "localhost"):  # a name of somebody else's that leads here
            self._send(403, "This page is served to this machine alone.")
        elif asked.path == "/":
            self._send(200, document())
        elif asked.path == "/answer":
            self._send(200, _answer(asked.query))
        else:
            self._send(404, "There is no such page.")

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
    from unflip.explorer.controls import read_setting
    from unflip.explorer.page import refusal, render

    try:
        return render(read_setting(dict(parse_qsl(query))))
    except ValueError as error:
        return refusal(str(error))


def _listening(port: int | None) -> ThreadingHTTPServer:
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"port = {port} must lie between 1 and 65535: give another, or none for any free one.")
    try:
        return ThreadingHTTPServer((_HOST, port or 0), _Page)
    except OSError as error:
        raise ValueError(
            f"port {port} of {_HOST} cannot be used ({error.strerror}): give another, or none for any free one."
        ) from None
