"""The program: its commands and what they have in common."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

import unflip
from unflip.cli.apply import apply
from unflip.cli.audit import audit
from unflip.cli.demo import demo
from unflip.cli.explore import explore
from unflip.cli.models import fit, predict
from unflip.cli.plan import plan
from unflip.cli.reproduce import reproduce

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, audit, apply, fit, predict, plan, explore, reproduce):
    app.command()(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unflip {unflip.__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Find wrong labels, and learn from noisy ones."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # texts may hold what a terminal cannot show
