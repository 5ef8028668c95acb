"""Why a model is robust or not: the geometry that an audit measures, and why a part of it could not be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from ..calibration.bootstrap import mean_estimate
from ..data.dataset import whole
from ..errors import SurefootError
from ..geometry.features import SuccessByBin, success_by_bin
from ..models.logit_margins import logit_margins
from ..models.observing import head_of
from ..plain import plain
from ..types import Batch, Predictions
from .attacking import attacks_of
from .geometry_of_bounds import ITERATIONS, complexity_record, mapping_bound_record
from .geometry_of_classes import centre_seconds, centre_stability_record, class_shapes_record
from .geometry_of_features import SHOWN, displacement_record, features_record, plane_record, rounded, space_of
from .geometry_of_layers import BLOCKS, PROJECTED, layers_record
from .geometry_of_layers import IMAGES as LAYER_IMAGES
from .geometry_of_loss import (
    EXACT,
    LANCZOS,
    LANDSCAPES,
    RESOLUTION,
    RIVALS,
    SECOND,
    exact_record,
    hessian_record,
    landscape_record,
    slopes_record,
)
from .geometry_of_noise import certified_record, curvature_record, sensitivity_record, stability_record
from .records import Record, Workbook
from .result import Geometry
from .setting import Setting
from .steps import Step

Measure = Callable[[Setting, Batch], Record]
PREFIX = "geometry/"
BREAKERS = ("pgd-weak", "fgsm")  # attacks whose success a histogram of features shows, the first that was run


def geometry_steps(setting: Setting) -> list[Step]:
    """The measurements that need the model; the costly ones at full depth only."""
    cost, draws, count = setting.cost, setting.depth.curvature_draws, len(setting.geometry_images)
    classes, exact = setting.data.num_classes, min(EXACT, count)
    chosen: dict[str, tuple[Measure, float]] = {
        "features": (features_record, cost(count)),
        "displacement": (displacement_record, cost(count, forward=3, backward=1)),
        "sensitivity": (sensitivity_record, cost(count, forward=25)),
        "curvature": (curvature_record, cost(count, forward=draws + 11, backward=draws + 1)),
    }
    if feature_dim(setting) in (2, 3):
        chosen["plane"] = (plane_record, cost(count, forward=2))
    if setting.depth.name != "quick":
        chosen["fisher"] = (exact_record, cost(exact, backward=classes))
        chosen["classes"] = (class_shapes_record, cost(count))
    if setting.depth.certified_images:
        second = SECOND * (draws + LANCZOS)
        chosen["slopes"] = (slopes_record, cost(count, backward=min(RIVALS, classes - 1)))
        chosen["hessian"] = (hessian_record, cost(exact, forward=second, backward=second))
        chosen["landscape"] = (landscape_record, cost(LANDSCAPES, forward=RESOLUTION**2, backward=1))
        chosen["stability"] = (stability_record, cost(count, forward=40))
        chosen["centres"] = (centre_stability_record, cost(count) + centre_seconds(classes))
        chosen["complexity"] = (complexity_record, cost(count, forward=3) + cost(ITERATIONS, backward=1))
        chosen["mapping"] = (mapping_bound_record, cost(count))
        chosen["layers"] = (layers_record, cost(min(LAYER_IMAGES, count), forward=4) + BLOCKS * PROJECTED)
        chosen["certificates"] = (certified_record, cost(setting.depth.certified_images, forward=1100))
    return [
        Step(f"{PREFIX}{name}", partial(measured, setting, measure), seconds) for name, (measure, seconds) in chosen.items()
    ]


def feature_dim(setting: Setting) -> int | None:
    """How many features enter the last layer; None where it is not one linear layer."""
    batch = next(iter(setting.geometry_images.batches(2, device=setting.device)))
    try:
        return head_of(space_of(setting.model), batch.images).in_features
    except SurefootError:
        return None


def measured(setting: Setting, measure: Measure) -> Record:
    """A measurement, or, where the model does not allow it, a note that says why."""
    try:
        return measure(setting, whole(setting.geometry_images, setting.batch_size, setting.device))
    except SurefootError as error:
        return Record({"notes": [f"{measure.__name__.removesuffix('_record').replace('_', ' ')}: {error}"]})


def summarise_geometry(setting: Setting, book: Workbook, clean: Predictions) -> Geometry:
    """Every number, and every note."""
    plain_geometry = logit_geometry(clean, setting.seed)
    names = [step.name for step in geometry_steps(setting)]
    found = [record for name in names if (record := book.read(name)) is not None]
    numbers = {name: value for record in found for name, value in record.values.get("measured", {}).items()}
    notes = tuple(note for record in found for note in record.values.get("notes", ()))
    first = (plain_geometry.mean_margin, plain_geometry.logit_norm, plain_geometry.largest_logit)
    return Geometry(*first, measured={"images": len(setting.geometry_images), **numbers}, notes=notes)


def logit_geometry(clean: Predictions, seed: int) -> Geometry:
    """What the logits alone say (macs Tab. 6)."""
    return Geometry(
        mean_margin=mean_estimate(logit_margins(clean.logits, clean.labels), seed),
        logit_norm=mean_estimate(clean.logits.double().norm(dim=1), seed),
        largest_logit=mean_estimate(clean.logits.double().amax(1), seed),
    )


def logit_points(clean: Predictions) -> dict[str, Any]:
    """Margin, norm and largest logit of images from all over the split, with their means over all of it."""
    logits = clean.logits.double()
    found = {"values": logit_margins(logits, clean.labels), "norms": logits.norm(dim=1), "largest": logits.amax(1)}
    means = {"mean_margin": found["values"], "mean_norm": found["norms"], "mean_largest": found["largest"]}
    where = torch.linspace(0, len(logits) - 1, min(SHOWN, len(logits)), dtype=torch.float64).round().long()
    shown: dict[str, Any] = {name: rounded(values[where]) for name, values in found.items()}
    return shown | {name: float(values.mean()) for name, values in means.items()}


def geometry_points(setting: Setting, book: Workbook, clean: Predictions) -> dict[str, Any]:
    """What the figures of geometry draw."""
    figures: dict[str, Any] = {"logits": logit_points(clean)}
    for step in geometry_steps(setting):
        record = book.read(step.name)
        if record is not None:
            figures |= record.values.get("figures", {})
    features = book.read(f"{PREFIX}features")
    if features is not None and features.tensors:
        shown = {name: rounded(features.tensors[name]) for name in ("rms", "cosine", "confidence")}
        attack = next((name for name in BREAKERS if name in attacks_of(setting)), None)
        success = None if attack is None else plain(success_by_cosine(book, attack, features.tensors))
        figures["features"] = {**shown, "success": success, "broken_by": attack}
    return {"geometry": figures}


def success_by_cosine(book: Workbook, attack: str, features: Mapping[str, torch.Tensor]) -> SuccessByBin:
    """Images in each bin of the cosine, and the share that the attack broke of the right ones that it was tried on."""
    record = book.read(f"attacks/{attack}")
    assert record is not None
    outcome = dict(zip(record.tensors["indices"].tolist(), record.tensors["broken"].tolist(), strict=True))
    indices = features["indices"].tolist()
    right = features["correct"].bool() & torch.tensor([index in outcome for index in indices])
    broken = right & torch.tensor([bool(outcome.get(index)) for index in indices])
    return success_by_bin(features["cosine"], broken, right)
