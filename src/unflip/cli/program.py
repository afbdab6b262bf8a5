"""The program: its commands and what they have in common."""

from __future__ import annotations

import sys
from collections import Counter
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

import unflip
from unflip.cli.apply import apply
from unflip.cli.audit import audit
from unflip.cli.demo import demo
from unflip.cli.explore import explore
from unflip.cli.models import fit, predict
from unflip.cli.plan import plan
from unflip.cli.reproduce import reproduce
from unflip.cli.talk import fail


class _Command(TyperCommand):
    """A command that takes no option twice, unless the option is a flag or a list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))
        for option, count in Counter(parameters).items():
            if count > 1 and isinstance(option, TyperOption) and not (option.is_flag or option.multiple):
                fail(f"{option.opts[0]} is given {count} times but takes one value: give it once.")
        return super().parse_args(ctx, args)


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, audit, apply, fit, predict, plan, explore, reproduce):
    app.command(cls=_Command)(command)


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
