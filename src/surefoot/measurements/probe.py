"""How useful the features are elsewhere: a linear classifier on another data set (representation-space Table 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..data.loading import load_data
from ..geometry.probes import STRENGTHS, linear_probe
from .base import Whole

if TYPE_CHECKING:
    from .context import Context


class LinearProbe(Whole):
    """Test accuracy of logistic regression on frozen, standardised features of another data set.

    The regularisation is the one of `strengths` that does best on the validation images of those data.
    """

    part = "geometry"

    def __init__(self, data: str = "digits", strengths: Sequence[float] = STRENGTHS, max_images: int | None = None) -> None:
        self.data, self.strengths, self.max_images = data, strengths, max_images

    def run(self, context: Context) -> Any:
        own = (context.recipe.data if context.recipe is not None else None) or {}
        source: dict[str, Any] = {"root": None if self.data == "digits" else own.get("root")}
        source["download"] = own.get("download", True)
        height, width = getattr(context.linear, "image_size", context.data.image_size)
        other = load_data(self.data, **source, image_size=(height, width), max_images=self.max_images)
        found = linear_probe(context.linear, other, self.strengths, context.batch_size)
        return {"values": {"accuracy": found.test_accuracy}}
