"""What every measurement asks of its model, images and labels before it starts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Images, Labels


def prepared(model: nn.Module, images: Images, half: bool = True) -> Images:
    """The images in the dtype and on the device of the model's first weights; an empty batch is refused.

    Without `half` so is a model of half precision, in whose rounding a difference of gradients drowns.
    """
    require(images.ndim >= 2 and len(images) > 0, "images", "at least one image, batch first", tuple(images.shape))
    require(images.is_floating_point(), "images", "floating point", images.dtype)
    like = next((weight for weight in model.parameters() if weight.is_floating_point()), images)
    exact = like.dtype in (torch.float32, torch.float64)
    require(half or exact, "the model", "of single or double precision here: use model.float()", like.dtype)
    return differentiable(images, like.device, like.dtype)


def checked_labels(labels: Labels, images: Images) -> Labels:
    """One whole number for each image, where the images are; their range is checked with the logits."""
    require(
        labels.ndim == 1 and len(labels) == len(images), "labels", f"one for each of {len(images)} images", tuple(labels.shape)
    )
    whole = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
    require(whole, "labels", "whole numbers", labels.dtype)
    return differentiable(labels, images.device, torch.int64)


def differentiable(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The tensor without its graph, there and so; a copy if it was made in inference mode, where autograd may not use it."""
    with torch.inference_mode(False):
        return (tensor.clone() if tensor.is_inference() else tensor.detach()).to(device, dtype)


def norms(points: Tensor) -> Tensor:
    """The Euclidean norm of everything that belongs to an image."""
    lengths: Tensor = torch.linalg.vector_norm(points.flatten(1), dim=1)
    return lengths


def column(values: Tensor, like: Tensor) -> Tensor:
    """One number for each image, shaped to broadcast over `like`."""
    return values.view(-1, *[1] * (like.ndim - 1))
