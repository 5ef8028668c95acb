"""`surefoot certify`: how many images of a split keep their prediction, provably, within a radius (randomised smoothing)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..geometry.arguments import check_certifying
from ..intervals import wilson
from ..keys import LARGEST as LARGEST_SEED
from ..metrics import find
from ..models.arguments import check_device
from ..plain import plain
from . import options as flag
from .targets import check_ways, find_target

if TYPE_CHECKING:
    from ..geometry.certificates import Certificates

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
RADII = "0,0.1,0.25,0.5,0.75,1"
Row = dict[str, float]


@app.command()
@flag.with_blocks
def certify(
    *,
    target: Annotated[Path | None, typer.Argument(help="Run folder")] = None,
    noise_std: Annotated[float, typer.Option(help="Standard deviation of the noise, in pixel units")] = 0.25,
    n0: Annotated[int, typer.Option(help="Draws that choose the class")] = 100,
    n: Annotated[int, typer.Option(help="Draws that bound its probability; the paper takes 100000")] = 1000,
    alpha: Annotated[float, typer.Option(help="Probability that the certificate of an image is wrong")] = 0.001,
    radii: Annotated[str, typer.Option(metavar="R,R,...", help="Radii of the table, L2 in pixel units")] = RADII,
    source: flag.ModelFlags,
    split: flag.SplitName = "test",
    reading: flag.DataFlags,
    max_images: flag.MaxImages = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Noisy images at a time")] = 256,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides the noise")] = 0,
    device: flag.Device = "auto",
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Certified accuracy of the smoothed classifier: the class that the model predicts most often under Gaussian noise."""
    check_ways(target, source)
    check_device(device)
    check_certifying(noise_std, n0, n, alpha)
    chosen_radii = flag.parse_numbers("--radii", radii, RADII)
    options = reading.options(split, max_images=max_images)
    loaded = find_target(target, source, {**options, "lazy": True, "audited": split == "test"})
    from ..data.dataset import whole
    from ..geometry.certificates import certify as measure
    from ..models.classifier import pick_device

    torch_device = pick_device(device)
    batch = whole(loaded.data.split(split), batch_size, torch_device)
    draws: dict[str, Any] = {"n0": n0, "n": n, "alpha": alpha, "seed": seed, "indices": batch.indices}
    result = measure(
        loaded.model.to(torch_device), batch.images, batch.labels, noise_std, **draws, batch_size=batch_size, progress=not quiet
    )
    rows = curve(result, chosen_radii)
    abstained = float((result.predictions < 0).double().mean())
    if json_:
        print(json.dumps({"name": loaded.name, "split": split, "curve": rows, "abstained": abstained, **plain(result)}))
    elif not quiet:
        Console().print(as_table(f"{loaded.name}, {split} split, noise {noise_std:g}, 95 % intervals", rows))
        print(f"{abstained:.1%} of {len(batch.labels)} images without a prediction; radii end at {result.largest_radius:.3g}.")
        print(f"Of the smoothed classifier, not of the model itself; each is wrong with probability {alpha:g} at most.")


def curve(result: Certificates, radii: list[float]) -> list[Row]:
    """Certified accuracy at each radius, with its interval over images."""
    count = len(result.labels)
    return [{"radius": radius, **wilson(round(result.accuracy(radius) * count), count)} for radius in radii]


def as_table(title: str, rows: list[Row]) -> Table:
    """A row for each radius, for the screen."""
    shown = Table(title=Text(title), title_justify="left")
    for column in ("radius", find("certified_accuracy").label, "interval"):
        shown.add_column(column, justify="right")
    for row in rows:
        shown.add_row(f"{row['radius']:g}", f"{row['accuracy']:.1%}", f"{100 * row['low']:.1f}-{100 * row['high']:.1f}")
    return shown
