"""Flags that several commands share, in blocks, and how they become options of `load_data` and `load_model`."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from .. import files
from ..data.arguments import check_amounts, check_resizing, check_size, check_split
from ..errors import NotFound, SurefootError
from ..progress import speaking
from ..schemas import parse_number

ModelName = Annotated[
    str | None, typer.Option(help="Instead of a run folder: a name, folder, file (ONNX, TorchScript, .pt2), cmd:COMMAND or URL")
]
Returns = Annotated[str | None, typer.Option(metavar="logits|probabilities", help="What a model from elsewhere gives")]
Sends = Annotated[str | None, typer.Option(metavar="npy|png", help="How cmd: and URL get their pictures [default: npy]")]
Classes = Annotated[
    str | None,
    typer.Option(metavar="names|N,N,...|FILE", help="The model's output of each class [default: one to one, or by name]"),
]
Timeout = Annotated[float | None, typer.Option(min=0.001, max=86400, help="Seconds of cmd: and URL for a batch [default: 60]")]
Checkpoint = Annotated[Path | None, typer.Option(help="Weights for --model or --import")]
Pretrained = Annotated[
    str | None, typer.Option(metavar="[TAG]", help="Published weights for --model: the default ones, or those of a tag")
]
Import = Annotated[
    str | None,
    typer.Option("--import", metavar="MODULE|FILE.py:NAME", help="Instead: a model of your own, or a function that gives one"),
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
MaxImages = Annotated[int | None, typer.Option(min=1, help="A stratified number of test images")]
Workers = Annotated[int | None, typer.Option(min=0, help="Processes that read images that do not fit into memory")]
SkipBadImages = Annotated[bool, typer.Option("--skip-bad-images", help="Leave out images that cannot be read, and count them")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, ...")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only")]


@dataclass(frozen=True)
class DataFlags:
    """How data are read: the same flags for every command that reads any."""

    root: Root = None
    labels: LabelFile = None
    class_map: ClassMap = None
    image_size: ImageSize = None
    crop_pct: CropPct = None
    interpolation: Interpolation = None
    workers: Workers = None
    skip_bad_images: SkipBadImages = False

    def options(self, split: str = "test", max_images: int | None = None) -> dict[str, Any]:
        """The flags that were given, as options of `load_data`."""
        if max_images is not None and split != "test":
            raise SurefootError(f"--max-images is for the test split, and --split is {split}.")
        check_split(split)
        size = parse_size(self.image_size)
        check_size(size)
        check_resizing(self.crop_pct, self.interpolation)
        check_amounts(workers=self.workers)
        for kind, path in (("labels", self.labels), ("class map", self.class_map)):
            if path is not None and not path.is_file():
                raise NotFound(kind, path)
        return given(**{**vars(self), "image_size": size, "max_images": max_images})


@dataclass(frozen=True)
class ModelFlags:
    """Which model, if not that of a run folder, and on which data: the same flags for every command that looks at a model."""

    model: ModelName = None
    checkpoint: Checkpoint = None
    pretrained: Pretrained = None
    import_: Import = None
    allow_code: AllowCode = False
    data: RunData = None
    stem: Stem = None
    mean: Mean = None
    std: Std = None
    classes: Classes = None
    returns: Returns = None
    sends: Sends = None
    timeout: Timeout = None

    def normalisation(self) -> dict[str, Any]:
        """`--mean` and `--std` as numbers."""
        return given(mean=parse_channels("--mean", self.mean), std=parse_channels("--std", self.std))


def with_blocks(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters of a block's type have become the flags of the block."""
    hints, signature = get_type_hints(command, include_extras=True), inspect.signature(command)
    parameters: list[inspect.Parameter] = []
    blocks: dict[str, type[Any]] = {}
    for parameter in signature.parameters.values():
        kind = hints[parameter.name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        blocks[parameter.name], own = kind, get_type_hints(kind, include_extras=True)
        for each in fields(kind):
            flag = inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=own[each.name])
            parameters.append(flag)

    @wraps(command)
    def run(**values: Any) -> None:
        built = {name: kind(**{each.name: values.pop(each.name) for each in fields(kind)}) for name, kind in blocks.items()}
        with speaking(not values.get("quiet", True) and os.environ.get("RANK", "0") == "0"):
            command(**values, **built)

    # typer reads it; to mypy a function has none
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def check_output(path: Path | None, name: str = "--output") -> None:
    """Refuse a file that cannot be written, before the work for it is done."""
    if path is None:
        return
    if path.is_dir():
        raise SurefootError(f"{name} must be a file, and '{path}' is a folder.")
    near = next(parent for parent in path.absolute().parents if parent.exists())
    if not (near.is_dir() and os.access(near, os.W_OK)):
        raise SurefootError(f"{name} '{path}' cannot be written: '{near}' is no folder that takes files.")


def check_folder(path: Path | None, name: str = "--output") -> None:
    """Refuse a folder that is a file, before the work for it is done."""
    files.check_folder(path, name)


def given(**flags: Any) -> dict[str, Any]:
    """The flags that were given, with plain values."""
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in flags.items()}
    return {name: value for name, value in plain.items() if value is not None and value is not False}


def parse_tag(text: str | None) -> bool | str:
    """`--pretrained` as an option of `load_model`: not given, alone, or with the tag of the weights."""
    if text is None:
        return False
    return True if text == "true" else text


def parse_numbers(flag: str, text: str, example: str) -> list[float]:
    """`0,1/255,0.03`."""
    numbers = [parse_number(part.strip()) for part in text.split(",")]
    wrong = next((number for number in numbers if not isinstance(number, (int, float)) or not 0 <= number < math.inf), None)
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
    if not all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers):
        raise SurefootError(f"{flag} must be a number, or one for each channel with commas, got '{text}'.")
    if len(numbers) not in (1, 3):
        raise SurefootError(f"{flag} must be one number or 3, got '{text}'.")
    return float(numbers[0]) if len(numbers) == 1 else [float(number) for number in numbers]
