"""Command `unflip explore`."""

from __future__ import annotations

from typing import Annotated

import typer

from unflip.cli.explorer.command import explore as serve
from unflip.cli.terminal import fail


def explore(
    port: Annotated[
        int | None, typer.Option(help="Port of this machine; any free one by default.")
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
) -> None:
    """Open a local page with sliders that shows the theory's predictions."""
    try:
        serve(port, not no_browser)
    except (ValueError, ImportError) as error:
        fail(str(error))
