"""`surefoot audit`: from a run folder, a model and its checkpoint, any module, or predictions, to a page."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..auditing.arguments import QUICK, check_engine, check_names, check_parts, check_risks, parse_time
from ..auditing.depths import find_depth
from ..auditing.tracking import track
from ..calibration.arguments import CROSS_FIT
from ..corruptions.arguments import check_copied
from ..data.arguments import SPLITS, check_data
from ..errors import NotFound, SurefootError, UnknownName, printable
from ..keys import LARGEST as LARGEST_SEED
from ..models.arguments import check_device
from ..ood.arguments import MADE, check_pictures, told
from ..progress import now
from ..report.page import ASSETS, read_audit, write_page
from ..report.verdict import verdict
from ..training.launcher import check_processes, is_first, launch, launched
from ..training.trackers import check_tracker_of_audits
from . import options as flag
from .main import ARGUMENTS
from .targets import WAYS, Target, find_target, one_target, with_members

if TYPE_CHECKING:
    from ..data.dataset import Split
    from ..types import Predictions

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@flag.with_blocks
def audit(
    *,
    targets: Annotated[list[Path] | None, typer.Argument(metavar="[RUN]", help="Run folder; several with --ensemble")] = None,
    ensemble: Annotated[bool, typer.Option("--ensemble", help="Audit several runs as one: probabilities averaged")] = False,
    source: flag.ModelFlags,
    predictions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead: logits or probabilities in .npz, .csv or .safetensors")
    ] = None,
    calibrate_on: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT|FILE", help="Fit the temperature here [default: a run's calibration split, else cross-fit]"
        ),
    ] = None,
    allow_leakage: Annotated[bool, typer.Option("--allow-leakage", help="Audit images a calibrator was fitted on")] = False,
    depth: Annotated[str, typer.Option(help="clean, quick, standard or full (everything in the papers)")] = "quick",
    time_: Annotated[
        str | None,
        typer.Option("--time", metavar="90s|10m|1h", help="Take fewer images where it must [default: 2m for quick, else none]"),
    ] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="An attack beyond the depth's, or package.module:function; may be repeated"),
    ] = None,
    measure_: Annotated[
        list[str] | None,
        typer.Option(
            "--measure", metavar="NAME", help="A measurement beyond the depth's, or package.module:Class; may be repeated"
        ),
    ] = None,
    corruption: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A corruption beyond the depth's, or package.module:function; may be repeated"),
    ] = None,
    skip: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Leave out: attacks, geometry, corruptions, or single measurements")
    ] = None,
    only: Annotated[str | None, typer.Option(metavar="NAME,...", help="Of the depth measure these alone")] = None,
    shift: Annotated[
        list[str] | None, typer.Option(metavar="NAME|DIR", help="A further test set to score; may be repeated")
    ] = None,
    corrupted: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Corrupted copies (CIFAR-C, ImageNet-C) instead of our own"),
    ] = None,
    foreign: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|DIR|FILE",
            help="Pictures of none of the classes (near:NAME for a near set); may be repeated",
        ),
    ] = None,
    risk: Annotated[list[float] | None, typer.Option(help="Wanted error rate for a threshold; repeat for several")] = None,
    groups: Annotated[
        str | None, typer.Option(metavar="FILE.csv:COLUMN", help="Score every group of images apart, as this column names them")
    ] = None,
    processes: Annotated[int, typer.Option(help="Processes that share the work on this machine")] = 1,
    engine: Annotated[str, typer.Option(help="local, or ray: a cluster that shares the chunks of images")] = "local",
    split: flag.SplitName = "test",
    reading: flag.DataFlags,
    max_images: flag.MaxImages = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Images at a time [default: as memory allows]")] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides corruptions and intervals")] = 0,
    device: flag.Device = "auto",
    output: Annotated[Path | None, typer.Option(help="Folder for the page [default: the run folder]")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an unfinished audit with other options")] = False,
    assets: Annotated[str, typer.Option(help="Plotly's script: inline, or beside the page, to share")] = "inline",
    tracker: Annotated[
        str | None, typer.Option(help="Give numbers and page to tensorboard, mlflow or wandb, to the run's own run there")
    ] = None,
    project: Annotated[str | None, typer.Option(help="What the run belongs to in the tracker [default: surefoot]")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where the checks before the audit find something fatal")
    ] = False,
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Measure a trained model and write audit.json, audit-data/ and report.html."""
    began = time.perf_counter()
    check_processes(processes)
    labels = [*find_depth(depth).measure, *(measure_ or ()), "foreign", "members"]
    check_parts(labels, names_in(skip), names_in(only))
    check_engine(engine)
    check_device(device)
    check_names(attack or (), corruption or (), measure_ or ())
    check_risks(risk or ())
    time_budget = parse_time(time_) if time_ is not None else QUICK if depth == "quick" else None
    if tracker is not None:
        check_tracker_of_audits(tracker)
    elif project is not None:
        raise SurefootError("--project is for --tracker.")
    target = one_target(targets or [], ensemble)
    flag.check_folder(output)
    if assets not in ASSETS:
        raise UnknownName("place for the script", assets, ASSETS)
    if predictions is not None and processes > 1:
        raise SurefootError("--predictions takes no --processes.")
    if processes > 1 and not launched():
        raise typer.Exit(launch(processes, ARGUMENTS))
    if sum(given is not None for given in (target, source.model, source.import_, predictions)) != 1:
        raise SurefootError(f"Give {WAYS}, or --predictions.")
    data_options = reading.options(split, max_images=max_images)
    if predictions is not None:
        model_options = flag.given(**vars(source))
        measured_ones = flag.given(attack=attack or None, measure=measure_ or None, corruption=corruption or None)
        measured_ones |= flag.given(time=time_, skip=skip, only=only, shift=shift or None, batch_size=batch_size)
        measured_ones |= flag.given(foreign=foreign or None, corrupted=corrupted, depth=None if depth == "quick" else depth)
        given = {**data_options, **model_options, **measured_ones}
        if given or split != "test":
            raise SurefootError(f"--predictions takes no --{next(iter(given), 'split').replace('_', '-')}.")
        check_files(predictions, calibrate_on, groups, corrupted)
        from ..auditing.predictions import audit_predictions
        from ..measurements.thresholds import RISKS
        from ..types import Predictions

        calibration = parse_source(calibrate_on)
        folder = output or Path("audits") / predictions.stem
        loaded_predictions = Predictions.load(predictions)
        named = None if groups is None else parse_groups(groups, loaded_predictions)
        shared: dict[str, Any] = {"risks": risk or RISKS, "groups": named, "calibrate_on": calibration or CROSS_FIT}
        shared |= {"allow_leakage": allow_leakage, "provenance": {"command": as_given()}}
        audit_predictions(loaded_predictions, name=predictions.stem, seed=seed, output=folder, **shared)
        show(folder, json_, quiet, assets, strict, tracker, project)
        return
    check_files(predictions, calibrate_on, groups, corrupted)
    for pictures in foreign or ():
        if (bare := told(pictures)[1]) not in MADE:
            check_pictures(bare)
    for further in shift or ():
        check_data(further)
    alone = split == "test" and calibrate_on not in SPLITS  # no other split is asked for
    loaded = find_target(target, source, {**data_options, "lazy": True, "audited": alone})
    if ensemble:
        loaded = with_members(loaded, (targets or [])[1:], source.allow_code)
    from ..auditing.audit import audit as measure
    from ..measurements.thresholds import RISKS

    folder = output or loaded.folder
    default = CROSS_FIT if split == loaded.calibrate_on else loaded.calibrate_on
    measured: dict[str, Any] = {"split": split, "batch_size": batch_size, "seed": seed, "device": device}
    measured |= {"calibrate_on": parse_source(calibrate_on) or default, "allow_leakage": allow_leakage}
    measured |= {"depth": depth, "time_budget": time_budget, "began": began, "corrupted": corrupted}
    measured |= {"attacks": attack or (), "corruptions": corruption or (), "measure": measure_ or (), "foreign": foreign or ()}
    measured |= {"skip": names_in(skip), "only": names_in(only), "shifts": shift or ()}
    measured |= {"engine": engine, "overwrite": overwrite}
    measured |= {"risks": risk or RISKS, "groups": None if groups is None else parse_groups(groups, loaded.data.split(split))}
    measured["class_names"] = None if loaded.run is None else loaded.run.class_names
    measured["provenance"] = provenance_of(loaded, as_given())
    measure(loaded.model, loaded.data, name=loaded.name, output=folder, progress=not quiet, **measured)
    if is_first():
        show(folder, json_, quiet, assets, strict, tracker, project)


def names_in(text: str | None) -> list[str]:
    """`attacks,geometry`."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def as_given() -> str:
    """This command, as one would type it again."""
    return shlex.join(["surefoot", *ARGUMENTS])


def provenance_of(target: Target, command: str) -> dict[str, str]:
    """How an audit of this came about, for its page."""
    return {"command": command} if target.run is None else {"command": command, "recipe": target.run.recipe.to_yaml()}


def parse_source(given: str | None) -> str | Predictions | None:
    """`cross-fit`, a split, or a file of predictions."""
    if given is None or given == CROSS_FIT or given in SPLITS:
        return given
    from ..types import Predictions

    return Predictions.load(given)


def check_files(predictions: Path | None, calibrate_on: str | None, groups: str | None, corrupted: Path | None) -> None:
    """That the files which flags name are there, before anything is read."""
    if corrupted is not None:
        check_copied(corrupted)
    if predictions is not None and not predictions.exists():
        raise NotFound("predictions", predictions)
    if calibrate_on is not None and calibrate_on not in (CROSS_FIT, *SPLITS) and not Path(calibrate_on).exists():
        raise NotFound("predictions", calibrate_on)
    path, colon, _ = (groups or ":").rpartition(":")
    if not colon:
        raise SurefootError(f"--groups takes FILE.csv:COLUMN, got '{groups}'.")
    if groups is not None and not Path(path).is_file():
        raise NotFound("CSV of groups", path)


def parse_groups(given: str, of: Split | Predictions) -> list[str]:
    """`groups.csv:column`."""
    from ..measurements.groups import read_groups

    path, _, column = given.rpartition(":")
    return read_groups(path, column, of)


def show(
    folder: Path,
    json_: bool,
    quiet: bool,
    assets: str = "inline",
    strict: bool = False,
    tracker: str | None = None,
    project: str | None = None,
) -> None:
    """Write the page of an audit and say what it says; what is fatal is said even to those who want to hear nothing."""
    from ..auditing.table import write_predictions
    from ..models.preflight import FATAL

    now(f"writing the page in {folder}")
    plain = read_audit(folder)
    predictions = write_predictions(folder, plain["subject"]["classes"])
    page = write_page(
        folder / "report.html", [plain], assets=assets, predictions=None if predictions is None else predictions.name
    )
    if tracker is not None:
        track(folder, tracker, project=project)
    fatal = [finding for finding in plain["preflight"] if finding["severity"] == FATAL]
    for finding in plain["preflight"]:
        line = printable(f"! {finding['message']} {finding['advice']}")
        if finding in fatal:
            print(f"{finding['severity'].upper()} {line}", file=sys.stderr if quiet or json_ else sys.stdout)
        elif not (quiet or json_):
            print(line)
    if json_:
        plain.pop("points")
        print(json.dumps(plain))
    elif not quiet:
        for line in plain["subject"].get("model", ()):
            if line.startswith("Left out"):
                print(printable(line))
        print(printable("\n".join(verdict(plain))))
        print(f"page: {page}")
    if strict and fatal:
        raise typer.Exit(1)
