"""Random changes of training images: crop, mirror, turn, tilt and colour, batched, with parameters for each image.

What is drawn is separate from how it is applied, so that draws for a whole batch can be sliced by process.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import SurefootError, require
from ..imageops.tone import adjust_brightness, adjust_contrast, adjust_saturation
from ..imageops.warp import enlarge_boxes, perspectives, rotations, shift_and_flip, warp
from ..types import Images


@dataclass(frozen=True)
class Draws:
    """One set of parameters for each image, on the CPU; None for what is switched off."""

    padding: int
    top: Tensor | None = None
    left: Tensor | None = None
    flip: Tensor | None = None
    matrices: Tensor | None = None  # batch x 3 x 3, float64
    factors: Tensor | None = None  # batch x (brightness, contrast, saturation)
    boxes: Tensor | None = None  # batch x (top, left, height, width), whole pixels

    def __getitem__(self, chosen: slice | Tensor) -> Draws:
        """The parameters of some of the images."""
        names = ("top", "left", "flip", "matrices", "factors", "boxes")
        drawn = {name: getattr(self, name) for name in names}
        return Draws(self.padding, **{name: None if value is None else value[chosen] for name, value in drawn.items()})


@dataclass(frozen=True)
class Augmentation:
    """Crop and mirror, then rotate and tilt in one warp, then jitter brightness, contrast and saturation.

    `crop_padding` is a share of the shorter side (4 of 32 px is 0.125), rounded to whole pixels; `colour_jitter` j draws each
    factor from U(1 - j, 1 + j); `rotation` r draws degrees from U(-r, r); `perspective` p moves each corner inwards by
    U(0, p / 2 * side) along both sides. What comes from outside the image is black.

    `resized_crop` a cuts a box of a share U(a, 1) of the area and of a ratio of the sides that is log-uniform in
    [1 / `crop_ratio`, `crop_ratio`], and enlarges it to the whole bilinearly (0.08 is torchvision's and timm's; 0 is off). It
    is cut from the image as it was resized for the model, and takes the place of `crop_padding`.
    """

    crop_padding: float = 0.0
    flip: bool = False
    colour_jitter: float = 0.0
    rotation: float = 0.0
    perspective: float = 0.0
    resized_crop: float = 0.0
    crop_ratio: float = 4 / 3

    def __post_init__(self) -> None:
        require(0 <= self.crop_padding <= 0.5, "crop_padding", "in [0, 0.5]", self.crop_padding)
        require(isinstance(self.flip, bool), "flip", "true or false", self.flip)
        require(0 <= self.colour_jitter <= 1, "colour_jitter", "in [0, 1]", self.colour_jitter)
        require(0 <= self.rotation <= 180, "rotation", "degrees in [0, 180]", self.rotation)
        require(0 <= self.perspective < 1, "perspective", "in [0, 1)", self.perspective)
        require(0 <= self.resized_crop <= 1, "resized_crop", "in [0, 1]", self.resized_crop)
        require(self.crop_ratio >= 1, "crop_ratio", "at least 1", self.crop_ratio)
        if self.resized_crop and self.crop_padding:
            raise SurefootError("crop_padding and resized_crop are two ways to crop: give one of them.")

    def options(self) -> dict[str, Any]:
        """The keywords that make the same augmentation again."""
        return asdict(self)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        """Change every image in its own way, drawn from a generator on the CPU (torch's global one if none is given)."""
        require(images.ndim == 4, "images", "batch x channels x height x width", tuple(images.shape))
        require(images.is_floating_point(), "images", "floating point in [0, 1]", images.dtype)
        return apply(images, self.draw(len(images), images.shape[2], images.shape[3], generator))

    def draw(self, count: int, height: int, width: int, generator: torch.Generator | None = None) -> Draws:
        """Parameters for `count` images of one size."""
        if generator is not None:
            require(generator.device.type == "cpu", "generator", "on the CPU", str(generator.device))
        top = left = flip = factors = boxes = None
        if self.resized_crop:
            boxes = draw_boxes(count, (height, width), (self.resized_crop, 1.0), self.crop_ratio, generator)
        padding = round(self.crop_padding * min(height, width))
        if padding:
            top, left = torch.randint(2 * padding + 1, (2, count), generator=generator)
        if self.flip:
            flip = torch.rand(count, generator=generator) < 0.5
        matrices = self.draw_matrices(count, height, width, generator)
        if self.colour_jitter:
            factors = 1 + self.colour_jitter * (2 * torch.rand(count, 3, generator=generator) - 1)
        return Draws(padding, top, left, flip, matrices, factors, boxes)

    def draw_matrices(self, count: int, height: int, width: int, generator: torch.Generator | None) -> Tensor | None:
        """One homography for each image: its rotation, then its perspective."""
        matrices = None
        if self.rotation:
            matrices = rotations(self.rotation * (2 * torch.rand(count, dtype=torch.float64, generator=generator) - 1))
        if self.perspective:
            sides = torch.tensor([width, height], dtype=torch.float64)
            shares = torch.rand(count, 4, 2, dtype=torch.float64, generator=generator)
            tilts = perspectives(self.perspective / 2 * sides * shares, height, width)
            matrices = tilts if matrices is None else matrices @ tilts
        return matrices


ATTEMPTS = 10  # at a box that lies within the image


def draw_boxes(
    count: int, size: tuple[int, int], scale: tuple[float, float], ratio: float, generator: torch.Generator | None
) -> Tensor:
    """Top, left, height and width of a box for each image, by the law of torchvision's RandomResizedCrop.

    A share of the area is uniform in `scale`, width over height log-uniform in [1 / ratio, ratio]; the first of ten boxes that
    fits is taken, at a uniform place, and else the largest one in the centre whose ratio is allowed.
    """
    height, width = size
    uniform = torch.rand(4, ATTEMPTS, count, dtype=torch.float64, generator=generator)
    areas = height * width * (scale[0] + (scale[1] - scale[0]) * uniform[0])
    ratios = torch.exp(math.log(ratio) * (2 * uniform[1] - 1))
    heights, widths = (areas / ratios).sqrt().round(), (areas * ratios).sqrt().round()
    fits = (heights >= 1) & (heights <= height) & (widths >= 1) & (widths <= width)
    first = fits.int().argmax(0)  # of equal ones the first
    chosen = torch.stack([heights, widths, uniform[2], uniform[3]]).gather(1, first.expand(4, 1, count)).squeeze(1)
    tops, lefts = ((chosen[2] * (height - chosen[0] + 1)).floor(), (chosen[3] * (width - chosen[1] + 1)).floor())
    whole = (min(height, round(width * ratio)), min(width, round(height * ratio)))
    centre = torch.tensor([(height - whole[0]) // 2, (width - whole[1]) // 2, *whole], dtype=torch.float64)
    boxes = torch.stack([tops, lefts, chosen[0], chosen[1]], 1)
    return torch.where(fits.any(0)[:, None], boxes, centre).long()


def apply(images: Images, draws: Draws) -> Images:
    """The images changed by what was drawn for them; the same object if nothing was."""
    device = images.device
    if draws.boxes is not None:
        images = enlarge_boxes(images, draws.boxes.to(device))
    if draws.top is not None or draws.flip is not None:
        centre = torch.full((len(images),), draws.padding, device=device)
        top = centre if draws.top is None else draws.top.to(device)
        left = centre if draws.left is None else draws.left.to(device)
        flip = torch.zeros_like(centre, dtype=torch.bool) if draws.flip is None else draws.flip.to(device)
        images = shift_and_flip(images, top, left, flip, draws.padding)
    if draws.matrices is not None:
        matrices = draws.matrices.to(images.dtype if images.dtype == torch.float64 else torch.float32)
        images = warp(images, matrices.to(device)).clamp(0, 1)  # weights may sum to 1 and a rounding error
    if draws.factors is not None:
        brightness, contrast, saturation = draws.factors.to(device).unbind(1)
        images = adjust_saturation(adjust_contrast(adjust_brightness(images, brightness), contrast), saturation)
    return images
