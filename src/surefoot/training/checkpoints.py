"""What a run needs to go on after it was stopped at any moment: one file for each finished epoch, renamed into place.

Tensors are in the file, everything else is JSON in its header. Generators are derived from (seed, epoch, step): none is stored.
The previous file is removed only when the new one is in place; the newest whole one is read."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from torch import Tensor

from ..errors import SurefootError
from ..files import inside, read_tensors, remove, write_tensors
from ..progress import progress_bar
from ..types import Terms

if TYPE_CHECKING:
    from .engine import Engine

# What happened in each epoch: on the screen, for the file, and for a tracker.


Epoch = dict[str, float]


class History:
    """Averages the parts of the loss over an epoch without making the device wait, and shows progress."""

    def __init__(self, epochs: int, steps: int, progress: bool, before: list[Epoch], accelerator: Any) -> None:
        self.epochs: list[Epoch] = list(before)
        self._accelerator = accelerator
        self._sums: dict[str, Tensor] = {}
        self._images = 0
        self._total, self._log = epochs, progress
        columns = (BarColumn(bar_width=16), TimeRemainingColumn(compact=True), TextColumn("{task.description}"))
        self._bar = progress_bar(*columns, show=progress, keep=True)
        self._task = self._bar.add_task("first epoch", total=epochs * steps, completed=len(before) * steps)

    def __enter__(self) -> History:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def add(self, terms: Terms, images: int) -> None:
        """Count one step."""
        for name, value in {"loss": terms.total.detach(), **terms.parts}.items():
            part = (value if value.device.type == "mps" else value.double()) * images  # mps has no float64
            self._sums[name] = self._sums[name] + part if name in self._sums else part
        self._images += images
        self._bar.advance(self._task)

    def end_epoch(self, measured: Epoch, images_per_second: float) -> None:
        """Close an epoch: means over all processes, a line on the screen, a record for file and tracker."""
        means = torch.stack([total / self._images for total in self._sums.values()])
        if self._accelerator.num_processes > 1:
            means = self._accelerator.reduce(means, "mean")
        parts = dict(zip(self._sums, means.tolist(), strict=True))
        record = {"epoch": len(self.epochs) + 1, **parts, **measured, "images_per_second": round(images_per_second, 1)}
        self.epochs.append(record)
        self._sums, self._images = {}, 0
        if self._accelerator.trackers:
            self._accelerator.log(record, step=record["epoch"])
        shown = "  ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in parts.items() if name != "loss")
        judged = f"loss {parts['loss']:.3f}"
        if "validation_accuracy" in measured:
            judged = f"validation {measured['validation_accuracy']:.1%}, ECE {measured['validation_ece']:.1%}"
        line = f"epoch {record['epoch']}/{self._total}  {judged}  {images_per_second:.0f} images/s  {shown}"
        self._bar.update(self._task, description=line)
        if self._log and self._bar.disable:  # a log file: a line for each epoch, as it ends
            print(line, file=sys.stderr, flush=True)


logger = logging.getLogger("surefoot")
STATE, BEST = "state", "best.safetensors"


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    epoch: int = 0  # finished epochs
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0


def save_state(folder: Path, engine: Engine, progress: Progress) -> None:
    """Write the state after an epoch, then drop older ones."""
    tensors = {f"{name}.{key}": value for name, module in engine.modules.items() for key, value in module.state_dict().items()}
    numbers: dict[str, Any] = {}
    for index, state in engine.plain_optimiser.state_dict()["state"].items():
        for key, value in state.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"optimiser.{index}.{key}"] = value
    scaler = engine.accelerator.scaler
    header: dict[str, Any] = {"recipe": engine.recipe_key, "progress": asdict(progress), "numbers": numbers}
    header["scaler"] = scaler.state_dict() if scaler else None
    write_tensors(inside(folder, STATE) / f"epoch-{progress.epoch:05}.safetensors", tensors, {"surefoot": json.dumps(header)})
    for older in state_files(folder)[1:]:
        older.unlink()


def load_state(folder: Path, engine: Engine, best: bool) -> Progress | None:
    """Put the newest whole state of this recipe back; None if there is none. `best` says that the best weights are needed."""
    for path in state_files(folder):
        state = read_state(path)
        if state is None:
            continue
        tensors, header = state
        if header.get("recipe", engine.recipe_key) != engine.recipe_key:  # older states do not say it
            logger.warning("%s is of another recipe and is not gone on from", path)
            continue
        for name, module in engine.modules.items():
            module.load_state_dict({k.removeprefix(f"{name}."): v for k, v in tensors.items() if k.startswith(f"{name}.")})
        restore_optimiser(engine.plain_optimiser, tensors, header["numbers"])
        if engine.accelerator.scaler and header["scaler"]:
            engine.accelerator.scaler.load_state_dict(header["scaler"])
        progress = Progress(**header["progress"])
        try:
            engine.best = read_tensors("best weights", folder / BEST)
        except SurefootError as error:
            if best:
                raise SurefootError(f"{error} The run ends with them: begin anew with overwrite (--overwrite).") from error
            logger.warning("%s The run goes on, since it keeps the last ones.", error)
        logger.info("going on after epoch %d of %s", progress.epoch, folder)
        return progress
    return None


def read_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and header of a state file; None, and a line in the log, if it is not whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            names = file.keys()
            header = json.loads((file.metadata() or {}).get("surefoot", "{}"))
            if not {"progress", "numbers", "scaler"} <= set(header):
                raise SurefootError("it does not say how far the run is")
            return {name: file.get_tensor(name) for name in names}, header
    except (SafetensorError, OSError, ValueError) as error:  # a SurefootError is a ValueError
        logger.warning("%s is not whole (%s); going back to the one before", path, error)
        return None


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
    """Momentum and the like, by the index of the parameter."""
    state: dict[int, dict[str, Any]] = {}
    for name, value in {**tensors, **numbers}.items():
        if name.startswith("optimiser."):
            _, index, key = name.split(".", 2)
            state.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def state_files(folder: Path) -> list[Path]:
    """State files, newest first; half-written ones have another name."""
    return sorted((folder / STATE).glob("epoch-*.safetensors"), reverse=True)


def clear_state(folder: Path) -> None:
    """Nothing is left to resume."""
    remove(inside(folder, STATE))
