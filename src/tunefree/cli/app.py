"""The command line: its commands, and the output of errors as messages.

To add a command, write a function and add a line to ``COMMANDS``. The parameters of the function become the options of
the command, and its docstring the help. Slow imports belong into the function, so that the help stays fast.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tunefree.cli.options import ungrouped
from tunefree.core.errors import TunefreeError
from tunefree.core.parameters import as_options
from tunefree.core.registry import Registry

COMMANDS = Registry(
    "command",
    {
        "columns": "tunefree.cli.learning:columns",
        "train": "tunefree.cli.learning:train",
        "predict": "tunefree.cli.rows:predict",
        "explain": "tunefree.cli.rows:explain",
        "evaluate": "tunefree.cli.rows:evaluate",
        "report": "tunefree.cli.rows:report",
        "compare": "tunefree.cli.rows:compare",
        "inspect": "tunefree.cli.models:inspect",
        "export": "tunefree.cli.models:export",
        "serve": "tunefree.cli.serve:serve",
        "certify": "tunefree.cli.models:certify",
        "demo": "tunefree.cli.demo:demo",
    },
    "tunefree.commands",
)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # output cannot be written
NO_MEMORY = "there is not enough memory; hash features to fewer (`hash_bits`), or learn fewer"


class Commands(TyperGroup):
    """The commands by name, each created on demand, as creating all would double the time of a start."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        names: Any = dict.fromkeys(COMMANDS)  # for suggestions after a misspelt name
        self.commands = names

    def list_commands(self, ctx: Any) -> list[str]:
        return COMMANDS.search()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command_of(cmd_name, COMMANDS[cmd_name]) if cmd_name in COMMANDS else None


class Command(TyperCommand):
    """A command that refuses repeated options, unless these take several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for parameter in order:
            if parameter.param_type_name == "argument" or parameter.multiple or parameter.is_flag:  # type: ignore[attr-defined]
                continue
            if order.count(parameter) > 1 and not ctx.resilient_parsing:
                ctx.fail(f"{parameter.opts[0]} is given twice; leave one of them out")
        return super().parse_args(ctx, args)


@cache
def command_of(name: str, function: Callable[..., None]) -> Any:
    """The click command of a function."""
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=Command)(ungrouped(function))
    return typer.main.get_command(alone)


app = typer.Typer(
    name="tunefree",
    cls=Commands,
    help="Learn to predict a column of files and streams in one pass, with nothing to tune.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(shown: bool) -> None:
    if shown:
        from importlib.metadata import version

        typer.echo(f"tunefree {version('tunefree')}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def options_of(command: str) -> set[str]:
    """The names of the parameters of a command."""
    names = {parameter.name for parameter in command_of(command, COMMANDS[command]).params}
    return names | {name.rstrip("_") for name in names}


def worded(message: str, words: list[str]) -> str:
    """A message with options instead of names of parameters; options of another command name this command.

    ``words``: the arguments of the command line, starting with the name of the command.

    >>> worded("the label is missing; see `na_values`, or pass `unlabelled='skip'`", ["evaluate"])
    'the label is missing; see --na-values, or pass --unlabelled skip of `tunefree train`'
    """
    commands = [name for name in dict.fromkeys([*words[:1], "train", *COMMANDS]) if name in COMMANDS]

    def written(name: str, option: str) -> str:
        command = next((command for command in commands if name in options_of(command)), None)
        return option if command is None or [command] == words[:1] else f"{option} of `tunefree {command}`"

    return as_options(message, written)


def main() -> None:
    """Run the command line: exit with status 0, or with 2 and a message for errors that a user can correct.

    After a signal, the status is 128 plus its number, as in shells: 130 for Ctrl-C. It is not 0 even if a training was
    saved, since there is no model yet, and later commands of a script must not run.
    """
    if not {"-q", "--quiet"} & set(sys.argv[1:]):  # show when code must be compiled
        handler, log = logging.StreamHandler(), logging.getLogger("tunefree")
        handler.setFormatter(logging.Formatter("tunefree: %(message)s"))
        log.handlers, log.level = [handler], logging.INFO
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # raises the error of a full device here, not at exit
    except (TunefreeError, MemoryError) as error:
        message = str(error) if isinstance(error, TunefreeError) else NO_MEMORY
        typer.echo(f"tunefree: {worded(message, sys.argv[1:2])}", err=True)
        sys.exit(2)
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discard the rest of the output
        problem = f"standard output cannot be written ({error.strerror})"
        typer.echo(f"tunefree: {problem}; make room, or send the output elsewhere", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as end:
        interruption = _interruption(end)
        if interruption is None:
            raise
        message = str(interruption) or "interrupted; nothing was written"
        typer.echo(f"tunefree: {worded(message, sys.argv[1:2])}", err=True)
        sys.exit(getattr(interruption, "status", 130))


def _interruption(end: BaseException | None) -> KeyboardInterrupt | None:
    """The interruption that caused an error, such as an exit by typer; None if there was none."""
    while end is not None and not isinstance(end, KeyboardInterrupt):
        end = end.__cause__ or end.__context__
    return end
