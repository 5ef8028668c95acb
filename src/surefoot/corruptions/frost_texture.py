"""A texture with the statistics of photographs of frost: brightness, depth, colour and spectrum of their random crops."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ..seeds import generator

COLOUR = (0.564, 0.647, 0.694)
LEVEL_STD = 0.152  # of the crops' mean brightness


class Depth(NamedTuple):
    """Standard deviation of the luminance inside a crop, how much that varies from crop to crop, and the spectrum's slope."""

    std: float
    variation: float
    slope: float


DEPTHS = {0.2: Depth(0.058, 0.36, -2.05), 0.3: Depth(0.068, 0.32, -2.02), 1.0: Depth(0.092, 0.34, -1.72)}  # by texture_scale


def crops(chances: Tensor, size: tuple[int, int], texture_scale: float) -> Tensor:
    """A window for each row of chances (5 numbers in [0, 1), the last four in use): where, how bright, how deep."""
    depth = DEPTHS[texture_scale]
    side = 1 << (2 * max(size) - 1).bit_length()
    field = texture(side, max(size), depth.slope)
    top, left = ((chances[:, n, None] * side).long() + torch.arange(size[n - 1]) for n in (1, 2))
    places = (top.remainder(side)[:, :, None] * side + left.remainder(side)[:, None]).flatten(1)
    level, gain = torch.special.ndtri(chances[:, 3:].clamp(0.01, 0.99)).unbind(1)
    deep = depth.std * torch.exp(depth.variation * gain - depth.variation**2 / 2)
    grey = torch.addcmul((LEVEL_STD * level)[:, None], field.take(places), deep[:, None]).view(-1, 1, *size)
    return torch.add(grey, torch.tensor(COLOUR).view(1, 3, 1, 1)).clamp_(0, 1)


@lru_cache(maxsize=4)
def texture(side: int, crop: int, slope: float) -> Tensor:
    """A periodic field whose power falls with frequency by `slope`, without long waves; crops have a deviation of about 1."""
    white = torch.randn(side, side, generator=generator("frost", side, crop))
    frequency = torch.hypot(torch.fft.fftfreq(side)[:, None], torch.fft.rfftfreq(side)[None])
    frequency[0, 0] = 1
    amplitude = frequency ** (slope / 2) * (frequency > 0.5 / crop)
    field: Tensor = torch.fft.irfft2(torch.fft.rfft2(white) * amplitude, s=(side, side))
    window = max(crop, 2)  # one pixel has no deviation
    step = max(1, crop // 2)
    return field / field.unfold(0, window, step).unfold(1, window, step).std((2, 3)).mean()
