"""What every step of an audit is given: the model, the images of each part, and how fast this machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import nn

from ..corruptions.engine import corrupt
from ..corruptions.families import NAMES
from ..corruptions.published import ArrayCopies, FolderCopies
from ..data.choosing import choose
from ..data.dataset import Dataset, Split
from ..models.observing import evaluating
from ..types import Batch
from .depths import Depth

BACKWARD = 2.0  # what a backward pass to the pixels costs, in forward passes
TIMED = 16  # images on which corruptions are timed


@dataclass(frozen=True)
class Speed:
    """Seconds for an image: through the model, and through each corruption."""

    forward: float
    corruptions: dict[str, float]


@dataclass(frozen=True)
class Setting:
    """An audit about to start."""

    model: nn.Module
    data: Dataset
    split: str
    images: Split
    depth: Depth
    device: torch.device
    batch_size: int
    seed: int
    speed: Speed
    copies: ArrayCopies | FolderCopies | None = None

    @cached_property
    def corruption_images(self) -> Split:
        """All of them where copies on disk are read, since those are of all."""
        return self.images if self.copies else choose(self.images, self.depth.corruption_images, self.seed)

    @cached_property
    def attack_images(self) -> Split:
        return choose(self.images, self.depth.attack_images, self.seed)

    @cached_property
    def geometry_images(self) -> Split:
        return choose(self.images, self.depth.geometry_images, self.seed)

    def cost(self, images: int, *, forward: float = 1, backward: float = 0, corruption: str = "") -> float:
        """Estimated seconds for passes over so many images."""
        parts = [self.speed.corruptions.get(name, 0.0) for name in corruption.split("+")]
        return images * ((forward + BACKWARD * backward) * self.speed.forward + sum(parts))


def measure_speed(model: nn.Module, sample: Batch, batch_size: int) -> Speed:
    """Time one batch and every corruption on a few images, each after a first call that warms up."""
    images = sample.images[:batch_size]

    def forward() -> None:
        float(model(images).sum())  # waits for the device

    with evaluating(model), torch.inference_mode():
        passed = shortest(forward) / len(images)
    few = images[:TIMED]
    found = {name: shortest(partial(corrupt, few, name, 3)) / len(few) for name in NAMES}
    return Speed(passed, found)


def shortest(work: Callable[[], object]) -> float:
    """Seconds, the better of two calls."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
