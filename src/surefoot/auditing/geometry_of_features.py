"""The representation space in an audit: length and direction of features, cones, biases, collapse, and the plane."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..calibration.bootstrap import mean_estimate
from ..calibration.repairs import Calibrated
from ..geometry.attack_paths import attack_path
from ..geometry.displacement import feature_displacement
from ..geometry.feature_passes import observed_features
from ..geometry.planes import representation_plane
from ..geometry.representation import representation_statistics
from ..models.observing import head_of
from ..plain import plain
from ..types import Batch
from .records import Record
from .setting import Setting

SHOWN = 2000  # images in a figure at most
PATHS = 20  # images whose way under attack is drawn in a plane
PLANE_IMAGES = 500


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
    return Record({"measured": measured}, {**{name: value.cpu() for name, value in tensors.items()}, "indices": batch.indices})


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
    return Record({"figures": {"plane": {"plane": plain(plane), "path": plain(path)}}})


def rounded(values: torch.Tensor) -> list[float]:
    """Some of the values, short enough for a page."""
    return [float(f"{value:.4g}") for value in values[:SHOWN].tolist()]


def some(batch: Batch, count: int) -> Batch:
    """At most `count` images from all over the batch: the first ones may all be of one class."""
    total = len(batch.labels)
    where = torch.linspace(0, total - 1, min(count, total), dtype=torch.float64).round().long()
    here = where.to(batch.labels.device)
    return Batch(batch.images[here], batch.labels[here], batch.indices[where])
