"""The program: its commands and what they have in common."""

from __future__ import annotations

import sys
from collections import Counter
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from unflip._utils.version import __version__
from unflip.cli.terminal import fail

#: Module of each command, in the order of the help text.
_COMMANDS = {
    "demo": "demo",
    "audit": "audit",
    "apply": "apply",
    "fit": "models",
    "predict": "models",
    "plan": "plan",
    "explore": "explore",
    "reproduce": "reproduce",
}


class _Command(TyperCommand):
    """A command that takes no option twice, unless the option is a flag or a list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))
        for option, count in Counter(parameters).items():
            if (
                count > 1
                and isinstance(option, TyperOption)
                and not (option.is_flag or option.multiple)
            ):
                fail(f"{option.opts[0]} is given {count} times but takes one value: give it once.")
        return super().parse_args(ctx, args)


class _Program(TyperGroup):
    """The commands, each imported when it is first asked for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        names: Any = dict.fromkeys(_COMMANDS)
        self.commands = names  # for the help and for suggestions; `get_command` loads them

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        function = getattr(import_module(f"unflip.cli.commands.{_COMMANDS[cmd_name]}"), cmd_name)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(cls=_Command)(function)
        return typer.main.get_command(alone)


app = typer.Typer(
    cls=_Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unflip {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Find wrong labels, and learn from noisy ones."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # texts may hold what a terminal cannot show
