"""Pictures for the page: the most confident mistakes, and a few images under every corruption."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..corruptions.engine import corrupt
from ..corruptions.published import CorruptedSplit, corrupted, taken
from ..data.choosing import choose, indices_of
from ..data.dataset import Split, TensorSplit
from ..data.streaming import StreamedSplit
from ..types import Batch, Images, Predictions
from .records import Record, Workbook
from .setting import Setting

SHOWN = 4  # images under every corruption
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


def pick(split: Split, rows: Tensor, batch_size: int) -> Images:
    """The images at these places of a split, in the order of the places; a stream is read up to the last of them."""
    if isinstance(split, TensorSplit | StreamedSplit):
        return next(iter(taken(split, rows).batches(len(rows)))).images
    wanted = {int(row): place for place, row in enumerate(rows)}
    found: dict[int, Tensor] = {}
    start = 0
    for batch in split.batches(batch_size):
        for row in range(start, start + len(batch.labels)):
            if row in wanted:
                found[wanted[row]] = batch.images[row - start]
        start += len(batch.labels)
        if len(found) == len(wanted):
            break
    return torch.stack([found[place] for place in range(len(wanted))])


def confident_mistakes(setting: Setting, clean: Predictions) -> Record:
    """The wrong answers that the model was surest of."""
    wrong = (~clean.correct).nonzero().flatten()
    rows = wrong[clean.confidences[wrong].argsort(descending=True, stable=True)][:MISTAKES]
    shown: list[dict[str, Any]] = []
    if len(rows):
        images = pick(setting.images, rows, setting.batch_size)
        for row, image in zip(rows.tolist(), images, strict=True):
            index = clean.indices[row] if clean.indices is not None else row
            said: dict[str, Any] = {"label": int(clean.labels[row]), "answer": int(clean.classes[row])}
            said |= {"index": int(index), "picture": picture(image)}
            shown.append({**said, "confidence": round(float(clean.confidences[row]), 4)})
    return Record({"mistakes": shown})


def corrupted_examples(setting: Setting) -> Record:
    """The same few images under every corruption and severity."""
    few = choose(setting.corruption_images, SHOWN, setting.seed)
    batch = next(iter(few.batches(SHOWN)))
    rows = places_of(setting.corruption_images, batch.indices.tolist(), setting.batch_size)
    pictures: dict[str, Any] = {}
    for name in setting.depth.corruptions:
        for severity in setting.depth.severities:
            seen = corrupted(setting.corruption_images, name, severity, seed=setting.seed, copies=setting.copies)
            images = changed(batch, seen) if seen.seed is not None else pick(seen.split, torch.tensor(rows), setting.batch_size)
            pictures[f"{name}/{severity}"] = [picture(image) for image in images]
    clean = [picture(image) for image in batch.images]
    return Record({"rows": rows, "labels": batch.labels.tolist(), "clean": clean, "pictures": pictures})


def changed(batch: Batch, seen: CorruptedSplit) -> Images:
    """These images as the corruption makes them."""
    return corrupt(batch.images, seen.name, seen.severity, seed=seen.seed or 0, indices=batch.indices)


def places_of(split: Split, indices: Sequence[int], batch_size: int) -> list[int]:
    """Where images with these indices stand in a split."""
    where = {int(index): place for place, index in enumerate(indices_of(split, batch_size))}
    return [where[int(index)] for index in indices]


def example_points(setting: Setting, book: Workbook, examples: Record) -> dict[str, Any]:
    """The pictures with what was answered: in every cell, the class and the confidence for each of the images."""
    rows, cells = examples.values["rows"], {}
    for key, pictures in examples.values["pictures"].items():
        record = book.read(f"corruptions/{key}")
        assert record is not None
        answers = [[int(record.tensors["classes"][row]), round(float(record.tensors["confidences"][row]), 4)] for row in rows]
        cells[key] = {"pictures": pictures, "answers": answers}
    return {"labels": examples.values["labels"], "clean": examples.values["clean"], "cells": cells}
