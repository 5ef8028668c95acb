"""What timm's dataset readers read as streams: `wds/`, `tfds/` and `hfids/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import SurefootError
from ..seeds import generator
from ..types import Batch
from .collection import Shares, consecutive_indices, held_out_shares, read_class_map, renumber_classes
from .dataset import Dataset, to_pixels
from .folders import AUGMENTATION
from .image_files import to_rgb
from .preprocessing import Preprocessing
from .remote_sources import check_label, check_package, refuse_remote_shards

if TYPE_CHECKING:
    from PIL.Image import Image

SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "val"), "test": ("test",)}
SHUFFLE_BUFFER = 1024  # images held back to mix a stream


def open_readers(name: str, root: str | None) -> dict[str, Any]:
    """timm's reader for each split that the data set has."""
    check_package(name)
    from timm.data.readers import create_reader

    readers, reason = {}, ""
    for split, names in SPLIT_NAMES.items():
        for called in names:
            try:
                readers[split] = create_reader(name, root=root, split=called)
                break
            except (ValueError, RuntimeError, KeyError, OSError, AttributeError) as error:  # what the readers raise
                reason = reason or " ".join(str(error).split())
    if not readers:
        raise SurefootError(f"Data '{name}' cannot be opened: {reason}.")
    for reader in readers.values():
        refuse_remote_shards(name, root, reader)
    return readers


@dataclass(frozen=True, repr=False)
class IterableSplit:
    """The part of a stream whose positions are chosen; order is the stream's, or mixed in a buffer.

    Where a stream has no calibration or validation split, positions are drawn for them at random from the training stream: it
    cannot be stratified, because labels are not known ahead.
    """

    name: str
    root: str | None
    split: str
    chosen: Tensor  # bool, one for each position in the stream
    first: int  # number of the stream's first image in the whole data set
    preprocessing: Preprocessing
    numbers: tuple[int, ...]  # the number of each class of the stream in the order of the class map

    def __len__(self) -> int:
        return int(self.chosen.sum())

    def __repr__(self) -> str:
        return f"IterableSplit({len(self)} images of {self.name}, {self.split})"

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: torch.Generator | None = None,
        drop_last: bool = False,
        device: torch.device | str = "cpu",
        part: Tensor | None = None,
    ) -> Iterator[Batch]:
        waiting: list[tuple[Tensor, int, int]] = []
        for item in mixed(self.items(), shuffle):
            waiting.append(item)
            if len(waiting) == batch_size:
                yield as_batch(waiting if part is None else [waiting[position] for position in part.tolist()], device)
                waiting = []
        if waiting and not drop_last:
            yield as_batch(waiting if part is None else [waiting[position] for position in part.tolist()], device)

    def items(self) -> Iterator[tuple[Tensor, int, int]]:
        """Image, label and number at each chosen position, in the stream's order."""
        from timm.data.readers import create_reader

        for position, (image, label) in zip(
            range(len(self.chosen)), create_reader(self.name, self.root, self.split), strict=False
        ):
            if self.chosen[position]:
                number = self.numbers[check_label(self.name, self.split, int(label), len(self.numbers))]
                yield self.preprocessing(self.rgb(image, position)), number, self.first + position

    def rgb(self, image: Image, position: int) -> Image:
        """The image as 8-bit RGB; one that cannot be is named by its position."""
        try:
            return to_rgb(image)
        except ValueError as error:
            raise SurefootError(f"Cannot read image number {position} of {self.split} of '{self.name}': {error}.") from error


def mixed(items: Iterator[tuple[Tensor, int, int]], shuffle: torch.Generator | None) -> Iterator[tuple[Tensor, int, int]]:
    """Items in a random order, as far as a buffer allows."""
    if shuffle is None:
        yield from items
        return
    buffer: list[tuple[Tensor, int, int]] = []
    for item in items:
        if len(buffer) < SHUFFLE_BUFFER:
            buffer.append(item)
            continue
        index = int(torch.randint(SHUFFLE_BUFFER, (), generator=shuffle))
        buffer[index], item = item, buffer[index]
        yield item
    for index in torch.randperm(len(buffer), generator=shuffle).tolist():
        yield buffer[index]


def as_batch(items: list[tuple[Tensor, int, int]], device: torch.device | str) -> Batch:
    images, labels, indices = zip(*items, strict=True)
    return Batch(to_pixels(torch.stack(images), device), torch.tensor(labels, device=device), torch.tensor(indices))


def load_iterable(
    name: str, root: str | None, class_map: str | None, preprocessing: Preprocessing | None, seed: int, wanted: Shares
) -> Dataset:
    """A stream: its length must be known, its classes come from the reader or the class map."""
    assert preprocessing is not None  # the size of a stream's images is never known
    readers = open_readers(name, root)
    if "test" not in readers and "validation" in readers:
        readers["test"] = readers.pop("validation")
    lengths = {split: int(reader.num_samples or 0) for split, reader in readers.items()}
    if not all(lengths.values()):
        raise SurefootError(f"Data '{name}' do not say how many images they hold; put the count into _info.json.")
    starts = {split: int(indices[0]) for split, indices in consecutive_indices(lengths).items()}
    called = {split: getattr(getattr(reader, "split_info", None), "name", "") or split for split, reader in readers.items()}
    draw = torch.rand(lengths.get("train", 0), generator=generator(seed, "split"))
    shares, used = {}, 0.0
    for split, share in held_out_shares(readers, wanted).items():
        if "train" in readers:
            shares[split] = (draw >= used) & (draw < used + share)
            used += share
    shares["train"] = draw >= used

    names, numbers = class_names(name, next(iter(readers.values())), class_map)

    def part(split: str) -> IterableSplit:
        home = "train" if split in shares else split
        chosen = shares.get(split, torch.ones(lengths.get(split, 0), dtype=torch.bool))
        return IterableSplit(name, root, called.get(home, home), chosen, starts.get(home, 0), preprocessing, tuple(numbers))

    splits: dict[str, Any] = {split: part(split) for split in ("train", "calibration", "validation", "test")}
    return Dataset(**splits, class_names=names, image_size=preprocessing.image_size, augmentation=AUGMENTATION)


def class_names(name: str, reader: Any, class_map: str | None) -> tuple[tuple[str, ...], list[int]]:
    """The names, and the number of each of the reader's classes among them: matched by name where the reader knows names."""
    if reader.class_to_idx:
        return renumber_classes(sorted(reader.class_to_idx, key=lambda known: reader.class_to_idx[known]), class_map)
    if class_map is None:
        raise SurefootError(f"Data '{name}' do not say their classes: give a class map (class_map, --class-map).")
    return renumber_classes(read_class_map(class_map), class_map)
