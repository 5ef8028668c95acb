"""Sets of foreign pictures: a data set by name, a folder, a file, tensors, or, without any, some that are made here.

Those are crops of the photographs that scikit-learn ships, uniform and Gaussian noise, and the known pictures with their
patches shuffled. A set is far from the known pictures unless it is said to be near, as the shuffled patches are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..data.arguments import DATASETS
from ..data.arrays import digits_file
from ..data.collection import Arrays, Files, Source, files_of, publisher_splits
from ..data.dataset import Dataset, Split, TensorSplit
from ..data.folders import image_files
from ..data.image_files import read_image, to_tensor
from ..data.loading import open_collection
from ..data.preprocessing import Preprocessing
from ..data.streaming import Pictures, StreamedSplit
from ..data.subsets import choose
from ..errors import SurefootError, require
from ..seeds import generator
from ..types import Batch, check_images
from .arguments import MADE, check_pictures, told

NEAR = ("patches",)
LEVEL, DEVIATION = 0.5, 0.25  # of Gaussian noise, clipped to [0, 1]
GRID = 4  # patches along each side
BLOCK = 64  # pictures drawn by one generator, so that a picture does not depend on how many there are
MOST = 1000  # pictures that are made
JPEG = (".jpg", ".jpeg")
Size = tuple[int, int]


@dataclass(frozen=True)
class ForeignSet:
    """Pictures that are none of the classes; `size` and `jpeg` are those before they were made like the known ones."""

    name: str
    split: Split
    near: bool = False
    class_names: tuple[str, ...] = ()
    size: Size | None = None
    jpeg: bool | None = None
    made: bool = False

    def __len__(self) -> int:
        return len(self.split)

    def batches(self, count: int | None, batch_size: int, channels: int, device: torch.device | str) -> Iterator[Batch]:
        """At most so many of the pictures, with the channels of the known ones."""
        for batch in choose(self.split, count).batches(batch_size, device=device):
            yield Batch(with_channels(batch.images, channels), batch.labels, batch.indices)


def with_channels(images: Tensor, channels: int) -> Tensor:
    """Grey pictures in three equal channels, or the mean of three."""
    if images.shape[1] == channels:
        return images
    require({images.shape[1], channels} == {1, 3}, "foreign pictures", f"of 1 or 3 channels, or {channels}", images.shape[1])
    return images.expand(-1, 3, -1, -1) if channels == 3 else images.mean(1, keepdim=True)


def foreign_sets(given: Mapping[str, Any] | Sequence[str], data: Dataset, split: str, seed: int = 0) -> dict[str, ForeignSet]:
    """Sets by name: those that were given, or those that are made here where none was.

    A mapping names sources, a list is of sources; `near:` before a name, or before a source of a list, says that it is near.
    """
    if isinstance(given, str):
        raise SurefootError(f"foreign must be a list of names or a mapping, got '{given}'.")
    if not given:
        return {name: made_set(name, data, split, seed) for name in MADE}
    named = given.items() if isinstance(given, Mapping) else [(name_of(source), source) for source in given]
    sets: dict[str, ForeignSet] = {}
    for name, source in named:
        near, bare = told(name)
        if isinstance(source, str):
            also, source = told(source)
            near = near if also is None else also
        if bare in sets:
            raise SurefootError(f"foreign names two sets '{bare}'; give them as a mapping with other names.")
        sets[bare] = open_set(bare, source, data, split, near, seed)
    return sets


def name_of(source: str) -> str:
    near, bare = told(source)
    name = bare if bare in (*MADE, *DATASETS.names) else Path(bare).stem or bare
    return f"{'near' if near else 'far'}:{name}" if near is not None else name


def open_set(name: str, source: Any, data: Dataset, split: str, near: bool | None, seed: int) -> ForeignSet:
    """A set from what the user gave."""
    if isinstance(source, str) and source in MADE:
        return made_set(source, data, split, seed, name, near)
    if isinstance(source, str | Path):
        opened = opened_set(name, str(source), data.image_size, data.source)
    elif isinstance(source, Tensor):
        opened = tensor_set(name, source, data.image_size)
    elif isinstance(source, Dataset):
        opened = ForeignSet(name, source.test, class_names=source.class_names, size=source.image_size)
    elif hasattr(source, "batches"):
        opened = ForeignSet(name, source)
    else:
        kind = type(source).__name__
        raise SurefootError(f"foreign '{name}' must be a name, a path, a data set, a split or a tensor, got {kind}.")
    if not len(opened):
        raise SurefootError(f"Foreign set '{name}' has no pictures.")
    return ForeignSet(name, opened.split, bool(near), opened.class_names, opened.size, opened.jpeg)


def tensor_set(name: str, images: Tensor, size: Size) -> ForeignSet:
    """Pixels in memory: uint8, or floats in [0, 1]."""
    require(images.ndim == 4, f"foreign '{name}'", "count x channels x height x width", tuple(images.shape))
    if images.dtype != torch.uint8:
        check_images(images, f"foreign '{name}'")
        images = images.mul(255).round().to(torch.uint8)
    own = (images.shape[2], images.shape[3])
    if own != size:
        images = F.interpolate(images.float(), size, mode="bilinear", antialias=True).round().clamp(0, 255).to(torch.uint8)
    return ForeignSet(name, in_memory(images), size=own)


def opened_set(name: str, source: str, size: Size, reading: Mapping[str, Any]) -> ForeignSet:
    """A data set's test split, all pictures below a folder, or a `.npz`, resized and cropped to `size`.

    `reading` is how the known pictures are read: root, crop_pct, interpolation.
    """
    check_pictures(source)
    path = Path(source)
    class_names: tuple[str, ...] = ()
    pictures: Source
    if source not in DATASETS and path.is_dir():
        files = image_files(path)
        if not files:
            raise SurefootError(f"Foreign folder '{path}' has no pictures.")
        pictures, indices = Files(files), torch.arange(len(files))
        class_names = tuple(sorted({file.parent.name for file in files}))
    elif source in DATASETS or path.suffix == ".npz":
        root = None if source == "digits" or path.suffix == ".npz" else reading.get("root")
        collection = open_collection(source, root, True, None, None)
        own = publisher_splits(collection.given)
        indices = own.get("test", torch.arange(len(collection.labels)))
        pictures, class_names = collection.source, collection.class_names
    else:
        raise SurefootError(f"foreign '{path}' is neither a folder nor a .npz file.")
    native = pictures.common_size()
    options = {key: reading[key] for key in ("crop_pct", "interpolation") if reading.get(key) is not None}
    wanted = None if native == size and isinstance(pictures, Arrays) else Preprocessing(size, **options)
    split = StreamedSplit(Pictures(pictures, wanted, size), torch.zeros(len(indices), dtype=torch.long), indices, 0)
    return ForeignSet(name, split, class_names=class_names, size=native, jpeg=are_jpeg(files_of(pictures)))


def are_jpeg(files: Sequence[Path] | None) -> bool | None:
    """Whether most of the files are compressed as JPEG; None without files."""
    return None if not files else 2 * sum(file.suffix.lower() in JPEG for file in files) > len(files)


# Sets that are made here.


def made_set(
    name: str, data: Dataset, split: str, seed: int, called: str | None = None, near: bool | None = None
) -> ForeignSet:
    """One of `MADE`, as many pictures as the split has and at most `MOST`."""
    known = data.split(split)
    count = min(len(known), MOST)
    shape = (data.channels, *data.image_size)
    if name == "patches":
        blocks = (batch.images for batch in choose(known, count, seed).batches(BLOCK))
        made = (shuffled_patches(images, generator(seed, "patches", BLOCK * k)) for k, images in enumerate(blocks))
    else:
        make = {"photographs": photograph_crops, "noise-uniform": uniform_noise, "noise-gaussian": gaussian_noise}[name]
        made = (make(shape, generator(seed, name, start)) for start in range(0, count, BLOCK))
    pixels = in_memory(torch.cat([images.mul(255).round().to(torch.uint8) for images in made])[:count])
    return ForeignSet(called or name, pixels, name in NEAR if near is None else near, made=True)


def in_memory(images: Tensor) -> TensorSplit:
    return TensorSplit(images.cpu(), torch.zeros(len(images), dtype=torch.long), torch.arange(len(images)))


def uniform_noise(shape: Sequence[int], random: torch.Generator) -> Tensor:
    return torch.rand(BLOCK, *shape, generator=random)


def gaussian_noise(shape: Sequence[int], random: torch.Generator) -> Tensor:
    return (LEVEL + DEVIATION * torch.randn(BLOCK, *shape, generator=random)).clamp(0, 1)


def photograph_crops(shape: Sequence[int], random: torch.Generator) -> Tensor:
    """Squares of the photographs at random places, from a quarter of their height (or the size asked for) up to all of it."""
    channels, height, width = shape
    photographs = [to_tensor(read_image(path)).float() / 255 for path in photograph_files()]
    crops = []
    for draw in torch.rand(BLOCK, 4, generator=random, dtype=torch.float64).tolist():
        photograph = photographs[int(draw[0] * len(photographs))]
        rows, columns = photograph.shape[1:]
        least = min(max(height, width, rows // 4), rows)
        side = least + int(draw[1] * (rows - least + 1))
        top, left = int(draw[2] * (rows - side + 1)), int(draw[3] * (columns - side + 1))
        crop = photograph[None, :, top : top + side, left : left + side]
        crops.append(F.interpolate(crop, (height, width), mode="bilinear", antialias=True, align_corners=False))
    return with_channels(torch.cat(crops).clamp(0, 1), channels)


def photograph_files() -> list[Path]:
    """The two photographs that scikit-learn ships."""
    return sorted((digits_file().parents[1] / "images").glob("*.jpg"))


def shuffled_patches(images: Tensor, random: torch.Generator) -> Tensor:
    """Pictures of a block cut into 4 x 4 patches that change places, for each in its own way; edges that do not fit stay."""
    height, width = (side // GRID * GRID for side in images.shape[2:])
    if not (height and width):
        return images.flip(-1)
    patch = (height // GRID, width // GRID)
    patches = F.unfold(images[:, :, :height, :width], patch, stride=patch)
    order = torch.rand(BLOCK, GRID * GRID, generator=random).argsort(1)[: len(images), None].to(images.device)
    shuffled = images.clone()
    moved = patches.gather(2, order.expand_as(patches))
    shuffled[:, :, :height, :width] = F.fold(moved, (height, width), patch, stride=patch)
    return shuffled
