"""Train the recipe of a cell in its own folder, one process at a time, going on from where it was stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from ..errors import SurefootError
from ..files import write_text
from ..training.recipes import Recipe
from ..training.runs import Run
from .cells import digest, identity


def run_folder(work: Path, cell: str) -> Path:
    return work / "runs" / cell


def train(recipe: Recipe, data_label: str, work: Path, device: str = "auto", processes: int = 1) -> Run:
    """The run of a recipe; the same folder for every study that shares `work`."""
    cell = digest(identity(recipe, data_label))
    folder = run_folder(work, cell)
    with alone(work, cell):
        if processes > 1 and not (folder / "model.safetensors").is_file():
            train_distributed(recipe, folder, device, processes)
        return recipe.run(output=folder, device=device, progress=False)


def train_distributed(recipe: Recipe, folder: Path, device: str, processes: int) -> None:
    """The same run by several processes of `surefoot train`."""
    given = folder.with_suffix(".yaml")
    write_text(given, recipe.to_yaml())
    command = [sys.executable, "-m", "surefoot", "train", "--recipe", str(given), "--output", str(folder), "--quiet"]
    code = subprocess.run([*command, "--device", device, "--processes", str(processes)], check=False).returncode
    if code:
        raise SurefootError(f"Training by {processes} processes ended with code {code}.")


@contextmanager
def alone(work: Path, cell: str) -> Iterator[None]:
    """Wait until no other process works on this cell; the lock goes with the process, even when it is killed."""
    folder = work / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / cell):
        yield
