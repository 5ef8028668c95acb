"""Train the recipe of a cell in its own folder, one process at a time, going on from where it was stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from filelock import FileLock

from ..errors import SurefootError
from ..files import inside, write_text
from ..lifelines import for_child
from ..models.classifier import Classifier
from ..training.recipe_files import read_recipe
from ..training.recipes import Recipe
from ..training.run_files import RECIPE
from ..training.runs import OtherRun, Run
from .cells import PLACE, digest, identity


def run_folder(work: Path, cell: str) -> Path:
    return inside(work, "runs", cell)


def train(recipe: Recipe, data_label: str, work: Path, device: str = "auto", processes: int = 1) -> Run:
    """The run of a recipe; the same folder for every study that shares `work`."""
    cell = digest(identity(recipe, data_label))
    folder = run_folder(work, cell)
    with alone(work, cell):
        recipe = as_begun(recipe, folder)
        if processes > 1 and not (folder / "model.safetensors").is_file():
            train_distributed(recipe, folder, device, processes)
        return take_up(recipe, folder, device)


@dataclass(frozen=True)
class Beside:
    """Trains other models beside a cell's own, each in its own folder, where a study finds it too."""

    work: Path
    data_label: str
    device: str

    def run(self, recipe: Recipe, model: Classifier | None = None, suffix: str = "") -> Run:
        """The run of a recipe; with a model to start from, a name of its own ends in `suffix`."""
        if model is None:
            return train(recipe, self.data_label, self.work, self.device)
        name = f"{digest(identity(recipe, self.data_label))}{suffix}"
        with alone(self.work, name):
            return take_up(recipe, run_folder(self.work, name), self.device, model)


def take_up(recipe: Recipe, folder: Path, device: str, model: Classifier | None = None) -> Run:
    """The run in a folder that is only this recipe's, gone on with wherever its data are now.

    What other defaults than today's left there is no longer what the folder is named for, and is begun anew.
    """
    recipe = as_begun(recipe, folder)
    try:
        return recipe.run(model=model, output=folder, device=device, progress=False)
    except OtherRun:
        return recipe.run(model=model, output=folder, device=device, progress=False, overwrite=True)


def as_begun(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with what the machine decided where the run was begun, if it was; the run's data are where they are now."""
    path = folder / RECIPE
    if not path.is_file():
        return recipe
    before = read_recipe(path)
    now = {key: value for key, value in (recipe.data or {}).items() if key in PLACE}
    before["data"] = {**(before["data"] or {}), **now}
    write_text(path, yaml.safe_dump(before, sort_keys=False))
    if recipe.training["precision"] != "auto":
        return recipe
    return replace(recipe, training={**recipe.training, "precision": before["training"]["precision"]})


def train_distributed(recipe: Recipe, folder: Path, device: str, processes: int) -> None:
    """The same run by several processes of `surefoot train`."""
    given = folder.with_suffix(".yaml")
    write_text(given, recipe.to_yaml())
    command = [sys.executable, "-P", "-m", "surefoot", "train", "--recipe", str(given), "--allow-code", "--quiet"]
    options = ["--output", str(folder), "--device", device, "--processes", str(processes)]
    code = subprocess.run([*command, *options], check=False, env=for_child(os.environ)).returncode
    if code:
        raise SurefootError(f"Training by {processes} processes ended with code {code}.")


@contextmanager
def alone(work: Path, cell: str) -> Iterator[None]:
    """Wait until no other process works on this cell; the lock goes with the process, even when it is killed."""
    lock = inside(work, "locks", cell)
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        yield
