"""What a training run leaves: a folder that can be read again, or gone on with."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor, nn

from ..calibration.calibrators import Calibrator, load_calibrator
from ..calibration.guarantees import Answers, Guarantees, load_guarantees
from ..data.settings import HUB, TORCHVISION, tagged_name
from ..errors import SurefootError, require, shown
from ..files import (
    LOCK,
    PART,
    inside,
    only_writer,
    read_header,
    read_tensors,
    read_text,
    remove,
    sweep,
    write_tensors,
    write_text,
)
from ..models.checkpoints import load_weights
from ..models.classifier import Classifier
from ..models.last_layer import evaluating
from ..notebooks import html_table
from ..objectives.base import Objective
from ..schemas import check_keys
from ..types import Images
from .checkpoints import BEST, STATE, Epoch, clear_state, state_files
from .hub import PREFIX, fetched
from .recipe_files import NAMED, read_recipe
from .recipes import Recipe
from .run_files import CALIBRATION, GUARANTEES, HISTORY, OBJECTIVE, RECIPE, WEIGHTS, check_run
from .trackers import FOLDER as TRACKED
from .trackers import RUN as TRACKED_RUN

logger = logging.getLogger("surefoot")
AUDIT, AUDIT_DATA = ("audit.json", "report.html"), "audit-data"
SIZES = ("num_classes", "channels", "image_size", "resize_to", "class_names", "recipe")  # that the weights carry
HOW = ("data.download",)  # how the data come here, not what a run is
WHERE = ("data.root", "data.workers", "data.memory_gib")  # and where they are: the run may have moved with them


class OtherRun(SurefootError):
    """A folder that holds the run of another recipe."""


@dataclass(frozen=True)
class Run:
    """A finished training run."""

    recipe: Recipe
    model: Classifier
    objective: Objective
    history: list[Epoch]
    folder: Path | None = None
    calibrator: Calibrator | None = None  # of its confidences, in a calibrated copy
    class_names: tuple[str, ...] = ()
    guarantees: Guarantees | None = None  # prediction sets and a risk threshold, in a calibrated copy

    @property
    def predictor(self) -> nn.Module:
        """What to use and to audit: the model, or what the objective makes of it at test time, with the calibrator behind."""
        bare = self.objective.predictor(self.model)
        return bare if self.calibrator is None else self.calibrator.module(bare)

    def answer(self, images: Images, indices: Tensor | None = None) -> Answers:
        """Classes and confidences of pictures, with their prediction sets and abstentions where the run promises them.

        `indices` are their places in the data set, for sets that draw.
        """
        predictor = self.predictor
        with evaluating(predictor), torch.inference_mode():
            logits = predictor(images)
        return (self.guarantees or Guarantees()).answer(logits, indices)

    def _repr_html_(self) -> str:
        """What a notebook shows: what was trained on what, and its last epoch."""
        recipe = self.recipe
        names = {name: (getattr(recipe, name) or {}).get("name", "from Python") for name in NAMED}
        rows = [*names.items(), ("seed", recipe.seed), ("epochs", len(self.history))]
        last = self.history[-1] if self.history else {}
        rows += [(name.replace("_", " "), f"{value:.4g}") for name, value in last.items() if name != "epoch"]
        return html_table(str(self.folder or "a run in memory"), ("", "value"), [(name, str(value)) for name, value in rows])

    @property
    def repair(self) -> Calibrator | None:
        """The former name of `calibrator`, for one release."""
        return self.calibrator


@contextmanager
def writing_run(recipe: Recipe, folder: Path, overwrite: bool) -> Iterator[None]:
    """The folder of this very run, for this process alone; a run that fails before its first epoch is over leaves nothing."""
    with only_writer(folder):
        begin_run(recipe, folder, overwrite)
        try:
            yield
        except Exception:
            if not state_files(folder) and not (folder / WEIGHTS).is_file():
                for name in (RECIPE, HISTORY, BEST):
                    (folder / name).unlink(missing_ok=True)
            raise


def begin_run(recipe: Recipe, folder: Path, overwrite: bool) -> None:
    """Make sure that a folder is free or holds this very run, and put its recipe there."""
    sweep(folder)
    sweep(inside(folder, STATE))
    if overwrite:
        remove_run(folder)
    elif (folder / RECIPE).is_file() and (other := difference(read_recipe(folder / RECIPE), recipe)):
        advice = "choose another output or pass overwrite (--overwrite)"
        raise OtherRun(f"'{folder}' holds another recipe's run ({other}); {advice}.")
    write_text(folder / RECIPE, recipe.to_yaml())


def difference(there: Mapping[str, Any], recipe: Recipe) -> str:
    """The first option that a recipe on disk does not share, in words; nothing if another version wrote the same."""
    one, two = options_of(there), options_of(yaml.safe_load(recipe.to_yaml()))
    for name in [*two, *one]:
        if one.get(name) != two.get(name):
            return f"its {name} is {shown(one.get(name))}, not {shown(two.get(name))}"
    return ""


def options_of(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Every option of a recipe by its name on the command line, such as training.epochs."""
    out: dict[str, Any] = {}
    for section, value in recipe.items():
        for name, each in value.items() if isinstance(value, Mapping) else ():
            out |= {} if (path := f"{section}.{name}") in HOW else {path: each}
        out |= {} if isinstance(value, Mapping) or section == "surefoot" else {section: value}
    return out


def key_of(recipe: Recipe | Mapping[str, Any], data: bool = True) -> str:
    """The hash of a recipe, or of what it says beside its data, which may lie elsewhere when a run is read."""
    plain = yaml.safe_load(recipe.to_yaml()) if isinstance(recipe, Recipe) else recipe
    options = {name: value for name, value in options_of(plain).items() if name not in WHERE}
    kept = {name: value for name, value in options.items() if data or name.partition(".")[0] not in ("data", "fingerprint")}
    return blake2b(json.dumps(kept, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()


def remove_run(folder: Path) -> None:
    """Remove what an earlier run left, and its audit, which is not of the weights to come; other files stay."""
    data = inside(folder, AUDIT_DATA)
    for name in (WEIGHTS, BEST, OBJECTIVE, HISTORY, RECIPE, CALIBRATION, GUARANTEES, *AUDIT):
        (folder / name).unlink(missing_ok=True)
    remove(data)
    (inside(folder, TRACKED) / TRACKED_RUN).unlink(missing_ok=True)  # what it has told a tracker stays
    clear_state(folder)


def finished_run(folder: Path | None, model: Classifier, objective: Objective) -> Run | None:
    """The run in a folder, read into these objects, if it is complete."""
    if folder is None or not (folder / WEIGHTS).is_file():
        return None
    logger.info("%s is finished already", folder)
    run = load_run(folder, model, allow_code=True)  # its recipe is the caller's own, or `begin_run` had refused
    objective.load_state_dict(run.objective.state_dict())
    return replace(run, objective=objective)


def write_history(folder: Path, history: list[Epoch]) -> None:
    write_text(folder / HISTORY, "".join(json.dumps(epoch) + "\n" for epoch in history))


def keep_best(folder: Path, weights: dict[str, Tensor]) -> None:
    """Write the weights of the best epoch so far."""
    write_tensors(folder / BEST, weights)


def finish_run(run: Run) -> None:
    """Write what is left to write; the weights mark the run complete, and nothing can be resumed any more."""
    assert run.folder is not None
    state = run.objective.state_dict()
    if state:
        write_tensors(run.folder / OBJECTIVE, state)
    write_history(run.folder, run.history)
    sizes = {"num_classes": run.model.num_classes, "channels": run.model.channels, "image_size": run.model.image_size}
    sizes["resize_to"] = run.model.resize_to
    about = {**sizes, "class_names": run.class_names, "recipe": key_of(run.recipe, data=False)}
    write_tensors(run.folder / WEIGHTS, run.model.state_dict(), {"surefoot": json.dumps(about)})
    clear_state(run.folder)


def load_run(folder: str | Path, model: Classifier | None = None, *, allow_code: bool = False) -> Run:
    """Read a run folder; `model` is needed only if the run was given a module without a name.

    Nothing in the folder is executed or fetched unless `allow_code` says that it may be: objectives and views of one's own
    (`package.module:Class`), models on the Hugging Face hub. `hf://owner/name` is a run on the hub that `surefoot card` wrote.

    >>> import surefoot as sf
    >>> data = sf.load_data("digits", fraction=0.2, max_images=60)
    >>> model = sf.load_model("tiny-resnet", data=data, seed=0)
    >>> run = sf.fit(model, "cross-entropy", data, epochs=1, output="runs/first", progress=False)
    >>> again = sf.load_run("runs/first")
    >>> again.recipe.objective["name"], again.predictor.num_classes
    ('cross-entropy', 10)
    """
    if isinstance(folder, str) and folder.startswith(PREFIX):
        folder = fetched(folder, [RECIPE, HISTORY, WEIGHTS, OBJECTIVE, CALIBRATION, GUARANTEES])
    folder = Path(folder)
    check_run(folder)
    recipe, sizes = Recipe.read(folder / RECIPE, allow_code=allow_code), read_sizes(folder / WEIGHTS)
    if sizes.pop("recipe", own := key_of(read_recipe(folder / RECIPE), data=False)) != own:  # older runs do not say it
        raise SurefootError(f"The weights in '{folder}' are not of its {RECIPE}: another recipe made them, or it was changed.")
    class_names, inner = tuple(sizes.pop("class_names", ())), sizes.pop("resize_to", ...)
    if model is None:
        model = recipe.build_model_of(**sizes, **without_weights(recipe))
        if inner is not ...:
            model.resize_to = None if inner is None else tuple(inner)  # that of the weights it began with
    load_weights(model, read_tensors("weights", folder / WEIGHTS), f"'{folder / WEIGHTS}'")
    objective = recipe.build_objective()
    if (folder / OBJECTIVE).is_file():
        load_weights(objective, read_tensors("objective state", folder / OBJECTIVE), f"'{folder / OBJECTIVE}'")
    lines = read_text("history", folder / HISTORY).splitlines() if (folder / HISTORY).is_file() else []
    calibrator = load_calibrator(folder / CALIBRATION) if (folder / CALIBRATION).is_file() else None
    promises = load_guarantees(folder / GUARANTEES) if (folder / GUARANTEES).is_file() else None
    try:
        history = [json.loads(line) for line in lines]
    except ValueError as error:
        raise SurefootError(f"'{folder / HISTORY}' is not a history of epochs: {error}.") from error
    return Run(recipe, model.eval(), objective, history, folder, calibrator, class_names, promises)


def write_calibrated(run: Run, calibrator: Calibrator, output: str | Path, guarantees: Guarantees | None = None) -> Run:
    """A copy of a run with a calibrator, and with what is promised behind it; the weights stay as they are."""
    with only_writer(output):
        folder = copy_folder(run, output)
        for left in begun_copy(folder):
            remove(left)
        copy = replace(run, folder=folder, calibrator=calibrator, guarantees=guarantees)
        calibrator.save(folder / CALIBRATION)  # first, so that a copy that was not finished is known by it
        write_text(folder / RECIPE, run.recipe.to_yaml())
        if guarantees is not None:
            guarantees.save(folder / GUARANTEES)
        finish_run(copy)
    return copy


def copy_folder(run: Run | None, output: str | Path) -> Path:
    """The folder of a copy, which must be new, or hold one that was not finished, so that nothing is written over."""
    folder = Path(output)
    if run is not None and run.folder is not None and folder.resolve() == run.folder.resolve():
        raise SurefootError(f"output must be another folder than the run's own, got '{output}'.")
    there = {path for path in folder.iterdir() if path.name != LOCK} if folder.is_dir() else set()
    if (folder.exists() and not folder.is_dir()) or there != begun_copy(folder):
        raise SurefootError(f"output must be a new or empty folder, and '{folder}' is not: give another (output=, --output).")
    return folder


def begun_copy(folder: Path) -> set[Path]:
    """What a copy that was stopped half-way left: all but its weights, which come last."""
    there = set(folder.iterdir()) if folder.is_dir() else set()
    names = {path.name for path in there}
    begun = (RECIPE, CALIBRATION, GUARANTEES, HISTORY, OBJECTIVE) if CALIBRATION in names and WEIGHTS not in names else ()
    return {path for path in there if path.name in begun or PART.fullmatch(path.name)}


def without_weights(recipe: Recipe) -> dict[str, Any]:
    """Options that build the same model without fetching weights; a timm tag stays in the name, since it decides the size."""
    section = recipe.model or {}
    tag = section.get("pretrained")
    bare = {"checkpoint": None, "pretrained": False}
    if not isinstance(tag, str) or section["name"].startswith((TORCHVISION, HUB)):
        return bare
    return bare | {"name": tagged_name(section["name"], tag)}


def read_sizes(path: Path) -> dict[str, Any]:
    """The sizes that a run's weights file carries, so that its data are not needed to build the model."""
    sizes = read_header("weights", path)
    if not isinstance(sizes.get("image_size"), list):
        raise SurefootError(f"'{path}' was not written by Surefoot: it does not say its sizes.")
    check_keys(f"size in '{path}'", sizes, SIZES)
    counts = [sizes.get("num_classes"), sizes.get("channels"), *sizes["image_size"]]
    require(all(isinstance(count, int) and count >= 1 for count in counts), f"sizes in '{path}'", "whole numbers", counts)
    return {**sizes, "image_size": tuple(sizes["image_size"])}
