"""The steps of an audit: one after the other, shared among processes, with what is left on a bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ..errors import SurefootError
from ..progress import progress_bar
from ..seeds import global_seed
from .records import Record, Workbook, share_of_work


@dataclass(frozen=True)
class Step:
    """A piece of work with a name and what it costs, in seconds as estimated before it starts."""

    name: str
    work: Callable[[], Record]
    cost: float


def run_steps(steps: Sequence[Step], book: Workbook, *, seed: int, title: str, progress: bool) -> None:
    """Do every step that is not in the book yet: this process its share, and then it waits for the others.

    A model that draws at random does so from torch's own generator, which every step seeds for itself: who does a step, and
    when, does not change it.
    """
    rank, processes = share_of_work()
    if processes > 1 and book.folder is None:
        raise SurefootError("An audit by several processes needs an output folder, where they find each other's results.")
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = progress_bar(*columns, show=progress and rank == 0)
    task = bar.add_task(title, total=sum(step.cost for step in steps))
    with bar:
        for number, step in enumerate(steps):
            if book.read(step.name) is None and number % processes == rank:
                bar.update(task, description=f"{title}: {step.name.replace('/', ' ').replace('_', ' ')}")
                with global_seed(seed, "audit", step.name):
                    book.write(step.name, step.work())
            bar.advance(task, step.cost)
        bar.update(task, description=title)
        for step in steps:
            book.wait(step.name)


def remaining(steps: Sequence[Step], book: Workbook) -> float:
    """Estimated seconds of the steps that are not done."""
    return sum(step.cost for step in steps if book.read(step.name) is None) / share_of_work()[1]
