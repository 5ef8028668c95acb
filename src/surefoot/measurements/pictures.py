"""Pictures for the page: the most confident mistakes, and a few images under every corruption."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..corruptions.families import NAMES
from ..types import Batch
from .base import Measurement, Summary, Table
from .corruptions import Corrupted

if TYPE_CHECKING:
    from .context import Context

MISTAKES = 24
SIDE = 112  # pixels on the page at most
QUALITY = 80  # of large pictures, which are stored as JPEG; small ones are PNG, exact


def picture(image: Tensor) -> str:
    """A data URL of one image (channels x height x width in [0, 1]), no larger than the page shows it."""
    from PIL import Image

    height, width = image.shape[1:]
    factor = SIDE / max(height, width)
    if factor < 1:
        size = (max(1, round(height * factor)), max(1, round(width * factor)))
        image = F.interpolate(image[None], size=size, mode="bilinear", antialias=True, align_corners=False)[0]
    levels = image.clamp(0, 1).mul(255).round().to("cpu", torch.uint8)
    array = levels.permute(1, 2, 0).numpy() if len(levels) == 3 else levels[0].numpy()
    file = io.BytesIO()
    small = max(height, width) <= 64
    Image.fromarray(array).save(file, "PNG" if small else "JPEG", **({"optimize": True} if small else {"quality": QUALITY}))
    kind = "png" if small else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


class Pictures(Measurement):
    """The wrong predictions that the model was surest of, and the first images under every corruption and severity.

    The corruptions must be measured too: what the model said of each picture is read from the table.
    """

    part = "figures"
    sees = True
    scattered = True

    def __init__(
        self, names: Sequence[str] = NAMES, severities: Sequence[float] = (1, 2, 3, 4, 5), max_images: int | None = 4
    ) -> None:
        self.cells = [Corrupted(name, severity) for name in names for severity in severities]
        self.max_images = max_images

    def rows(self, context: Context) -> Tensor:
        found: Tensor = torch.cat([context.rows(self.max_images), self.mistakes(context)]).unique()
        return found

    def mistakes(self, context: Context) -> Tensor:
        """Where the most confident mistakes stand in the split, the surest first."""

        def find() -> Tensor:
            wrong = (~context.clean.correct).nonzero().flatten()
            return wrong[context.clean.confidences[wrong].argsort(descending=True, stable=True)][:MISTAKES]

        return context.once("mistakes", find)

    def see(self, context: Context, batch: Batch) -> Any:
        shown = context.indices[context.rows(self.max_images)]
        wrong = context.indices[self.mistakes(context)]
        few = batch[torch.isin(batch.indices, shown).nonzero().flatten()]
        seen: dict[str, Any] = {"clean": as_pictures(few.images, few.indices), "cells": {}}
        if len(few):
            seen["cells"] = {cell.name: as_pictures(cell.images(context, few), few.indices) for cell in self.cells}
        missed = batch[torch.isin(batch.indices, wrong).nonzero().flatten()]
        return {**seen, "mistakes": as_pictures(missed.images, missed.indices)}

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        seen = table.seen("pictures")
        pictures = {index: picture for each in seen for index, picture in each["mistakes"].items()}
        clean = context.clean
        mistakes = []
        for row in self.mistakes(context).tolist():
            index = int(context.indices[row])
            said: dict[str, Any] = {"label": int(clean.labels[row]), "answer": int(clean.classes[row]), "index": index}
            mistakes.append({**said, "picture": pictures[str(index)], "confidence": round(float(clean.confidences[row]), 4)})
        rows = context.rows(self.max_images)
        indices = [int(index) for index in context.indices[rows]]
        cells = {}
        for cell in self.cells:
            own = {index: picture for each in seen for index, picture in each["cells"].get(cell.name, {}).items()}
            said = table.rows(cell.name)
            where = np.searchsorted(said["index"], indices)
            answers = [[int(said["predicted"][at]), round(float(said["confidence"][at]), 4)] for at in where]
            cells[cell.name] = {"pictures": [own[str(index)] for index in indices], "answers": answers}
        shown = {index: picture for each in seen for index, picture in each["clean"].items()}
        examples = {"labels": clean.labels[rows].tolist(), "clean": [shown[str(index)] for index in indices], "cells": cells}
        return Summary(None, {"mistakes": mistakes, "examples": examples})


def as_pictures(images: Tensor, indices: Tensor) -> dict[str, str]:
    """Pictures by the index of their image."""
    return {str(index): picture(image) for index, image in zip(indices.tolist(), images, strict=True)}
