"""torchvision's data sets by name, downloaded into a root folder when they are not there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch

from ..errors import SurefootError
from ..types import Labels
from .augmentation import Augmentation
from .collection import Arrays, Collection, Files, consecutive_indices

NATURAL = Augmentation(crop_padding=0.125, flip=True)
WRITTEN = Augmentation(crop_padding=0.125)  # a mirrored 2 is no 2


@dataclass(frozen=True)
class Published:
    """How torchvision calls a data set and its splits."""

    class_name: str
    splits: dict[str, dict[str, Any]]
    augmentation: Augmentation = NATURAL


BY_FLAG = {"train": {"train": True}, "test": {"train": False}}
BY_NAME = {"train": {"split": "train"}, "test": {"split": "test"}}
PUBLISHED = {
    "mnist": Published("MNIST", BY_FLAG, WRITTEN),
    "fashion-mnist": Published("FashionMNIST", BY_FLAG, NATURAL),
    "cifar10": Published("CIFAR10", BY_FLAG),
    "cifar100": Published("CIFAR100", BY_FLAG),
    "svhn": Published("SVHN", BY_NAME, WRITTEN),
    "oxford-pets": Published("OxfordIIITPet", {"train": {"split": "trainval"}, "test": {"split": "test"}}),
    "food101": Published("Food101", BY_NAME),
    "flowers102": Published("Flowers102", {**BY_NAME, "validation": {"split": "val"}}),
}


def default_root() -> Path:
    """Where downloads go: SUREFOOT_DATA, or a folder in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SUREFOOT_DATA") or Path(home) / "surefoot" / "data")


def load_published(name: str, root: str | None, download: bool) -> Collection:
    """One of torchvision's data sets."""
    published = PUBLISHED[name]
    folder = Path(root) if root else default_root()
    loaded = {split: open_split(name, published, folder, how, download) for split, how in published.splits.items()}
    names = class_names(name, loaded["train"])
    labels = torch.cat([labels_of(dataset) for dataset in loaded.values()])
    given = consecutive_indices({split: len(dataset) for split, dataset in loaded.items()})
    if hasattr(loaded["train"], "data"):
        images = torch.cat([pixels(dataset) for dataset in loaded.values()])
        return Collection(Arrays(images), labels, names, given, images.shape[1], published.augmentation)
    paths = [path for dataset in loaded.values() for path in paths_of(dataset)]
    return Collection(Files(paths), labels, names, given, augmentation=published.augmentation)


def open_split(name: str, published: Published, root: Path, how: dict[str, Any], download: bool) -> Any:
    """torchvision's object for one split; looked for on disk first."""
    import torchvision

    make = getattr(torchvision.datasets, published.class_name)
    try:
        return make(root=root, download=False, **how)
    except RuntimeError as error:
        if not download:
            advice = f"give --data {name} yourself, or pass download=True, and it is downloaded; or give another root"
            raise SurefootError(f"Data set '{name}' is not in '{root}': {advice}.") from error
    try:
        root.mkdir(parents=True, exist_ok=True)
        return make(root=root, download=True, **how)
    except (URLError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise SurefootError(f"Data set '{name}' is not in '{root}' and cannot be downloaded: {reason}.") from error


def pixels(dataset: Any) -> torch.Tensor:
    """The images of MNIST, CIFAR or SVHN as uint8, count x channels x height x width."""
    data = torch.from_numpy(dataset.data) if isinstance(dataset.data, np.ndarray) else dataset.data
    if data.ndim == 3:
        return data.unsqueeze(1)
    return data if data.shape[1] == 3 else data.permute(0, 3, 1, 2).contiguous()


def labels_of(dataset: Any) -> Labels:
    values = next(getattr(dataset, name) for name in ("targets", "labels", "_labels") if hasattr(dataset, name))
    return torch.as_tensor(values).long()


def paths_of(dataset: Any) -> list[Path]:
    files = next(getattr(dataset, name) for name in ("_image_files", "_images") if hasattr(dataset, name))
    return [Path(path) for path in files]


def class_names(name: str, dataset: Any) -> tuple[str, ...]:
    """torchvision's names, or numbers where it has none."""
    if getattr(dataset, "classes", None):
        return tuple(str(label).split(" - ")[-1] if name == "mnist" else str(label) for label in dataset.classes)
    return tuple(str(number) for number in range(int(labels_of(dataset).max()) + 1))
