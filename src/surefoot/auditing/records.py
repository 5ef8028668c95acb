"""What a step of an audit found, kept on disk until the audit is whole, so that an interrupted one goes on."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ..files import read_tensors, remove, write_tensors, write_text
from ..plain import plain
from ..types import Estimate

PAUSE = 0.1  # seconds between looks


@dataclass(frozen=True)
class Record:
    """Plain values (numbers, estimates, texts) and tensors."""

    values: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Workbook:
    """Records by name: in memory, and in `folder` if there is one."""

    folder: Path | None
    held: dict[str, Record] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name.replace('/', '.').replace(':', '-')}.safetensors"

    def read(self, name: str) -> Record | None:
        """The record of a finished step, if it is finished."""
        if name not in self.held and self.folder is not None and self.path(name).is_file():
            self.held[name] = Record(restore(json.loads(read_text(self.path(name)))), read_tensors("record", self.path(name)))
        return self.held.get(name)

    def wait(self, name: str) -> Record:
        """The record of a step that this process or another one does."""
        while (found := self.read(name)) is None:
            time.sleep(PAUSE)
        return found

    def write(self, name: str, record: Record) -> None:
        if self.folder is not None:
            write_tensors(self.path(name), record.tensors, {"values": json.dumps(plain(record.values))})
        self.held[name] = record

    def close(self) -> None:
        """Remove the files, and those of audits that were given up, when every process has read them: the audit is whole."""
        if self.folder is None:
            return
        rank, processes = share_of_work()
        if rank:
            write_text(self.folder / f"{rank}.done", "")
            return
        while not all((self.folder / f"{other}.done").exists() for other in range(1, processes)):
            time.sleep(PAUSE)
        remove(self.folder.parent)


def share_of_work() -> tuple[int, int]:
    """Which process of how many this is, as its launcher (ours, torchrun) says."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def read_text(path: Path) -> str:
    """The plain values that a record's file carries."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return str(file.metadata()["values"])


def restore(value: Any) -> Any:
    """Estimates again where `plain` wrote their value and interval, NaN for the None of an undefined end."""
    if isinstance(value, dict):
        if value.keys() == {"value", "low", "high"}:
            return Estimate(*(float("nan") if value[end] is None else value[end] for end in ("value", "low", "high")))
        return {name: restore(item) for name, item in value.items()}
    return [restore(item) for item in value] if isinstance(value, list) else value
