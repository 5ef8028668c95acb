"""Images that are arrays: a `.npz` file, and scikit-learn's digits."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from ..errors import NotFound, SurefootError, require
from ..files import read_arrays
from ..limits import check_limit
from .augmentation import Augmentation
from .collection import Arrays, Collection, read_class_map, renumber_classes

# A `.npz` file with images and labels.


def load_npz(path: Path, class_map: str | None = None) -> Collection:
    """`images` (count x height x width, with or without channels last, uint8), `labels`, and perhaps `class_names`."""
    if not path.is_file():
        raise NotFound("data file", path)
    arrays = read_arrays(path)
    for name in ("images", "labels"):
        if name not in arrays:
            raise SurefootError(f"'{path}' must hold 'images' and 'labels', got {', '.join(arrays) or 'nothing'}.")
    images, labels = arrays["images"], arrays["labels"]
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    require(images.dtype == np.uint8, "images", "uint8", str(images.dtype))
    shaped = images.ndim == 3 or (images.ndim == 4 and images.shape[3] in (1, 3))
    require(shaped, "images", "count x height x width, or with 1 or 3 channels at the end", images.shape)
    require(labels.shape == (len(images),), "labels", f"one for each of {len(images)} images", labels.shape)
    require(np.issubdtype(labels.dtype, np.integer), "labels", "whole numbers", str(labels.dtype))
    require(len(images) > 0, "images", "at least one", 0)
    check_limit("SUREFOOT_MAX_CLASSES", "labels number the classes up to", int(labels.max()))
    own = class_names(arrays, labels, class_map)
    if labels.min() < 0 or labels.max() >= len(own):
        raise SurefootError(f"labels must be in 0 to {len(own) - 1}, got {labels.min()} to {labels.max()}.")
    names, numbers = renumber_classes(own, class_map)
    pixels = torch.from_numpy(images)
    pixels = pixels.unsqueeze(1) if pixels.ndim == 3 else pixels.permute(0, 3, 1, 2).contiguous()
    colour = pixels.shape[1] == 3
    standard = Augmentation(crop_padding=0.125, flip=colour)
    renumbered = torch.tensor(numbers)[torch.from_numpy(labels.astype(np.int64))]
    return Collection(Arrays(pixels), renumbered, names, channels=pixels.shape[1], augmentation=standard)


def class_names(arrays: dict[str, np.ndarray], labels: np.ndarray, class_map: str | None) -> tuple[str, ...]:
    """What the labels of the file mean: as the file says, else as the class map says, else numbers."""
    if "class_names" in arrays:
        given = arrays["class_names"]
        require(given.ndim == 1, "class_names", "one for each class", given.shape)
        names = tuple(str(name) for name in given)
        check_names(names)
        return names
    if class_map is not None:
        return read_class_map(class_map)
    return tuple(str(number) for number in range(int(labels.max()) + 1))


def check_names(names: tuple[str, ...]) -> None:
    """Names of classes stand in files and tables: they are not empty, and a terminal can print them."""
    wrong = next((name for name in names if not name or not name.isprintable()), None)
    require(wrong is None, "class_names", "printable", wrong)


# scikit-learn's 1,797 scanned digits: real images that need no download, for demos and tests.


def load_digits() -> Collection:
    """The 8 x 8 scans enlarged to 32 x 32 RGB."""
    table = torch.from_numpy(np.loadtxt(digits_file(), delimiter=","))
    grey = table[:, :64].float().div(16).view(-1, 1, 8, 8)
    large = F.interpolate(grey, size=(32, 32), mode="bilinear", align_corners=False)
    images = large.mul(255).round().to(torch.uint8).expand(-1, 3, -1, -1).contiguous()
    names = tuple(map(str, range(10)))
    return Collection(Arrays(images), table[:, 64].long(), names, augmentation=Augmentation(crop_padding=0.0625))


def digits_file() -> Path:
    """Where scikit-learn keeps them; to import it for its own loader would take longer than most of what is done with them."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise SurefootError("The digits come with scikit-learn, which is not installed: pip install scikit-learn.")
    return Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
