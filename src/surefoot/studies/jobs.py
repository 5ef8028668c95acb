"""What a worker is told, and how it came out: plain values that go into a file and to another machine, without torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..files import write_json

DONE, FAILED = b"done\n", b"failed\n"  # what a worker says when a job has ended
Measure = tuple[str, dict[str, Any]]  # the name of a measurement, and all of its options


@dataclass(frozen=True)
class Job:
    """What is left to do of a cell; paths are absolute, since a worker may start elsewhere."""

    cell: str
    recipe: str  # YAML
    data_label: str
    trained: bool
    measure: dict[str, Measure]
    results: str
    work: str
    threads: int = 1
    device: str = "auto"
    processes: int = 1

    @property
    def log(self) -> Path:
        return Path(self.work) / "logs" / f"{self.cell}.log"


@dataclass(frozen=True)
class Outcome:
    """How a cell ended."""

    cell: str
    ok: bool
    seconds: float
    log: Path
    said: str = ""  # the last line of the log of a cell that failed


def write_job(path: Path, job: Job) -> None:
    write_json(path, json.loads(json.dumps(asdict(job), default=list)))


def read_job(path: Path) -> Job:
    given = json.loads(path.read_text(encoding="utf-8"))
    return replace(Job(**given), measure={label: (name, options) for label, (name, options) in given["measure"].items()})
