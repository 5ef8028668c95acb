"""A recipe says all that decides a run: data, model, objective, training options, seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import yaml

from ..data.arguments import SPLITS
from ..data.augmentation import Augmentation
from ..data.dataset import Dataset
from ..data.loading import load_data
from ..data.remote_sources import local_data, refuse_remote_model
from ..data.settings import ModelSettings, settings_of, weights_tag
from ..errors import SurefootError, require, shown
from ..keys import LARGEST as LARGEST_SEED
from ..models.classifier import Classifier
from ..models.loading import load_model
from ..objectives.base import Objective
from ..objectives.methods import OBJECTIVES, build_objective, load_method
from ..registry import refuse_code
from ..schemas import check_keys, check_options
from ..version import VERSION
from .arguments import NOT_DATA_OPTIONS, NOT_MODEL_OPTIONS, training_options
from .recipe_files import NAMED, SECTIONS, read_recipe, source_of

if TYPE_CHECKING:
    from .runs import Run

Section = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """Checked and complete: every default is filled in, so the file says what happened.

    A section is None when the object came from Python and has no name; such a run cannot be made again from its file.
    """

    data: Section | None
    model: Section | None
    objective: Section
    augmentation: Section | None  # None: what suits the data
    training: Section
    seed: int = 0
    fingerprint: str | None = None  # of a model or data without a name, so that another one is not taken for it
    file: str | None = field(default=None, compare=False)  # that it was read from, and that may not make us fetch anything

    @classmethod
    def check(cls, given: Mapping[str, Any]) -> Recipe:
        """From a mapping as it stands in a file; names and options are checked, a section may be just its name."""
        check_keys("section of a recipe", given, SECTIONS)
        parts = {section: _named(section, given) for section in NAMED}
        method = parts["objective"] or {}
        objective = _checked("objective", method, load_method(method["name"]), ()) or {}
        training, augmentation = given.get("training") or {}, given.get("augmentation")
        for section, value in (("training", training), ("augmentation", augmentation)):
            if not isinstance(value, Mapping | None):
                raise SurefootError(f"{section} must be a mapping of options, got {shown(value)}.")
        seed = given.get("seed", 0)
        valid = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed <= LARGEST_SEED
        require(valid, "seed", f"a whole number from 0 to {LARGEST_SEED}", seed)
        return cls(
            data=_checked("data", parts["data"], load_data, NOT_DATA_OPTIONS),
            model=_pinned(_checked("model", parts["model"], load_model, NOT_MODEL_OPTIONS)),
            objective=objective,
            augmentation=None if augmentation is None else check_options("augmentation", Augmentation, augmentation),
            training=training_options(training),
            seed=seed,
            fingerprint=given.get("fingerprint"),
        )

    @classmethod
    def of(
        cls,
        model: Classifier,
        objective: Objective,
        data: Dataset,
        augmentation: Augmentation,
        training: Section,
        seed: int,
    ) -> Recipe:
        """What these objects were made from."""
        source = dict(model.source) if model.source else None
        if source and source.get("seed") == seed:
            source["seed"] = None  # the recipe's own
        method = {"name": OBJECTIVES.name_of(type(objective)), **objective.options()}
        unnamed = fingerprint(model, data) if source is None or not data.source else None
        return cls(data.source or None, source, method, augmentation.options(), training_options(training), seed, unnamed)

    @classmethod
    def read(cls, path: str | Path, *, allow_code: bool = False) -> Recipe:
        """From a file; only with `allow_code` may it name code to run, and data and models to fetch."""
        content = read_recipe(path)
        if allow_code:
            return cls.check(content)
        refuse_code(source_of(path), content)
        return replace(cls.check(content), file=source_of(path))

    def sections(self) -> dict[str, Any]:
        """What decides the run, by section."""
        return {name: getattr(self, name) for name in ("seed", *NAMED, "augmentation", "training")}

    def to_yaml(self) -> str:
        body = {"surefoot": VERSION, **self.sections()}
        body |= {"fingerprint": self.fingerprint} if self.fingerprint else {}
        return yaml.safe_dump(json.loads(json.dumps(body)), sort_keys=False)  # tuples as lists

    def load_data(self) -> Dataset:
        """The data, resized and cropped as the model wants them unless the recipe says otherwise."""
        section = self._section("data")
        return load_data(**(section if self.file is None else local_data(self.file, section)), model=self.settings())

    def settings(self) -> ModelSettings | None:
        """What the model expects of its images, if it has a name."""
        if self.model is None:
            return None
        if self.file is not None:
            refuse_remote_model(self.file, self.model, own=("pretrained",))  # whose settings are known without the weights
        return settings_of(self.model["name"], self.model["pretrained"])

    def build_model(self, data: Dataset) -> Classifier:
        return self.build_model_of(data=data)

    def build_model_of(self, **sizes: Any) -> Classifier:
        """The model, with sizes that the recipe leaves open."""
        options = self._section("model")
        options = {**options, **sizes, "seed": self.seed if options["seed"] is None else options["seed"]}
        if self.file is not None:
            refuse_remote_model(self.file, options)
        return load_model(**options)

    def build_objective(self) -> Objective:
        options = dict(self.objective)
        return build_objective(options.pop("name"), options)

    def run(self, model: Classifier | None = None, **environment: Any) -> Run:
        """Train as the recipe says, from the weights of `model` if one is given.

        `environment` is device, tracker, project, output, overwrite and progress.
        """
        from ..models.classifier import pick_device
        from ._fit import fit

        pick_device(environment.get("device", "auto"))  # refused before data are read
        data = self.load_data()
        model, objective = model or self.build_model(data), self.build_objective()
        augmentation = None if self.augmentation is None else Augmentation(**self.augmentation)
        return fit(model, objective, data, augmentation=augmentation, **self.training, seed=self.seed, **environment)

    def _section(self, name: str) -> Section:
        section: Section | None = getattr(self, name)
        if section is None:
            raise SurefootError(f"This run's {name} came from Python and has no name; pass it in yourself.")
        return section


def fingerprint(model: Classifier, data: Dataset) -> str:
    """A hash of the model's names and shapes and of what the data hold."""
    shapes = [(key, tuple(value.shape)) for key, value in model.state_dict().items()]
    splits = [(len(data.split(name)), getattr(data.split(name), "labels", torch.empty(0)).tolist()) for name in SPLITS]
    return blake2b(repr((shapes, splits, data.class_names, data.image_size)).encode(), digest_size=8).hexdigest()


def _named(section: str, given: Mapping[str, Any]) -> Section | None:
    """A section as a mapping with a name; null in a run's own recipe says that the object came from Python."""
    value = given.get(section)
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return dict(value)
    if value is None and section in given and section != "objective":
        return None
    raise SurefootError(f"{section} must have a name, got {shown(value)}.")


def _checked(section: str, given: Section | None, target: Any, leave_out: tuple[str, ...]) -> Section | None:
    if given is None:
        return None
    options = {key: value for key, value in given.items() if key != "name"}
    return {"name": given["name"], **check_options(section, target, options, leave_out)}


def _pinned(model: Section | None) -> Section | None:
    """The model with its weights by their tag: `true` would be other weights when the library has another default."""
    return model and {**model, "pretrained": weights_tag(model["name"], model["pretrained"])}
