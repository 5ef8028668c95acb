"""Data that are objects in Python: torch data sets and loaders, arrays, frames and lists, brought to uint8 pixels.

What an object does not say of itself (pixel range, order of channels, normalisation, names of classes) is found out, said in
a note, and can be set; what stays open is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler, SubsetRandomSampler, TensorDataset
from torch.utils.data import default_collate as usual_collate

from ..errors import SurefootError, UnknownName, require
from ..progress import progress_bar
from .augmentation import Augmentation
from .collection import Arrays, Collection, Source, common_size, consecutive_indices
from .folders import AUGMENTATION, SPLIT_FOLDERS, load_table, split_of
from .hugging_face import from_tables, is_hugging_face, read_labels, tables_of
from .pixels import CHANNEL_ORDERS, ITEM_IMAGES, ITEM_LABELS, Pixels, is_pictures, named

SAMPLE = 64  # images by which the range of the pixels is judged
PATIENCE = 2000  # images; fewer need no progress bar
ALONE = "a lone set is a test set"


@dataclass(frozen=True)
class Items:
    """Pictures that are asked of somebody's data set one by one."""

    items: Any
    pixels: Pixels

    def read(self, index: int) -> Any:
        return self.pixels.picture(image_and_label(self.items[index])[0], index)

    def common_size(self) -> tuple[int, int] | None:
        return common_size(self, spread(len(self.items)))


@dataclass(frozen=True)
class Parts:
    """Sources that stand one after the other."""

    sources: tuple[Source, ...]
    starts: tuple[int, ...]

    def read(self, index: int) -> Any:
        source, start = next((s, n) for s, n in zip(self.sources[::-1], self.starts[::-1], strict=True) if index >= n)
        return source.read(index - start)

    def common_size(self) -> tuple[int, int] | None:
        sizes = {source.common_size() for source in self.sources}
        return sizes.pop() if len(sizes) == 1 else None


@dataclass(frozen=True)
class Part:
    """One split as it was given: pictures, labels, and what was found about them."""

    source: Source
    labels: list[Any]
    names: tuple[str, ...] | None
    channels: int
    found: tuple[str, ...]


@dataclass(frozen=True)
class Wishes:
    """What the user says about the pixels, and how many bytes may be held."""

    normalised: tuple[Any, Any] | None
    channel_order: str | None
    room: float


def load_object(
    given: Any,
    root: str | None,
    class_map: str | None,
    *,
    normalised: tuple[Any, Any] | None = None,
    channel_order: str | None = None,
    memory_gib: float = 2.0,
) -> Collection:
    """Anything that `load_data` takes beside names and paths."""
    if channel_order is not None and channel_order not in CHANNEL_ORDERS:
        raise UnknownName("channel order", channel_order, CHANNEL_ORDERS)
    require(normalised is None or len(normalised) == 2, "normalised", "(mean, std)", normalised)
    if is_hugging_face(given):
        return from_tables("the data", *tables_of(given), None, class_map)
    if type(given).__module__.partition(".")[0] == "pandas":
        return load_table(frame_rows(given), "the frame", Path(root or "."), class_map)
    if is_path_list(given):
        rows = [{"file": str(path), "label": str(label)} for path, label in given]
        return load_table(rows, "the list", Path(root or "."), class_map)
    wishes = Wishes(normalised, channel_order, memory_gib * 2**30)
    if is_splits(given):
        by_split = {split_of(name): open_part(part, wishes) for name, part in given.items()}
    else:
        by_split = {"test": open_part(given, wishes)}
    return joined(by_split, class_map, alone=not is_splits(given))


def is_splits(given: Any) -> bool:
    """Whether it is a mapping from names of splits."""
    usual = {name for names in SPLIT_FOLDERS.values() for name in names}
    return isinstance(given, Mapping) and len(given) > 0 and all(str(name).lower() in usual for name in given)


def is_path_list(given: Any) -> bool:
    if not isinstance(given, list | tuple) or not given:
        return False
    return all(isinstance(row, list | tuple) and len(row) == 2 and isinstance(row[0], str | Path) for row in given)


def frame_rows(frame: Any) -> list[dict[str, str]]:
    """The rows of a pandas frame as a CSV would have them."""
    if not hasattr(frame, "columns"):
        raise SurefootError(f"Data must be a frame with columns 'file' and 'label', got a {type(frame).__name__}.")
    if bool(frame.isna().to_numpy().any()):
        raise SurefootError("The frame has empty cells: drop those rows (frame.dropna()).")
    return [{str(name): str(cell).strip() for name, cell in row.items()} for row in frame.to_dict("records")]


def joined(by_split: Mapping[str, Part], class_map: str | None, *, alone: bool) -> Collection:
    """The splits as one collection; a lone `train` is divided as a folder without a division is."""
    names = next((part.names for part in by_split.values() if part.names), None)
    if any(part.names not in (None, names) for part in by_split.values()):
        raise SurefootError("The splits name their classes differently; give them the same classes in the same order.")
    channels = {part.channels for part in by_split.values()}
    require(len(channels) == 1, "images", "of one number of channels in all splits", sorted(channels))
    feature = SimpleNamespace(names=list(names or ()))
    class_names, labels = read_labels("the data", {name: part.labels for name, part in by_split.items()}, feature, class_map)
    given = consecutive_indices({name: len(part.labels) for name, part in by_split.items()})
    sources = [part.source for part in by_split.values()]
    source: Source = Parts(tuple(sources), tuple(int(indices[0]) for indices in given.values()))
    arrays = [each.images for each in sources if isinstance(each, Arrays)]
    if len(arrays) == len(sources) and len({images.shape[1:] for images in arrays}) == 1:
        source = Arrays(torch.cat(arrays) if len(arrays) > 1 else arrays[0])
    notes = dict.fromkeys(note for part in by_split.values() for note in (*part.found, *([ALONE] if alone else [])))
    standard = AUGMENTATION if channels == {3} else Augmentation(crop_padding=0.125)
    divided = {} if list(by_split) == ["train"] else given
    return Collection(source, labels, class_names, divided, channels.pop(), standard, tuple(notes))


def open_part(given: Any, wishes: Wishes) -> Part:
    """One split: arrays, or items one by one."""
    if isinstance(given, TensorDataset) and len(given.tensors) == 2:
        given = given.tensors
    if isinstance(given, Mapping):
        given = tuple(given[named(given, words, what)] for words, what in ((ITEM_IMAGES, "images"), (ITEM_LABELS, "labels")))
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(each, np.ndarray | Tensor) for each in given):
        return array_part(*given, wishes)
    if isinstance(given, DataLoader):
        given = LoaderItems.of(given)
    if isinstance(given, IterableDataset) or not (hasattr(given, "__getitem__") and hasattr(given, "__len__")):
        given = read_through(given, wishes.room)
    require(len(given) > 0, "data", "at least one image", 0)
    return item_part(given, wishes)


def array_part(images: Any, labels: Any, wishes: Wishes) -> Part:
    """Arrays of images and labels."""
    pixels = torch.as_tensor(np.ascontiguousarray(images)) if isinstance(images, np.ndarray) else images.detach().cpu()
    values = torch.as_tensor(labels).flatten().tolist() if is_number_array(labels) else [str(each) for each in labels]
    require(len(values) == len(pixels), "labels", f"one for each of {len(pixels)} images", len(values))
    require(len(pixels) > 0, "data", "at least one image", 0)
    require(is_pictures(pixels[0]), "images", "count x channels x height x width, or channels last", tuple(pixels.shape))
    rule = Pixels.of([pixels[row] for row in spread(len(pixels))], wishes.normalised, wishes.channel_order)
    whole = rule.many(pixels)
    return Part(Arrays(whole), values, None, whole.shape[1], rule.found)


def is_number_array(labels: Any) -> bool:
    return isinstance(labels, Tensor) or np.issubdtype(labels.dtype, np.number)


def item_part(items: Any, wishes: Wishes) -> Part:
    """A data set that is asked for its items one by one; held as one array if all have one size and there is room."""
    first = [image_and_label(items[row])[0] for row in spread(len(items))]
    again = image_and_label(items[0])[0]
    if not np.array_equal(np.asarray(first[0]), np.asarray(again)):
        raise SurefootError("The data set gives another picture each time: give it the transform of the test images.")
    transform = find_normalisation(items) if wishes.normalised is None else wishes.normalised
    rule = Pixels.of(first, transform, wishes.channel_order, by_transform=wishes.normalised is None)
    labels: list[Any] = []
    held: list[Tensor] | None = []
    bytes_held, channels = 0.0, 0
    with progress_bar(show=len(items) >= PATIENCE) as bar:
        task = bar.add_task("reading the data set", total=len(items))
        for index in range(len(items)):
            image, label = image_and_label(items[index])
            labels.append(label)
            pixels = rule.one(image, index)
            channels = channels or len(pixels)
            bytes_held += pixels.numel()
            if held is not None and bytes_held <= wishes.room and (not held or held[0].shape == pixels.shape):
                held.append(pixels)
            else:
                held = None
            bar.advance(task)
    source: Source = Items(items, rule) if held is None else Arrays(torch.stack(held))
    return Part(source, labels, names_of(items), channels, rule.found)


def image_and_label(item: Any) -> tuple[Any, Any]:
    """The two of a tuple or a dictionary; labels as whole numbers or words."""
    if isinstance(item, Mapping):
        image, label = (item[named(item, words, what)] for words, what in ((ITEM_IMAGES, "image"), (ITEM_LABELS, "label")))
    elif isinstance(item, list | tuple) and len(item) >= 2:
        image, label = item[0], item[1]
    else:
        raise SurefootError(f"An item of the data must be (image, label) or a dictionary of them, got {type(item).__name__}.")
    if isinstance(label, str):
        return image, label
    number = torch.as_tensor(label)
    if number.numel() != 1 or number.is_floating_point():
        raise SurefootError(f"A label must be one whole number or a word, got {tuple(number.shape)} of {number.dtype}.")
    return image, int(number.reshape(()))


@dataclass(frozen=True)
class LoaderItems:
    """The items of a loader, in the order of its data set: those that its sampler takes, by its own `collate_fn`."""

    dataset: Any
    rows: Sequence[int]
    collate: Any

    @classmethod
    def of(cls, loader: DataLoader[Any]) -> Any:
        if isinstance(loader.dataset, IterableDataset):
            return (pair for batch in loader for pair in unbatched(batch))
        sampler: Any = loader.sampler if loader.batch_sampler is None or loader.batch_size is not None else loader.batch_sampler
        dataset: Any = loader.dataset
        if isinstance(sampler, SequentialSampler) or (isinstance(sampler, RandomSampler) and not sampler.replacement):
            rows: Sequence[int] = range(len(dataset))
        elif isinstance(sampler, SubsetRandomSampler):
            rows = sorted(sampler.indices)
        else:
            taken = [each for chosen in sampler for each in (chosen if isinstance(chosen, list | tuple) else [chosen])]
            rows = sorted(set(taken))
        return cls(dataset, rows, None if loader.collate_fn is usual_collate else loader.collate_fn)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        item = self.dataset[self.rows[index]]
        return item if self.collate is None else next(unbatched(self.collate([item])))


def unbatched(batch: Any) -> Any:
    """The items of a batch."""
    if isinstance(batch, Mapping):
        images, labels = (batch[named(batch, words, what)] for words, what in ((ITEM_IMAGES, "image"), (ITEM_LABELS, "label")))
    else:
        images, labels = batch[0], batch[1]
    return zip(images, labels, strict=True)


def read_through(given: Any, room: float) -> list[Any]:
    """The items of what can only be read from its beginning, while there is room."""
    try:
        stream = iter(given)
    except TypeError as error:
        kinds = "a name, a folder, a torch Dataset or DataLoader, a Hugging Face data set, (images, labels), a frame of paths"
        raise SurefootError(f"Data must be {kinds} or a list of (path, label), got {type(given).__name__}.") from error
    items = list(islice(stream, 1))
    if items:
        size = np.asarray(image_and_label(items[0])[0]).nbytes
        most = int(room // max(1, size))
        items += islice(stream, most)
        if len(items) > most:
            raise SurefootError(f"More than {most:,} images come from a stream, and memory_gib holds no more: raise it.")
    return items


def wrapped(dataset: Any) -> list[Any]:
    """A data set and what it wraps (`Subset`, a loader's items), outermost first."""
    inside = [dataset]
    while (inner := getattr(inside[-1], "dataset", None)) is not None and len(inside) < 16:
        inside.append(inner)
    return inside


def names_of(dataset: Any) -> tuple[str, ...] | None:
    """The names of the classes, where torchvision's attribute says them."""
    for each in wrapped(dataset):
        classes = getattr(each, "classes", None)
        if isinstance(classes, list | tuple) and all(isinstance(name, str) for name in classes):
            return tuple(classes)
    return None


def find_normalisation(dataset: Any) -> tuple[Any, Any] | None:
    """Mean and std of a `Normalize` at the end of the transform, where there is one."""
    for each in wrapped(dataset):
        for name in ("transform", "transforms"):
            steps = flat_steps(getattr(each, name, None))
            found = [step for step in steps if type(step).__name__ == "Normalize"]
            if len(found) > 1:
                raise SurefootError("The transform normalises twice: leave out both, and give pixels in [0, 1].")
            if found:
                return tuple(map(float, found[0].mean)), tuple(map(float, found[0].std))
    return None


def flat_steps(transform: Any) -> list[Any]:
    """The steps of a transform, with those inside it (torchvision's `Compose` and `StandardTransform`)."""
    if transform is None:
        return []
    inner = getattr(transform, "transforms", None) or [getattr(transform, "transform", None)]
    steps = [step for each in inner if each is not None and each is not transform for step in flat_steps(each)]
    return steps or [transform]


def spread(count: int) -> list[int]:
    """Some rows from all over the data."""
    return list(range(0, count, max(1, count // SAMPLE)))[:SAMPLE]
