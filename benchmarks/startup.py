"""What importing costs, and help and wrong words of every command: whole processes, processor and wall time.

Relative to `import torch`, of which importing the package's methods may take 1.3x, and a wrong word no part. With the folder of
another version's source (`startup.py OTHER/src`) the same lines are timed there, in turn with ours.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import surefoot
from surefoot.cli.main import COMMANDS

ROUNDS = 3
HERE = str(Path(surefoot.__file__).parents[1])
WRONG = {  # besides a flag that is none
    "audit nowhere": ["audit", "nowhere"],
    "audit nowhere --depth quik": ["audit", "nowhere", "--depth", "quik"],
    "train --objective maccs": ["train", "--objective", "maccs"],
    "gate nowhere.json": ["gate", "nowhere.json", "--rule", "ece < 1"],
    "study run mian": ["study", "run", "mian"],
}


def seconds_of(arguments: list[str], source: str) -> tuple[float, float]:
    """Processor and wall time of one process."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    began, before = time.perf_counter(), spent()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=False, env={**os.environ, "PYTHONPATH": source})
    return spent() - before, time.perf_counter() - began


lines = {f"import {name}": ["-c", f"import {name}"] for name in ("torch", "surefoot", "surefoot.objectives.macs")}
words = {"--help": ["--help"]}
for command in COMMANDS:
    words |= {f"{command} --help": [command, "--help"], f"{command} --no-such-flag": [command, "--no-such-flag"]}
lines |= {f"surefoot {name}": ["-m", "surefoot", *given] for name, given in {**words, **WRONG}.items()}
sources = [HERE, *map(os.path.abspath, sys.argv[1:2])]
found: dict[tuple[str, str], list[tuple[float, float]]] = {(name, source): [] for name in lines for source in sources}
for number in range(ROUNDS + 1):  # the first does not count
    for name, arguments in lines.items():
        for source in sources:
            seconds = seconds_of(arguments, source)
            found[name, source] += [seconds] if number else []
medians = {key: tuple(map(statistics.median, zip(*values, strict=True))) for key, values in found.items()}
title, more = f"median of {ROUNDS} processes", "   of the other" * (len(sources) - 1)
print(f"{title:44} processor      wall  of import torch{more}")
torch_seconds = medians["import torch", HERE][0]
for name in lines:
    processor, wall = medians[name, HERE]
    other = f"{processor / medians[name, sources[1]][0]:14.2f}x" if len(sources) > 1 else ""
    print(f"{name:44} {processor:7.2f} s {wall:7.2f} s {processor / torch_seconds:14.2f}x{other}")
