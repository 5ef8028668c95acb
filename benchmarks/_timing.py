"""Ratios from interleaved runs: the machine's noise falls on both sides alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def interleaved(jobs: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """The median seconds of each job, one of each in every round, after a round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            if number:
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def ratios(
    jobs: dict[str, Callable[[], object]], against: str, rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The median over rounds of each job's time divided by that of one of them in the same round."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        seconds = {}
        for name, job in jobs.items():
            began = clock()
            job()
            seconds[name] = clock() - began
        if number:
            for name in jobs:
                found[name].append(seconds[name] / seconds[against])
    return {name: statistics.median(values) for name, values in found.items()}


def show(title: str, found: dict[str, float], against: str) -> None:
    """A line for each job with its ratio to one of them."""
    print(title)
    for name, seconds in found.items():
        print(f"  {name:32} {1000 * seconds:10.1f} ms  {seconds / found[against]:6.2f}x")
