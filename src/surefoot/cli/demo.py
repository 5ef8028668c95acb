"""`surefoot demo`: train with cross-entropy and with MaCS on the embedded digits, audit both, compare, and show one page."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..errors import SurefootError
from ..keys import LARGEST as LARGEST_SEED
from ..metrics import SHARE, find, of_path
from ..plain import plain
from ..training.arguments import MOST_EPOCHS
from . import options as flag
from .compare import draw_page, verdict

if TYPE_CHECKING:
    from ..auditing.comparison import Difference
    from ..intervals import Estimate
    from ..studies.grid import Row

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
OBJECTIVES = ("cross-entropy", "macs")


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for runs and page")] = Path("surefoot-demo"),
    epochs: Annotated[int, typer.Option(min=1, max=MOST_EPOCHS, help="Epochs for each model")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides everything random")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier demo")] = False,
    open_: Annotated[
        bool | None, typer.Option("--open/--no-open", help="Open the page in a browser [default: where there is a screen]")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the table as JSON")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only")] = False,
) -> None:
    """Cross-entropy against MaCS on scanned digits: train, audit, compare, and see the page."""
    flag.check_folder(output)
    taken = [name for name in OBJECTIVES if (output / name).exists()]
    if taken and not overwrite:
        raise SurefootError(f"'{output}' holds a demo already; choose another --output or pass --overwrite.")
    from ..auditing.comparison import compare, read_compared
    from ..studies.grid import run_grid, table
    from ..training.recipes import Recipe

    given = {"data": "digits", "model": "small-resnet", "seed": seed}
    given["training"] = {"epochs": epochs, "precision": "float32"}  # the same story on every processor
    recipes = {name: Recipe.check({**given, "objective": name}) for name in OBJECTIVES}
    rows = table(run_grid(recipes, output, overwrite=overwrite, progress=not quiet))
    models = [read_compared(output / name) for name in recipes]
    comparison = compare(models, seed=seed)
    page = output / "report.html"
    draw_page(page, models, comparison)
    if json_:
        print(json.dumps({"page": str(page), "table": plain(rows)}))
    elif not quiet:
        Console().print(as_table(rows, comparison.differences))
        print(f"page: {page.resolve().as_uri()}")
    if open_ or (open_ is None and has_screen() and not (json_ or quiet)):
        webbrowser.open(page.resolve().as_uri())


def has_screen() -> bool:
    """Whether somebody sits before this terminal with a graphical desktop."""
    desktop = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    return desktop and sys.stdout.isatty()


def as_table(rows: dict[str, Row], differences: list[Difference]) -> Table:
    """A line for each number, a column for each model, and whether the second is really better: 80 columns wide at most."""
    shown = Table(title="digits, test split, 95 % intervals", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("", no_wrap=True)
    first, second = rows
    for name in rows:
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column(f"{second} is", no_wrap=True)
    said = {item.name: verdict(item) if item.real else "no difference" for item in differences}
    for column, number in rows[first].items():
        shown.add_row(column, cell(column, number), cell(column, rows[second][column]), said.get(path_of(column), ""))
    return shown


def path_of(column: str) -> str:
    """Where an audit holds the number of a column."""
    from ..studies.grid import COLUMNS

    attack, success, _ = column.partition(f" {find('success_rate').label}")
    return f"attacks.{attack}.success_rate" if success else COLUMNS[column]


def cell(column: str, value: Estimate) -> str:
    if of_path(path_of(column)).unit == SHARE:
        return f"{100 * value:.1f} ({100 * value.low:.1f}-{100 * value.high:.1f})"
    return f"{value:.3f} ({value.low:.3f}-{value.high:.3f})"
