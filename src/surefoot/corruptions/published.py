"""Corrupted copies that users have on disk: CIFAR-C's `.npy` files, or ImageNet-C's folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..data.collection import Files, common_size
from ..data.dataset import Split, TensorSplit
from ..data.folders import class_files
from ..data.preprocessing import Preprocessing
from ..data.streaming import Pictures, StreamedSplit
from ..data.subsets import taken
from ..errors import NotFound, SurefootError, UnknownName, require
from ..types import Batch
from .arguments import check_copied
from .engine import corrupt

SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class ArrayCopies:
    """`<name>.npy` (five severities one after the other, count x height x width x 3, uint8) and `labels.npy`."""

    folder: Path

    @property
    def names(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.npy") if path.stem != "labels")

    def split(self, name: str, severity: int) -> TensorSplit:
        """The images of one corruption at one severity, read from the file without the others."""
        require(severity in SEVERITIES, "severity", "1, 2, 3, 4 or 5 for corruptions on disk", severity)
        if name not in self.names:
            raise UnknownName(f"corruption in '{self.folder}'", name, self.names)
        path = self.folder / f"{name}.npy"
        images, labels = read_array(path), read_array(self.folder / "labels.npy")
        shaped = images.ndim == 4 and images.shape[3] in (1, 3) and images.dtype == np.uint8 and len(images) % 5 == 0
        require(shaped, f"'{path}'", "uint8, five times count x height x width x channels", (str(images.dtype), *images.shape))
        count = len(images) // 5
        if len(labels) not in (count, 5 * count):
            raise SurefootError(f"'{self.folder / 'labels.npy'}' must hold {count} or {5 * count} labels, got {len(labels)}.")
        part = images[(severity - 1) * count : severity * count]
        pixels = torch.from_numpy(np.array(part)).permute(0, 3, 1, 2).contiguous()
        return TensorSplit(pixels, torch.from_numpy(labels[:count].astype(np.int64)), torch.arange(count))


@dataclass(frozen=True)
class FolderCopies:
    """`<name>/<severity>/<class>/<image>`; classes are numbered in the order of their names, or in the order given."""

    folder: Path
    class_names: tuple[str, ...] | None = None
    preprocessing: Preprocessing | None = None
    workers: int = 0

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if (path / "1").is_dir())

    def split(self, name: str, severity: int) -> StreamedSplit:
        """The images of one corruption at one severity, read while they are needed."""
        require(severity in SEVERITIES, "severity", "1, 2, 3, 4 or 5 for corruptions on disk", severity)
        if name not in self.names:
            raise UnknownName(f"corruption in '{self.folder}'", name, self.names)
        by_class = class_files(self.folder / name / str(severity))
        known = self.class_names or tuple(sorted(by_class))
        for missing in set(by_class) - set(known):
            raise UnknownName(f"class of '{self.folder}'", missing, known)
        paths = [path for label in known for path in by_class.get(label, [])]
        labels = torch.tensor([number for number, label in enumerate(known) for _ in by_class.get(label, [])])
        source = Files(paths)
        size = self.preprocessing.image_size if self.preprocessing else common_size(source, range(min(len(paths), 8)))
        if size is None:
            raise SurefootError(f"The images in '{self.folder}' differ in size: give a preprocessing.")
        return StreamedSplit(Pictures(source, self.preprocessing, size), labels, torch.arange(len(labels)), self.workers)


def open_copies(
    folder: str | Path, class_names: tuple[str, ...] | None = None, preprocessing: Preprocessing | None = None
) -> ArrayCopies | FolderCopies:
    """The corrupted copies in a folder, in whichever layout; classes and preprocessing are for trees of images."""
    path = Path(folder)
    check_copied(path)
    if (path / "labels.npy").is_file():
        return ArrayCopies(path)
    copies = FolderCopies(path, class_names, preprocessing)
    if not copies.names:
        raise SurefootError(f"'{path}' holds neither labels.npy with <name>.npy nor <name>/<severity>/<class>/<image>.")
    return copies


def read_array(path: Path) -> np.ndarray:
    """A `.npy` file of plain numbers, mapped, not read."""
    if not path.is_file():
        raise NotFound("array", path)
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise SurefootError(f"'{path}' is not a whole .npy file of numbers: {str(error).splitlines()[0]}.") from error
    return array


@dataclass(frozen=True)
class CorruptedSplit:
    """A split seen through a corruption; `origin` says whether it is generated or read, and from where."""

    split: Split
    name: str
    severity: float
    origin: str
    seed: int | None  # None where the images are read
    indices: Tensor | None = None  # where they are read: the index in the data set of each copy

    def __len__(self) -> int:
        return len(self.split)

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: torch.Generator | None = None,
        drop_last: bool = False,
        device: torch.device | str = "cpu",
        part: Tensor | None = None,
    ) -> Iterator[Batch]:
        for batch in self.split.batches(batch_size, shuffle=shuffle, drop_last=drop_last, device=device, part=part):
            if self.seed is None:
                own = batch.indices if self.indices is None else self.indices[batch.indices]
                yield Batch(batch.images, batch.labels, own)
            else:
                images = corrupt(batch.images, self.name, self.severity, seed=self.seed, indices=batch.indices)
                yield Batch(images, batch.labels, batch.indices)


def corrupted(
    split: Split, name: str, severity: float, *, seed: int = 0, copies: ArrayCopies | FolderCopies | None = None
) -> CorruptedSplit:
    """The images of a split under a corruption, in its order: from the copies on disk where they have it, else generated."""
    if copies is None or name not in copies.names or severity not in SEVERITIES:
        return CorruptedSplit(split, name, severity, f"generated with seed {seed}", seed)
    copied, origin = copies.split(name, int(severity)), f"read from {copies.folder}"
    check_same_images(split, copied, copies.folder)
    if not isinstance(split, TensorSplit | StreamedSplit):
        return CorruptedSplit(copied, name, severity, origin, None)  # a stream knows nothing of its images ahead
    rows = rows_of(split, copied, copies.folder)
    own = torch.empty_like(split.indices)
    own[rows] = split.indices
    return CorruptedSplit(taken(copied, rows), name, severity, origin, None, own)


def check_same_images(split: Split, copied: TensorSplit | StreamedSplit, folder: Path) -> None:
    """Refuse copies of other images: as many, of the same size, and with the same labels."""
    if len(split) != len(copied):
        raise SurefootError(f"'{folder}' holds {len(copied)} images, and the split has {len(split)}.")
    if isinstance(split, TensorSplit | StreamedSplit):
        if not torch.equal(split.labels.sort().values, copied.labels.sort().values):
            raise SurefootError(f"'{folder}' has other labels than the split.")
        theirs, ours = (" x ".join(map(str, size_of(each))) for each in (copied, split))
        if theirs != ours:
            raise SurefootError(f"'{folder}' holds images of {theirs} px, and the split's are {ours} px.")


def size_of(split: TensorSplit | StreamedSplit) -> tuple[int, ...]:
    return tuple(split.images.shape[2:]) if isinstance(split, TensorSplit) else split.pictures.size


def rows_of(split: TensorSplit | StreamedSplit, copied: TensorSplit | StreamedSplit, folder: Path) -> Tensor:
    """Which copy is of which image: by the index or the file's name within a class, else the same labels in the same order."""
    if copied.files is not None:
        rows = {
            (label, path.stem): row for row, (label, path) in enumerate(zip(copied.labels.tolist(), copied.files, strict=True))
        }
        names = [[f"{index:08d}" for index in split.indices.tolist()]]
        names += [] if split.files is None else [[Path(split.files[index]).stem for index in split.indices.tolist()]]
        for own in names:
            keys = list(zip(split.labels.tolist(), own, strict=True))
            if all(key in rows for key in keys) and len(set(keys)) == len(keys):
                return torch.tensor([rows[key] for key in keys])
    if not torch.equal(split.labels, copied.labels):
        raise SurefootError(
            f"'{folder}' has the split's labels in another order, and does not say which copy is of which image."
        )
    return torch.arange(len(copied))


@dataclass(frozen=True)
class CopyReader:
    """Reads the copies of some images of a split at a time; `order` says which copy is of which image, for every corruption."""

    copies: ArrayCopies | FolderCopies
    order: Tensor
    relative: tuple[Path, ...] = ()  # of folders: each copy's path below its corruption and severity

    @classmethod
    def of(cls, split: Split, copies: ArrayCopies | FolderCopies) -> CopyReader:
        """From the first corruption, as all others are laid out."""
        name = copies.names[0]
        copied = copies.split(name, 1)
        check_same_images(split, copied, copies.folder)
        order = torch.arange(len(copied))  # a stream knows nothing of its images ahead
        if isinstance(split, TensorSplit | StreamedSplit):
            order = rows_of(split, copied, copies.folder)
        base = copies.folder / name / "1"
        return cls(copies, order, tuple(Path(path).relative_to(base) for path in copied.files or ()))

    def read(self, name: str, severity: int, rows: Tensor) -> Tensor:
        """The copies of the images at these rows, float in [0, 1]."""
        where = self.order[rows]
        if isinstance(self.copies, ArrayCopies):
            stored = read_array(self.copies.folder / f"{name}.npy")
            pixels = np.stack([stored[(severity - 1) * len(self.order) + row] for row in where.tolist()])
            return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous().float().div_(255)
        paths = [self.copies.folder / name / str(severity) / self.relative[row] for row in where.tolist()]
        source = Files(paths)
        size = self.copies.preprocessing.image_size if self.copies.preprocessing else common_size(source, range(1))
        assert size is not None
        count = torch.arange(len(paths))
        split = StreamedSplit(Pictures(source, self.copies.preprocessing, size), count, count, self.copies.workers)
        return next(iter(split.batches(len(paths)))).images
