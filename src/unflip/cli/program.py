"""The program `unflip`: its commands, imported on demand."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from unflip._utils.version import __version__
from unflip.cli.terminal import fail

#: Module of each command, in the order of the help text.
_COMMANDS = {
    "demo": "demo",
    "audit": "audit",
    "evaluate": "evaluate",
    "apply": "apply",
    "fit": "models",
    "predict": "models",
    "plan": "plan",
    "explore": "explore",
    "reproduce": "reproduce",
}


def _summary(command: str) -> str:
    """Return the docstring of a command from its source: importing all commands takes a second."""
    source = Path(__file__).with_name("commands") / f"{_COMMANDS[command]}.py"
    for statement in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef) and statement.name == command:
            return ast.get_docstring(statement) or ""
    raise LookupError(command)


def _without_flag_values(parameters: list[Any]) -> list[Any]:
    """Let the help text of flags show no type, as if they took a value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    """A command that rejects an option given twice, unless the option is a flag or a list."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_values(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # Some versions of typer put required arguments in braces.
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))
        for option, count in Counter(parameters).items():
            takes_one_value = isinstance(option, TyperOption) and not (
                option.is_flag or option.multiple
            )
            if count > 1 and takes_one_value:
                fail(f"{option.opts[0]} is given {count} times but takes one value: pass it once.")
        return super().parse_args(ctx, args)


class _Program(TyperGroup):
    """The commands, each imported at its first use."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        names: Any = dict.fromkeys(_COMMANDS)
        self.commands = names  # used by suggestions; `get_command` imports the command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the first paragraph of each command, without importing the commands."""
        commands = [TyperCommand(name, help=_summary(name)) for name in _COMMANDS]
        shown = TyperGroup(
            name=self.name, commands=commands, help=self.help, params=self.get_params(ctx)
        )
        shown.format_help(ctx, formatter)

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_values(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        function = getattr(import_module(f"unflip.cli.commands.{_COMMANDS[cmd_name]}"), cmd_name)
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(cls=_Command)(function)
        return typer.main.get_command(single)


app = typer.Typer(
    cls=_Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(requested: bool) -> None:
    if requested:
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
    """Find wrong labels, and train classifiers on noisy labels."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # text may have characters that a terminal cannot show
