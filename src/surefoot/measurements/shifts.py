"""Natural shifts: further test sets (another camera, another year, CIFAR-10.1, ImageNet-V2) beside the audited one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..calibration.bootstrap import mean_estimate
from ..calibration.scoring import estimates
from ..calibration.temperature import divided
from ..data.dataset import Dataset, Split
from ..data.loading import load_data
from ..errors import SurefootError
from ..types import Predictions
from .base import Whole
from .scores import BINS, SCORES
from .thresholds import RISKS, judged, thresholds

if TYPE_CHECKING:
    from .context import Context


def open_shifts(shifts: Mapping[str, Any] | Sequence[str], data: Dataset) -> dict[str, Split]:
    """The test sets of the shifts, resized as the audited data were, with its classes in its order."""
    if isinstance(shifts, str):
        raise SurefootError(f"shifts must be a list of names, got '{shifts}'.")
    named = dict(shifts) if isinstance(shifts, Mapping) else {short_name(name): name for name in shifts}
    if len(named) != len(shifts):
        raise SurefootError("Two shifts have the same name: give them as a mapping from names.")
    return {name: open_shift(name, given, data) for name, given in named.items()}


def short_name(name: str) -> str:
    """What a shift is called in the table: the last part of its path."""
    return Path(str(name)).name or str(name)


def open_shift(name: str, given: Any, data: Dataset) -> Split:
    how = {key: data.source[key] for key in ("crop_pct", "interpolation") if data.source.get(key) is not None}
    shift = load_data(given) if isinstance(given, Dataset) else load_data(given, image_size=data.image_size, **how)
    same = shift.channels == data.channels and shift.image_size == data.image_size
    if not same:
        raise SurefootError(
            f"The pictures of shift '{name}' must be {data.image_size}, {data.channels} channels as the data's."
        )
    if len(shift.test) == 0:
        raise SurefootError(f"Shift '{name}' has no test images.")
    if shift.class_names == data.class_names:
        return shift.test
    unknown = [each for each in shift.class_names if each not in data.class_names]
    if unknown:
        raise SurefootError(f"Shift '{name}' has a class that the data do not have, '{unknown[0]}': give both the same names.")
    return Renumbered(shift.test, torch.tensor([data.class_names.index(each) for each in shift.class_names]))


class Renumbered:
    """A split whose classes have other numbers."""

    def __init__(self, split: Split, numbers: torch.Tensor) -> None:
        self.split, self.numbers = split, numbers
        self.files = getattr(split, "files", None)

    def __len__(self) -> int:
        return len(self.split)

    def batches(self, batch_size: int, **options: Any) -> Any:
        for batch in self.split.batches(batch_size, **options):
            yield type(batch)(batch.images, self.numbers.to(batch.labels.device)[batch.labels], batch.indices)


class Shifts(Whole):
    """Accuracy, calibration and what promised thresholds are worth on further test sets.

    A temperature and thresholds are those of the audited images. Where files of both have the same class and name (the same
    objects photographed twice), the change of accuracy is of pairs.
    """

    def __init__(self, sets: Mapping[str, Split]) -> None:
        self.sets = dict(sets)

    def run(self, context: Context) -> Any:
        values, notes = {}, []
        for name, split in self.sets.items():
            predictions = context.predictions_on(split, "shift", name)
            values[name], paired = self.one(context, split, predictions)
            how = f"{paired} images of it pair with the data's by name" if paired else "no image of it pairs with the data's"
            notes.append(f"{name} has {len(predictions)} images; {how}")
        return {"values": values, "notes": notes}

    def one(self, context: Context, split: Split, shifted: Predictions) -> tuple[dict[str, Any], int]:
        drawing: dict[str, Any] = {"intervals": context.intervals, "seed": context.seed}
        found: dict[str, Any] = dict(estimates(shifted, SCORES, BINS, **drawing))
        if context.temperatures is not None:
            temperature = fmean(fit.temperature for fit in context.temperatures.fits)
            whole = torch.full((len(shifted),), temperature, dtype=torch.float64)
            found["scaled_ece"] = estimates(divided(shifted, whole), ["ece"], BINS, **drawing)["ece"]
        for promise in thresholds(context.clean, RISKS, context.seed, context.held_out):
            bound = max(promise.thresholds)
            if bound <= 1:
                kept = shifted.confidences.cpu() >= bound
                told = judged(promise.wanted_risk, [bound], kept, ~shifted.correct.cpu(), context.seed)
                found[f"risk_promised_{promise.wanted_risk:g}"] = told.risk
                found[f"coverage_promised_{promise.wanted_risk:g}"] = told.coverage
        pairs = paired_rows(context.images, split, context.clean, shifted)
        if len(pairs):
            before, after = (side.correct.cpu().numpy().astype(np.float64) for side in (context.clean, shifted))
            change = after[pairs[:, 1]] - before[pairs[:, 0]]
            found["accuracy_change"] = mean_estimate(change, context.seed, context.intervals)
        return found, len(pairs)


def paired_rows(one: Split, two: Split, first: Predictions, second: Predictions) -> np.ndarray[Any, Any]:
    """Rows of two splits whose files have the same class and name."""
    keys = [keys_of(split, each) for split, each in ((one, first), (two, second))]
    where = {key: row for row, key in enumerate(keys[0])}
    if not keys[1] or len(where) != len(keys[0]) or len(set(keys[1])) != len(keys[1]):
        return np.empty((0, 2), np.int64)
    return np.array([(where[key], row) for row, key in enumerate(keys[1]) if key in where], np.int64).reshape(-1, 2)


def keys_of(split: Split, predictions: Predictions) -> list[tuple[int, str]]:
    files = getattr(split, "files", None)
    if files is None or predictions.indices is None:
        return []
    pairs = zip(predictions.indices.tolist(), predictions.labels.tolist(), strict=True)
    return [(label, Path(files[index]).name) for index, label in pairs]
