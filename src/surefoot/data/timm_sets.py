"""Whatever timm's dataset readers read: `hfds/` by number, `wds/`, `tfds/` and `hfids/` as streams."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import SurefootError
from ..seeds import generator
from ..types import Batch
from .augmentation import Augmentation
from .class_maps import read_class_map, renumber_classes
from .collection import CARVED, Collection, common_size, places
from .dataset import Dataset, to_pixels
from .preprocessing import Preprocessing
from .reading import read_image, to_rgb

if TYPE_CHECKING:
    from PIL.Image import Image

PACKAGES = {"hfds": "datasets", "hfids": "datasets", "wds": "webdataset", "tfds": "tensorflow_datasets"}
SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "val"), "test": ("test",)}
AUGMENTATION = Augmentation(crop_padding=0.125, flip=True)
SHUFFLE_BUFFER = 1024  # images held back to mix a stream


def is_timm_name(name: str) -> bool:
    return name.partition("/")[0] in PACKAGES and "/" in name


def is_stream(name: str) -> bool:
    """Whether images come in the reader's order only."""
    return is_timm_name(name) and not name.startswith("hfds/")


def open_readers(name: str, root: str | None) -> dict[str, Any]:
    """timm's reader for each split that the data set has."""
    prefix = name.partition("/")[0]
    package = PACKAGES[prefix]
    if find_spec(package) is None:
        raise SurefootError(f"Data '{name}' needs the package '{package}': pip install {package.replace('_', '-')}.")
    from timm.data.readers import create_reader

    found, reason = {}, ""
    for split, names in SPLIT_NAMES.items():
        for called in names:
            try:
                found[split] = create_reader(name, root=root, split=called)
                break
            except (ValueError, RuntimeError, KeyError, OSError) as error:
                reason = reason or " ".join(str(error).split())
    if not found:
        raise SurefootError(f"Data '{name}' cannot be opened: {reason}.")
    return found


@dataclass(frozen=True)
class Numbered:
    """Readers whose images have numbers, one after the other."""

    readers: tuple[Any, ...]
    starts: tuple[int, ...]

    def read(self, index: int) -> Image:
        reader, start = next((r, s) for r, s in zip(self.readers[::-1], self.starts[::-1], strict=True) if index >= s)
        file = reader[index - start][0]
        with file:
            return read_image(io.BytesIO(file.read()), f"number {index}")

    def common_size(self) -> tuple[int, int] | None:
        first = [start + k for r, start in zip(self.readers, self.starts, strict=True) for k in range(min(8, len(r)))]
        return common_size(self, first)


def load_numbered(name: str, root: str | None, class_map: str | None) -> Collection:
    """A Hugging Face data set: its labels are known before its images are read."""
    readers = open_readers(name, root)
    names, numbers = class_names(name, next(iter(readers.values())), class_map)
    labels = torch.cat([labels_of(name, split, reader, len(numbers)) for split, reader in readers.items()])
    given = places({split: len(reader) for split, reader in readers.items()})
    starts = tuple(int(indices[0]) for indices in given.values())
    source = Numbered(tuple(readers.values()), starts)
    return Collection(source, torch.tensor(numbers)[labels], names, given, augmentation=AUGMENTATION)


def labels_of(name: str, split: str, reader: Any, classes: int) -> Tensor:
    """All labels of a split, as the reader numbers them."""
    labels = torch.tensor(reader.dataset[reader.label_key])
    for label in (int(labels.min()), int(labels.max())) if len(labels) else ():
        check_label(name, split, label, classes)
    return labels


def check_label(name: str, split: str, label: int, classes: int) -> int:
    """The label, if it is a class; publishers hide those of a test split as -1."""
    if not 0 <= label < classes:
        hidden = " (the publisher hides its labels)" if label == -1 else ""
        raise SurefootError(f"labels must be in 0 to {classes - 1}, got {label} in the {split} split of '{name}'{hidden}.")
    return label


@dataclass(frozen=True, repr=False)
class IterableSplit:
    """The part of a stream whose places are chosen; order is the stream's, or mixed in a buffer.

    Where a stream has no calibration or validation split, places are drawn for them at random from the training stream: it
    cannot be stratified, because labels are not known ahead.
    """

    name: str
    root: str | None
    split: str
    chosen: Tensor  # bool, one for each place of the stream
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
        held: list[tuple[Tensor, int, int]] = []
        for item in mixed(self.items(), shuffle):
            held.append(item)
            if len(held) == batch_size:
                yield as_batch(held if part is None else [held[place] for place in part.tolist()], device)
                held = []
        if held and not drop_last:
            yield as_batch(held if part is None else [held[place] for place in part.tolist()], device)

    def items(self) -> Iterator[tuple[Tensor, int, int]]:
        """Image, label and number of each chosen place, in the stream's order."""
        from timm.data.readers import create_reader

        for place, (image, label) in zip(
            range(len(self.chosen)), create_reader(self.name, self.root, self.split), strict=False
        ):
            if self.chosen[place]:
                number = self.numbers[check_label(self.name, self.split, int(label), len(self.numbers))]
                yield self.preprocessing(self.rgb(image, place)), number, self.first + place

    def rgb(self, image: Image, place: int) -> Image:
        """The image as 8-bit RGB; one that cannot be is named by its place."""
        try:
            return to_rgb(image)
        except ValueError as error:
            raise SurefootError(f"Cannot read image number {place} of {self.split} of '{self.name}': {error}.") from error


def mixed(items: Iterator[tuple[Tensor, int, int]], shuffle: torch.Generator | None) -> Iterator[tuple[Tensor, int, int]]:
    """Items in a random order, as far as a buffer allows."""
    if shuffle is None:
        yield from items
        return
    held: list[tuple[Tensor, int, int]] = []
    for item in items:
        if len(held) < SHUFFLE_BUFFER:
            held.append(item)
            continue
        place = int(torch.randint(SHUFFLE_BUFFER, (), generator=shuffle))
        held[place], item = item, held[place]
        yield item
    for place in torch.randperm(len(held), generator=shuffle).tolist():
        yield held[place]


def as_batch(items: list[tuple[Tensor, int, int]], device: torch.device | str) -> Batch:
    images, labels, indices = zip(*items, strict=True)
    return Batch(to_pixels(torch.stack(images), device), torch.tensor(labels, device=device), torch.tensor(indices))


def load_iterable(
    name: str, root: str | None, class_map: str | None, preprocessing: Preprocessing | None, seed: int
) -> Dataset:
    """A stream: its length must be known, its classes come from the reader or the class map."""
    assert preprocessing is not None  # the size of a stream's images is never known
    readers = open_readers(name, root)
    if "test" not in readers and "validation" in readers:
        readers["test"] = readers.pop("validation")
    lengths = {split: int(reader.num_samples or 0) for split, reader in readers.items()}
    if not all(lengths.values()):
        raise SurefootError(f"Data '{name}' do not say how many images they hold; put the count into _info.json.")
    starts = {split: int(indices[0]) for split, indices in places(lengths).items()}
    called = {split: getattr(getattr(reader, "split_info", None), "name", "") or split for split, reader in readers.items()}
    draw = torch.rand(lengths.get("train", 0), generator=generator(seed, "split"))
    shares, used = {}, 0.0
    for split, share in CARVED.items():
        if split not in readers and "train" in readers:
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
