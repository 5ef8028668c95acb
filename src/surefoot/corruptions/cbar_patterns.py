"""What covers part of the image in CIFAR-10-C-bar and ImageNet-C-bar: squares, sparkles and lines.

From Mintun, Kirillov and Xie (2021); see `cbar_noise`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..seeds import ImageDraws
from ..types import Images
from .cbar_noise import STRONGEST, angles
from .severities import Constants

GREY = 128 / 255
GRID = 32  # squares of a checkerboard that are drawn along each axis
SPARKLES, MOST_RAYS, LEAST_RAYS = 5, 200, 50
ROUGHNESS = 0.25  # deviation of a ray's length, as a share of it
MOST_LINES = 0.4  # for each pixel of the side, at the largest magnitude of any table


def checkerboard_cutout(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Grey squares on the dark fields of a turned checkerboard; each is there with the chance magnitude / 10.

    The squares' side is 0.1 to 0.25 of the image's, at least a pixel.
    """
    height, width = images.shape[2:]
    uniform = draws.uniform((2 + GRID * GRID,))
    turn, size = uniform[:, :2].double().view(-1, 2, 1, 1).unbind(1)
    turn, size = turn * (2 * math.pi), ((size * 0.15 + 0.1) * min(height, width)).clamp_min_(1)
    cos, sin = turn.cos() / size, turn.sin() / size
    y, x = torch.arange(height)[:, None], torch.arange(width)
    first, second = (y * cos + x * sin).floor_(), (x * cos - y * sin).floor_()
    dark = (first + second).remainder_(2) == 0
    numbers = first.remainder_(GRID).mul_(GRID).add_(second.remainder_(GRID)).long().flatten(1)
    chosen = uniform[:, 2:].gather(1, numbers).view_as(dark) < constants["magnitude"] / STRONGEST
    return images.masked_fill((dark & chosen)[:, None].to(images.device), GREY)


def sparkles(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Five white stars anywhere, their rays' lengths 0.1 of the side at the largest magnitude and at least a pixel."""
    height, width = images.shape[2:]
    uniform = draws.uniform((SPARKLES, 3)).to(images)
    radius = constants["magnitude"] / STRONGEST * 0.1 * min(height, width)
    lengths = draws.normal((SPARKLES, MOST_RAYS), "rays").to(images).mul_(ROUGHNESS * radius).add_(radius).clamp_min_(1)
    dark = 1 - images
    for number in range(SPARKLES):
        place, count = uniform[:, number, :2], uniform[:, number, 2]
        shares, glow = rays(place, count, lengths[:, number], height, width)
        dark.mul_(1 - shares.mul_(glow).clamp_max_(1)[:, None])
    return 1 - dark


def inverse_sparkles(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """White everywhere but in one star near the middle; its glow is raised to the power 1.3 at the largest magnitude.

    Rays have lengths of about a quarter of the side.
    """
    height, width = images.shape[2:]
    uniform = draws.uniform((3,)).to(images)
    radius = 0.25 * min(height, width)
    lengths = draws.normal((MOST_RAYS,), "rays").to(images).mul_(ROUGHNESS * radius).add_(radius)
    shares, glow = rays(uniform[:, :2] * 0.5 + 0.25, uniform[:, 2], lengths, height, width)
    kept = shares.mul_(glow.pow_(constants["magnitude"] / STRONGEST * 1.3)).clamp_max_(1)
    return (images - 1).mul_(kept[:, None]).add_(1)


def rays(places: Tensor, counts: Tensor, lengths: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """What a star of 50 to 199 rays does to each pixel: 1 - (its place between two rays)^2, and (length / distance)^2.

    `places` and `counts` are uniform in [0, 1), `lengths` has one for each ray that there could be. In between two rays the
    length is interpolated; the place there goes from -1/2 to 1/2.
    """
    counts = (counts * (MOST_RAYS - LEAST_RAYS)).floor_().add_(LEAST_RAYS)
    around = lengths.gather(1, torch.arange(MOST_RAYS + 1, device=lengths.device) % counts.long()[:, None])
    steps = around.diff(dim=1)
    y = torch.arange(height).to(places)[:, None] - places[:, :1, None] * height
    x = torch.arange(width).to(places) - places[:, 1:, None] * width
    turn = angles(x, y).add_(math.pi).mul_((counts / (2 * math.pi))[:, None, None])
    numbers = turn.long()
    between = turn.sub_(numbers)
    numbers = numbers.flatten(1)
    length = around.gather(1, numbers).view_as(between).add_(steps.gather(1, numbers).view_as(between).mul_(between))
    glow = length.square_().div_((x.square() + y.square()).add_(1e-4))
    return between.sub_(0.5).square_().neg_().add_(1), glow


def lines(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Grey lines a pixel wide through the image, as many as magnitude / 10 of its side.

    They point in a common direction, give or take up to half a turn (another bound for each image).
    """
    height, width = images.shape[2:]
    side = min(height, width)
    most, count = int(MOST_LINES * side), int(constants["magnitude"] / STRONGEST * side)
    uniform = draws.uniform((2 + 3 * max(most, count),))
    common, variation = uniform[:, :1], uniform[:, 1:2] * 0.9 + 0.1
    row, column, turn = uniform[:, 2:].unflatten(1, (-1, 3)).unbind(2)
    turn = (common + variation * (turn - 0.5)) * (2 * math.pi)
    sin, cos = (value[..., None].to(images) for value in (turn.sin(), turn.cos()))
    down = (torch.arange(height).to(images) - row[..., None].to(images) * height) * sin
    across = (torch.arange(width).to(images) - column[..., None].to(images) * width) * cos
    kept = images.new_ones(len(images), height, width)
    for number in range(count):
        kept *= (down[:, number, :, None] - across[:, number, None]).abs_().clamp_max_(1)  # the distance, up to a pixel
    return (images - GREY).mul_(kept[:, None]).add_(GREY)
