"""`surefoot study`: grids of runs that stop and go on, and their tables."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.fetching import has_reader
from ..data.loading import DATASETS
from ..errors import NotFound, SurefootError, UnknownName, require
from ..files import write_text
from ..models.classifier import pick_device
from ..report.study_page import write_study
from ..studies.cells import ALSO, Cell, cells_of, needs_root, only
from ..studies.engines import find_engine
from ..studies.layout import build_table, count_wins
from ..studies.origins import Origins, with_origins
from ..studies.reading import read_file, read_study, study_names
from ..studies.rendering import FORMATS, as_plain, differences, published_apart, published_text, render, wins_text
from ..studies.results import Results, require_results
from ..studies.running import check_work, run_study, threads_for, title_of
from ..studies.schema import Study
from ..studies.searching import choose, grid_methods, parse_grid, random_methods
from . import options as flag

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)
logger = logging.getLogger("surefoot")
SUFFIX = {"md": "md", "csv": "csv", "latex": "tex"}
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
Format = Annotated[str, typer.Option("--format", help="md, csv or latex")]


@app.callback()
def study() -> None:
    """Run the papers' tables, or a grid of your own."""


@app.command("list")
def list_studies(json_: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False) -> None:
    """The studies that come with the package."""
    studies = {name: read_file(name) for name in study_names()}
    if json_:
        print(json.dumps({name: {key: each.get(key) for key in ("title", "paper", "place")} for name, each in studies.items()}))
        return
    width = max(map(len, studies))
    for name, each in studies.items():
        print(f"{name:<{width}}  {each['title']}")


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
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only")] = False,
) -> None:
    """Compute the cells that are missing and print the table; the same command goes on after any interruption."""
    require(jobs >= 1, "--jobs", "at least 1", jobs)
    require(threads is None or threads >= 1, "--threads", "at least 1", threads)
    require(processes >= 1, "--processes", "at least 1", processes)
    chosen, cells, origins = prepare(name, scale, root, only_, seeds, objective, grid, random, allow_code, corrupted, frost)
    if root is None and needs_root(chosen):
        raise SurefootError(f"Study '{name}' at scale {scale} reads a folder of images: give it with --root.")
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    folder = results or Path("studies") / scale
    flag.check_output(folder / "cells" / "cell.json", "--results")
    used = find_engine(engine, jobs, **({} if gpus is None else {"gpus": gpus}))
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
    if report.failed:
        for outcome in report.failed:
            logger.error("cell %s failed: %s; its log is %s", outcome.cell, outcome.said, outcome.log)
        raise typer.Exit(1)


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
    page: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Draw the table and its differences as a page")] = None,
) -> None:
    """Print the table of what is finished, without computing anything."""
    chosen, cells, _ = prepare(name, scale, None, only_, seeds, objective, grid, random, allow_code, corrupted, frost)
    measured = require_results(results or Path("studies") / scale)
    flag.check_output(page, "--page")
    print(text_of(chosen, cells, measured, format), end="")
    if page is not None:
        folder = "DIR" if needs_root(chosen) else None
        flags = {"scale": scale, "root": folder, "only": only_, "seeds": seeds, "results": measured.folder.as_posix()}
        flags |= {"objective": objective, "grid": grid, "random": random, "allow-code": allow_code}
        flags |= origin_flags(corrupted, frost)
        about = {"command": command_of(name, flags), "published": published_apart(chosen)}
        shown = as_plain(build_table(chosen, cells, measured, cells_of(chosen)))
        shown["notes"] += [chosen.note] if chosen.note else []
        write_study(page, {**shown, **about})
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
    _, cells, _ = prepare(name, scale, None, only_, seeds, objective, grid, random, allow_code, corrupted, frost)
    folder = results or Path("studies") / scale
    work_path, finished = (work or folder.parent / ".study-work"), require_results(folder)
    rows = [state_of(cell, finished, work_path) for cell in cells]
    if json_:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['cell']}  {row['state']:<8}  {row['title']}{in_words(row)}")
    print(f"{sum(row['state'] == 'finished' for row in rows)} of {len(rows)} cells are finished")


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
    changes: dict[str, Any] = {}
    if seeds is not None:
        require(seeds >= 1, "--seeds", "at least 1", seeds)
        changes |= {"seeds": seeds, "seeds_of": {}}
    searched = objective is not None or grid or random is not None
    chosen = read_study(name, scale, changes, allow_code=allow_code)
    if searched:
        if chosen.select is None:
            raise SurefootError(f"--objective, --grid and --random are for hyperparameters, and '{name}' is a fixed grid.")
        values, target = parse_grid(grid or []), objective or "macs"
        methods = grid_methods(target, values) if random is None else random_methods(target, values, random)
        changes |= {"methods": methods, "baseline": None, "seeds_of": {}}
        chosen = read_study(name, scale, changes, allow_code=allow_code)
    chosen, origins = with_origins(name, chosen, corrupted or [], frost)
    axes: dict[str, list[str]] = {}
    for axis, names in map(parse_only, wanted or []):
        axes.setdefault(axis, []).extend(names)
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


def check_folders(cells: Sequence[Cell]) -> None:
    """Folders of images are there before anything is begun."""
    for cell in cells:
        section = cell.recipe.data or {}
        path = Path(section.get("root") or "") / section["name"]
        if section["name"] not in DATASETS and not has_reader(section["name"]) and not path.exists():
            raise NotFound("data folder", path)


def work_folder(results: Path, given: Path | None) -> Path:
    """Weights and logs: beside the results, never among them, and never committed."""
    folder = given or results.parent / ".study-work"
    check_work(folder, results)
    flag.check_folder(folder, "--work")
    if not (folder / ".gitignore").is_file():
        write_text(folder / ".gitignore", "*\n")
    return folder


def text_of(study: Study, cells: Sequence[Cell], results: Results, format: str) -> str:
    """The table; with Markdown also differences, wins, the paper's figures and the choice."""
    table = build_table(study, cells, results, cells_of(study))
    text = render(table, format)
    if format != "md":
        return text
    parts = [text, differences(table) if study.table.differences else ""]
    if study.table.wins:
        parts.append(wins_text(count_wins(cells, results, study.table.wins)))
    parts.append(published_text(study))
    if study.select:
        best = choose(study, cells, results)
        winner = "nothing yet" if best is None else f"{best.method} ({best.order[0][1]:.4g}, {best.over})"
        so_far = " so far" if best is not None and table.finished < table.cells else ""
        parts.append(f"Chosen on validation by {study.select}{so_far}: {winner}.\n")
    return "\n".join(part for part in [*parts, f"{study.note}\n" if study.note else ""] if part)


def command_of(name: str, flags: dict[str, Any]) -> str:
    """The command that makes a table, without the folder of the data, which is this machine's own."""
    words = ["surefoot", "study", "run", name]
    for option, value in flags.items():
        for each in value if isinstance(value, list) else [value]:
            words += [] if each is None or each is False else [f"--{option}"] if each is True else [f"--{option}", str(each)]
    return shlex.join(words)


def save_tables(title: str, command: str, study: Study, cells: Sequence[Cell], results: Results) -> None:
    """Every format beside the cells; above the Markdown stands the command that makes it."""
    for format, suffix in SUFFIX.items():
        above = f"    {command}\n\n" if format == "md" else ""
        write_text(results.folder / f"{title}.{suffix}", above + text_of(study, cells, results, format))


def state_of(cell: Cell, results: Results, work: Path) -> dict[str, Any]:
    """What is known about a cell."""
    missing = results.missing(cell)
    history = work / "runs" / cell.name / "history.jsonl"
    epochs = len(history.read_text().splitlines()) if history.is_file() else 0
    state = "finished" if not missing else "begun" if epochs or len(missing) < len(cell.measure) else "to do"
    about = {"cell": cell.name, "state": state, "title": title_of(cell), "labels": dict(cell.labels), "seed": cell.seed}
    return {**about, "epochs": epochs, "of": cell.recipe.training["epochs"], "left": missing}


def in_words(row: dict[str, Any]) -> str:
    """How far a cell is that was begun."""
    if row["state"] != "begun":
        return ""
    trained = f"epoch {row['epochs']} of {row['of']}" if row["epochs"] < row["of"] else "trained"
    return f": {trained}; left: {', '.join(row['left'])}"
