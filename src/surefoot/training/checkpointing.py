"""What a run needs to go on after it was stopped at any moment: one file for each finished epoch, renamed into place.

Tensors are in the file, everything else is JSON in its header. Generators are derived from (seed, epoch, step): none is stored.
The previous file is removed only when the new one is in place; the newest whole one is read.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..files import inside, read_tensors, remove, write_tensors
from .history import Epoch

if TYPE_CHECKING:
    from .engine import Engine

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
    header = {"progress": asdict(progress), "numbers": numbers, "scaler": scaler.state_dict() if scaler else None}
    write_tensors(inside(folder, STATE) / f"epoch-{progress.epoch:05}.safetensors", tensors, {"surefoot": json.dumps(header)})
    for older in state_files(folder)[1:]:
        older.unlink()


def load_state(folder: Path, engine: Engine) -> Progress | None:
    """Put the newest whole state back; None if there is none."""
    for path in state_files(folder):
        found = read_state(path)
        if found is None:
            continue
        tensors, header = found
        for name, module in engine.modules.items():
            module.load_state_dict({k.removeprefix(f"{name}."): v for k, v in tensors.items() if k.startswith(f"{name}.")})
        restore_optimiser(engine.plain_optimiser, tensors, header["numbers"])
        if engine.accelerator.scaler and header["scaler"]:
            engine.accelerator.scaler.load_state_dict(header["scaler"])
        progress = Progress(**header["progress"])
        engine.best = read_tensors("best weights", folder / BEST)
        logger.info("going on after epoch %d of %s", progress.epoch, folder)
        return progress
    return None


def read_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and header of a state file; None, and a line in the log, if it is not whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, json.loads(file.metadata()["surefoot"])
    except (SafetensorError, OSError) as error:
        logger.warning("%s is not whole (%s); going back to the one before", path, error)
        return None


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
    """Momentum and the like, by the place of the parameter."""
    state: dict[int, dict[str, Any]] = {}
    for place, value in {**tensors, **numbers}.items():
        if place.startswith("optimiser."):
            _, index, key = place.split(".", 2)
            state.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def state_files(folder: Path) -> list[Path]:
    """State files, newest first; half-written ones have another name."""
    return sorted((folder / STATE).glob("epoch-*.safetensors"), reverse=True)


def clear_state(folder: Path) -> None:
    """Nothing is left to resume."""
    remove(inside(folder, STATE))
