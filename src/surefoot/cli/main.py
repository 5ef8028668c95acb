"""The `surefoot` command. Commands are a table and are imported when they are run, so that help is quick."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import traceback
from contextlib import nullcontext
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import SurefootError, UnknownName, printable
from ..lifelines import Ended, end_with_parent, ended_by_signals
from ..registry import search_current_folder
from ..version import VERSION

UsageError: type[Any] = typer.BadParameter.__bases__[0]  # click's, or the copy of click that newer typers carry
INTERRUPTED, BROKEN_PIPE = 130, 141  # as shells say
ARGUMENTS: list[str] = []  # as they were given
OPTIONAL = ("--pretrained",)
ELSEWHERE = {"--predictions": "needs the model itself: --predictions is for audit and calibrate."}  # flags of other commands
COMMANDS = {
    "demo": "The whole story on an embedded data set, in minutes",
    "train": "Train a classifier with any objective",
    "audit": "Measure a trained model and write its page",
    "table": "The rows behind an audit, one for each image and condition",
    "compare": "Put audits side by side and say which differences are real",
    "monitor": "Watch a run on pictures without labels, against its audit",
    "gate": "Judge an audit by rules, for CI",
    "export": "Write a model for other programs, as ONNX or .pt2",
    "card": "Write a run with its model card, for the Hugging Face hub",
    "calibrate": "Calibrate the confidences of a run and write a copy",
    "corrupt": "Write corrupted copies of a data set, or draw a sheet of them",
    "attack": "Attack a trained model at several budgets",
    "certify": "Prove within which radius a smoothed prediction holds",
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
    arguments = with_values([argument for argument in arguments if argument != "--debug"])
    search_current_folder()  # for `--objective package.module:Class` and its kin; nothing else is imported from here
    safe_path = os.environ.get("PYTHONSAFEPATH", "")  # empty is as good as none
    os.environ["PYTHONSAFEPATH"] = "1"  # nor by processes that are started for us
    notes = logging.StreamHandler(sys.stderr)
    notes.setFormatter(Lines())
    notes.addFilter(Once())
    logger = logging.getLogger("surefoot")
    level = logger.level
    logger.setLevel(logging.ERROR if "--quiet" in arguments else logging.INFO)
    logger.addHandler(notes)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a letter that the terminal does not have ends nothing
    several = end_with_parent() and "RANK" in os.environ  # which are ended at once, wherever they wait for each other
    try:
        refuse_nonsense(arguments)
        with nullcontext() if several else ended_by_signals():
            code: Any = app(arguments, standalone_mode=False, prog_name="surefoot")
        if code == INTERRUPTED:  # newer typers catch the interrupt themselves
            raise KeyboardInterrupt
        sys.exit(flushed(code if isinstance(code, int) else 0))
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typers turn it into 1, which is a check's
            sys.exit(without_reader())
        raise
    except BrokenPipeError:
        sys.exit(without_reader())
    except (SurefootError, UsageError) as error:
        if debug:
            traceback.print_exc()
        message = error.format_message() if isinstance(error, UsageError) else str(error)
        if getattr(error, "option_name", None) in ELSEWHERE and isinstance(error, UsageError):
            message = f"{error.ctx.info_name} {ELSEWHERE[error.option_name]}"
        if type(error).__name__ == "NoArgsIsHelpError":
            print(message, file=sys.stderr)
            sys.exit(2)
        fail(" ".join(message.split()))
    except Exception as error:  # whatever else goes wrong is no check that did not hold
        if debug:
            traceback.print_exc()
        if out_of_memory(error):
            fail("Memory is full: a smaller --batch-size, --image-size or --max-images needs less (--debug shows where).")
        said = " ".join(str(error).split())
        print(f"surefoot: {type(error).__name__}{': ' if said else ''}{printable(said)} (--debug shows where)", file=sys.stderr)
        sys.exit(2)
    except Ended as end:
        fail(f"Ended by signal {end.number}.{way_on(arguments)}", end.code)
    except (KeyboardInterrupt, typer.Abort):
        fail("" if several else f"Interrupted.{way_on(arguments)}", INTERRUPTED)  # of several their launcher speaks
    finally:
        os.environ["PYTHONSAFEPATH"] = safe_path
        logger.removeHandler(notes)
        logger.setLevel(level)


class Once(logging.Filter):
    """A warning that is the last one again, as of the other half of the images, is not printed twice."""

    last = ""

    def filter(self, record: logging.LogRecord) -> bool:
        said, self.last = self.last, record.getMessage()
        return record.levelno != logging.WARNING or said != self.last


class Lines(logging.Formatter):
    """Notes that a terminal prints and does not obey."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def refuse_nonsense(arguments: list[str]) -> None:
    """An empty value is a variable that a script forgot to set, and as a path it would be the current folder.

    A number of more digits than any count, size or seed has is a slip, and would break whatever takes 64 bits.
    """
    flag = ""
    for word in arguments:
        name, equals, value = word.partition("=")
        if not word or (name.startswith("--") and equals and not value):
            raise SurefootError(f"{(name if equals else flag) or 'An argument'} must not be empty.")
        if re.fullmatch(r"[-+]?[0-9]{19,}", value if equals else word):
            raise SurefootError(f"{(name if equals else flag) or 'A number'} must be below 10^18, got {value or word}.")
        flag = word if word.startswith("--") else ""


def out_of_memory(error: Exception) -> bool:
    """Whether Python, numpy or torch, on any device, found no memory."""
    said = str(error)
    return isinstance(error, MemoryError) or "can't allocate memory" in said or "out of memory" in said


def way_on(arguments: list[str]) -> str:
    """How to go on with a command that was stopped, if it can be gone on with."""
    way = "The same command without --overwrite" if "--overwrite" in arguments else "The same command"
    epoch = "from the last finished epoch"
    goes_on = {"train": epoch, "study": epoch, "audit": "with what is left"}
    return next((f" {way} goes on {text}." for command, text in goes_on.items() if command in arguments), "")


def with_values(arguments: list[str]) -> list[str]:
    """A flag whose value may be left out gets it: `--pretrained` alone is `--pretrained=true`."""
    bare = [word in OPTIONAL and after.startswith("-") for word, after in zip(arguments, [*arguments[1:], "-"], strict=False)]
    return [f"{word}=true" if alone else word for word, alone in zip(arguments, bare, strict=True)]


def flushed(code: int) -> int:
    """The exit code once all is written; what a command found stands even if its reader has left."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return code or without_reader()
    return code


def without_reader() -> int:
    """Nobody reads on, as in `surefoot list | head -1`: what is left goes nowhere, without a word."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return BROKEN_PIPE


def fail(message: str, code: int = 2) -> None:
    if message and os.environ.get("RANK", "0") == "0":  # one of several processes speaks for all
        print(f"surefoot: {printable(message)}", file=sys.stderr)
    sys.exit(code)
