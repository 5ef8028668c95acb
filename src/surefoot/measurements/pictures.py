"""For the page: mistakes and corrupted images as pictures, reliability on a grid of temperatures."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..calibration.bins import ReliabilityBins
from ..corruptions.families import NAMES
from ..types import Batch, Predictions
from .base import Measurement, Summary, Table
from .corruptions import Corrupted

if TYPE_CHECKING:
    from .context import Context

# Pictures for the page: the most confident mistakes, and a few images under every corruption.


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
        rows: Tensor = torch.cat([context.rows(self.max_images), self.mistakes(context)]).unique()
        return rows

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

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        seen = table.seen("pictures")
        pictures = {index: picture for each in seen for index, picture in each["mistakes"].items()}
        clean = context.clean
        mistakes = []
        for row in self.mistakes(context).tolist():
            index = int(context.indices[row])
            said: dict[str, Any] = {"label": int(clean.labels[row]), "answer": int(clean.classes[row]), "index": index}
            said["file"] = context.file_of(index)
            mistakes.append({**said, "picture": pictures[str(index)], "confidence": round(float(clean.confidences[row]), 4)})
        rows = context.rows(self.max_images)
        indices = [int(index) for index in context.indices[rows]]
        cells = {}
        for cell in self.cells:
            own = {index: picture for each in seen for index, picture in each["cells"].get(cell.name, {}).items()}
            said = table.rows(cell.name)
            where = np.searchsorted(said["index"], indices)
            predictions = [[int(said["predicted"][at]), round(float(said["confidence"][at]), 4)] for at in where]
            cells[cell.name] = {"pictures": [own[str(index)] for index in indices], "answers": predictions}
        shown = {index: picture for each in seen for index, picture in each["clean"].items()}
        examples = {"labels": clean.labels[rows].tolist(), "clean": [shown[str(index)] for index in indices], "cells": cells}
        return Summary(None, {"mistakes": mistakes, "examples": examples})


def as_pictures(images: Tensor, indices: Tensor) -> dict[str, str]:
    """Pictures by the index of their image."""
    return {str(index): picture(image) for index, image in zip(indices.tolist(), images, strict=True)}


# Reliability bins on a fine grid of temperatures and feature scales, so that a page can slide without the logits.


BINS = 15
STEPS = 60  # on each side of 1
SPAN = 8.0  # from 1 / SPAN to SPAN
CELLS = 2**21  # logits held at once


def grid() -> list[float]:
    """Values in equal ratios around 1, which is one of them."""
    return [SPAN ** (k / STEPS) for k in range(-STEPS, STEPS + 1)]


def temperature_grid(predictions: Predictions, extra: Sequence[float] = ()) -> dict[str, Any]:
    """The bins at every temperature of the grid, and at those in `extra`, such as the fitted one."""
    values = sorted({*grid(), *extra})
    return slide(predictions, values, [1 / value for value in values], None)


def feature_scale_grid(predictions: Predictions, bias: Tensor | None) -> dict[str, Any] | None:
    """The bins at every scale of the features; None without a bias in the head, where it is a temperature again."""
    if bias is None or not bool(bias.any()):
        return None
    return slide(predictions, grid(), grid(), bias.detach().cpu())


def slide(predictions: Predictions, values: list[float], scales: list[float], offset: Tensor | None) -> dict[str, Any]:
    """Logits s (z - b) + b for every scale s, in one pass over the logits."""
    rows = max(1, CELLS // predictions.num_classes)
    bins: list[ReliabilityBins | None] = [None] * len(scales)
    losses = [0.0] * len(scales)
    for start in range(0, len(predictions), rows):
        logits, labels = predictions.logits[start : start + rows].float(), predictions.labels[start : start + rows]
        fixed = torch.zeros(1) if offset is None else offset.float()
        lines = logits - fixed
        for index, scale in enumerate(scales):
            scaled = torch.add(fixed, lines, alpha=scale)
            top, predicted = scaled.max(1)
            total = scaled.sub_(top.unsqueeze(1)).exp_().sum(1).double()
            block_bins = ReliabilityBins.of(1 / total, predicted == labels, BINS)
            so_far = bins[index]
            bins[index] = block_bins if so_far is None else so_far + block_bins
            own = (
                lines.gather(1, labels[:, None]).squeeze(1) * scale + fixed.expand(predictions.num_classes)[labels] - top
            ).double()
            losses[index] += float((total.log() - own).sum())
    whole = [each for each in bins if each is not None]
    return {
        "values": [round(value, 6) for value in values],
        "counts": [each.counts.tolist() for each in whole],
        "confidences": [[round(value, 4) for value in each.confidences.tolist()] for each in whole],
        "correct": [each.correct.tolist() for each in whole],
        "ece": [round(each.ece, 6) for each in whole],
        "nll": [round(loss / len(predictions), 6) if math.isfinite(loss) else None for loss in losses],
    }
