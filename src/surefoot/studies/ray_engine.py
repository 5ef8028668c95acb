"""Cells as Ray tasks: resources declared, tried again on another node when one dies, results in a shared folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..cluster import RETRIES, connect
from ..errors import require
from .engines import run_in_process
from .jobs import Job, Outcome


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
