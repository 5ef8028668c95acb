"""The representation space of the model: its last layer, the centres of its classes, and the features of a chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from ..errors import require
from ..geometry.centres import class_centres
from ..geometry.features import observed_features
from ..models.last_layer import head_of
from ..types import Batch, Outputs
from .base import Whole

if TYPE_CHECKING:
    from .context import Context

T = TypeVar("T")
CONE_VERSION = 2  # of the cone index: by the paper's steps since then, before that exact


class OfFeatures(Whole):
    """What looks at the features of a subset together."""

    part = "geometry"

    def __init__(self, max_images: int | None = None) -> None:
        self.max_images = max_images

    def outputs_of(self, context: Context) -> Tensor:
        return context.rows(self.max_images)


def check_cone_version(version: int) -> None:
    require(version == CONE_VERSION, "version", f"{CONE_VERSION}, the cone index by the paper's steps", version)


def space_head(context: Context) -> nn.Linear:
    """The linear layer that the model ends in; a model that ends otherwise is refused."""

    def find() -> nn.Linear:
        channels, (height, width) = context.data.channels, context.data.image_size
        return head_of(context.linear, torch.zeros(2, channels, height, width, device=context.device))

    return context.once("head", find)


def minimum_loss_centres(context: Context) -> Tensor:
    """The minimum-loss point of each class (representation-space 4.1)."""
    return context.once("minimum-loss centres", lambda: class_centres(space_head(context)))


def chunk_features(context: Context, batch: Batch) -> Outputs:
    """Features and logits of a chunk, for all who ask for them."""
    return for_chunk(context, batch, "features", lambda: observed_features(context.linear, batch.images, context.batch_size))


def for_chunk(context: Context, batch: Batch, key: Any, compute: Callable[[], T]) -> T:
    """What `compute` gives for these images, kept while their chunk is in memory."""
    return context.shared((key, tuple(batch.indices.tolist())), compute)
