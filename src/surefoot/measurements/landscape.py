"""The loss around an image, along its gradient and across it (discriminative-noise Fig. 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..geometry.landscapes import LossLandscape, loss_landscape
from ..models.observing import evaluating
from ..seeds import generator
from ..types import Batch
from .base import Measurement, Summary, Table, Whole
from .summaries import means, rounded

if TYPE_CHECKING:
    from .context import Context


def surface(context: Context, batch: Batch, reach: float, points: int, purpose: str) -> LossLandscape:
    """The loss on a grid around each image."""
    source = generator(context.seed, purpose)
    run: dict[str, Any] = {"batch_size": context.batch_size, "indices": batch.indices}
    return loss_landscape(context.model, batch.images, batch.labels, reach, points, source, **run)


def rises(found: LossLandscape) -> Tensor:
    """How far the loss rises above its value at the image within the grid."""
    middle = found.loss.shape[1] // 2
    return found.loss.flatten(1).amax(1) - found.loss[:, middle, middle]


class LossSurface(Measurement):
    """How far the loss rises above its value at the image within the grid, its deviation there, and its slope (Fig. 11)."""

    part = "geometry"
    adds = ("loss_rise", "loss_spread", "loss_slope")
    passes = 628

    def __init__(self, reach: float = 1.0, points: int = 25, max_images: int | None = 100) -> None:
        self.reach, self.points, self.max_images = reach, points, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        found = surface(context, batch, self.reach, self.points, "surface")
        spread = found.loss.double().flatten(1).std(1)
        return {"loss_rise": rises(found), "loss_spread": spread, "loss_slope": found.gradient_norm}

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        names = {"rise": "loss_rise", "spread": "loss_spread", "slope": "loss_slope"}
        return Summary(means(context, table.clean(self.max_images), names))


class Landscape(Whole):
    """Pictures of the loss around a few images (discriminative-noise Fig. 11)."""

    part = "geometry"

    def __init__(self, reach: float = 1.0, points: int = 25, max_images: int = 2) -> None:
        self.reach, self.points, self.max_images = reach, points, max_images

    def pictures_of(self, context: Context) -> Tensor:
        return context.rows(self.max_images)

    def run(self, context: Context) -> Any:
        few = context.some(self.max_images)
        found = surface(context, few, self.reach, self.points, "landscape")
        with evaluating(context.model), torch.inference_mode():
            right = (context.model(few.images).argmax(1) == few.labels).tolist()
        names = [f"image {index}" for index in few.indices.tolist()]
        figure = {"offsets": rounded(found.offsets), "loss": [[rounded(row) for row in image] for image in found.loss]}
        figure |= {"names": names, "right": right}
        values = {"largest_rise_of_the_loss": dict(zip(names, rises(found).tolist(), strict=True))}
        return {"values": values, "figures": {"landscape": figure}}
