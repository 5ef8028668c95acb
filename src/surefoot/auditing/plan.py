"""The plan of an audit, written before its first part: what is measured on which images, and in which pieces.

An interrupted audit goes on by its plan, also by what was chosen from the speed of the machine. Other options are refused.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..errors import SurefootError
from ..files import read_json, write_json

logger = logging.getLogger("surefoot")
PLAN = "plan.json"
VERSION = 1
CHUNK_VALUES = 1 << 24  # pixel values of a chunk at most, beyond one batch
GROUP_SECONDS = 120.0  # estimated for a part; a long one would be lost when an audit is stopped
GROUP = 20  # conditions in a part at most


@dataclass(frozen=True)
class Task:
    """One piece of work, and one part: some conditions, or the columns that a measurement adds, of a chunk of images."""

    number: int
    chunk: int
    label: str  # of the measurement; "clean" in the first pass
    conditions: tuple[str, ...]  # none where it adds columns


@dataclass(frozen=True)
class Plan:
    """`about` is what must be the same to go on; `seconds` is how long an image was estimated to take when it began, and
    `spent` how long it was before its first part.

    Chunks are rows of the split: those of the first pass, and, once it is done, those of the second.
    """

    about: dict[str, Any]
    seconds: float
    chunks: list[list[int]]
    tasks: list[Task]
    adds: list[str]
    spent: float = 0.0

    @property
    def key(self) -> str:
        """The hash that each part carries."""
        given = json.dumps([self.about, self.seconds], sort_keys=True, default=str)
        return blake2b(given.encode(), digest_size=8).hexdigest()

    @property
    def first(self) -> int:
        """How many tasks the first pass has; they come first."""
        return sum(task.label == "clean" for task in self.tasks)

    def save(self, folder: Path) -> None:
        write_json(folder / PLAN, {"version": VERSION, **asdict(self)})


def read_plan(folder: Path) -> Plan | None:
    """The plan in the data folder of an audit, if there is one that this version can go on by."""
    if not (folder / PLAN).is_file():
        return None
    try:
        given = read_json("plan", folder / PLAN)
        if given.pop("version", None) != VERSION:
            return None
        tasks = [Task(**{**task, "conditions": tuple(task["conditions"])}) for task in given.pop("tasks")]
        return Plan(**given, tasks=tasks)
    except (SurefootError, AttributeError, KeyError, TypeError) as error:
        logger.warning("'%s' is not whole (%s): the audit begins anew", folder / PLAN, error)
        return None


def refuse_other(plan: Plan, about: Mapping[str, Any], folder: Path) -> None:
    """An unfinished audit of something else is not thrown away unasked."""
    for key in {**plan.about, **about}:
        before, now = plan.about.get(key), about.get(key)
        if before != now:
            values = f"{shown(before)} there, {shown(now)} now"
            raise SurefootError(
                f"'{folder}' holds an unfinished audit with another {key.replace('_', ' ')} ({values}): go on with the same,"
                " choose another output, or pass overwrite=True (--overwrite)."
            )


def shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def chunk_size(batch_size: int, image_values: int) -> int:
    """Images of a chunk: whole batches, as many as memory takes lightly."""
    return batch_size * max(1, min(8, CHUNK_VALUES // max(1, batch_size * image_values)))


def nested_chunks(subsets: Iterable[Sequence[int]], size: int, *, streamed: bool) -> list[list[int]]:
    """Chunks of the union of subsets, of which each contains the smaller: a chunk is inside a subset or outside.

    So the images that most conditions want come first, in whole batches. A stream, which is read once, keeps its order.
    """
    levels = sorted({tuple(rows) for rows in subsets}, key=len)
    if streamed:
        levels = [tuple(sorted(set().union(*map(set, levels))))] if levels else []
    seen: set[int] = set()
    chunks = []
    for rows in levels:
        fresh = [row for row in rows if row not in seen]
        seen.update(fresh)
        chunks += [fresh[start : start + size] for start in range(0, len(fresh), size)]
    return chunks


def groups_of(conditions: Sequence[str], images: int, seconds: float) -> list[tuple[str, ...]]:
    """Conditions by part: as many as take about two minutes, at `seconds` for an image."""
    size = max(1, min(GROUP, int(GROUP_SECONDS / max(images * seconds, 1e-9))))
    return [tuple(conditions[start : start + size]) for start in range(0, len(conditions), size)]
