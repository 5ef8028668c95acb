"""`surefoot card`: a run as a folder with a model card, ready for the Hugging Face hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..report.card import CARD, card_name, write_card
from . import options as flag

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def card(
    target: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, with its audit if there is one")],
    output: Annotated[Path | None, typer.Option(help="A new folder [default: cards/NAME]")] = None,
    name: Annotated[str | None, typer.Option(help="What the model is called [default: as the run's folder]")] = None,
    license: Annotated[str | None, typer.Option(help="As the hub names it, such as apache-2.0")] = None,
    allow_code: flag.AllowCode = False,
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Write a folder to push as it is: weights, config, recipe, calibration and a model card with the audit's numbers."""
    flag.check_folder(output)
    called = card_name(target, name)
    folder = write_card(target, output or Path("cards") / called, name=called, license=license, allow_code=allow_code)
    if json_:
        print(json.dumps({"folder": str(folder), "files": sorted(path.name for path in folder.iterdir())}))
    elif not quiet:
        print(f"card: {folder / CARD}")
        print(f"next: hf upload OWNER/NAME {folder}")
