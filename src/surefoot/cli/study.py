"""`surefoot study`: grids of runs that stop and go on, and their tables."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..corruptions.arguments import check_copied, find_photographs
from ..data.arguments import DATASETS, has_reader
from ..errors import NotFound, SurefootError, UnknownName, require
from ..files import write_text
from ..models.arguments import check_device
from ..objectives.methods import OBJECTIVES
from ..report.pictures import check_picture, write_figures
from ..schemas import parse_value
from ..studies.engines import find_engine
from ..studies.papers import find_figure
from ..studies.results import Results, require_results
from ..studies.schema import ALSO, Study
from ..studies.study_files import at_scale, check_scale, find_study, read_file, read_study, study_names
from ..training.launcher import check_processes
from . import options as flag
from .study_tables import SUFFIX, command_of, in_words, paper_lines, save_page, save_tables, state_of, text_of

if TYPE_CHECKING:
    from ..studies.cells import Cell
    from ..studies.origins import Origins
    from ..studies.runner import Report

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)
logger = logging.getLogger("surefoot")
Name = Annotated[str, typer.Argument(help="A study of `surefoot study list`, or a YAML file of your own")]
Scale = Annotated[
    str, typer.Option(help="smoke (digits, minutes), cpu (small net, CIFAR-10 folders, a night), full (the paper's)")
]
Root = Annotated[Path | None, typer.Option(help="Folder of the data; at cpu scale the one with train/ and test/")]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="AXIS=NAME,NAME", help="Only some cells, as objective=macs,ce")
]
Seeds = Annotated[int | None, typer.Option(help="Number of seeds for every method [default: the study's]")]
Folder = Annotated[Path | None, typer.Option("--results", help="Folder of finished cells [default: studies/SCALE]")]
Objective = Annotated[str | None, typer.Option(help="With hyperparameters: the objective to search [default: macs]")]
Grid = Annotated[list[str] | None, typer.Option(metavar="NAME=V,V", help="With hyperparameters: values of an argument")]
Random = Annotated[int | None, typer.Option(help="With hyperparameters: so many random points")]
Corrupted = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Published copies (CIFAR-10-C, ImageNet-C, ...) instead of generating; may be repeated"),
]
Frost = Annotated[str | None, typer.Option(metavar="DIR", help="Photographs of frost for the generator, or imagecorruptions")]
Page = Annotated[Path | None, typer.Option(metavar="FILE.html", help="The table, its differences and figures as a page")]
Format = Annotated[str, typer.Option("--format", help="md, csv or latex")]


@app.callback()
def study() -> None:
    """Run the papers' tables, or a grid of your own."""


@app.command("list")
def list_studies(json_: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False) -> None:
    """Every table and figure of the papers with the study that has it, and the other studies that come with the package."""
    studies = {name: read_file(name) for name in study_names()}
    if json_:
        about = {name: {key: each.get(key) for key in ("title", "paper", "place")} for name, each in studies.items()}
        print(json.dumps({name: {**each, "figures": list(studies[name].get("figures", {}))} for name, each in about.items()}))
        return
    print("\n".join(paper_lines({name: " ".join(each["title"].split()) for name, each in studies.items()})))


@app.command()
def run(
    name: Name,
    allow_code: flag.AllowCode = False,
    scale: Scale = "smoke",
    root: Root = None,
    only_: Only = None,
    seeds: Seeds = None,
    jobs: Annotated[int, typer.Option(help="Cells at a time; the cores are divided among them")] = 1,
    engine: Annotated[str, typer.Option(help="local, or ray for a running cluster")] = "local",
    threads: Annotated[int | None, typer.Option(help="Threads of each cell [default: cores / jobs; 1 with ray]")] = None,
    gpus: Annotated[float | None, typer.Option(help="With ray: GPUs for each cell")] = None,
    processes: Annotated[int, typer.Option(help="Processes that train one cell together")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    results: Folder = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder of weights and logs [default: .study-work beside the results]")
    ] = None,
    objective: Objective = None,
    grid: Grid = None,
    random: Random = None,
    corrupted: Corrupted = None,
    frost: Frost = None,
    format: Format = "md",
    page: Page = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only")] = False,
) -> None:
    """Compute the cells that are missing and print the table; the same command goes on after any interruption."""
    check_processes(jobs, "--jobs")
    check_processes(1 if threads is None else threads, "--threads")
    check_processes(processes)
    check_device(device)
    check_format(format)
    flag.check_output(page, "--page")
    used = find_engine(engine, jobs, **({} if gpus is None else {"gpus": gpus}))
    chosen, cells, origins = prepare(name, scale, root, only_, seeds, objective, grid, random, allow_code, corrupted, frost)
    from ..models.classifier import pick_device
    from ..studies.cells import cells_of, needs_root
    from ..studies.runner import run_study, threads_for

    if root is None and needs_root(chosen):
        raise SurefootError(f"Study '{name}' at scale {scale} reads a folder of images: give it with --root.")
    folder = results or Path("studies") / scale
    flag.check_output(folder / "cells" / "cell.json", "--results")
    if engine != "ray" and any(Results(folder).missing(cell) for cell in cells):  # nodes of a cluster have their own
        pick_device(device)
        check_folders(cells)
    used.check()
    work_path = work_folder(folder, work)
    each = threads or (1 if engine == "ray" else threads_for(jobs))
    flags: dict[str, Any] = {"scale": scale, "root": root and "DIR", "seeds": seeds, "jobs": jobs, "threads": threads}
    flags |= {"results": folder.as_posix(), "objective": objective, "grid": grid, "random": random, "allow-code": allow_code}
    flags |= origin_flags(corrupted, frost)
    whole = cells_of(chosen, root)  # --only chooses what is computed and printed; the files are of the whole study
    title = Path(name).stem if objective is None else f"{Path(name).stem}-{objective.replace(':', '.')}"
    save = partial(save_tables, title, command_of(name, flags), chosen, whole, Results(folder))
    options: dict[str, Any] = {"threads": each, "device": device, "processes": processes, "origins": origins}
    report = run_study(cells, used, Results(folder), work_path, save=save, progress=not quiet, **options)
    if not quiet:
        print(text_of(chosen, cells, Results(folder), format), end="")
    if page is not None:
        save_page(page, command_of(name, flags), chosen, whole, Results(folder))
    end_with(report)


def end_with(report: Report) -> None:
    """Tell what failed, and end with 1 if anything did."""
    for outcome in report.failed:
        logger.error("cell %s failed: %s; its log is %s", outcome.cell, outcome.said, outcome.log)
    if report.failed:
        raise typer.Exit(1)


@app.command()
def figure(
    name: Annotated[str, typer.Argument(help="A figure of `surefoot study list`, as macs-figure4, or a study: all it has")],
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help=".html, or .svg or .png with surefoot[pictures]")],
    allow_code: flag.AllowCode = False,
    scale: Scale = "smoke",
    root: Root = None,
    jobs: Annotated[int, typer.Option(help="Cells at a time; the cores are divided among them")] = 1,
    threads: Annotated[int | None, typer.Option(help="Threads of each cell [default: cores / jobs]")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    results: Folder = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder of weights and logs [default: .study-work beside the results]")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only")] = False,
) -> None:
    """Draw a figure of a paper: compute the cells that it lacks, and write it as a page or a picture."""
    check_processes(jobs, "--jobs")
    check_processes(1 if threads is None else threads, "--threads")
    check_device(device)
    flag.check_output(output)
    check_picture(output)
    study_name, place = find_figure(name)
    chosen, cells, origins = prepare(study_name, scale, root, None, None, None, None, None, allow_code)
    from ..models.classifier import pick_device
    from ..studies.cells import needs_root
    from ..studies.figures import cells_for, figure_data
    from ..studies.runner import run_study, threads_for

    pick_device(device)
    places = list(chosen.figures) if place is None else [place]
    if not places:
        raise SurefootError(f"Study '{name}' has no figures.")
    if root is None and needs_root(chosen):
        raise SurefootError(f"Study '{study_name}' at scale {scale} reads a folder of images: give it with --root.")
    needed = [cell for each in places for cell in cells_for(chosen, cells, chosen.figures[each])]
    folder = results or Path("studies") / scale
    flag.check_output(folder / "cells" / "cell.json", "--results")
    each_threads = threads or threads_for(jobs)
    options: dict[str, Any] = {"threads": each_threads, "device": device, "origins": origins}
    todo, used = merged_cells(needed), find_engine("local", jobs)
    report = run_study(todo, used, Results(folder), work_folder(folder, work), progress=not quiet, **options)
    end_with(report)
    drawn = [figure_data(chosen, cells, Results(folder), each) for each in places]
    flags = {"scale": scale, "root": root and "DIR", "output": output.name}
    write_figures(output, drawn, " ".join(chosen.title.split()), command_of(name, flags, "figure"))
    if not quiet:
        print(f"figure: {output}")


def merged_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Every cell once, with all that its figures need of it."""
    by_name: dict[str, Cell] = {}
    for cell in cells:
        other = by_name.get(cell.name, cell)
        by_name[cell.name] = replace(cell, measure={**other.measure, **cell.measure}, drawn=other.drawn | cell.drawn)
    return list(by_name.values())


@app.command()
def show(
    name: Name,
    allow_code: flag.AllowCode = False,
    scale: Scale = "smoke",
    only_: Only = None,
    seeds: Seeds = None,
    results: Folder = None,
    objective: Objective = None,
    grid: Grid = None,
    random: Random = None,
    corrupted: Corrupted = None,
    frost: Frost = None,
    format: Format = "md",
    page: Page = None,
) -> None:
    """Print the table of what is finished, without computing anything."""
    check_format(format)
    flag.check_output(page, "--page")
    check_flags(name, scale, only_, seeds, objective)
    measured = require_results(results or Path("studies") / scale)
    chosen, cells, _ = prepare(name, scale, None, only_, seeds, objective, grid, random, allow_code, corrupted, frost)
    from ..studies.cells import needs_root

    print(text_of(chosen, cells, measured, format), end="")
    if page is not None:
        folder = "DIR" if needs_root(chosen) else None
        flags = {"scale": scale, "root": folder, "only": only_, "seeds": seeds, "results": measured.folder.as_posix()}
        flags |= {"objective": objective, "grid": grid, "random": random, "allow-code": allow_code}
        save_page(page, command_of(name, {**flags, **origin_flags(corrupted, frost)}), chosen, cells, measured)
        print(f"page: {page}")


@app.command()
def status(
    name: Name,
    allow_code: flag.AllowCode = False,
    scale: Scale = "smoke",
    only_: Only = None,
    seeds: Seeds = None,
    results: Folder = None,
    work: Annotated[Path | None, typer.Option(help="Folder of weights and logs")] = None,
    objective: Objective = None,
    grid: Grid = None,
    random: Random = None,
    corrupted: Corrupted = None,
    frost: Frost = None,
    json_: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """Which cells are finished, begun, or still to do."""
    check_flags(name, scale, only_, seeds, objective)
    folder = results or Path("studies") / scale
    work_path, finished = (work or folder.parent / ".study-work"), require_results(folder)
    _, cells, _ = prepare(name, scale, None, only_, seeds, objective, grid, random, allow_code, corrupted, frost)
    rows = [state_of(cell, finished, work_path) for cell in cells]
    if json_:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['cell']}  {row['state']:<8}  {row['title']}{in_words(row)}")
    print(f"{sum(row['state'] == 'finished' for row in rows)} of {len(rows)} cells are finished")


def check_format(format: str) -> None:
    if format not in SUFFIX:
        raise UnknownName("format", format, SUFFIX)


def check_flags(
    name: str, scale: str, wanted: Sequence[str] | None, seeds: int | None, objective: str | None
) -> dict[str, list[str]]:
    """Whatever can be refused before the study is read; the names of `--only` by axis."""
    require(seeds is None or seeds >= 1, "--seeds", "at least 1", seeds)
    check_scale(scale)
    find_study(name)
    if objective is not None:
        OBJECTIVES.check(objective)
    axes: dict[str, list[str]] = {}
    for axis, names in map(parse_only, wanted or []):
        axes.setdefault(axis, []).extend(names)
    return axes


def prepare(
    name: str,
    scale: str,
    root: Path | None,
    wanted: Sequence[str] | None,
    seeds: int | None,
    objective: str | None,
    grid: Sequence[str] | None,
    random: int | None,
    allow_code: bool,
    corrupted: Sequence[Path] | None = None,
    frost: str | None = None,
) -> tuple[Study, list[Cell], Origins]:
    """The study and its cells as the flags ask for them, and where its corrupted copies are."""
    axes = check_flags(name, scale, wanted, seeds, objective)
    values = parse_grid(grid or [])
    require(random is None or random >= 1, "--random", "at least 1", random)
    searched = objective is not None or bool(values) or random is not None
    if searched and at_scale(read_file(name, allow_code=allow_code), scale).get("select") is None:
        raise SurefootError(f"--objective, --grid and --random are for hyperparameters, and '{name}' is a fixed grid.")
    for folder in corrupted or []:
        check_copied(folder)
    if frost is not None:
        find_photographs(frost)
    from ..studies.cells import cells_of, only
    from ..studies.hyperparameters import grid_methods, random_methods
    from ..studies.origins import with_origins

    changes: dict[str, Any] = {} if seeds is None else {"seeds": seeds, "seeds_of": {}}
    if searched:
        target = objective or "macs"
        methods = grid_methods(target, values) if random is None else random_methods(target, values, random)
        changes |= {"methods": methods, "baseline": None, "seeds_of": {}}
    chosen, origins = with_origins(name, read_study(name, scale, changes, allow_code=allow_code), corrupted or [], frost)
    return chosen, only(cells_of(chosen, root), axes), origins


def origin_flags(corrupted: Sequence[Path] | None, frost: str | None) -> dict[str, Any]:
    """The folders of copies in a command that others may repeat: by their names, which are part of a cell's."""
    return {"corrupted": [path.resolve().name for path in corrupted or []] or None, "frost": frost and Path(frost).name}


def parse_only(text: str) -> tuple[str, list[str]]:
    """`objective=macs,ce`; a comma within brackets is part of a name."""
    axis, equals, names = text.partition("=")
    if not (axis and equals and names):
        raise SurefootError(f"--only takes AXIS=NAME,NAME, got '{text}'.")
    return ALSO.get(axis, axis), re.split(r",(?![^()]*\))", names)


def parse_grid(settings: Sequence[str]) -> dict[str, list[Any]]:
    """`margin=0.5,1,2` and the like."""
    out: dict[str, list[Any]] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not (name and equals and text):
            raise SurefootError(f"--grid takes NAME=VALUE,VALUE, got '{setting}'.")
        out.setdefault(name, []).extend(parse_value(value) for value in text.split(","))
    return out


def check_folders(cells: Sequence[Cell]) -> None:
    """Folders of images are there before anything is begun."""
    for cell in cells:
        section = cell.recipe.data or {}
        path = Path(section.get("root") or "") / section["name"]
        if section["name"] not in DATASETS and not has_reader(section["name"]) and not path.exists():
            raise NotFound("data folder", path)


def work_folder(results: Path, given: Path | None) -> Path:
    """Weights and logs: beside the results, never among them, and never committed."""
    from ..studies.runner import check_work

    folder = given or results.parent / ".study-work"
    check_work(folder, results)
    flag.check_folder(folder, "--work")
    if not (folder / ".gitignore").is_file():
        write_text(folder / ".gitignore", "*\n")
    return folder
