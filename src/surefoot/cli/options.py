"""Flags that several commands share, and how they become options of `load_data` and `load_model`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SurefootError
from ..schemas import parse_number

ModelName = Annotated[str | None, typer.Option(help="Instead of a run folder: a model name")]
Checkpoint = Annotated[Path | None, typer.Option(help="Weights for --model")]
Pretrained = Annotated[bool, typer.Option("--pretrained", help="Published weights for --model")]
Import = Annotated[
    str | None, typer.Option("--import", metavar="MODULE:FUNCTION", help="Instead: a function that gives an nn.Module")
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Trust the file: run the code and fetch the data and models that it names")
]
RunData = Annotated[str | None, typer.Option(help="Name, folder or .npz [default: the run's own]")]
SplitName = Annotated[str, typer.Option(help="train, calibration, validation or test")]
Root = Annotated[Path | None, typer.Option(help="Folder of the data, or where to download them to")]
LabelFile = Annotated[Path | None, typer.Option("--labels", help="CSV of labels for a flat folder")]
ClassMap = Annotated[Path | None, typer.Option(help="File with another order of the classes")]
ImageSize = Annotated[str | None, typer.Option(metavar="SIDE|HxW", help="Resize to this [default: as the model wants]")]
CropPct = Annotated[float | None, typer.Option(help="Share of the resized image that the crop keeps")]
Interpolation = Annotated[str | None, typer.Option(help="nearest, bilinear, bicubic, ...")]
Mean = Annotated[str | None, typer.Option(metavar="M|R,G,B", help="Normalisation inside the model")]
Std = Annotated[str | None, typer.Option(metavar="S|R,G,B", help="Normalisation inside the model")]
Stem = Annotated[str | None, typer.Option(help="First layers for small images: auto, imagenet or enlarge")]
MaxImages = Annotated[int | None, typer.Option(help="A stratified number of test images")]
Workers = Annotated[int | None, typer.Option(help="Processes that read images that do not fit into memory")]
SkipBadImages = Annotated[bool, typer.Option("--skip-bad-images", help="Leave out images that cannot be read, and count them")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, ...")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only")]


def check_output(path: Path | None, name: str = "--output") -> None:
    """Refuse a file that cannot be written, before the work for it is done."""
    if path is None:
        return
    if path.is_dir():
        raise SurefootError(f"{name} must be a file, and '{path}' is a folder.")
    near = next(parent for parent in path.absolute().parents if parent.exists())
    if not (near.is_dir() and os.access(near, os.W_OK)):
        raise SurefootError(f"{name} '{path}' cannot be written: '{near}' is no folder that takes files.")


def given(**flags: Any) -> dict[str, Any]:
    """The flags that were given, with plain values."""
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in flags.items()}
    return {name: value for name, value in plain.items() if value is not None and value is not False}


def data_options(*, image_size: str | None, split: str = "test", **flags: Any) -> dict[str, Any]:
    """The flags that say how data are read, as options of `load_data`."""
    if flags.get("max_images") is not None and split != "test":
        raise SurefootError(f"--max-images is for the test split, and --split is {split}.")
    return given(**flags, image_size=parse_size(image_size))


def parse_numbers(flag: str, text: str, example: str) -> list[float]:
    """`0,1/255,0.03`."""
    numbers = [parse_number(part.strip()) for part in text.split(",")]
    wrong = next((number for number in numbers if not isinstance(number, (int, float)) or number < 0), None)
    if wrong is not None:
        raise SurefootError(f"{flag} must be numbers of at least 0 with commas, such as {example}, got '{wrong}'.")
    return [float(number) for number in numbers]


def parse_size(text: str | None) -> int | tuple[int, int] | None:
    """`224` or `400x500` (height x width)."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:[x,](\d+))?", text.strip())
    if match is None:
        raise SurefootError(f"--image-size must be a side or HEIGHTxWIDTH, got '{text}'.")
    return (int(match[1]), int(match[2])) if match[2] else int(match[1])


def parse_channels(flag: str, text: str | None) -> float | list[float] | None:
    """`0.5` or `0.485,0.456,0.406`."""
    if text is None:
        return None
    numbers = [parse_number(part) for part in text.split(",")]
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise SurefootError(f"{flag} must be a number, or one for each channel with commas, got '{text}'.")
    return float(numbers[0]) if len(numbers) == 1 else [float(number) for number in numbers]
