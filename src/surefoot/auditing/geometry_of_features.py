"""The representation space in an audit: length and direction of features, cones, biases, collapse, and the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..calibration.bootstrap import mean_estimate
from ..calibration.calibrators import Calibrated
from ..geometry.cones import confidence_angles
from ..geometry.features import (
    RepresentationStatistics,
    attack_path,
    feature_displacement,
    observed_features,
    representation_statistics,
)
from ..geometry.planes import loss_field, representation_plane
from ..models.observing import head_of
from ..plain import plain
from ..types import Batch
from .records import Record
from .setting import Setting

SHOWN = 2000  # images in a figure at most
PATHS = 20  # images whose way under attack is drawn in a plane
PLANE_IMAGES = 500
CLASSES = 30  # in a figure at most
FIELD = 60  # points of the loss along each axis of a plane


def space_of(model: nn.Module) -> nn.Module:
    """The module whose last layer is linear: inside a calibrated copy, the model that was calibrated."""
    return model.model if isinstance(model, Calibrated) else model


def features_record(setting: Setting, batch: Batch) -> Record:
    """Feature RMS, cosine, centres, cone index, bias dependence, neural collapse (representation-space Tab. 1 to 6)."""
    images, labels = batch.images, batch.labels
    model = space_of(setting.model)
    outputs = observed_features(model, images, setting.batch_size)
    head = head_of(model, images)
    found = representation_statistics(head, outputs.features, labels)
    statistics, seed = found.statistics, setting.seed
    measured: dict[str, Any] = {
        "feature_rms": mean_estimate(statistics.rms, seed),
        "feature_rms_deviation": statistics.rms_std,
        "feature_cosine": mean_estimate(statistics.cosine, seed),
        "feature_cosine_deviation": statistics.cosine_std,
        "centre_correlations": dict(zip(found.correlations.kinds, found.correlations.values.tolist(), strict=True)),
        "cone_index": found.cones.mean,
        "full_cones": found.cones.full,
        "bias_dependence": found.bias.mean,
        "mean_absolute_bias": found.bias.bias_mean,
        "neural_collapse": {name: value for name, value in vars(found.collapse).items() if name != "classes"},
    }
    correct = outputs.logits.argmax(1) == labels
    tensors = {"rms": statistics.rms, "cosine": statistics.cosine, "confidence": found.confidence, "correct": correct}
    kept = {**{name: value.cpu() for name, value in tensors.items()}, "indices": batch.indices}
    return Record({"measured": measured, "figures": space_figures(found, setting.data.class_names)}, kept)


def space_figures(found: RepresentationStatistics, names: Sequence[str]) -> dict[str, Any]:
    """Cones, biases (of the classes where they are largest), kinds of centres and collapse, as their figures draw them."""
    largest = found.bias.bias.cpu().abs().argsort(descending=True, stable=True)[:CLASSES].sort().values
    return {
        "cones": {"values": rounded(found.cones.values), "steps": found.cones.steps},
        "bias": {
            "names": [names[number] for number in largest.tolist()],
            "bias": rounded(found.bias.bias.cpu()[largest]),
            "values": rounded(found.bias.values.cpu()[largest]),
        },
        "centre_correlations": plain(found.correlations),
        "neural_collapse": plain(found.collapse),
    }


def displacement_record(setting: Setting, batch: Batch) -> Record:
    """How far FGSM moves features, beside their own length (representation-space Fig. 7)."""
    images, labels = batch.images, batch.labels
    found = feature_displacement(space_of(setting.model), images, labels, batch_size=setting.batch_size)
    figure: dict[str, Any] = {"feature_rms": rounded(found.feature_rms), "values": rounded(found.values)}
    figure |= {"feature_rms_mean": found.feature_rms_mean, "mean": found.mean}
    measured = {"perturbation_rms": mean_estimate(found.values, setting.seed), "perturbation_correlation": found.correlation}
    return Record({"measured": measured, "figures": {"perturbation": figure}})


def plane_record(setting: Setting, batch: Batch) -> Record:
    """Regions, confidence, features and the ways of a PGD attack, for a model with two or three features."""
    model, few, fewer = space_of(setting.model), some(batch, PLANE_IMAGES), some(batch, PATHS)
    plane = representation_plane(model, few.images, few.labels, batch_size=setting.batch_size)
    path = attack_path(model, fewer.images, fewer.labels, batch_size=setting.batch_size)
    figure = {"plane": plain(plane), "path": plain(path)}
    head = head_of(model, few.images)
    if head.in_features == 2:
        figure["angles"] = plain(confidence_angles(head, plane.features))
        label = int(fewer.labels[0])
        field = plain(loss_field(head, label, float(plane.axis[-1]), resolution=FIELD))
        figure["field"] = {**field, "class": setting.data.class_names[label]}
        figure["field_path"] = plain(attack_path(model, fewer.images[:1], fewer.labels[:1], batch_size=setting.batch_size))
    return Record({"figures": {"plane": figure}})


def rounded(values: torch.Tensor) -> list[float]:
    """Some of the values, short enough for a page."""
    return [float(f"{value:.4g}") for value in values[:SHOWN].tolist()]


def some(batch: Batch, count: int) -> Batch:
    """At most `count` images from all over the batch: the first ones may all be of one class."""
    total = len(batch.labels)
    where = torch.linspace(0, total - 1, min(count, total), dtype=torch.float64).round().long()
    here = where.to(batch.labels.device)
    return Batch(batch.images[here], batch.labels[here], batch.indices[where])
