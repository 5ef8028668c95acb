"""Images read while the model computes, where they do not fit into memory, and all at once where they do."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..progress import progress_bar
from ..types import Batch, Labels
from .collection import Source, files_of
from .dataset import batch_indices, to_pixels
from .image_files import BadImage, to_tensor
from .preprocessing import Preprocessing

logger = logging.getLogger("surefoot")
PATIENCE = 2000  # images; fewer need no progress bar
CHUNK = 256
Item = tuple[int, Tensor | BadImage]


@dataclass(frozen=True)
class Pictures(Dataset[Item]):
    """What a worker runs: one image, or the reason why there is none."""

    source: Source
    preprocessing: Preprocessing | None
    size: tuple[int, int]

    def __getitem__(self, index: int) -> Item:
        try:
            image = self.source.read(index)
            pixels = self.preprocessing(image) if self.preprocessing else to_tensor(image)
        except BadImage as error:
            return index, error
        if pixels.shape[1:] != self.size:
            height, width = pixels.shape[1:]
            reason = f"it is {height} x {width}, and the others are {self.size[0]} x {self.size[1]}"
            files = files_of(self.source)
            return index, BadImage(files[index] if files else f"number {index}", reason)
        return index, pixels


@dataclass(frozen=True, repr=False)
class StreamedSplit:
    """A split whose images are read when they are needed; the same batches as from memory, in the same order."""

    pictures: Pictures
    labels: Labels
    indices: Tensor
    workers: int

    @property
    def files(self) -> Sequence[Path] | None:
        """Of the whole data set, where it is read from files."""
        return files_of(self.pictures.source)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"StreamedSplit({len(self)} images, {self.workers} workers)"

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: torch.Generator | None = None,
        drop_last: bool = False,
        device: torch.device | str = "cpu",
        part: Tensor | None = None,
    ) -> Iterator[Batch]:
        positions = list(batch_indices(len(self), batch_size, shuffle, drop_last, part))
        order = [self.indices[chosen].tolist() for chosen in positions]
        for chosen, items in zip(positions, read_batches(self.pictures, order, self.workers), strict=True):
            yield Batch(to_pixels(stack(items), device), self.labels[chosen].to(device), self.indices[chosen])


def read_batches(pictures: Pictures, order: list[list[int]], workers: int) -> Iterator[list[Item]]:
    """Lists of images in the order given, read by `workers` processes (0: by this one)."""
    options: dict[str, Any] = {"batch_sampler": order, "num_workers": workers, "collate_fn": list}
    loader: DataLoader[Item] = DataLoader(pictures, **options)
    yield from loader


def stack(items: list[Item]) -> Tensor:
    """The images of a batch; one that cannot be read is an error."""
    for _, image in items:
        if isinstance(image, BadImage):
            raise image
    return torch.stack([image for _, image in items if isinstance(image, Tensor)])


def readable(pictures: Pictures, indices: Tensor, workers: int) -> Tensor:
    """Which of the images can be read, found by reading them all once."""
    good = [
        isinstance(image, Tensor)
        for items in read_batches(pictures, [part.tolist() for part in indices.split(256)], workers)
        for _, image in items
    ]
    if good.count(False):
        logger.warning("%d images cannot be read and are left out", good.count(False))
    return torch.tensor(good, dtype=torch.bool)


def decode_all(pictures: Pictures, indices: Tensor, channels: int, skip_bad_images: bool) -> tuple[Tensor, Tensor]:
    """The images at `indices` as one uint8 tensor, and which of them could be read.

    Threads, not processes: Pillow decodes without Python's lock, and the pixels need not be copied.
    """
    images = torch.empty(len(indices), channels, *pictures.size, dtype=torch.uint8)
    good = torch.ones(len(indices), dtype=torch.bool)
    bad: list[BadImage] = []
    with (
        ThreadPoolExecutor(os.cpu_count()) as pool,
        progress_bar(show=len(indices) >= PATIENCE) as bar,
    ):
        task = bar.add_task("reading images", total=len(indices))
        numbers = iter(enumerate(indices.tolist()))
        while chunk := list(islice(numbers, CHUNK)):
            for (position, _), (_, image) in zip(chunk, pool.map(pictures.__getitem__, [i for _, i in chunk]), strict=True):
                if isinstance(image, BadImage):
                    if not skip_bad_images:
                        raise image
                    bad.append(image)
                    good[position] = False
                else:
                    images[position] = image
            bar.advance(task, len(chunk))
    if bad:
        logger.warning("%d images cannot be read and are left out; the first is %s", len(bad), bad[0].name)
    return images, good
