"""Where the pieces of an audit are kept while it goes on: in memory, or in its folder, to go on from."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import SurefootError, UnknownName
from ..files import inside, read_json, read_tensors, remove, write_tensors, write_text
from ..intervals import Estimate
from ..measurements.base import CLEAN, Rows
from ..measurements.promises import COLUMNS as PROMISED
from ..plain import plain
from .plan import Plan, Task
from .table import Part, as_arrow, belongs, part_path, read_part, write_part
from .table_files import FOLDER

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

logger = logging.getLogger("surefoot")
PAUSE = 0.1  # seconds between looks


def share_of_work() -> tuple[int, int]:
    """Which process of how many this is, as its launcher (ours, torchrun) says."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


@dataclass
class Store:
    """Parts by the number of their task, and plain values by name; `folder` is the audit's `audit-data`."""

    plan: Plan
    schema: pa.Schema
    names: dict[int, str]  # the id of each image by its index
    folder: Path | None = None
    parts: dict[int, Part] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, dict[str, Tensor]] = field(default_factory=dict)

    @property
    def work(self) -> Path | None:
        """What is there only until the audit is whole."""
        return None if self.folder is None else inside(self.folder, "work")

    def part(self, task: Task) -> Path:
        assert self.folder is not None
        return part_path(self.folder / FOLDER, task.number)

    def has(self, task: Task) -> bool:
        if not task.conditions:
            return self.read(name_of(task)) is not None
        return task.number in self.parts or (self.folder is not None and belongs(self.part(task), self.plan.key))

    def write_part(self, task: Task, part: Part) -> None:
        if self.folder is None:
            self.parts[task.number] = part
        else:
            write_part(self.part(task), part, self.names, self.schema, self.plan.key)

    def read_part(self, task: Task) -> Part:
        return self.parts[task.number] if self.folder is None else read_part(self.part(task))

    def path(self, name: str) -> Path:
        assert self.work is not None
        return self.work / f"{self.plan.key}-{name.replace('/', '.').replace(':', '-')}.json"

    def write(self, name: str, value: Any, tensors: Mapping[str, Tensor] | None = None) -> None:
        """A plain value, and tensors that are there when it is."""
        if tensors and self.folder is not None:
            write_tensors(self.path(name).with_suffix(".safetensors"), dict(tensors))
        elif tensors:
            self.tensors[name] = dict(tensors)
        if self.folder is not None:
            write_text(self.path(name), json.dumps(plain({"value": value})))
        self.values[name] = value

    def read(self, name: str) -> Any:
        """A value by name; None while it is not there."""
        if name not in self.values and self.folder is not None and self.path(name).is_file():
            try:
                self.values[name] = restore(read_json("record", self.path(name)))["value"]
            except (SurefootError, KeyError, TypeError) as error:
                logger.warning("'%s' is not whole (%s) and is measured again", self.path(name), error)
                self.path(name).unlink(missing_ok=True)
        return self.values.get(name)

    def read_tensors(self, name: str) -> dict[str, Tensor]:
        """The tensors of a value that is there; none where it has none."""
        if self.folder is None:
            return self.tensors.get(name, {})
        path = self.path(name).with_suffix(".safetensors")
        try:
            return read_tensors("sample", path) if path.is_file() else {}
        except SurefootError as error:
            self.path(name).unlink(missing_ok=True)
            raise SurefootError(f"{error} The same command measures it again.") from error

    def wait(self, tasks: Sequence[Task]) -> None:
        """Until every task is done, by this process or another."""
        for task in tasks:
            while not self.has(task):
                time.sleep(PAUSE)

    def wait_for(self, name: str) -> Any:
        while (content := self.read(name)) is None:
            time.sleep(PAUSE)
        return content

    def image_names(self) -> dict[int, str]:
        """The id of each image by its index, from the parts of the first pass."""
        parts = [self.read_part(task)[CLEAN] for task in self.plan.tasks if task.label == CLEAN]
        return {int(index): str(name) for part in parts for index, name in zip(part["index"], part["image"], strict=True)}

    def merge(self, everything: Rows) -> None:
        """Write what was fitted and what measurements added beside the other columns of clean images: one row for each."""
        added = [name for name in (*self.plan.adds, "scaled_confidence", "temperature", *PROMISED) if name in everything]
        for task in self.plan.tasks[: self.plan.first]:
            rows = self.read_part(task)[CLEAN]
            where = np.searchsorted(everything["index"], rows["index"])
            self.write_part(task, {CLEAN: {**rows, **{name: everything[name][where] for name in added}}})

    def close(self) -> None:
        """Remove what was only there to go on from, when every process has read it."""
        if self.work is None:
            return
        rank, processes = share_of_work()
        if rank:
            write_text(self.work / f"{rank}.done", "")
            return
        while not all((self.work / f"{other}.done").exists() for other in range(1, processes)):
            time.sleep(PAUSE)
        if self.work.exists():
            remove(self.work)

    def frame(self, condition: str | None = None) -> DataFrame:
        """The table as a data frame, of an audit that has no folder."""
        whole = {name: rows for part in self.parts.values() for name, rows in part.items()}
        if condition is not None and condition not in whole:
            raise UnknownName("condition", condition, list(whole))
        parts = [
            as_arrow(name, rows, self.names, self.schema)
            for part in self.parts.values()
            for name, rows in part.items()
            if condition in (None, name)
        ]
        frame: DataFrame = pa.concat_tables(parts).drop_columns(["logits"]).unify_dictionaries().to_pandas()
        return frame


def name_of(task: Task) -> str:
    return f"{task.label}/{task.number}"


def restore(value: Any) -> Any:
    """Estimates again where `plain` wrote their value and interval, NaN for the None of an undefined end."""
    if isinstance(value, dict):
        if value.keys() == {"value", "low", "high"}:
            return Estimate(*(float("nan") if value[end] is None else value[end] for end in ("value", "low", "high")))
        return {name: restore(item) for name, item in value.items()}
    return [restore(item) for item in value] if isinstance(value, list) else value
