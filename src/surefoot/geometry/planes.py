"""A representation space of two or three dimensions, ready to be drawn (representation-space Fig. 1, 2, 4, 5, 9-12)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import require
from ..models.last_layer import head_of, modes_kept, observed
from ..seeds import generator
from ..types import Features, Images, Labels, check_labels
from .centres import class_means
from .features import observed_features
from .heads import at_least_single, weights_of
from .minimum_loss import class_targets, minimum_loss_points

RESOLUTION = {2: 201, 3: 31}
FAR_WEIGHT = [
    *([0.1318, -0.0165], [0.2245, 0.0709], [0.2630, 0.1030], [0.2881, 0.1138], [0.2947, 0.1381]),
    *([0.3189, 0.1362], [0.3195, 0.1567], [0.3323, 0.1654], [0.3482, 0.1684], [0.3619, 0.1806]),
]  # App. G.1
FAR_BIAS = [15.705, 9.045, 5.644, 3.144, 0.834, -1.286, -3.442, -5.799, -8.489, -11.972]


@dataclass(frozen=True)
class RepresentationPlane:
    """Decision regions and confidence on a grid, and what lies in it.

    `axis` holds the coordinates of the grid, the same along each dimension; `classes` and `confidence` are indexed by them in
    the order of the dimensions. `means` is NaN for a class without a correct prediction. `centres` are the minimum-loss points
    and `converged` whether they are; where `finite` is False the loss has no minimum, and the point is where the paper's
    gradient descent stands after `centre_steps` steps.
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
    finite: Tensor
    converged: Tensor
    centre_steps: int
    smoothing: float = 0.0


def representation_plane(
    model: nn.Module,
    images: Images,
    labels: Labels,
    extent: float | None = None,
    resolution: int | None = None,
    batch_size: int = 256,
    progress: bool = False,
    smoothing: float = 0.0,
) -> RepresentationPlane:
    """The space of a model with two- or three-dimensional features (`load_model(..., feature_dim=2, rectified=False)`).

    The grid reaches from -`extent` to `extent`; 1.1 times the largest coordinate of a feature unless given. `smoothing` is that
    of the targets whose loss the centres minimise.
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
    minima = minimum_loss_points(head, class_targets(head.out_features, smoothing))
    return RepresentationPlane(
        axis,
        classes.view(points.shape[:-1]),
        confidence.view(points.shape[:-1]),
        features,
        labels,
        predicted,
        weight.clone(),  # training goes on under a snapshot
        bias.clone(),
        minima.points.to(weight.dtype),
        class_means(features, labels, predicted, head.out_features),
        minima.finite,
        minima.converged,
        minima.steps,
        smoothing,
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


@dataclass(frozen=True)
class LossField:
    """Cross-entropy with the target of class `label` on a grid; its gradient on a coarser one.

    `places` and `gradients` are arrows x dimensions: an attack moves a feature along the gradient. `centre` is the minimum-loss
    point and `converged` whether it is; where it is not `finite` there is none, and it is where the paper's gradient descent
    stands after `centre_steps` steps.
    The target is smoothed by `smoothing` and has the share `share` of class `label`, the rest of class `other`.
    """

    label: int
    smoothing: float
    axis: Tensor
    loss: Tensor
    classes: Tensor
    places: Tensor
    gradients: Tensor
    centre: Tensor
    finite: bool
    converged: bool
    centre_steps: int
    other: int | None = None
    share: float = 1.0


def loss_field(
    head: nn.Linear,
    label: int,
    extent: float,
    smoothing: float = 0.0,
    resolution: int | None = None,
    arrows: int = 15,
    other: int | None = None,
    share: float = 1.0,
) -> LossField:
    """Loss and gradient (p - t) W for one class; `smoothing` makes the target soft, as label smoothing does.

    With `other` the target has two classes, the share `share` of `label`, as Mixup and CutMix make them.
    """
    dimensions = check_space(head)
    require(0 <= label < head.out_features, "label", f"a class from 0 to {head.out_features - 1}", label)
    weight, bias = weights_of(head)
    targets = class_targets(head.out_features, smoothing, other, share)[label : label + 1]
    target = targets[0].to(weight)
    axis, points = grid(head, extent, RESOLUTION[dimensions] if resolution is None else resolution)
    logits = torch.addmm(bias, points.flatten(0, -2), weight.T)
    starts = grid(head, extent, arrows)[1].flatten(0, -2)
    gradients = (torch.addmm(bias, starts, weight.T).softmax(1) - target) @ weight
    loss = -(logits.log_softmax(1) @ target)
    minimum = minimum_loss_points(head, targets)
    shape = points.shape[:-1]
    return LossField(
        label,
        smoothing,
        axis,
        loss.view(shape),
        logits.argmax(1).view(shape),
        starts,
        gradients,
        minimum.points[0].to(weight.dtype),
        bool(minimum.finite[0]),
        bool(minimum.converged[0]),
        minimum.steps,
        other,
        share,
    )


@contextmanager
def plane_snapshots(
    model: nn.Module, images: Images, labels: Labels, every: int = 1, resolution: int | None = None
) -> Iterator[dict[int, RepresentationPlane]]:
    """Inside the block, fill a dictionary from epoch to plane: 0 before training, then after each `every`-th epoch.

    An epoch has ended when the model, after it was trained, is first called in inference mode, as `sf.fit` does to validate.
    In a loop of your own, call `representation_plane` where you want it.
    """
    require(every >= 1, "every", "at least 1", every)
    planes = {0: representation_plane(model, images, labels, resolution=resolution)}
    state = {"epoch": 0, "trained": 0}

    def watch(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if module.training:
            state["trained"] = 1
        elif state["trained"] and torch.is_inference_mode_enabled():
            state["epoch"], state["trained"] = state["epoch"] + 1, 0
            if state["epoch"] % every == 0:
                with torch.inference_mode(False):
                    planes[state["epoch"]] = representation_plane(model, images, labels, resolution=resolution)

    hook = model.register_forward_pre_hook(watch)
    try:
        yield planes
    finally:
        hook.remove()


def far_regions(model: nn.Module, images: Images) -> None:
    """Give the head, in place, the paper's weights, whose decision regions meet far from the origin (Fig. 12c)."""
    head = plane_head(model, images)
    require(head.out_features == 10, "model", "one with 10 classes, for which the paper gives weights", head.out_features)
    require(head.bias is not None, "model", "one whose head has a bias", None)
    with torch.no_grad():
        head.weight.copy_(torch.tensor(FAR_WEIGHT))
        head.bias.copy_(torch.tensor(FAR_BIAS))


def far_features(
    model: nn.Module,
    images: Images,
    target: float = 80.0,
    learning_rate: float = 0.0005,
    epochs: int = 1,
    batch_size: int = 128,
    seed: int = 0,
) -> None:
    """Train all but the head, in place, so that features come near (`target`, `target`) (Fig. 12b; App. G.1).

    SGD on the mean distance from there, in training mode. The paper's epoch has 390 steps (CIFAR-10): fewer images need more.
    """
    head = plane_head(model, images)
    own = set(head.parameters())
    optimiser = torch.optim.SGD([p for p in model.parameters() if p not in own and p.requires_grad], lr=learning_rate)
    with modes_kept(model):
        model.train()
        for epoch in range(epochs):
            order = torch.randperm(len(images), generator=generator(seed, epoch, "order")).to(images.device)
            for rows in order.split(batch_size):
                if len(rows) == 1 < len(images):  # batch norm has no deviation over one
                    continue
                features = observed(model, head, images[rows]).features
                loss: Tensor = torch.linalg.vector_norm(features - target, dim=1).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
    optimiser.zero_grad()


def plane_head(model: nn.Module, images: Images) -> nn.Linear:
    """The head of a model with a plane for a representation space."""
    head = head_of(model, images)
    require(head.in_features == 2, "model", "one with 2 feature dimensions (feature_dim=2)", head.in_features)
    return head
