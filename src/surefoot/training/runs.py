"""What a training run leaves: a folder that can be read again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from ..errors import NotFound, SurefootError
from ..files import read_tensors, write_tensors, write_text
from ..models.checkpoints import load_weights
from ..models.classifier import Classifier
from ..objectives.base import Objective
from .history import Epoch
from .recipes import Recipe

RECIPE, HISTORY, WEIGHTS, OBJECTIVE = "recipe.yaml", "history.jsonl", "model.safetensors", "objective.safetensors"


@dataclass(frozen=True)
class Run:
    """A finished training run."""

    recipe: Recipe
    model: Classifier
    objective: Objective
    history: list[Epoch]
    folder: Path | None = None

    @property
    def predictor(self) -> nn.Module:
        """What to use and to audit: the model, or what the objective makes of it at test time."""
        return self.objective.predictor(self.model)


def prepare_folder(output: str | Path | None, overwrite: bool) -> Path | None:
    """Check that `output` may be written to, before any work is done."""
    if output is None:
        return None
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise SurefootError(f"output must be a folder, and '{folder}' is a file.")
    if (folder / RECIPE).exists() and not overwrite:
        raise SurefootError(f"'{folder}' holds a run already; choose another output or pass overwrite (--overwrite).")
    return folder


def save_run(run: Run) -> None:
    """Write the run folder; the recipe comes last and marks it complete."""
    assert run.folder is not None
    sizes = {"num_classes": run.model.num_classes, "channels": run.model.channels, "image_size": run.model.image_size}
    write_tensors(run.folder / WEIGHTS, run.model.state_dict(), {"surefoot": json.dumps(sizes)})
    state = run.objective.state_dict()
    if state:
        write_tensors(run.folder / OBJECTIVE, state)
    write_text(run.folder / HISTORY, "".join(json.dumps(epoch) + "\n" for epoch in run.history))
    write_text(run.folder / RECIPE, run.recipe.to_yaml())


def load_run(folder: str | Path, model: Classifier | None = None) -> Run:
    """Read a run folder; `model` is needed only if the run was given a module without a name."""
    folder = Path(folder)
    if not folder.is_dir():
        raise NotFound("run folder", folder)
    if not (folder / RECIPE).is_file():
        raise SurefootError(f"'{folder}' is not a run folder: it has no {RECIPE}.")
    recipe = Recipe.read(folder / RECIPE)
    model = model or recipe.build_model_of(**read_sizes(folder / WEIGHTS), **without_weights(recipe))
    load_weights(model, read_tensors("weights", folder / WEIGHTS), f"'{folder / WEIGHTS}'")
    objective = recipe.build_objective()
    if (folder / OBJECTIVE).is_file():
        load_weights(objective, read_tensors("objective state", folder / OBJECTIVE), f"'{folder / OBJECTIVE}'")
    lines = (folder / HISTORY).read_text(encoding="utf-8").splitlines() if (folder / HISTORY).is_file() else []
    return Run(recipe, model.eval(), objective, [json.loads(line) for line in lines], folder)


def without_weights(recipe: Recipe) -> dict[str, Any]:
    """Options that build the same model without fetching weights; a timm tag stays in the name, since it decides the size."""
    section = recipe.model or {}
    tag = section.get("pretrained")
    tagged = isinstance(tag, str) and not section["name"].startswith(("torchvision/", "hf-hub:"))
    return {"checkpoint": None, "pretrained": False} | ({"name": f"{section['name']}.{tag}"} if tagged else {})


def read_sizes(path: Path) -> dict[str, Any]:
    """The sizes that a run's weights file carries, so that its data are not needed to build the model."""
    from safetensors import safe_open

    if not path.is_file():
        raise NotFound("weights", path)
    with safe_open(path, "pt") as file:
        sizes: dict[str, Any] = json.loads((file.metadata() or {}).get("surefoot", "{}"))
    if not sizes:
        raise SurefootError(f"'{path}' was not written by Surefoot: it does not say its sizes.")
    return {**sizes, "image_size": tuple(sizes["image_size"])}
