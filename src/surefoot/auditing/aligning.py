"""Several audits read for a comparison: named apart, and brought to the same images in the same order."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..calibration.calibrators import digest_of
from ..errors import SurefootError
from ..files import read_json
from ..types import Predictions
from .pairing import load_draws
from .result import AUDIT, DATA, SCHEMA

logger = logging.getLogger("surefoot")


@dataclass(frozen=True)
class Compared:
    """One audit, read: its plain values, its answers and its draws where it kept them.

    `whole` says that `audit-data/` beside it is its own, and not that of a later audit in the same folder.
    """

    name: str
    folder: Path
    audit: dict[str, Any]
    predictions: Predictions | None = None
    draws: dict[str, Tensor] = field(default_factory=dict)
    whole: bool = True


def read_compared(path: str | Path) -> Compared:
    """An audit from its `audit.json` or the folder that holds it."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    audit = read_json("audit", path / AUDIT if path.is_dir() else path)
    schema = audit.get("schema") if isinstance(audit, dict) else None
    if schema != SCHEMA:
        raise SurefootError(f"'{path}' has schema {schema}, and this version reads {SCHEMA}.")
    name, stored = str(audit["subject"]["name"]), folder / DATA / "predictions.safetensors"
    answers = Predictions.load(stored) if stored.is_file() else None
    digest = audit["subject"].get("answers")  # of older audits the name of the file must do
    others = answers is not None and digest_of(answers) != digest if digest else path.is_file() and path.name != AUDIT
    if others:
        logger.warning("'%s' beside '%s' is another audit's: its answers are not used.", folder / DATA, path)
        return Compared(name, folder, dict(audit), whole=False)
    latest = folder / AUDIT
    if path.is_file() and latest.is_file() and read_json("audit", latest) != audit:  # the same answers, other measurements
        return Compared(name, folder, dict(audit), answers, whole=False)
    return Compared(name, folder, dict(audit), answers, load_draws(folder))


def name_apart(models: Sequence[Compared]) -> list[Compared]:
    """Models of the same name are called by their folders, and numbered if those are the same too."""
    names = [model.name for model in models]
    called = [str(model.folder) if names.count(model.name) > 1 else model.name for model in models]
    numbered = [f"{name} ({place})" if called.count(name) > 1 else name for place, name in enumerate(called, 1)]
    return [replace(model, name=name) for model, name in zip(models, numbered, strict=True)]


def align(models: Sequence[Compared]) -> tuple[list[Compared], list[str]]:
    """The same images for all, in the same order, and what had to be done for that.

    Refuses different data, numbers of classes or labels. Without stored answers nothing can be paired, and the note says so.
    """
    notes: list[str] = []
    check_same(models)
    first = models[0]
    for model in models[1:]:
        if first.audit["subject"]["classes"] != model.audit["subject"]["classes"]:
            notes.append(f"'{first.name}' and '{model.name}' have other names for their classes.")
    answers = [model.predictions for model in models]
    if any(given is None for given in answers):
        lacking = [model.name for model, given in zip(models, answers, strict=True) if given is None]
        notes.append(f"No predictions beside the audit of {', '.join(lacking)}: no difference is paired.")
        return [replace(model, predictions=None, draws={}) for model in models], notes
    held = [given for given in answers if given is not None]
    if not all(same_images(held[0], other) for other in held[1:]):
        held = in_common(models, held)
        sizes = " and ".join(str(len(given)) for given in answers if given is not None)
        notes.append(f"The audits saw {sizes} images; {len(held[0])} that all saw are compared.")
        models = [replace(model, draws={}) for model in models]
    for other, model in zip(held[1:], models[1:], strict=True):
        if not torch.equal(held[0].labels, other.labels):
            differ = int((held[0].labels != other.labels).sum())
            raise SurefootError(f"'{models[0].name}' and '{model.name}' have other labels for {differ} of the same images.")
    return [replace(model, predictions=given) for model, given in zip(models, held, strict=True)], notes


def check_same(models: Sequence[Compared]) -> None:
    """Refuse audits of different data, splits or numbers of classes."""
    first = models[0].audit["subject"]
    for model in models[1:]:
        other = model.audit["subject"]
        if not (first["data"] and other["data"]):  # predictions alone: their labels must do
            continue
        for what, one, two in (
            ("data", first["data"].get("name"), other["data"].get("name")),
            ("split", first["split"], other["split"]),
            ("number of classes", len(first["classes"]), len(other["classes"])),
        ):
            if one != two:
                said = f"'{models[0].name}' and '{model.name}' cannot be compared"
                raise SurefootError(f"{said}: their {what} differ, {one} and {two}.")


def same_images(one: Predictions, two: Predictions) -> bool:
    """As far as can be told: by index, and by number alone where one has none."""
    if one.indices is None or two.indices is None:
        return len(one) == len(two)
    return torch.equal(one.indices, two.indices)


def in_common(models: Sequence[Compared], held: Sequence[Predictions]) -> list[Predictions]:
    """The images that all have, in the order of their indices."""
    places = [given.indices for given in held if given.indices is not None]
    if len(places) < len(held):
        raise SurefootError("The audits saw different numbers of images and do not say which, so they cannot be compared.")
    common = reduce(lambda one, two: one[torch.isin(one, two)], (place.unique() for place in places))
    if len(common) < 2:
        raise SurefootError(f"'{models[0].name}' and the others have fewer than 2 images in common.")
    found = []
    for given, place in zip(held, places, strict=True):
        order = place.argsort(stable=True)
        found.append(given[order[torch.searchsorted(place[order], common)]])
    return found
