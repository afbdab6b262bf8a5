"""`unflip explore`: serve the page on this machine alone, until Ctrl-C."""

from __future__ import annotations

import runpy
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

_HOST = "127.0.0.1"
_NOTEBOOK = Path(__file__).with_name("notebook.py")


def explore(port: int | None = None, open_browser: bool = True) -> None:
    """Serve the page and, if wanted, open it in the browser; returns once Ctrl-C has stopped the server.

    Parameters
    ----------
    port : int, optional
        Port of 127.0.0.1 to serve at; any free one by default.
    open_browser : bool
        Whether to open the page.
    """
    if find_spec("marimo") is None:
        raise ImportError("explore needs marimo; install it with: pip install 'unflip[explore]'")
    arguments = _arguments(_free_port(port), open_browser)
    # As `python -m marimo` in this very process: there is no other that could outlive it.
    before, sys.argv = sys.argv, ["marimo", *arguments]
    try:
        runpy.run_module("marimo", run_name="__main__")
    except SystemExit as stopped:
        if stopped.code:
            raise
    finally:
        sys.argv = before


def _arguments(port: int, open_browser: bool) -> list[str]:
    served = ["--host", _HOST, "--port", str(port), "--no-token", "--no-sandbox", "--no-check"]
    # Not --quiet: marimo then shuts down twice at Ctrl-C and complains of it.
    return ["--yes", "run", str(_NOTEBOOK), *served, *([] if open_browser else ["--headless"])]


def _free_port(port: int | None) -> int:
    """Return the port, or any free one; raise where it is in use."""
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"port = {port} must lie between 1 and 65535: give another, or none for any free one.")
    try:
        with socket.create_server((_HOST, port or 0)) as listener:
            return int(listener.getsockname()[1])
    except OSError as error:
        raise ValueError(
            f"port {port} of {_HOST} cannot be used ({error.strerror}): give another, or none for any free one."
        ) from None
