"""Where cells are computed: in processes on this machine, or on a Ray cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import SurefootError, require
from ..registry import Registry
from .jobs import Job, Outcome, write_job

ENGINES = Registry(
    "engine",
    [
        ("local", "surefoot.studies.engines:Local", "Processes on this machine, its cores divided among them"),
        ("ray", "surefoot.studies.ray_engine:OnRay", "Tasks on an existing Ray cluster (pip install surefoot[ray])"),
        ("here", "surefoot.studies.engines:Here", "This very process, one cell after the other, for debugging"),
    ],
)


class Engine(Protocol):
    """Runs jobs and gives their outcomes as they end."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]: ...


@dataclass(frozen=True)
class Here:
    """One cell after the other in this process."""

    jobs: int = 1

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        from .worker import run_job

        for job in jobs:
            began = time.perf_counter()
            job.log.parent.mkdir(parents=True, exist_ok=True)
            with open(job.log, "w", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
                failed = run_job(job)
            yield outcome(job, not failed, began)


@dataclass(frozen=True)
class Local:
    """`jobs` processes at a time."""

    jobs: int = 1

    def __post_init__(self) -> None:
        require(self.jobs >= 1, "jobs", "at least 1", self.jobs)

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        left, running = list(jobs), list[Started]()
        try:
            while left or running:
                while left and len(running) < self.jobs:
                    running.append(start(left.pop(0)))
                ended = [each for each in running if each.process.poll() is not None]
                for each in ended:
                    running.remove(each)
                    yield each.end()
                if not ended:
                    time.sleep(0.1)
        finally:
            for each in running:
                each.process.kill()
                each.end()


@dataclass(frozen=True)
class Started:
    """A worker at its job."""

    job: Job
    process: subprocess.Popen[bytes]
    began: float

    def end(self) -> Outcome:
        """Wait for it, and say how it ended."""
        code = self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        return outcome(self.job, code == 0, self.began)


def start(job: Job) -> Started:
    """Start a worker; its standard input is our lifeline to it."""
    began = time.perf_counter()
    path = Path(job.work) / "jobs" / f"{job.cell}.json"
    write_job(path, job)
    job.log.parent.mkdir(parents=True, exist_ok=True)
    threads = {name: str(job.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, "-m", "surefoot.studies.worker", str(path)]
    with open(job.log, "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **threads})
    return Started(job, process, began)


def run_in_process(job: Job) -> Outcome:
    """A job in a process of its own, from beginning to end."""
    started = start(job)
    try:
        return started.end()
    finally:
        started.process.kill()


def outcome(job: Job, ok: bool, began: float) -> Outcome:
    said = "" if ok else last_line(job.log)
    return Outcome(job.cell, ok, time.perf_counter() - began, job.log, said)


def last_line(log: Path) -> str:
    """The error that a log ends with."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith(("failed:", "measuring", "File", "^"))]
    return errors[-1] if errors else "no word in its log"


def find_engine(name: str, jobs: int, **options: float) -> Engine:
    """The engine called `name`."""
    found = ENGINES.load(name)
    try:
        engine: Engine = found(jobs=jobs, **options)
    except TypeError as error:
        raise SurefootError(f"Engine '{name}' does not take {', '.join(options)}.") from error
    return engine
