"""`surefoot demo`: train two models on the embedded digits, audit both, and write one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import SurefootError
from ..plain import plain
from ..report.page import write_page
from ..report.reading import read_audit
from ..studies.grid import run_grid
from ..studies.tables import table
from ..training.recipes import Recipe
from ..types import Estimate

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
OBJECTIVES = ("cross-entropy", "label-smoothing")


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for runs and page")] = Path("surefoot-demo"),
    epochs: Annotated[int, typer.Option(help="Epochs for each model")] = 20,
    seed: Annotated[int, typer.Option(help="Decides everything random")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier demo")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the table as JSON")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only")] = False,
) -> None:
    """Cross-entropy against label smoothing on scanned digits: train, audit, compare."""
    recipes = {
        name: Recipe.check(
            {"data": "digits", "model": "small-resnet", "objective": name, "training": {"epochs": epochs}, "seed": seed}
        )
        for name in OBJECTIVES
    }
    taken = [name for name in recipes if (output / name).exists()]
    if taken and not overwrite:
        raise SurefootError(f"'{output}' holds a demo already; choose another --output or pass --overwrite.")
    rows = table(run_grid(recipes, output, overwrite=overwrite, progress=not quiet))
    page = write_page(output / "report.html", [read_audit(output / name) for name in recipes])
    if json_:
        print(json.dumps({"page": str(page), "table": plain(rows)}))
    elif not quiet:
        Console().print(as_table(rows))
        print(f"page: {page.resolve().as_uri()}")


def as_table(rows: dict[str, dict[str, Estimate]]) -> Table:
    """Rows with their 95 % intervals, for the screen."""
    shown = Table(title="digits, test split, 95 % intervals", title_justify="left")
    shown.add_column("objective", no_wrap=True)
    for column in next(iter(rows.values())):
        shown.add_column(column, justify="right")
    for name, row in rows.items():
        shown.add_row(name, *(cell(column, value) for column, value in row.items()))
    return shown


def cell(column: str, value: Estimate) -> str:
    if column == "NLL":
        return f"{value:.3f}\n{value.low:.3f}-{value.high:.3f}"
    return f"{value:.1%}\n{100 * value.low:.1f}-{100 * value.high:.1f}"
