"""Run a study: find out which cells are missing, hand them to an engine, and report those that fail."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TimeElapsedColumn

from ..errors import SurefootError
from ..progress import duration, progress_bar
from .cells import Cell
from .engines import Engine, Job, Outcome
from .results import Results
from .worker import job_of

logger = logging.getLogger("surefoot")


@dataclass(frozen=True)
class Report:
    """What a run of a study did."""

    cells: int
    done_before: int
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.ok]


def plan(cells: list[Cell], results: Results, work: Path, **resources: Any) -> list[Job]:
    """The jobs that are left; cells that share a recipe are one job."""
    jobs: dict[str, Job] = {}
    for cell in cells:
        missing = results.missing(cell)
        if missing and cell.name not in jobs:
            jobs[cell.name] = job_of(cell, missing, results.folder, work, **resources)
    return list(jobs.values())


def run_study(
    cells: list[Cell],
    engine: Engine,
    results: Results,
    work: Path,
    *,
    threads: int = 1,
    device: str = "auto",
    processes: int = 1,
    origins: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = logger.info,
    save: Callable[[], None] = lambda: None,
    progress: bool = False,
) -> Report:
    """Compute what is missing; a cell that fails is reported with its log and stops no other.

    `origins` are the folders of corrupted copies. `save` is called at first and whenever a cell has ended, so that a study that
    is stopped leaves its tables.
    """
    check_work(work, results.folder)
    resources = {"threads": threads, "device": device, "processes": processes, "origins": dict(origins or {})}
    todo = plan(cells, results, work, **resources)
    names = {cell.name: title_of(cell) for cell in cells}
    count = len({cell.name for cell in cells})
    tell(f"{count} cell{'s' * (count != 1)}, {count - len(todo)} finished before, {len(todo)} to do")
    save()
    outcomes: list[Outcome] = []
    bar = progress_bar(SpinnerColumn(), MofNCompleteColumn(), BarColumn(), TimeElapsedColumn(), show=progress)
    task, began = bar.add_task("cells", total=len(todo)), time.monotonic()
    with bar:
        for outcome in engine.run(todo):
            outcomes.append(outcome)
            save()
            left = (time.monotonic() - began) / len(outcomes) * (len(todo) - len(outcomes))
            line = f"[{len(outcomes)}/{len(todo)}] {names[outcome.cell]}: {ending(outcome)}"
            say = tell if bar.disable else partial(bar.console.print, markup=False, highlight=False, soft_wrap=True)
            say(f"{line}; about {duration(left)} to go" if left else line)
            bar.advance(task)
    return Report(count, count - len(todo), tuple(outcomes))


def check_work(work: Path, results: Path) -> None:
    """Weights and logs are not among the results."""
    if work.resolve().is_relative_to(results.resolve()):
        raise SurefootError(f"work must be outside of the results, got '{work}' in '{results}'.")


def ending(outcome: Outcome) -> str:
    """How a cell came out, in words."""
    return f"took {duration(outcome.seconds)}" if outcome.ok else f"FAILED: {outcome.said} (log: {outcome.log})"


def title_of(cell: Cell) -> str:
    """A cell in words; a fraction only where it is not all of the data."""
    words = [str(label) for axis, label in cell.labels.items() if axis != "fraction" or label != 1]
    return " ".join([*words, f"seed {cell.seed}"])


def threads_for(jobs: int) -> int:
    """The cores that this process may use, divided among so many others; no more than OMP_NUM_THREADS for each."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores // jobs, int(limit) if limit.isdigit() else cores))
