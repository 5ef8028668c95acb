"""A representation space of two or three dimensions, ready to be drawn (representation-space Fig. 1, 2, 4, 9-12)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..models.observing import head_of
from ..types import Features, Images, Labels, check_labels
from .centres import class_centres, class_means
from .feature_passes import observed_features
from .heads import at_least_single, weights_of

RESOLUTION = {2: 201, 3: 31}


@dataclass(frozen=True)
class RepresentationPlane:
    """Decision regions and confidence on a grid, and what lies in it.

    `axis` holds the coordinates of the grid, the same along each dimension; `classes` and `confidence` are indexed by them in
    the order of the dimensions. `means` is NaN for a class without a correct answer.
    """

    axis: Tensor
    classes: Tensor
    confidence: Tensor
    features: Features
    labels: Labels
    predicted: Tensor
    weights: Tensor
    bias: Tensor
    centres: Tensor
    means: Tensor


def representation_plane(
    model: nn.Module,
    images: Images,
    labels: Labels,
    extent: float | None = None,
    resolution: int | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> RepresentationPlane:
    """The space of a model with two- or three-dimensional features (`load_model(..., feature_dim=2)`).

    The grid reaches from -`extent` to `extent`; 1.1 times the largest coordinate of a feature unless given.
    """
    head = head_of(model, images)
    dimensions = check_space(head)
    labels = check_labels(labels, head.out_features, len(images))
    outputs = observed_features(model, images, batch_size, progress)
    features = at_least_single(outputs.features)
    if extent is None:
        extent = 1.1 * float(features.abs().max()) or 1.0
    axis, points = grid(head, extent, RESOLUTION[dimensions] if resolution is None else resolution)
    weight, bias = weights_of(head)
    confidence, classes = torch.addmm(bias, points.flatten(0, -2), weight.T).softmax(1).max(1)
    predicted = outputs.logits.argmax(1)
    return RepresentationPlane(
        axis,
        classes.view(points.shape[:-1]),
        confidence.view(points.shape[:-1]),
        features,
        labels,
        predicted,
        weight.clone(),  # training goes on under a snapshot
        bias.clone(),
        class_centres(head),
        class_means(features, labels, predicted, head.out_features),
    )


def check_space(head: nn.Linear) -> int:
    """Refuse a space that cannot be drawn."""
    dimensions = head.in_features
    require(dimensions in RESOLUTION, "model", "one with 2 or 3 feature dimensions (feature_dim=2)", dimensions)
    return dimensions


def grid(head: nn.Linear, extent: float, resolution: int) -> tuple[Tensor, Tensor]:
    """The coordinates along one dimension, and all points: resolution x ... x dimensions."""
    require(extent > 0, "extent", "positive", extent)
    require(resolution >= 2, "resolution", "at least 2", resolution)
    weight, _ = weights_of(head)
    axis = torch.linspace(-extent, extent, resolution, dtype=weight.dtype, device=weight.device)
    return axis, torch.stack(torch.meshgrid(*[axis] * head.in_features, indexing="ij"), -1)
