"""The cells of a study: one recipe each, named by its hash, with what is measured on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

from ..data.arguments import DATASETS
from ..data.loading import load_data
from ..errors import SurefootError, UnknownName
from ..measurements.registry import VERSIONS, check_measure, default_options
from ..models.loading import load_model
from ..objectives.methods import load_method
from ..schemas import defaults_of
from ..training._fit import fit
from ..training.arguments import NOT_DATA_OPTIONS, NOT_MODEL_OPTIONS, NOT_TRAINING_OPTIONS
from ..training.recipes import Recipe
from .engines import Measure
from .schema import ALSO, AXES, Figure, Study

PLACE = ("root", "workers", "memory_gib", "download")  # where the data are and how they are read, not what they are
FIRST_DEFAULTS: dict[str, dict[str, Any]] = {  # that have changed since; names keep to them
    "macs-augmix": {"batch_norm": "apart"},
}
Labels = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A recipe, its labels on the axes of the study, and what to measure on it."""

    recipe: Recipe
    labels: Labels
    seed: int
    measure: dict[str, Measure]
    trained: bool = True
    drawn: frozenset[str] = frozenset()  # labels of the measurements whose points a figure needs

    @cached_property
    def name(self) -> str:
        """The hash of what differs from the defaults, so that an option that is added later changes no name."""
        return digest(identity(self.recipe, str(self.labels["data"]), self.trained))

    def measure_name(self, label: str) -> str:
        """The hash of the recipe and of what is measured."""
        return measure_digest(self.name, self.measure[label])


def measure_digest(cell: str, measure: Measure) -> str:
    """The hash of what differs from the defaults, and of the version of draws or definition: no other is taken for it."""
    name, options = measure
    version = {key: value for key, value in options.items() if key in VERSIONS}
    return digest([cell, name, changed(options, default_options(name)) | version])


def digest(value: Any) -> str:
    return blake2b(json.dumps(value, sort_keys=True, default=list).encode(), digest_size=8).hexdigest()


def changed(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not at their default."""
    plain = json.loads(json.dumps({"given": dict(options), "defaults": dict(defaults)}, default=list))
    return {key: value for key, value in plain["given"].items() if value != plain["defaults"].get(key, ...)}


def identity(recipe: Recipe, data_label: str, trained: bool = True) -> dict[str, Any]:
    """What makes a recipe this recipe; a folder of data goes by its label, since its path differs between machines."""
    data, model, objective = recipe.data or {}, recipe.model or {}, recipe.objective
    known = data.get("name") in DATASETS
    about = {
        "data": {"name": data.get("name") if known else data_label}
        | changed(strip(data, ("name", *PLACE)), defaults_of(load_data, NOT_DATA_OPTIONS)),
        "model": {"name": model.get("name")} | changed(strip(model, ("name",)), defaults_of(load_model, NOT_MODEL_OPTIONS)),
        "objective": {"name": objective["name"]} | changed(strip(objective, ("name",)), first_defaults(objective["name"])),
        "augmentation": without_added(recipe.augmentation),
        "training": changed(recipe.training, defaults_of(fit, NOT_TRAINING_OPTIONS)),
        "seed": recipe.seed,
    }
    return about if trained else {"data": about["data"], "model": about["model"], "trained": False, "seed": recipe.seed}


def first_defaults(objective: str) -> dict[str, Any]:
    """The defaults of an objective as they were when its first cells were named, so that no default is taken for another."""
    return {**defaults_of(load_method(objective)), **FIRST_DEFAULTS.get(objective, {})}


ADDED = {"resized_crop": 0.0, "crop_ratio": 4 / 3}  # options of the augmentation that came later, with their defaults


def without_added(augmentation: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """An augmentation as it was written before, unless a later option is used: names of cells stay."""
    return None if augmentation is None else {k: v for k, v in augmentation.items() if k not in ADDED or v != ADDED[k]}


def whole(recipe: Recipe, trained: bool = True) -> dict[str, Any]:
    """All of a recipe as plain values, for the file of its results; without the path of the data, and what is not used."""
    body = json.loads(json.dumps(asdict(recipe), default=list))
    body["data"] = strip(body["data"] or {}, PLACE)
    unused = () if trained else ("objective", "augmentation", "training")
    return {key: value for key, value in strip(body, unused).items() if value is not None}


def strip(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in names}


def cells_of(study: Study, root: str | Path | None = None) -> list[Cell]:
    """Every cell of the grid, checked; all methods of a seed before the next seed, so that comparisons are ready early."""
    measure = {label: check_measure(label, options) for label, options in study.measure.items()}
    for method in study.methods:
        check_method(study, method, root)
    drawn = drawn_labels(study, study.figures.values())
    seeds = range(max([study.seeds, *study.seeds_of.values()]))
    cells = []
    for seed, data, model, fraction, method in product(seeds, study.data, study.models, study.fractions, study.methods):
        if seed < study.seeds_of.get(method, study.seeds):
            labels = {"data": data, "model": model, "fraction": fraction, "method": method}
            shown = drawn if seed == 0 else frozenset[str]()  # a picture is of one model
            cells.append(Cell(recipe_of(study, labels, seed, root), labels, seed, measure, study.trained, shown))
    return cells


def drawn_labels(study: Study, figures: Iterable[Figure]) -> frozenset[str]:
    """The labels of the measurements whose points these figures show."""
    return frozenset(label for figure in figures for drawing in figure.draw for label in figure.labels(study.measure, drawing))


def check_method(study: Study, method: str, root: str | Path | None) -> None:
    """Whether the constructor of a method takes its options, before the first of its cells is computed."""
    labels = {"data": next(iter(study.data)), "model": next(iter(study.models)), "fraction": 1, "method": method}
    try:
        recipe_of(study, labels, 0, root).build_objective()
    except SurefootError as error:
        raise SurefootError(f"Method '{method}': {error}") from error


def recipe_of(study: Study, labels: Labels, seed: int, root: str | Path | None) -> Recipe:
    """The recipe of one cell of the grid."""
    sections = (study.data[labels["data"]], study.models[labels["model"]], study.methods[labels["method"]])
    data, model, objective = ({"name": s} if isinstance(s, str) else dict(s) for s in sections)
    objective = {**study.objective_options.get(objective.get("name", ""), {}), **objective}
    if data.get("name") != "digits" and root is not None:
        data["root"] = str(Path(root).resolve())
    if labels["fraction"] != 1:
        data["fraction"] = labels["fraction"] * data.get("fraction", 1)
    training = {**study.training}
    for label in (labels["model"], labels["data"], labels["method"]):
        training |= study.training_of.get(label, {})
    sections_given = {"data": data, "model": model, "objective": objective, "training": training, "seed": seed}
    return Recipe.check({**sections_given, "augmentation": study.augmentation})


def needs_root(study: Study) -> bool:
    """Whether some data are a folder that only the user knows."""
    names = [section if isinstance(section, str) else section.get("name") for section in study.data.values()]
    return any(name not in DATASETS for name in names)


SHORT = {"ce": "cross-entropy", "ls": "label-smoothing"}  # as people call them


def only(cells: list[Cell], wanted: Mapping[str, Iterable[str]]) -> list[Cell]:
    """The cells with these labels on these axes; a method also by the objective behind its label."""
    for given, names in wanted.items():
        axis = ALSO.get(given, given)
        if axis not in (*AXES, "seed"):
            raise UnknownName("axis", axis, (*AXES, "objective", "seed"))
        known = list(dict.fromkeys(label_of(cell, axis) for cell in cells))
        chosen = set()
        for name in names:
            spelled = name if axis != "method" or name in known else SHORT.get(name, name)
            behind = {label_of(cell, axis) for cell in cells if axis == "method" and cell.recipe.objective["name"] == spelled}
            if spelled not in known and not behind:
                raise UnknownName(axis, spelled, known)
            chosen |= {spelled} if spelled in known else behind
        cells = [cell for cell in cells if label_of(cell, axis) in chosen]
    if not cells:
        raise SurefootError("No cell is left: --only excludes them all.")
    return cells


def label_of(cell: Cell, axis: str) -> str:
    return str(cell.seed if axis == "seed" else cell.labels[axis])
