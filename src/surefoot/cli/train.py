"""`surefoot train`: a recipe from a file, `--set` and flags; then the loop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.architectures import check_architecture
from ..data.arguments import check_amounts, check_data
from ..data.remote_sources import local_data, refuse_remote_model
from ..errors import NotFound, SurefootError, UnknownName, shown
from ..keys import LARGEST as LARGEST_SEED
from ..models.arguments import check_device, check_stem
from ..objectives.methods import OBJECTIVES
from ..registry import code_in, refuse_code
from ..schemas import defaults_of, parse_value
from ..training._fit import fit
from ..training.arguments import NOT_TRAINING_OPTIONS, check_values, training_options
from ..training.launcher import check_processes, is_first, launch, launched
from ..training.option_names import check_option_names
from ..training.recipe_files import NAMED, SECTIONS, read_recipe, source_of
from ..training.trackers import check_tracker
from . import options as flag
from .main import ARGUMENTS

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
DEFAULTS = defaults_of(fit, NOT_TRAINING_OPTIONS)
DATA, MODEL, OBJECTIVE = "digits", "small-resnet", "cross-entropy"


@app.command()
@flag.with_blocks
def train(
    *,
    data: Annotated[str | None, typer.Option(help=f"Name, folder or .npz [default: {DATA}]")] = None,
    model: Annotated[str | None, typer.Option(help=f"Any timm name, torchvision/NAME, or {MODEL} [default: {MODEL}]")] = None,
    objective: Annotated[
        str | None, typer.Option(help=f"Training method, or package.module:Class [default: {OBJECTIVE}]")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help=f"[default: {DEFAULTS['epochs']}]")] = None,
    batch_size: Annotated[int | None, typer.Option(help=f"[default: {DEFAULTS['batch_size']}]")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", "--lr", help=f"[default: {DEFAULTS['learning_rate']}]")
    ] = None,
    optimiser: Annotated[
        str | None,
        typer.Option("--optimiser", "--optimizer", help=f"sgd, adam or adamw [default: {DEFAULTS['optimiser']}]"),
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help=f"[default: {DEFAULTS['weight_decay']}]")] = None,
    schedule: Annotated[str | None, typer.Option(help=f"cosine, step or constant [default: {DEFAULTS['schedule']}]")] = None,
    patience: Annotated[int | None, typer.Option(help="Stop after so many epochs without a better validation accuracy")] = None,
    precision: Annotated[str | None, typer.Option(help="auto, float32, bf16 or fp16 [default: auto, see doctor]")] = None,
    compile: Annotated[bool, typer.Option("--compile", help="torch.compile the model")] = False,
    processes: Annotated[int, typer.Option(help="Processes on this machine, each with its share of a batch")] = 1,
    tracker: Annotated[str | None, typer.Option(help="tensorboard, mlflow, wandb, or another of accelerate's trackers")] = None,
    project: Annotated[str | None, typer.Option(help="What the run belongs to in the tracker [default: surefoot]")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SEED, help="Decides weights, order and noise [default: 0]")
    ] = None,
    pretrained: Annotated[
        str | None, typer.Option(metavar="[TAG]", help="Start from published weights: the default ones, or those of a tag")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Start from these weights")] = None,
    reading: flag.DataFlags,
    fraction: Annotated[float | None, typer.Option(help="A stratified share of the training images")] = None,
    stem: flag.Stem = None,
    mean: flag.Mean = None,
    std: flag.Std = None,
    recipe: Annotated[Path | None, typer.Option(help="YAML file; flags and --set win over it")] = None,
    allow_code: flag.AllowCode = False,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.NAME=VALUE", help="Any option; may be repeated")
    ] = None,
    output: Annotated[Path, typer.Option(help="Run folder; a run that was stopped goes on")] = Path("runs/latest"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is there")] = False,
    device: flag.Device = "auto",
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Train a classifier; `surefoot list` shows every name and option."""
    names = {"data": data, "model": model, "objective": objective}
    sections = {
        "data": {**reading.options(), **flag.given(fraction=fraction)},
        "model": flag.given(
            pretrained=flag.parse_tag(pretrained),
            checkpoint=checkpoint,
            stem=stem,
            mean=flag.parse_channels("--mean", mean),
            std=flag.parse_channels("--std", std),
        ),
        "training": flag.given(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            optimiser=optimiser,
            weight_decay=weight_decay,
            schedule=schedule,
            patience=patience,
            precision=precision,
            compile=compile,
        ),
    }
    check_flags(data, objective, checkpoint, reading, fraction, sections["training"], stem, device, processes)
    if project is not None and tracker is None:
        raise SurefootError("--project is for --tracker.")
    if tracker is not None:
        check_tracker(tracker)
    if allow_code and recipe is None:
        raise SurefootError("--allow-code is for --recipe.")
    base = read_recipe(recipe) if recipe else {}
    composed = compose(base, set or [], names, sections, seed)
    training_options(composed["training"])
    check_option_names(composed)
    if isinstance(composed["model"].get("name"), str):
        check_architecture(composed["model"]["name"], composed["model"].get("pretrained", False))
    from ..training.recipes import Recipe

    if set:  # a flag wins over what --set says of the same, and nonsense is still nonsense
        said = compose({}, set, names, {}, None)
        Recipe.check({section: said[section] for section in NAMED} | {key: said[key] for key in said if key not in NAMED})
    if recipe is not None and not allow_code:
        refuse_code(source_of(recipe), base)
        own = compose({section: {} for section in NAMED}, set or [], names, sections, seed)
        composed["data"] = local_data(source_of(recipe), composed["data"], own["data"])
        refuse_remote_model(source_of(recipe), composed["model"], own["model"])
    checked = Recipe.check(composed)
    if processes > 1 and not launched():
        raise typer.Exit(launch(processes, ARGUMENTS))
    told = flag.given(tracker=tracker, project=project)
    run = checked.run(output=output, overwrite=overwrite, device=device, progress=not quiet, **told)
    if not is_first():
        return
    best = checked.training["keep"] == "best"
    last = max(run.history, key=lambda epoch: epoch["validation_accuracy"]) if best else run.history[-1]
    if json_:
        print(json.dumps({"folder": str(output), **last}))
    elif not quiet:
        judged = f"loss {last['loss']:.3f}, no validation images"
        if "validation_accuracy" in last:
            judged = f"validation accuracy {last['validation_accuracy']:.1%}, ECE {last['validation_ece']:.1%}"
        print(f"{judged}; run written to {output}")
        print(f"next: surefoot audit {output}{' --allow-code' if code_in(checked.objective) else ''}")


def check_flags(
    data: str | None,
    objective: str | None,
    checkpoint: Path | None,
    reading: flag.DataFlags,
    fraction: float | None,
    training: Mapping[str, Any],
    stem: str | None,
    device: str,
    processes: int,
) -> None:
    """Whatever can be refused before a method, a model or data are looked at."""
    check_processes(processes)
    check_device(device)
    check_stem(stem)
    check_values(training)
    check_amounts(**flag.given(fraction=fraction))
    if objective is not None:
        OBJECTIVES.check(objective)
    if data is not None:
        check_data(data, None if reading.root is None else str(reading.root))
    if checkpoint is not None and not checkpoint.is_file():
        raise NotFound("checkpoint", checkpoint)


def compose(
    base: dict[str, Any],
    settings: Sequence[str],
    names: dict[str, str | None],
    sections: dict[str, dict[str, Any]],
    seed: int | None,
) -> dict[str, Any]:
    """A recipe file, then `--set`, then flags; a flag with another name drops the file's options of the old one."""
    out: dict[str, Any] = {"data": DATA, "model": MODEL, "objective": OBJECTIVE, **base}
    for section in NAMED:
        if not isinstance(out[section], str | Mapping | None):
            raise SurefootError(f"{section} must be a name or a mapping, got {shown(out[section])}.")
        out[section] = {"name": out[section]} if isinstance(out[section], str) else dict(out[section] or {})
        if names[section] is not None and names[section] != out[section].get("name"):
            out[section] = {"name": names[section]}
    for section in ("training", "augmentation"):
        if not isinstance(out.get(section), Mapping | None):
            raise SurefootError(f"{section} must be a mapping of options, got {shown(out[section])}.")
    for setting in settings:
        apply_setting(out, setting)
    for section, options in sections.items():
        out[section] = {**(out.get(section) or {}), **options}
    return out if seed is None else {**out, "seed": seed}


def apply_setting(out: dict[str, Any], setting: str) -> None:
    """One `--set section.name=value`."""
    path, equals, text = setting.partition("=")
    section, _, name = path.partition(".")
    if section not in SECTIONS:
        raise UnknownName("section", section, SECTIONS)
    if not equals or (not name and section != "seed"):
        raise SurefootError(f"--set takes SECTION.NAME=VALUE, got '{setting}'.")
    out[section] = {**(out.get(section) or {}), name: parse_value(text)} if name else parse_value(text)
