"""The set of images that an attack may choose from: a ball around each image, cut with [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import UnknownName, require
from ..seeds import ImageDraws, check_indices, draw
from ..types import Images

NORMS = ("linf", "l2", "l1")
Rows = Tensor | slice  # indices in the batch of the images that are worked on
Source = ImageDraws | torch.Generator  # draws that belong to each image, or to the batch


@dataclass(frozen=True)
class Ball:
    """All changes of an image whose norm is at most `eps`, in pixel units."""

    norm: str
    eps: float

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise UnknownName("norm", self.norm, NORMS)
        require(self.eps >= 0, "eps", "at least 0", self.eps)

    def project(self, points: Images, images: Images) -> Images:
        """The nearest point of the ball around each image, then of [0, 1]: both hold the image, so the result is in both.

        In L1 it is the nearest point of both at once (Croce and Hein 2021): there the order would waste most of the budget.
        """
        change = points - images
        if self.norm == "l1":
            return (images + nearest_in_l1(change, images, self.eps)).clamp_(0, 1)
        if self.norm == "linf":
            change.clamp_(-self.eps, self.eps)
        else:
            change.mul_((self.eps / lengths(change).clamp_min(torch.finfo(change.dtype).tiny)).clamp_max(1))
        return change.add_(images).clamp_(0, 1)

    def anchors(self, images: Images) -> tuple[Tensor, ...]:
        """What `step` needs to know of the images: for L-inf the bounds of each pixel, else the images themselves."""
        if self.norm == "linf":
            return (images - self.eps).clamp_(0, 1), (images + self.eps).clamp_(0, 1)
        return (images,)

    def step(self, points: Images, gradient: Tensor, size: float, anchors: tuple[Tensor, ...]) -> Images:
        """Climb by `size` and come back into the ball and into [0, 1], in as few operations as that takes."""
        moved = torch.add(points, self.steepest(gradient), alpha=size)
        return moved.clamp_(*anchors) if self.norm == "linf" else self.project(moved, *anchors)

    def contains(self, points: Images, images: Images) -> Tensor:
        """Which points are in the ball around their image, up to rounding."""
        return self.sizes(points - images) <= self.eps * (1 + 1e-5) + 1e-7

    def sizes(self, change: Tensor) -> Tensor:
        """The norm of each image's change."""
        order = {"linf": torch.inf, "l2": 2, "l1": 1}[self.norm]
        norms: Tensor = torch.linalg.vector_norm(change, order, dim=(1, 2, 3))
        return norms

    def steepest(self, gradient: Tensor) -> Tensor:
        """The step of length 1 that climbs most, in L-inf or L2; 0 where the gradient is."""
        if self.norm == "linf":
            return gradient.sign()
        unit: Tensor = gradient / lengths(gradient).clamp_min(torch.finfo(gradient.dtype).tiny)
        return unit

    def draw(self, images: Images, source: Source, purpose: str = "") -> Images:
        """A point drawn uniformly from the ball around each image, moved into [0, 1]; in L1 normal noise, moved into both."""
        if self.eps == 0:
            return images.clone()
        if self.norm == "l1":
            return self.project(images + normal(source, images, purpose), images)
        if self.norm == "linf":
            change = uniform(source, images.shape, images, purpose).mul_(2).sub_(1).mul_(self.eps)
        else:
            ray = normal(source, images, purpose)
            share = uniform(source, (len(images), 1, 1, 1), images, f"{purpose} radius") ** (1 / max(images[:1].numel(), 1))
            change = self.eps * share * self.steepest(ray)
        return change.add_(images).clamp_(0, 1)


def normal(source: Source, like: Images, purpose: str) -> Tensor:
    """Standard normal numbers in the shape, on the device and in the dtype of the images."""
    if isinstance(source, ImageDraws):
        return source.normal(tuple(like.shape[1:]), purpose).to(like)
    return draw(torch.randn, like.shape, like, source)


def uniform(source: Source, shape: Sequence[int], like: Images, purpose: str) -> Tensor:
    """Numbers in [0, 1), batch first, on the device and in the dtype of the images."""
    if isinstance(source, ImageDraws):
        return source.uniform(tuple(shape[1:]), purpose).to(like)
    return draw(torch.rand, shape, like, source)


def sources(
    attack: str, count: int, generator: torch.Generator | None, seed: int, indices: Tensor | None
) -> Callable[[Rows], Source]:
    """Where the draws for some images of a batch come from: from (seed, attack, image index), or from a generator if given."""
    numbers = check_indices(indices, count).cpu()
    require(generator is None or (seed == 0 and indices is None), "generator", "given without seed and indices", seed)

    def source(rows: Rows) -> Source:
        chosen = numbers[rows.cpu() if isinstance(rows, Tensor) else rows]
        return ImageDraws(seed, f"attacks/{attack}", chosen) if generator is None else generator

    return source


def nearest_in_l1(change: Tensor, images: Images, eps: float) -> Tensor:
    """The nearest change whose L1 norm is at most eps and that leaves the pixels in [0, 1].

    It moves each pixel by clip(|change| - t, 0, room), with the smallest t >= 0 at which these add up to at most eps. Their sum
    is linear in t between the points where a pixel starts to move or leaves its bound, so t is found from sorted sums.
    """
    if eps == 0:
        return torch.zeros_like(change)
    wanted = change.flatten(1).double()
    pixels = images.flatten(1).double()
    size = wanted.abs()
    room = torch.where(wanted > 0, 1 - pixels, pixels).clamp_min(0)
    breaks, order = torch.cat([size, size - room], 1).sort(1, descending=True)
    turns = 1.0 - 2.0 * (order >= size.shape[1])  # by which the slope of the sum changes there
    slopes, heights = turns.cumsum(1), (turns * breaks).cumsum(1)
    below = (heights - slopes * breaks < eps).sum(1, keepdim=True)  # at these breaks the sum is still too small
    last = (below - 1).clamp_min(0)
    shift = (heights.gather(1, last) - eps) / slopes.gather(1, last).clamp_min(1)
    fits = torch.minimum(size, room).sum(1, keepdim=True) <= eps
    shift = torch.where(fits, 0.0, shift.clamp_min(0))
    moved = torch.minimum((size - shift).clamp_min(0), room)
    return (moved * wanted.sign()).to(change.dtype).view_as(change)


def lengths(change: Tensor) -> Tensor:
    """The L2 norm of each image's change, batch x 1 x 1 x 1."""
    norms: Tensor = torch.linalg.vector_norm(change, dim=(1, 2, 3), keepdim=True)
    return norms
