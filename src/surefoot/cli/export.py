"""`surefoot export`: a model as ONNX or as torch's ExportedProgram, with normalisation and temperature inside."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.arguments import check_split
from ..errors import SurefootError, UnknownName, require
from ..files import read_json
from ..models.arguments import QUANTISED, SUFFIXES, check_installed
from ..schemas import parse_number
from ..version import VERSION
from . import options as flag
from .targets import Target, find_target, one_target, with_members

if TYPE_CHECKING:
    from torch import nn

    from ..data.dataset import Split
    from ..types import Images

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
RANGES = 128  # images by which a quantised file finds its ranges
CHECKED = 64  # real images on which the file is compared with the model


@app.command()
@flag.with_blocks
def export(
    *,
    targets: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]", help="Run folder, or a calibrated copy of one; several with --ensemble"),
    ] = None,
    ensemble: Annotated[bool, typer.Option("--ensemble", help="Write several runs as one: probabilities averaged")] = False,
    format: Annotated[str, typer.Option(help="onnx, or torch for an ExportedProgram (.pt2)")] = "onnx",
    temperature: Annotated[
        str | None,
        typer.Option(metavar="fit|none|NUMBER", help="[default: as the run was calibrated, else its audit's]"),
    ] = None,
    fit_on: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="With --temperature fit [default: calibration for a run, else test]")
    ] = None,
    quantise: Annotated[
        str | None, typer.Option(metavar="int8", help="8-bit weights and activations, by images of the calibration split")
    ] = None,
    source: flag.ModelFlags,
    reading: flag.DataFlags,
    output: Annotated[Path | None, typer.Option(help="File to write [default: model.onnx or .pt2 in the run folder]")] = None,
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Write a model for other programs and check it against the original on images of its test split."""
    data_options = reading.options()
    check_flags(format, output, temperature, fit_on)
    if quantise is not None and (quantise not in QUANTISED or format != "onnx"):
        raise SurefootError(f"--quantise takes {', '.join(QUANTISED)}, for ONNX, got '{quantise}' for {format}.")
    loaded = find_target(one_target(targets or [], ensemble), source, data_options)
    if ensemble:  # what the first run was calibrated by or promises is not the ensemble's
        loaded = replace(with_members(loaded, (targets or [])[1:], source.allow_code), run=None)
        fit_on = fit_on or ("calibration" if temperature == "fit" else None)
    from ..models._export import export as write

    subject, chosen, said = tempered(loaded, temperature, fit_on)
    about: dict[str, Any] = {"name": loaded.name, "classes": list(loaded.data.class_names)}
    about |= {"calibration": said, "surefoot": VERSION}
    kept = {key: loaded.data.source.get(key) for key in ("crop_pct", "interpolation")}
    about |= {"preprocessing": {key: value for key, value in kept.items() if value is not None}}
    path = output or loaded.folder / f"model{'' if quantise is None else f'-{quantise}'}{SUFFIXES[format]}"
    images = first_images(loaded.data.test, CHECKED)
    promised = loaded.guarantees
    about |= {"guarantees": promised.words} if promised is not None else {}
    more = promised.outputs if promised is not None else None
    options: dict[str, Any] = {"format": format, "temperature": chosen, "metadata": about, "more": more}
    if quantise is not None:
        options |= {"quantise": quantise, "calibration": range_images(loaded)}
    done = write(subject, images, path, **options)
    result = {"path": str(done.path), "temperature": chosen, "calibration": said, "images": done.images}
    result |= {"difference": done.difference, "relative": done.relative}
    result |= {} if done.agreement is None else {"agreement": done.agreement}
    if json_:
        print(json.dumps(result))
    elif not quiet:
        print(f"temperature: {said}")
        print(f"largest difference {done.difference:.2g} ({done.relative:.2g} of the largest logit) on {done.images} images")
        if done.agreement is not None:
            print(f"{done.agreement:.1%} of them have the model's class; surefoot compare says what it costs")
        print(done.path)


def range_images(target: Target) -> Images:
    """Images by which the ranges of activations are found, none of them a test image."""
    from ..data.subsets import choose

    for name in ("calibration", "train"):
        if len(target.data.split(name)):
            return first_images(choose(target.data.split(name), RANGES), RANGES)
    raise SurefootError("--quantise needs images beside the test split: data with a calibration or train split.")


def check_flags(format: str, output: Path | None, temperature: str | None, fit_on: str | None) -> None:
    """Whatever can be refused before a model is read and fitted."""
    if format not in SUFFIXES:
        raise UnknownName("format", format, SUFFIXES)
    if format == "onnx":
        check_installed()
    if output is not None:
        require(output.suffix == SUFFIXES[format], "output", f"a file *{SUFFIXES[format]}", str(output))
        flag.check_output(output)
    if fit_on is not None and temperature != "fit":
        raise SurefootError("--fit-on is for --temperature fit.")
    check_split(fit_on or "test")
    if fit_on == "train":
        raise SurefootError("--fit-on must not be train: a model is surer of what it was trained on.")
    if temperature not in (None, "none", "fit"):
        parse_temperature(str(temperature))


def parse_temperature(text: str) -> float:
    """`1.5` or `3/2`."""
    number = parse_number(text)
    if not isinstance(number, (int, float)) or not 0 < number < math.inf:
        raise SurefootError(f"--temperature must be fit, none or a positive number, got '{text}'.")
    return float(number)


def first_images(split: Split, count: int) -> Images:
    """Some real images."""
    batch = next(iter(split.batches(count)), None)
    if batch is None:
        raise SurefootError("The test split has no images to check the file on.")
    return batch.images


def tempered(target: Target, temperature: str | None, fit_on: str | None) -> tuple[nn.Module, float, str]:
    """The model to write, the temperature to put behind it, and where that comes from."""
    from ..calibration.temperature import Temperature

    run = target.run
    bare = bare_model(target)
    if temperature is not None and target.guarantees is not None:
        raise SurefootError("--temperature would void the run's guarantees, which hold for its own calibration: leave it out.")
    if temperature is None and target.calibrator is not None:
        kind = "model" if run is None else "run"
        if isinstance(target.calibrator, Temperature):
            return bare, target.calibrator.temperature, f"{target.calibrator.temperature:.4g}, as the {kind} was calibrated"
        return (
            target.model,
            1.0,
            f"none; the {kind}'s calibrator ({type(target.calibrator).__name__}) is inside",
        )
    if temperature is None:
        return bare, *audited_temperature(target)
    if temperature == "none":
        return bare, 1.0, "none, as given"
    if temperature == "fit":
        return bare, *fitted_temperature(target, bare, fit_on)
    number = parse_temperature(temperature)
    return bare, number, f"{number:.4g}, as given"


def bare_model(target: Target) -> nn.Module:
    """The model without its calibrator; what is no torch module cannot be written."""
    from ..calibration.calibrators import Calibrated
    from ..models.black_box import BlackBox
    from ..models.class_mapping import MappedClasses
    from ..models.model_files import FromFile

    bare = target.model if target.run is None else target.run.objective.predictor(target.run.model)
    bare = bare.model if isinstance(bare, Calibrated) else bare
    inside = bare.model if isinstance(bare, MappedClasses) else bare
    if isinstance(inside, BlackBox | FromFile):
        raise SurefootError(
            f"export writes torch modules, and {target.name} is a file, a function or a service: export what it was made from."
        )
    return bare


def audited_temperature(target: Target) -> tuple[float, str]:
    """The temperature of the audit in the target's folder, where there is one that stands for all images."""
    from ..attacks.cache import fingerprint

    path = target.folder / "audit.json"
    if not path.is_file():
        return 1.0, "none: no audit has found one (--temperature fit finds it)"
    audit = read_json("audit", path)
    if audit["subject"].get("weights") != fingerprint(target.model):
        return 1.0, "none: the audit there is of other weights (--temperature fit finds it)"
    scaling = audit.get("temperature") or {}
    temperatures = scaling.get("temperatures") or []
    if len(temperatures) != 1:
        return 1.0, f"none: its audit has {len(temperatures)}, each for a part of the images (--temperature fit finds one)"
    return float(temperatures[0]), f"{temperatures[0]:.4g}, from its audit (fitted on {scaling['fitted_on']})"


def fitted_temperature(target: Target, model: nn.Module, fit_on: str | None) -> tuple[float, str]:
    """Fitted now, on images that the model was not trained on."""
    from ..calibration.temperature import fit_temperature
    from ..models.classifier import pick_device, predict

    split = fit_on or ("test" if target.run is None else "calibration")
    device = pick_device()
    images = target.data.split(split)
    if len(images) == 0:
        raise SurefootError(f"The {split} split has no images to fit a temperature on.")
    fit = fit_temperature(predict(model.to(device), images.batches(256, device=device), device))
    note = f"; {fit.note}" if fit.note else ""
    return fit.temperature, f"{fit.temperature:.4g}, fitted on {len(images)} images of the {split} split{note}"
