"""What may be asked of data: names of sets and splits, sizes, counts; checked before a picture is read, and without torch."""

from __future__ import annotations

import math
from pathlib import Path

from ..errors import NotFound, SurefootError, UnknownName, require
from ..limits import check_limit
from ..registry import Registry

SPLITS = ("train", "calibration", "validation", "test")
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "box", "hamming", "lanczos")
SMALLEST = 2  # px, below which there is no picture
MOST_WORKERS = 256
PACKAGES = {"hfds": "datasets", "hfids": "datasets", "wds": "webdataset", "tfds": "tensorflow_datasets"}
_PUBLISHED = "surefoot.data.torchvision_sets:load_published"
DATASETS = Registry(
    "data set",
    [
        ("digits", "surefoot.data.arrays:load_digits", "1,797 scanned digits, 32 x 32 RGB, embedded (no download)"),
        ("mnist", _PUBLISHED, "70,000 handwritten digits, 28 x 28 grey"),
        ("fashion-mnist", _PUBLISHED, "70,000 pictures of clothes, 28 x 28 grey"),
        ("cifar10", _PUBLISHED, "60,000 pictures of 10 classes, 32 x 32"),
        ("cifar100", _PUBLISHED, "60,000 pictures of 100 classes, 32 x 32"),
        ("svhn", _PUBLISHED, "99,289 house numbers, 32 x 32"),
        ("oxford-pets", _PUBLISHED, "7,349 pictures of 37 breeds of cats and dogs"),
        ("food101", _PUBLISHED, "101,000 pictures of 101 dishes"),
        ("flowers102", _PUBLISHED, "8,189 pictures of 102 flowers"),
    ],
)
DOWNLOADED = tuple(entry.name for entry in DATASETS if entry.target == _PUBLISHED)


def has_reader(name: str) -> bool:
    """Whether the name begins like one of a reader, as `hfds/NAME`: data that somebody else's package reads."""
    return name.partition("/")[0] in PACKAGES and "/" in name


def is_stream(name: str) -> bool:
    """Whether images come in the reader's order only."""
    return has_reader(name) and not name.startswith("hfds/")


def check_split(name: str) -> None:
    """That a split has this name."""
    if name not in SPLITS:
        raise UnknownName("split", name, SPLITS)


def check_size(image_size: int | tuple[int, int] | None) -> None:
    """That pictures can have this size."""
    if image_size is not None:
        height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        require(min(height, width) >= SMALLEST, "image_size", f"at least {SMALLEST}", image_size)
        check_limit("SUREFOOT_MAX_PIXELS", "image_size asks for pixels:", height * width)


def check_resizing(crop_pct: float | None, interpolation: str | None) -> None:
    """That pictures can be cropped and resized so."""
    require(crop_pct is None or 0 < crop_pct <= 1, "crop_pct", "above 0 and at most 1", crop_pct)
    if interpolation is not None and interpolation not in INTERPOLATIONS:
        raise UnknownName("interpolation", interpolation, INTERPOLATIONS)


def check_amounts(
    fraction: float = 1.0, max_images: int | None = None, workers: int | None = None, memory_gib: float = 0.0
) -> None:
    """That there can be so many pictures, read by so many."""
    require(0 < fraction <= 1, "fraction", "above 0 and at most 1", fraction)
    require(max_images is None or max_images >= 1, "max_images", "at least 1", max_images)
    require(workers is None or 0 <= workers <= MOST_WORKERS, "workers", f"0 to {MOST_WORKERS}", workers)
    require(0 <= memory_gib < math.inf, "memory_gib", "at least 0", memory_gib)


def check_data(name: str, root: str | None = None) -> None:
    """That `name` is a registered set, a reader's name, or a file or folder that is there."""
    path = Path(root) / name if root else Path(name)
    if not (name in DATASETS or has_reader(name) or path.exists() or Path(name).is_file()):
        raise no_data(name, root)


def no_data(name: str, root: str | None) -> SurefootError:
    """Why `name` is none."""
    path = Path(root) / name if root else Path(name)
    if path.suffix == ".npz":
        return NotFound("data file", path)
    if path.exists():
        return SurefootError(f"'{path}' is neither a folder nor a .npz or .csv file.")
    if len(Path(name).parts) > 1 or root:
        return NotFound("data folder", path)
    beside = [child.name for child in sorted(Path().iterdir()) if child.is_dir()]
    return UnknownName("data set or folder", name, [*DATASETS.names, *beside])
