"""The `surefoot` command. Commands are a table and are imported when they are run, so that help is quick."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import SurefootError, UnknownName
from ..version import VERSION

UsageError: type[Any] = typer.BadParameter.__bases__[0]  # click's, or the copy of click that newer typers carry
INTERRUPTED = 130  # as shells say
ARGUMENTS: list[str] = []  # as they were given
COMMANDS = {
    "demo": "The whole story on an embedded data set, in minutes",
    "train": "Train a classifier with any objective",
    "attack": "Attack a trained model at several budgets",
    "certify": "Prove for how far noise cannot change the answers of a smoothed model",
    "audit": "Measure a trained model and write its page",
    "calibrate": "Repair the confidences of a run and write a copy",
    "corrupt": "Write corrupted copies of a data set, or draw a sheet of them",
    "study": "Run the papers' tables, or a grid of your own",
    "list": "Every name and option there is",
    "doctor": "Check this machine and say what Surefoot would use",
}


class Commands(TyperGroup):
    """Shows the table for help, and imports `surefoot.cli.<name>` only for the command that is run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in COMMANDS:
            raise UnknownName("command", name, COMMANDS)
        module = import_module(f"surefoot.cli.{'listing' if name == 'list' else name}")
        return name, typer.main.get_command(module.app), args[1:]


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"surefoot {VERSION}")
        raise typer.Exit


@app.callback(help="Train image classifiers that stay right when the picture gets worse, and audit the ones you have.")
def main(
    version: Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error")] = False,
) -> None:
    from ..allocator import keep_large_blocks

    keep_large_blocks()


def run(arguments: list[str] | None = None) -> None:
    """Entry point: exit 0 when done, 1 when a check did not hold, 2 for an error, which is one line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    ARGUMENTS[:] = arguments
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    sys.path.insert(0, "")  # so that `--objective package.module:Class` finds a module in this folder
    notes = logging.StreamHandler(sys.stderr)
    logger = logging.getLogger("surefoot")
    level = logger.level
    logger.setLevel(logging.ERROR if "--quiet" in arguments else logging.INFO)
    logger.addHandler(notes)
    try:
        code: Any = app(arguments, standalone_mode=False, prog_name="surefoot")
        if code == INTERRUPTED:  # newer typers catch the interrupt themselves
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except (SurefootError, UsageError) as error:
        if debug:
            traceback.print_exc()
        message = error.format_message() if isinstance(error, UsageError) else str(error)
        fail(" ".join(message.split()))
    except (KeyboardInterrupt, typer.Abort):
        way = "The same command without --overwrite" if "--overwrite" in arguments else "The same command"
        epoch = "from the last finished epoch"
        goes_on = {"train": epoch, "study": epoch, "audit": "with what is left"}
        again = next((f" {way} goes on {place}." for command, place in goes_on.items() if command in arguments), "")
        fail(f"Interrupted.{again}", INTERRUPTED)
    finally:
        logger.removeHandler(notes)
        logger.setLevel(level)


def fail(message: str, code: int = 2) -> None:
    if os.environ.get("RANK", "0") == "0":  # one of several processes speaks for all
        print(f"surefoot: {message}", file=sys.stderr)
    sys.exit(code)
