"""Natural shifts: further test sets (another camera, another year, CIFAR-10.1, ImageNet-V2) beside the audited one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..calibration.bootstrap import mean_estimate
from ..data.dataset import Dataset, Split, TensorSplit
from ..data.loading import load_data
from ..data.streaming import StreamedSplit
from ..errors import SurefootError
from ..types import Batch
from .base import SHIFT, Beside, Condition, Measurement, Rows, Summary, Table
from .context import pixel_names
from .scores import SCALED, SCORES, score

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
    numbers = torch.tensor([data.class_names.index(each) for each in shift.class_names])
    if isinstance(shift.test, TensorSplit | StreamedSplit):
        return replace(shift.test, labels=numbers[shift.test.labels])
    return Renumbered(shift.test, numbers)


class Renumbered:
    """A stream whose classes have other numbers."""

    def __init__(self, split: Split, numbers: Tensor) -> None:
        self.split, self.numbers = split, numbers

    def __len__(self) -> int:
        return len(self.split)

    def batches(self, batch_size: int, **options: Any) -> Any:
        for batch in self.split.batches(batch_size, **options):
            yield type(batch)(batch.images, self.numbers.to(batch.labels.device)[batch.labels], batch.indices)


@dataclass(frozen=True)
class Shifted(Beside):
    """The pictures of a further test set."""

    label: str
    split: Split

    @property
    def name(self) -> str:
        return f"{SHIFT}{self.label}"

    def partners(self, context: Context) -> Tensor:
        """By files of the same class and name: the same objects photographed twice. No name may come twice in a class."""
        return context.once(("partners", self.label), lambda: self.find_partners(context))

    def find_partners(self, context: Context) -> Tensor:
        ours, theirs = file_keys(context.images), file_keys(self.split)
        row_of = {key: row for row, key in enumerate(ours)}
        if len(row_of) != len(ours) or len(set(theirs)) != len(theirs) or not theirs:
            return torch.full((len(self.split),), -1)
        return torch.tensor([row_of.get(key, -1) for key in theirs])

    def image_names(self, context: Context, batch: Batch, partners: Tensor) -> list[str]:
        files = getattr(self.split, "files", None)
        if files is None:
            return pixel_names(batch.images)
        own = ["/".join((self.label, *Path(files[index]).parts[-2:])) for index in batch.indices.tolist()]
        rows = partners.tolist()
        return [
            name if row < 0 else str(context.file_of(int(context.indices[row]))) for name, row in zip(own, rows, strict=True)
        ]


def file_keys(split: Split) -> list[tuple[int, str]]:
    """Class and name of every file of a split; nothing where there are no files, or labels are not known ahead."""
    files, labels, indices = (getattr(split, name, None) for name in ("files", "labels", "indices"))
    if files is None or labels is None or indices is None:
        return []
    return [(label, Path(files[index]).name) for label, index in zip(labels.tolist(), indices.tolist(), strict=True)]


class Shifts(Measurement):
    """Accuracy and calibration on further test sets, each a condition of the table, where promises are replayed too.

    Temperatures and promises are those of the audited images. Where files of both have the same class and name (the same
    objects photographed twice), the change of accuracy is of pairs.
    """

    def __init__(self, sets: Mapping[str, Split]) -> None:
        self.sets = dict(sets)

    def conditions(self, context: Context) -> Sequence[Condition]:
        return self.shifted

    @property
    def shifted(self) -> list[Shifted]:
        return [Shifted(label, split) for label, split in self.sets.items()]

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        values, notes = {}, []
        for shift in self.shifted:
            rows = table.rows(shift.name)
            (scored,) = score([rows], SCORES, context)
            values[shift.label] = {name: scored.estimate(name) for name in SCORES}
            if "scaled_confidence" in rows:
                (after,) = score([rows], ("ece",), context, scaled=True)
                values[shift.label][SCALED] = after.estimate("ece")
            before, now = pairs(table.clean(), rows, shift, context)
            if len(now["index"]):
                change = now["correct"].astype(np.float64) - before["correct"].astype(np.float64)
                values[shift.label]["accuracy_change"] = mean_estimate(
                    change, context.seed, context.intervals, ids=before["index"]
                )
            paired = len(now["index"])
            how = f"{paired} images of it pair with the data's by name" if paired else "no image of it pairs with the data's"
            notes.append(f"{shift.label} has {len(rows['index'])} images; {how}")
        return Summary(values, notes=tuple(notes))


def pairs(clean: Rows, rows: Rows, shift: Shifted, context: Context) -> tuple[Rows, Rows]:
    """The audited images and their partners, in the same order; rows are in the order of their index."""
    partners = shift.partners(context)
    where = (partners >= 0).nonzero().flatten()
    if not len(where):
        return {"index": np.empty(0, np.int64)}, {"index": np.empty(0, np.int64)}
    ours = np.searchsorted(clean["index"], context.indices[partners[where]].numpy())
    theirs = np.searchsorted(rows["index"], shift.split.indices[where].numpy())  # type: ignore[attr-defined]
    return {name: values[ours] for name, values in clean.items()}, {name: values[theirs] for name, values in rows.items()}
