"""Where cells are computed: in processes on this machine, or on a Ray cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from ..cluster import RETRIES, connect
from ..errors import SurefootError, require
from ..files import inside, write_json, write_text
from ..registry import Registry

# What a worker is given, and how it came out: plain values that go into a file and to another machine, without torch.


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
    origins: dict[str, str] = field(default_factory=dict)  # folders of corrupted copies or of frost, by the name of the origin
    drawn: tuple[str, ...] = ()  # labels of the measurements whose points are kept for a figure

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


ENGINES = Registry(
    "engine",
    [
        ("local", "surefoot.studies.engines:Local", "Processes on this machine, its cores divided among them"),
        ("ray", "surefoot.studies.engines:OnRay", "Tasks on an existing Ray cluster (pip install surefoot[ray])"),
        ("here", "surefoot.studies.engines:Here", "This very process, one cell after the other, for debugging"),
    ],
)


class Engine(Protocol):
    """Runs jobs and gives their outcomes as they end."""

    def check(self) -> None:
        """Refuse at once if nothing can be run, before anything is written."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]: ...


@dataclass(frozen=True)
class Here:
    """One cell after the other in this process."""

    jobs: int = 1

    def __post_init__(self) -> None:
        require(self.jobs == 1, "jobs", "1 in this process", self.jobs)

    def check(self) -> None:
        """This process is there."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        from .worker import run_job

        for job in jobs:
            began = time.perf_counter()
            begin_log(job)
            with open(job.log, "a", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
                failed = run_job(job)
            yield outcome(job, not failed, began)


@dataclass(frozen=True)
class Local:
    """`jobs` processes, each of which does one cell after the other."""

    jobs: int = 1

    def __post_init__(self) -> None:
        require(self.jobs >= 1, "jobs", "at least 1", self.jobs)

    def check(self) -> None:
        """This machine is there."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        workers = SimpleQueue[Worker]()
        everyone = [Worker() for _ in range(min(self.jobs, len(jobs)))]
        for worker in everyone:
            workers.put(worker)

        def work(job: Job) -> Outcome:
            worker = workers.get()
            try:
                return worker.do(job)
            finally:
                workers.put(worker)

        pool = ThreadPoolExecutor(max(1, len(everyone)))
        try:
            for ended in as_completed([pool.submit(work, job) for job in jobs]):
                yield ended.result()
        finally:
            for worker in everyone:
                worker.kill()
            pool.shutdown(cancel_futures=True)
            for worker in everyone:
                worker.close()


class Worker:
    """A process of `surefoot.studies.worker`: its input is its lifeline, its output says how each job ended.

    It is started at its first job, and again after a job that it did not survive: to start takes longer than a small cell.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    def do(self, job: Job) -> Outcome:
        """One job, from beginning to end."""
        began, path = time.perf_counter(), inside(job.work, "jobs") / f"{job.cell}.json"
        write_job(path, job)
        begin_log(job)
        process = self._process = self._process or start(job)
        if self._killed:  # while this one was being started
            process.kill()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{path}\n".encode())
            reply = process.stdout.readline()
        except BrokenPipeError:
            reply = b""
        if not reply:
            self.close()
        return outcome(job, reply == DONE, began)

    def kill(self) -> None:
        """End it whatever it is doing; `do` then comes back."""
        self._killed = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End it; the next job starts another."""
        if self._process is not None:
            self._process.kill()
            with self._process:  # waits, and closes the pipes
                self._process = None


def begin_log(job: Job) -> None:
    """An empty log, in a file of its own."""
    inside(job.work, "logs")
    write_text(job.log, "")


def start(job: Job) -> subprocess.Popen[bytes]:
    """A worker with the threads that a job asks for; what it says before its first job is in that job's log."""
    threads = {name: str(job.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, "-P", "-m", "surefoot.studies.worker", job.work]
    pipe = subprocess.PIPE
    with open(job.log, "a", encoding="utf-8") as log:
        return subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=log, env={**os.environ, **threads})


def run_in_process(job: Job) -> Outcome:
    """A job in a process of its own, from beginning to end."""
    worker = Worker()
    try:
        return worker.do(job)
    finally:
        worker.close()


def outcome(job: Job, ok: bool, began: float) -> Outcome:
    said = "" if ok else last_line(job.log)
    return Outcome(job.cell, ok, time.perf_counter() - began, job.log, said)


def last_line(log: Path) -> str:
    """The error that a log ends with."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith(("failed:", "measuring", "File", "^"))]
    return re.sub(r"^surefoot\.[\w.]+: ", "", errors[-1]) if errors else "no word in its log"


def find_engine(name: str, jobs: int, **options: float) -> Engine:
    """The engine called `name`."""
    factory = ENGINES.load(name)
    try:
        engine: Engine = factory(jobs=jobs, **options)
    except TypeError as error:
        raise SurefootError(f"Engine '{name}' does not take {', '.join(options)}.") from error
    return engine


# Cells as Ray tasks: resources declared, tried again on another node when one dies, results in a shared folder.


@dataclass(frozen=True)
class OnRay:
    """At most `jobs` cells at a time on the cluster that RAY_ADDRESS names, or on the one that runs on this machine.

    Results and work folders must be on storage that every node sees under the same path. A cell that was begun on a node that
    died goes on from its last epoch on another. A cell that fails by itself is not tried again.
    """

    jobs: int = 1
    gpus: float = 0.0

    def __post_init__(self) -> None:
        require(self.jobs >= 1, "jobs", "at least 1", self.jobs)
        require(self.gpus >= 0, "gpus", "at least 0", self.gpus)

    def check(self) -> None:
        connect()

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        ray = connect()
        task = ray.remote(max_retries=RETRIES, retry_exceptions=False)(run_in_process)
        left = list(jobs)
        running: dict[Any, Job] = {}
        while left or running:
            while left and len(running) < self.jobs:
                job = left.pop(0)
                running[task.options(num_cpus=job.threads, num_gpus=self.gpus, name=job.cell).remote(job)] = job
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                job = running.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield Outcome(job.cell, False, 0.0, job.log, str(error).strip().splitlines()[-1])
