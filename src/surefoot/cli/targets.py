"""What a command works on: a run folder, a named model with its weights, or any module, each with its data."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calibration.arguments import CROSS_FIT
from ..data.architectures import check_architecture
from ..data.arguments import check_data
from ..data.settings import FOLDER, folder_name, is_foreign, is_model_file, is_transformers, settings_of
from ..errors import NotFound, SurefootError
from ..models.arguments import check_returns, check_sends, check_stem
from ..models.remote import is_remote_model
from ..progress import now
from ..registry import import_file, import_own, takes
from ..training.run_files import check_run
from . import options as flag
from .calibrated import is_calibrated, read_calibrated_model, weights_of

if TYPE_CHECKING:
    from torch import nn

    from ..calibration.calibrators import Calibrator
    from ..calibration.guarantees import Guarantees
    from ..data.dataset import Dataset
    from ..training.runs import Run

logger = logging.getLogger("surefoot")
WAYS = "a run folder or a model file, or --model with --checkpoint or --pretrained, or --import"


@dataclass(frozen=True)
class Target:
    """A model, its data and its name; and by default where its page goes and its temperature comes from.

    `run` is the run that it was read from, None for a model from elsewhere, which may have a calibrator and guarantees too.
    """

    model: nn.Module
    data: Dataset
    name: str
    folder: Path
    calibrate_on: str = CROSS_FIT
    run: Run | None = None
    calibrator: Calibrator | None = None
    guarantees: Guarantees | None = None


def find_target(target: Path | None, source: flag.ModelFlags, data_options: dict[str, Any]) -> Target:
    """The one model that the flags name, with its data, and with an output for each class of them."""
    now("reading model and data")
    if target is not None and is_calibrated(target):
        return from_calibrated(target, source, data_options)
    found = find_model(target, source, data_options)
    from ..models.class_mapping import with_classes

    data, known = found.data, () if found.run is None else found.run.class_names
    model, lines = with_classes(found.model, data.class_names, data.image_size, data.channels, source.classes, known)
    for line in lines:
        logger.info("%s", line)
    if lines:
        model.found = (*getattr(found.model, "found", ()), *lines)
    return replace(found, model=model)


def one_target(targets: list[Path], ensemble: bool) -> Path | None:
    """The first run, which names the data; several are an ensemble and must be called one."""
    if ensemble and len(targets) < 2:
        raise SurefootError(f"--ensemble takes two run folders or more, got {len(targets)}.")
    if len(targets) > 1 and not ensemble:
        raise SurefootError(f"One run is expected, got {len(targets)}: give --ensemble to take them as one.")
    for other in targets[1:]:
        check_run(other)
    return targets[0] if targets else None


def with_members(first: Target, others: list[Path], allow_code: bool) -> Target:
    """The predictors of several runs of the same classes as one, on the data of the first."""
    from ..models.ensembles import Ensemble
    from ..training.runs import load_run

    runs = [load_run(path, allow_code=allow_code) for path in others]
    names = None if first.run is None else first.run.class_names
    for path, run in zip(others, runs, strict=True):
        if names is not None and run.class_names != names:
            raise SurefootError(f"The runs of an ensemble must know the same classes; '{path}' knows others.")
    model = Ensemble([first.model, *(run.predictor for run in runs)])
    name = "+".join([first.name, *(path.resolve().name for path in others)])
    fitted: dict[str, Any] = {"calibrator": None, "guarantees": None}  # those of each are inside
    return replace(first, model=model, name=name, folder=Path("audits") / name, **fitted)


def find_model(target: Path | None, source: flag.ModelFlags, data_options: dict[str, Any]) -> Target:
    """The one model that the flags name, with its data."""
    check_source(target, source)
    normalisation = source.normalisation()
    if target is not None and is_model(str(target)):
        return from_name(str(target), None, False, source, data_options, normalisation)
    if target is not None:
        return from_run(target, source.data, data_options, source.allow_code)
    if source.model is not None:
        model_options = {**normalisation, **flag.given(stem=source.stem)}
        tag = flag.parse_tag(source.pretrained)
        return from_name(source.model, source.checkpoint, tag, source, data_options, model_options)
    assert source.data is not None
    return from_import(source.import_ or "", source.checkpoint, source.data, data_options, normalisation, source.returns)


def check_source(target: Path | None, source: flag.ModelFlags) -> None:
    """Exactly one way to name a model, and no flag that is for another."""
    check_ways(target, source)
    if source.allow_code and target is None:
        raise SurefootError("--allow-code is for a run folder.")
    for name in flag.given(stem=source.stem, checkpoint=source.checkpoint, pretrained=source.pretrained):
        if source.model is None and not (name == "checkpoint" and source.import_):
            raise SurefootError(f"--{name} is for --model{' and --import' if name == 'checkpoint' else ''}.")
    for name in flag.given(timeout=source.timeout, sends=source.sends):
        if not is_remote_model(str(target or source.model or "")):
            raise SurefootError(f"--{name} is for models that are commands (cmd:) or addresses.")
    check_sends(source.sends)
    normalisation = source.normalisation()
    if target is not None and not is_model(str(target)):
        if source.returns is not None:
            raise SurefootError("--returns is for models that are files, commands or addresses, and for --import.")
        if normalisation:
            raise SurefootError("--mean and --std are for --model and --import; a run knows its own.")
    if target is None and source.data is None:
        raise SurefootError("--data must be given with --model and --import.")


def check_ways(target: Path | None, source: flag.ModelFlags) -> None:
    """Exactly one way to name a model."""
    if sum(given is not None for given in (target, source.model, source.import_)) != 1:
        raise SurefootError(f"Give {WAYS}.")


def from_run(target: Path, data: str | None, options: dict[str, Any], allow_code: bool = False) -> Target:
    """The predictor of a run folder, on the data it names or on others."""
    check_run(target)
    if data is not None:
        check_data(data, options.get("root"))
    from ..training.runs import load_run

    run = load_run(target, allow_code=allow_code)
    dataset = data_of_run(run, target, data, options)
    if run.model.num_classes == dataset.num_classes:  # else they are mapped by name, or refused
        check_classes(run, dataset)
    own = bool(run.recipe.data) and data in (None, (run.recipe.data or {}).get("name")) and len(dataset.calibration) > 0
    fitted: dict[str, Any] = {"calibrator": run.calibrator, "guarantees": run.guarantees}
    return Target(run.predictor, dataset, target.resolve().name, target, "calibration" if own else CROSS_FIT, run, **fitted)


def from_calibrated(target: Path, source: flag.ModelFlags, options: dict[str, Any]) -> Target:
    """A calibrated model from elsewhere, on the data that it was calibrated on or on others."""
    own, about, calibrator, guarantees = read_calibrated_model(target, source)
    if own.data == about["data"].get("name"):  # with the splits of then: its test images are those that no fit has seen
        options = {**about["data"], **{key: value for key, value in options.items() if key != "audited"}}
        options.pop("name")
    found = find_target(None, own, options)
    if about["weights"] != weights_of(found.model):
        raise SurefootError(f"The model of '{target}' has other weights now than when it was calibrated.")
    model: Any = calibrator.module(found.model)
    said = f"calibrated: {type(calibrator).__name__}, fitted on {own.data}, is behind it"
    model.found = (*getattr(found.model, "found", ()), said)
    return replace(found, model=model, name=str(about["name"]), folder=target, calibrator=calibrator, guarantees=guarantees)


def check_classes(run: Run, data: Dataset) -> None:
    """Refuse data with another number of classes, or with a class of the run under another number.

    Names that are quite other ones may mean the same.
    """
    from ..models.preflight import other_count

    if other := other_count(run.model.num_classes, data.num_classes):
        raise SurefootError(f"{other.message} {other.advice}")
    ours, theirs = run.class_names, data.class_names
    moved = [name for number, name in enumerate(theirs) if name in ours and ours.index(name) != number]
    if moved:
        said = f"class '{moved[0]}' is number {ours.index(moved[0])} of the run and {theirs.index(moved[0])} of the data"
        raise SurefootError(f"The classes differ: {said}; give the run's order with --class-map.")
    if ours and ours != theirs:
        logger.warning("The run calls its classes %s ..., the data %s ...", ", ".join(ours[:3]), ", ".join(theirs[:3]))


def data_of_run(run: Run, target: Path, data: str | None, options: dict[str, Any]) -> Dataset:
    """The data that a run names, or others, with the pixels that its model wants."""
    from ..data.loading import load_data
    from ..data.remote_sources import local_data

    section = run.recipe.data or {}
    if data is not None and data != section.get("name"):
        section = {"name": data, "seed": section.get("seed", 0)}
    elif not section:
        raise SurefootError(f"The data of '{target}' came from Python and have no name: give --data.")
    if data is None or data == (run.recipe.data or {}).get("name"):  # its test split is what it was not trained on
        options = {key: value for key, value in options.items() if key != "audited"}
    size = {} if "image_size" in section else {"image_size": run.model.image_size}
    section = {**size, **section, **options}
    if run.recipe.file is not None:
        section = local_data(run.recipe.file, section, own=[*options, *([] if data is None else ["name"])])
    return load_data(**section, model=run.recipe.settings())


def is_model(name: str) -> bool:
    """Whether a target is a model itself, and not a run folder."""
    return is_foreign(name) or folder_name(name).startswith(FOLDER)


def from_name(
    model: str,
    checkpoint: Path | None,
    pretrained: bool | str,
    source: flag.ModelFlags,
    options: dict[str, Any],
    model_options: dict[str, Any],
) -> Target:
    """A named model with weights from a file or as published, or a model that is a file, a folder, a command or an address."""
    if source.data is None:
        raise SurefootError(f"--data must be given with '{model}'.")
    complete = is_model(model)
    if checkpoint is None and not pretrained and not complete:
        raise SurefootError(f"--model {model} needs --checkpoint or --pretrained.")
    check_architecture(model, pretrained)
    check_stem(source.stem)
    check_returns(source.returns)
    check_data(source.data, options.get("root"))
    if checkpoint is not None and not checkpoint.is_file():
        raise NotFound("checkpoint", checkpoint)
    if is_foreign(model) and not is_transformers(model):
        return from_program(model, source, options, model_options)
    from ..data.loading import load_data
    from ..models.checkpoints import OtherClasses
    from ..models.loading import load_model

    dataset = load_data(source.data, **options, model=settings_of(model, pretrained))
    loaded: Any
    sizes: dict[str, Any] = {"image_size": dataset.image_size, "channels": dataset.channels}
    if checkpoint is None:  # with the head that was published, not a new one that fits the data
        loaded = load_model(model, **sizes, pretrained=pretrained, seed=0, **model_options).eval()
    else:
        options = {"checkpoint": str(checkpoint), "pretrained": pretrained, **model_options}
        try:
            loaded = load_model(model, data=dataset, seed=0, **options).eval()
        except OtherClasses as error:  # the data have some of its classes, which `with_classes` finds or refuses
            if error.classes < dataset.num_classes:
                raise
            loaded = load_model(model, **sizes, num_classes=error.classes, seed=0, **options).eval()
    return Target(loaded, dataset, model, folder_of(model))


def from_program(model: str, source: flag.ModelFlags, options: dict[str, Any], model_options: dict[str, Any]) -> Target:
    """A file, a command or an address; what it says of the size of its pictures decides theirs, unless a flag does."""
    if is_model_file(model) and not Path(model).is_file():
        raise NotFound("model file", model)
    from ..data.loading import load_data
    from ..models.loading import load_model
    from ..models.model_files import describe

    wanted = {} if is_remote_model(model) else describe(model).preprocessing()
    dataset = load_data(source.data, **{**wanted, **options})
    about = {**model_options, **flag.given(returns=source.returns, sends=source.sends, timeout=source.timeout)}
    loaded = load_model(model, data=dataset, **about)
    return Target(loaded, dataset, model, folder_of(model))


def folder_of(model: str) -> Path:
    """Where the page of a model from elsewhere goes."""
    name = Path(model).stem if is_model_file(model) else model.removeprefix("cmd:").partition("://")[2] or model
    return Path("audits") / re.sub(r"[^\w.+-]+", "-", name).strip("-.")


def from_import(
    target: str,
    checkpoint: Path | None,
    data: str,
    options: dict[str, Any],
    normalisation: dict[str, Any],
    returns: str | None = None,
) -> Target:
    """A model of one's own, by what it is: a module, an object with predict_proba, a function of pictures, or a maker of it."""
    check_returns(returns)
    check_data(data, options.get("root"))
    if checkpoint is not None and not checkpoint.is_file():
        raise NotFound("checkpoint", checkpoint)
    from torch import nn

    from ..data.loading import load_data
    from ..models.checkpoints import load_bare
    from ..models.foreign import adapt_found

    given = (import_file if target.rpartition(":")[0].endswith(".py") else import_own)("import", target)
    if not is_own_model(given):
        try:
            given = given()
        except TypeError as error:
            raise SurefootError(f"'{target}' cannot be called without arguments: {error}.") from error
        if not is_own_model(given) and not callable(given):
            said = "an nn.Module, an object with predict_proba or a function of pictures"
            raise SurefootError(f"'{target}' must give {said}, got {type(given).__name__}.")
    if checkpoint is not None:
        if not isinstance(given, nn.Module):
            raise SurefootError(f"--checkpoint needs a module, and '{target}' gives {type(given).__name__}.")
        load_bare(given, checkpoint)
    if isinstance(given, nn.Module):
        given.eval()  # a maker gives it in training mode
    dataset = load_data(data, **options)
    mean, std = normalisation.get("mean", 0.0), normalisation.get("std", 1.0)
    subject = adapt_found(given, mean, std, dataset.image_size, dataset.channels, returns)
    return Target(subject, dataset, target, folder_of(target))


def is_own_model(given: Any) -> bool:
    """Whether it is a model itself, and not what makes one: a function of pictures cannot be called without them."""
    from torch import nn

    if isinstance(given, type):
        return False
    return isinstance(given, nn.Module) or hasattr(given, "predict_proba") or (takes(1)(given) and not takes(0)(given))
