"""Glass blur: pixels take the place of their neighbours, one after the other."""

from __future__ import annotations

import torch
from torch import Tensor

from ..imageops.blur import gaussian_blur
from ..seeds import ImageDraws
from ..types import Images
from .rounding import to_levels
from .severities import Constants


def glass_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Gaussian blur, round down, `rounds` times copy each pixel from within `delta`, and the same blur again."""
    delta, rounds = int(constants["delta"]), int(constants["rounds"])
    height, width = images.shape[2:]
    levels = to_levels(gaussian_blur(images, constants["sigma"])).div_(255)
    chance = draws.uniform((rounds, 2, height, width))
    offsets = (chance * (2 * delta)).floor_().sub_(delta).long().to(images.device)
    source = torch.arange(height * width, device=images.device).expand(len(images), -1)
    for dy, dx in (pair.unbind(1) for pair in offsets.unbind(1)):
        source = source.gather(1, copied_from(dy, dx, delta))
    shuffled = levels.flatten(2).gather(2, source[:, None].expand(-1, images.shape[1], -1)).view_as(images)
    return gaussian_blur(shuffled, constants["sigma"])


def copied_from(dy: Tensor, dx: Tensor, delta: int) -> Tensor:
    """Where each pixel's value comes from after one round, as places in the flattened image: batch x pixels.

    From the bottom right to the top left, each pixel copies what is at its offset now. A pixel further on in reading order
    has its new value by then, so the copy leads on to that pixel's source: a chain, which pointer doubling follows.
    """
    height, width = dy.shape[1:]
    here = torch.arange(height * width, device=dy.device).view(height, width)
    moved = torch.zeros(height, width, dtype=torch.bool, device=dy.device)
    moved[delta + 1 : height - delta + 1, delta + 1 : width - delta + 1] = True
    there = torch.where(moved, here + dy * width + dx, here).flatten(1)
    leads_on = (there > here.flatten()) & moved.flatten()[there]
    root = torch.where(leads_on, there, here.flatten())
    while not torch.equal(further := root.gather(1, root), root):
        root = further
    return there.gather(1, root)
