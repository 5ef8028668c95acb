"""The loss of one class over the representation space and where its gradient points (representation-space Fig. 2b, 2c, 5)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from .centres import class_centres
from .heads import weights_of
from .planes import RESOLUTION, check_space, grid


@dataclass(frozen=True)
class LossField:
    """Cross-entropy with the target of class `label` on a grid; its gradient on a coarser one.

    `places` and `gradients` are arrows x dimensions: an attack moves a feature along the gradient. `centre` is the minimum-loss
    point of the class as `class_centres` finds it.
    """

    label: int
    smoothing: float
    axis: Tensor
    loss: Tensor
    classes: Tensor
    places: Tensor
    gradients: Tensor
    centre: Tensor


def loss_field(
    head: nn.Linear,
    label: int,
    extent: float,
    smoothing: float = 0.0,
    resolution: int | None = None,
    arrows: int = 15,
) -> LossField:
    """Loss and gradient (p - t) W for one class; `smoothing` makes the target soft, as label smoothing does."""
    dimensions = check_space(head)
    require(0 <= label < head.out_features, "label", f"a class from 0 to {head.out_features - 1}", label)
    require(0 <= smoothing < 1, "smoothing", "at least 0 and below 1", smoothing)
    weight, bias = weights_of(head)
    target = torch.full_like(bias, smoothing / len(bias))
    target[label] += 1 - smoothing
    axis, points = grid(head, extent, RESOLUTION[dimensions] if resolution is None else resolution)
    logits = torch.addmm(bias, points.flatten(0, -2), weight.T)
    places = grid(head, extent, arrows)[1].flatten(0, -2)
    gradients = (torch.addmm(bias, places, weight.T).softmax(1) - target) @ weight
    loss = -(logits.log_softmax(1) @ target)
    centre = class_centres(head, smoothing=smoothing)[label]
    shape = points.shape[:-1]
    return LossField(label, smoothing, axis, loss.view(shape), logits.argmax(1).view(shape), places, gradients, centre)
