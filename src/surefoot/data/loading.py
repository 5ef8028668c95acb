"""One function from a name, a path or an object to a data set."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import SurefootError, require
from ..types import Labels
from .arguments import DATASETS, check_amounts, has_reader, is_stream, no_data
from .arrays import load_npz
from .collection import Arrays, Collection, Shares, assign_splits, files_of, publisher_splits, stratified_split
from .dataset import Dataset, Split, TensorSplit
from .folders import load_folder, load_labelled_folder, load_listed_files
from .hugging_face import load_hugging_face
from .objects import load_object
from .preprocessing import choose_preprocessing
from .settings import ModelSettings, settings_of
from .streaming import Pictures, StreamedSplit, decode_all, readable
from .subsets import stratified_indices
from .timm_sets import load_iterable

logger = logging.getLogger("surefoot")
NOT_RECORDED = ("given", "model", "given_object", "normalised", "channel_order", "audited", "lazy")


def load_data(
    name: Any,
    *,
    root: str | Path | None = None,
    download: bool = True,
    labels: str | Path | None = None,
    class_map: str | Path | None = None,
    image_size: int | tuple[int, int] | None = None,
    crop_pct: float | None = None,
    interpolation: str | None = None,
    model: str | ModelSettings | None = None,
    calibration: float | None = None,
    validation: float | None = None,
    fraction: float = 1.0,
    max_images: int | None = None,
    memory_gib: float = 2.0,
    audited: bool = False,
    lazy: bool = False,
    workers: int | None = None,
    skip_bad_images: bool = False,
    seed: int = 0,
    normalised: tuple[Any, Any] | None = None,
    channel_order: str | None = None,
) -> Dataset:
    """Load a data set by name, a folder of images, a `.npz`, a CSV of files and labels, or `hfds/`, `wds/`, `tfds/` names.

    Also an object: a torch `Dataset` or `DataLoader`, a Hugging Face `Dataset` or `DatasetDict`, (images, labels) as arrays, a
    pandas frame of files and labels, a list of (path, label), or a dictionary from splits to such objects. A lone set is a test
    set. `normalised` is the (mean, std) that its pixels have had, which is undone; `channel_order` "first" or "last".

    Sizes: what you say (`image_size`, `crop_pct`, `interpolation`) wins; images that all have one size of at most 64 px are
    left as they are; others follow the settings of `model`, if one is named.
    Splits: the publisher's where there are any; what is missing is taken from the training images, stratified, by `seed`:
    the shares `calibration` and `validation`, 0 allowed, a tenth each if not given.
    `fraction` keeps a stratified share of the full training set, those held out included, or, where neither share is given,
    of the images that are left. `max_images` keeps a stratified number of test images.
    Sets that need more than `memory_gib` as bytes are read by `workers` while the model computes. What is only `audited` is a
    test set, all of it, where no splits are given; `lazy` leaves the files of train and validation unread until asked for.

    Examples:
        >>> import surefoot as sf
        >>> data = sf.load_data("digits")
        >>> data.image_size, len(data.class_names)
        ((32, 32), 10)
    """
    check_amounts(fraction, max_images, workers, memory_gib)
    if isinstance(name, Dataset):
        return name
    given_object = None if isinstance(name, str | os.PathLike) else name
    name = os.fspath(name) if given_object is None else type(given_object).__name__
    root, labels, class_map = (None if path is None else os.fspath(path) for path in (root, labels, class_map))
    given = {key: value for key, value in locals().items() if key not in NOT_RECORDED}
    given["image_size"] = list(image_size) if isinstance(image_size, tuple) else image_size
    shares = {"calibration": calibration, "validation": validation}
    settings = settings_of(model) if isinstance(model, str) else model
    workers = min(os.cpu_count() or 1, 8) if workers is None else workers
    if given_object is None and (normalised is not None or channel_order is not None):
        raise SurefootError(f"normalised and channel_order are for objects in Python, and '{name}' is read by its name.")
    if given_object is not None and labels is not None:
        raise SurefootError("labels are for a flat folder of images, and data from Python bring their own.")
    if labels is not None and (has_reader(name) or name.endswith(".npz")):
        raise SurefootError(f"labels are for a flat folder of images, and '{name}' has its own.")
    if given_object is None and is_stream(name):
        if fraction < 1 or max_images is not None:
            raise SurefootError(f"fraction and max_images need labels known ahead, and '{name}' is a stream.")
        wanted = choose_preprocessing(None, image_size, crop_pct, interpolation, settings)
        return replace(load_iterable(name, root, class_map, wanted, seed, shares), source=given)
    if given_object is None:
        collection = open_collection(name, root, download, labels, class_map)
    else:
        about: dict[str, Any] = {"normalised": normalised, "channel_order": channel_order, "memory_gib": memory_gib}
        collection = load_object(given_object, root, class_map, **about)
    native = collection.source.common_size()
    certain = isinstance(collection.source, Arrays) or skip_bad_images  # which leaves out what has another size
    preprocessing = choose_preprocessing(native, image_size, crop_pct, interpolation, settings, certain)
    size = preprocessing.image_size if preprocessing else native
    assert size is not None
    given |= {"image_size": list(size), "crop_pct": preprocessing.crop_pct if preprocessing else 1.0}  # as it was resolved
    given["interpolation"] = preprocessing.interpolation if preprocessing else interpolation
    own = publisher_splits(collection.given)
    if audited and not collection.given and (given_object is not None or name not in DATASETS):
        own = {"test": torch.arange(len(collection.labels))}
        given["audited"] = True
    by_split = assign_splits(collection.labels, own, seed, shares)
    if fraction < 1:
        share = share_of_what_is_left(fraction, by_split, own, shares)
        by_split["train"] = stratified_share(by_split["train"], collection.labels, share, seed)
    if max_images is not None and max_images < len(by_split["test"]):
        by_split["test"] = by_split["test"][stratified_indices(collection.labels[by_split["test"]], max_images, seed)]
    total = sum(map(len, by_split.values())) * collection.channels * math.prod(size)
    pictures = Pictures(collection.source, preprocessing, size)
    splits: dict[str, Split] = {}
    notes = list(collection.notes)
    if class_map is None:
        notes += empty_classes(collection)
    for note in notes:
        logger.log(logging.WARNING if given_object is None else logging.INFO, "%s: %s", name, note)
    if not collection.given and not given.get("audited") and (given_object is not None or name not in DATASETS):
        notes.append(f"no splits were given, and the test split is {len(by_split['test'])} of {len(collection.labels)} images")
        logger.info("%s: %s", name, notes[-1])
    for split, indices in by_split.items():
        unread = lazy and split in ("train", "validation") and files_of(collection.source) is not None
        if total > memory_gib * 2**30 or unread:
            kept = indices[readable(pictures, indices, workers)] if skip_bad_images else indices
            splits[split], left_out = StreamedSplit(pictures, collection.labels[kept], kept, workers), len(indices) - len(kept)
        else:
            splits[split], left_out = in_memory(pictures, collection, indices, skip_bad_images)
        notes += [f"{left_out} images of {split} cannot be read and are left out"] if left_out else []
    if not any(map(len, splits.values())):
        raise SurefootError(f"None of {len(collection.labels)} images can be read.")
    return Dataset(
        **splits,
        class_names=collection.class_names,
        image_size=size,
        channels=collection.channels,
        augmentation=collection.augmentation,
        source=given if given_object is None else {},  # it cannot be found again by a name
        notes=tuple(notes),
    )


def open_collection(name: str, root: str | None, download: bool, labels: str | None, class_map: str | None) -> Collection:
    """Find out what `name` means: a registered set, a reader's name, a file or a folder."""
    if name in DATASETS:
        if labels is not None or class_map is not None:
            raise SurefootError(f"labels and class_map are for folders and files, and '{name}' is a published data set.")
        if name == "digits" and root is not None:
            raise SurefootError("root is for data that are read from a folder, and 'digits' is embedded.")
        loader = DATASETS.load(name)
        collection: Collection = loader() if name == "digits" else loader(name, root, download)
        return collection
    if has_reader(name):
        return load_hugging_face(name, root, class_map)
    path = Path(root) / name if root else Path(name)
    if path.suffix == ".csv" and labels is None and (Path(name).is_file() or path.is_file()):
        return load_listed_files(Path(name) if Path(name).is_file() else path, root, class_map)
    if path.suffix == ".npz":
        return load_npz(path, class_map)
    if path.is_dir():
        listed = Path(labels) if labels else path / "labels.csv"
        return load_labelled_folder(path, listed, class_map) if labels or listed.is_file() else load_folder(path, class_map)
    raise no_data(name, root)


def empty_classes(collection: Collection) -> list[str]:
    """A line on the classes that have no images, where there are any."""
    counts = collection.labels.bincount(minlength=len(collection.class_names)).tolist()
    empty = [name for name, count in zip(collection.class_names, counts, strict=True) if not count]
    shown = ", ".join(empty[:8]) + (", ..." if len(empty) > 8 else "")
    return [f"{len(empty)} of {len(counts)} classes have no images: {shown}"] if empty else []


def in_memory(pictures: Pictures, collection: Collection, indices: Tensor, skip: bool) -> tuple[TensorSplit, int]:
    """A split as one tensor, and how many of its images could not be read."""
    if isinstance(collection.source, Arrays) and pictures.preprocessing is None:
        return TensorSplit(collection.source.images[indices], collection.labels[indices], indices), 0
    images, good = decode_all(pictures, indices, collection.channels, skip)
    left_out = int((~good).sum())
    images = images[good] if left_out else images
    return TensorSplit(images, collection.labels[indices[good]], indices[good], files_of(collection.source)), left_out


def share_of_what_is_left(fraction: float, by_split: dict[str, Tensor], own: Container[str], shares: Shares) -> float:
    """A fraction of the full training set as a share of the images that are left to train on.

    With no share given it is one of those already, so that runs of earlier versions keep their images.
    """
    if all(share is None for share in shares.values()):
        return fraction
    left = len(by_split["train"])
    full = left + sum(len(by_split[name]) for name in shares if name not in own)
    most = left / max(full, 1)
    require(fraction <= most, "fraction", f"1, or at most the {most:g} that is left to train on", fraction)
    return fraction / most if left else fraction


def stratified_share(indices: Tensor, labels: Labels, share: float, seed: int) -> Tensor:
    """A share of some images, the same of every class."""
    if len(indices) == 0:
        return indices
    parts = stratified_split(labels[indices], {"kept": share, "rest": 1 - share}, seed)
    return indices[parts["kept"]] if len(parts["kept"]) else indices[:1]
