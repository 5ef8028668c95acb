"""What a model should say: one class for each image, or a share for every class (soft labels); and weights of classes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import SurefootError, require
from ..types import Labels, Logits, check_labels


def as_targets(labels: Tensor, logits: Logits) -> Tensor:
    """Whole numbers as int64, or images x classes of shares that sum to 1, in float32 at least: half precision rounds 0.9."""
    if not (labels.ndim == 2 and labels.is_floating_point()):
        return check_labels(labels, logits.shape[1], len(logits))
    require(labels.shape == logits.shape, "soft labels", f"images x classes = {tuple(logits.shape)}", tuple(labels.shape))
    sound = bool((labels >= 0).all() and ((labels.sum(1) - 1).abs() < 1e-4).all()) if labels.device.type == "cpu" else True
    if not sound:
        raise SurefootError("soft labels must be at least 0 and sum to 1 for each image.")
    return labels.to(torch.promote_types(logits.dtype, torch.float32))


def check_class_weights(weights: Sequence[float] | None) -> list[float] | None:
    """Positive weights, one for each class, or none."""
    if weights is None:
        return None
    values = [float(weight) for weight in weights]
    require(
        len(values) >= 2 and min(values) >= 0 and max(values) > 0, "class_weights", "one number >= 0 for each class", values
    )
    return values


def weight_tensor(weights: list[float] | None, logits: Logits) -> Tensor | None:
    """The weights beside the logits; their number must be the number of classes."""
    if weights is None:
        return None
    require(len(weights) == logits.shape[1], "class_weights", f"one for each of {logits.shape[1]} classes", len(weights))
    return torch.tensor(weights, dtype=logits.dtype, device=logits.device)


def balanced_weights(labels: Labels, num_classes: int) -> list[float]:
    """Weights that make every class count the same: images / (classes x images of the class)."""
    counts = labels.bincount(minlength=num_classes).clamp_min(1).double()
    return (len(labels) / (num_classes * counts)).tolist()
