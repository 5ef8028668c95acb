"""From images, a name and a severity to the corrupted images."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor

from ..errors import require
from ..seeds import ImageDraws, check_indices
from ..types import Images, check_images
from .digital import to_levels
from .families import CORRUPTIONS
from .severities import constants, scale_for

GENERATOR = 2  # of the 19: until version 1 zoom blur, snow, spatter and frost were milder than the published ones
CHUNK = 1 << 20  # values that are worked on together: they stay in the processor's cache
THREADED = {"jpeg_compression"}  # takes images one by one anyway; its threads and torch's own should not alternate often


def corrupt(
    images: Images,
    name: str,
    severity: float,
    *,
    seed: int = 0,
    indices: Tensor | None = None,
    scale: str = "auto",
) -> Images:
    """Corrupt a batch (float in [0, 1] or uint8) and give the same dtype back.

    `name` may be a chain such as "occlusion+gaussian_noise", and a link `package.module:function` of one's own, which is given
    images in [0, 1], the severity and the draws. `severity` is a number from 1 to 5, not necessarily whole.
    `indices` are the images' indices in their data set (0, 1, ... if not given): with the seed they decide the random draws.
    `scale` names the table of constants ("32", "64" or "224"); "auto" takes the nearest to the images' shorter side.
    Results are clipped to [0, 1] and rounded down to 8 bits, as the published files are.

    Examples:
        >>> import torch
        >>> import surefoot as sf
        >>> images = torch.full((1, 3, 32, 32), 0.5)
        >>> bool(sf.corruptions.corrupt(images, "brightness", 5).mean() > 0.5)
        True
    """
    links = name.split("+")
    functions = [CORRUPTIONS.load(link) for link in links]
    require(1 <= severity <= 5, "severity", "from 1 to 5", severity)
    check_pixels(images)
    indices = check_indices(indices, len(images))
    chosen = scale_for(*images.shape[2:]) if scale == "auto" else scale
    settings = [constants(link, severity, chosen) if link in CORRUPTIONS.ours else severity for link in links]
    result = torch.empty_like(images, memory_format=torch.contiguous_format)
    if images.numel() == 0:
        return result
    keys = seed_names(links)
    step = max(1, (16 * CHUNK if THREADED.intersection(links) else CHUNK) // images[0].numel())
    for begin in range(0, len(images), step):
        part = as_pixels(images[begin : begin + step])
        numbers = indices[begin : begin + step]
        for function, setting, key in zip(functions, settings, keys, strict=True):
            part = function(part, setting, ImageDraws(seed, key, numbers))
            if len(links) > 1:  # the next link expects pixels
                part = part.clamp_(0, 1)
        levels, part_result = to_levels(part), result[begin : begin + step]
        if levels.dtype == images.dtype:
            torch.div(levels, 255, out=part_result)
        else:
            part_result.copy_(levels if images.dtype == torch.uint8 else levels.div_(255))
    return result


def seed_names(links: list[str]) -> list[str]:
    """What each link's draws are seeded by: its name, so that it is the same in every chain, and a number if it comes again."""
    seen: Counter[str] = Counter()
    keys = []
    for link in links:
        seen[link] += 1
        keys.append(link if seen[link] == 1 else f"{link} {seen[link]}")
    return keys


def check_pixels(images: Images) -> None:
    """Refuse anything but a batch of 1 or 3 channels, uint8 or float in [0, 1]."""
    if images.dtype != torch.uint8:
        check_images(images)
    require(images.ndim == 4, "images", "batch x channels x height x width", tuple(images.shape))
    require(images.shape[1] in (1, 3), "images", "of 1 or 3 channels", images.shape[1])


def as_pixels(images: Images) -> Images:
    """float32 (or float64) in [0, 1], contiguous."""
    images = images.detach()
    if images.dtype == torch.uint8:
        return images.contiguous().float().div_(255)
    return images.contiguous() if images.dtype == torch.float64 else images.float().contiguous()
