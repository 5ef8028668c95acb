"""`surefoot audit`: from a run folder, or a model and its checkpoint, to a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from torch import nn

from ..auditing.measuring import audit as measure
from ..data.dataset import Dataset
from ..data.loading import load_data
from ..errors import SurefootError
from ..models.loading import load_model
from ..report.page import write_page
from ..report.reading import read_audit
from ..report.verdict import verdict
from ..training.runs import load_run

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def audit(
    target: Annotated[Path | None, typer.Argument(help="Run folder")] = None,
    model: Annotated[str | None, typer.Option(help="Instead of a run folder: a model name")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Weights for --model")] = None,
    data: Annotated[str | None, typer.Option(help="Data set [default: the run's own]")] = None,
    split: Annotated[str, typer.Option(help="train, calibration, validation or test")] = "test",
    batch_size: Annotated[int, typer.Option(help="Images at a time")] = 256,
    seed: Annotated[int, typer.Option(help="Decides corruptions and intervals")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    output: Annotated[Path | None, typer.Option(help="Folder for the page [default: the run folder]")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print audit.json")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only")] = False,
) -> None:
    """Measure a trained model and write audit.json, audit-data/ and report.html."""
    if (target is None) == (model is None):
        raise SurefootError("Give either a run folder or --model with --checkpoint.")
    subject, dataset, name, folder = from_run(target, data) if target else from_checkpoint(model or "", checkpoint, data)
    folder = output or folder
    progress = not quiet
    measure(
        subject,
        dataset,
        split=split,
        name=name,
        batch_size=batch_size,
        seed=seed,
        device=device,
        output=folder,
        progress=progress,
    )
    found = read_audit(folder)
    page = write_page(folder / "report.html", [found])
    if json_:
        found.pop("points")
        print(json.dumps(found))
    elif not quiet:
        print("\n".join(verdict(found)))
        print(f"page: {page}")


def from_run(target: Path, data: str | None) -> tuple[nn.Module, Dataset, str, Path]:
    """The predictor of a run folder and the data it names."""
    run = load_run(target)
    dataset = load_data(data) if data else run.recipe.load_data()
    return run.predictor, dataset, target.resolve().name, target


def from_checkpoint(model: str, checkpoint: Path | None, data: str | None) -> tuple[nn.Module, Dataset, str, Path]:
    """A named model with weights from a file."""
    if checkpoint is None or data is None:
        raise SurefootError(f"--model {model} needs --checkpoint and --data.")
    dataset = load_data(data)
    return load_model(model, data=dataset, checkpoint=str(checkpoint)), dataset, model, Path("audits") / model
