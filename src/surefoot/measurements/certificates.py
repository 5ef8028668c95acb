"""Certified accuracy of the smoothed classifier (Cohen, Rosenfeld and Kolter 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..geometry.certificates import certify
from ..types import Batch
from .base import Measurement, Summary, Table
from .summaries import mean_of, rounded

if TYPE_CHECKING:
    from .context import Context


class Certificates(Measurement):
    """Certified accuracy at some radii, by randomised smoothing with noise of deviation `std`; `draws` bound each radius."""

    part = "geometry"
    adds = ("certified_radius", "certified_class")
    passes = 1100

    def __init__(
        self,
        std: float = 0.25,
        radii: Sequence[float] = (0.0, 0.25, 0.5, 0.75),
        draws: int = 1000,
        max_images: int | None = 100,
    ) -> None:
        self.std, self.radii, self.draws, self.max_images = std, radii, draws, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        run: dict[str, Any] = {"seed": context.seed, "indices": batch.indices, "batch_size": context.batch_size}
        found = certify(context.model, batch.images, batch.labels, self.std, n=self.draws, **run)
        return {"certified_radius": found.values, "certified_class": found.predictions}

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        rows = table.clean(self.max_images)
        radii, classes = rows["certified_radius"], rows["certified_class"].astype(int)
        right = classes == rows["label"]
        shares = {f"{radius:g}": mean_of(context, rows, right & (radii >= radius)) for radius in self.radii}
        values = {"certified_accuracy": shares, "certified_noise": self.std, "certified_images": len(right)}
        figure = {"values": rounded(radii), "predictions": classes.tolist(), "labels": rows["label"].tolist()}
        return Summary(values, {"certificates": {**figure, "std": self.std}})
