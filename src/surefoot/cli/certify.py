"""`surefoot certify`: how many images of a split keep their answer, provably, within a radius (randomised smoothing)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from ..errors import SurefootError
from ..geometry.smoothing_certificates import Certificates
from ..geometry.smoothing_certificates import certify as measure
from ..intervals import wilson
from ..models.prediction import pick_device
from ..plain import plain
from ..schemas import parse_number
from . import options as flag
from .audit import Target, from_import, from_name, from_run

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
RADII = "0,0.1,0.25,0.5,0.75,1"
Row = dict[str, float]


@app.command()
def certify(
    target: Annotated[Path | None, typer.Argument(help="Run folder")] = None,
    std: Annotated[float, typer.Option(help="Standard deviation of the noise, in pixel units")] = 0.25,
    n0: Annotated[int, typer.Option(help="Draws that choose the class")] = 100,
    n: Annotated[int, typer.Option(help="Draws that bound its probability; the paper takes 100000")] = 1000,
    alpha: Annotated[float, typer.Option(help="Probability that the certificate of an image is wrong")] = 0.001,
    radii: Annotated[str, typer.Option(metavar="R,R,...", help="Radii of the table, L2 in pixel units")] = RADII,
    model: Annotated[str | None, typer.Option(help="Instead of a run folder: a model name")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Weights for --model")] = None,
    pretrained: Annotated[bool, typer.Option("--pretrained", help="Published weights for --model")] = False,
    import_: Annotated[
        str | None, typer.Option("--import", metavar="MODULE:FUNCTION", help="Instead: a function that gives an nn.Module")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Name, folder or .npz [default: the run's own]")] = None,
    split: Annotated[str, typer.Option(help="train, calibration, validation or test")] = "test",
    root: flag.Root = None,
    max_images: flag.MaxImages = None,
    image_size: flag.ImageSize = None,
    model_mean: Annotated[
        str | None, typer.Option(metavar="M|R,G,B", help="Normalisation inside a model of --model or --import")
    ] = None,
    model_std: Annotated[
        str | None, typer.Option(metavar="S|R,G,B", help="Normalisation inside a model of --model or --import")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Noisy images at a time")] = 256,
    seed: Annotated[int, typer.Option(help="Decides the noise")] = 0,
    device: flag.Device = "auto",
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Certified accuracy of the smoothed classifier: the answer that the model gives most often under Gaussian noise."""
    if sum(given is not None for given in (target, model, import_)) != 1:
        raise SurefootError("Give a run folder, or --model with --checkpoint or --pretrained, or --import.")
    asked = parse_radii(radii)
    options = flag.given(root=root, max_images=max_images, image_size=flag.parse_size(image_size))
    mean, deviation = flag.parse_channels("--model-mean", model_mean), flag.parse_channels("--model-std", model_std)
    normalisation = flag.given(mean=mean, std=deviation)
    found = subject(target, model, checkpoint, pretrained, import_, data, options, normalisation)
    place = pick_device(device)
    batches = list(found.data.split(split).batches(batch_size, device=place))
    if not batches:
        raise SurefootError("The split has no images.")
    images, labels, indices = (torch.cat([getattr(b, name) for b in batches]) for name in ("images", "labels", "indices"))
    draws: dict[str, Any] = {"n0": n0, "n": n, "alpha": alpha, "seed": seed, "indices": indices.cpu()}
    result = measure(found.model.to(place), images, labels, std, **draws, batch_size=batch_size, progress=not quiet)
    rows = curve(result, asked)
    abstained = float((result.predictions < 0).double().mean())
    if json_:
        print(json.dumps({"name": found.name, "split": split, "curve": rows, "abstained": abstained, **plain(result)}))
    elif not quiet:
        Console().print(as_table(f"{found.name}, {split} split, noise {std:g}, 95 % intervals", rows))
        print(f"{abstained:.1%} of {len(labels)} images without an answer; radii end at {result.largest_radius:.3g}.")
        print(f"Of the smoothed classifier, not of the model itself; each is wrong with probability {alpha:g} at most.")


def subject(
    target: Path | None,
    model: str | None,
    checkpoint: Path | None,
    pretrained: bool,
    import_: str | None,
    data: str | None,
    options: dict[str, Any],
    normalisation: dict[str, Any],
) -> Target:
    """The model and the data that were named."""
    if target is not None:
        if normalisation:
            raise SurefootError("--model-mean and --model-std are for --model and --import; a run knows its own.")
        return from_run(target, data, options)
    if data is None:
        raise SurefootError("--data must be given with --model and --import.")
    if model is not None:
        return from_name(model, checkpoint, pretrained, data, options, normalisation)
    return from_import(import_ or "", data, options, normalisation)


def parse_radii(text: str) -> list[float]:
    """`0,0.25,1`."""
    numbers = [parse_number(part.strip()) for part in text.split(",")]
    wrong = next((number for number in numbers if not isinstance(number, (int, float)) or number < 0), None)
    if wrong is not None:
        raise SurefootError(f"--radii must be numbers of at least 0 with commas, such as {RADII}, got '{wrong}'.")
    return [float(number) for number in numbers]


def curve(result: Certificates, radii: list[float]) -> list[Row]:
    """Certified accuracy at each radius, with its interval over images."""
    count = len(result.labels)
    return [{"radius": radius, **wilson(round(result.accuracy(radius) * count), count)} for radius in radii]


def as_table(title: str, rows: list[Row]) -> Table:
    """A row for each radius, for the screen."""
    shown = Table(title=title, title_justify="left")
    for column in ("radius", "certified accuracy", "interval"):
        shown.add_column(column, justify="right")
    for row in rows:
        shown.add_row(f"{row['radius']:g}", f"{row['accuracy']:.1%}", f"{100 * row['low']:.1f}-{100 * row['high']:.1f}")
    return shown
