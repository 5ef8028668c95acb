"""Noise: the published kinds, and noise at a level of one's own."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import require
from ..seeds import ImageDraws, check_indices
from ..types import Images
from .engine import as_pixels, check_pixels
from .papers import uniform_noise
from .severities import Constants

# Corruptions of the noise family: every value by itself.


LARGE = 4.0  # a rate above which the expansion is wrong by one count in one value of 500, and less often above


def gaussian_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """x + N(0, std) at every pixel and channel."""
    return torch.add(images, normal(images, draws), alpha=constants["std"])


def speckle_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """x + x * N(0, std)."""
    return torch.addcmul(images, images, normal(images, draws), value=constants["std"])


def impulse_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """A fraction of the values is replaced, half by 0 and half by 1."""
    chance = draws.uniform(tuple(images.shape[1:])).to(images)
    half = constants["fraction"] / 2
    return images.masked_fill(chance < half, 0).masked_fill_(chance >= 1 - half, 1)


def shot_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Poisson(x * photons) / photons."""
    photons = constants["photons"]
    return poisson(images * photons, normal(images, draws)).div_(photons)


def normal(images: Images, draws: ImageDraws) -> Tensor:
    """One standard normal number for each value of the images."""
    return draws.normal(tuple(images.shape[1:])).to(images)


def poisson(rates: Tensor, normals: Tensor) -> Tensor:
    """Poisson counts: the quantile that belongs to each standard normal number, so that rates are paired.

    Large rates by the Cornish-Fisher expansion of the quantile (Giles 2016, Q_N2), small ones by adding up probabilities.
    """
    roots = rates.clamp_min(LARGE).sqrt_()
    squares = normals.square()
    first = torch.add(normals * roots, squares, alpha=1 / 6).add_(rates).add_(1 / 3)
    second = squares.div(-72).sub_(1 / 36).mul_(normals).div_(roots)
    third = squares.div(270).add_(7 / 810).mul_(squares).sub_(8 / 405).div_(roots.square_())
    counts = first.add_(second).add_(third).floor_().clamp_min_(0)
    small = rates < LARGE
    return counts.masked_scatter_(small, small_poisson(rates[small], torch.special.ndtr(normals[small])))


def small_poisson(rates: Tensor, levels: Tensor) -> Tensor:
    """The smallest count whose cumulated probability reaches each level."""
    chance = torch.exp(-rates)
    cumulated, counts, number = chance.clone(), torch.zeros_like(rates), 0
    while bool((beyond := levels > cumulated).any()) and number < 60:
        number += 1
        counts += beyond
        chance.mul_(rates).div_(number)
        cumulated += chance
    return counts


# Noise at a level of one's own, as papers give it: a standard deviation or an amplitude in pixel units, such as 16 / 255.


def add_gaussian_noise(images: Images, level: float, *, seed: int = 0, indices: Tensor | None = None) -> Images:
    """x + N(0, level), clipped to [0, 1]; the same draws as `corrupt(images, "gaussian_noise", ...)`."""
    draws = prepare(images, level, "gaussian_noise", seed, indices)
    return finish(gaussian_noise(as_pixels(images), {"std": level}, draws), images)


def add_uniform_noise(images: Images, level: float, *, seed: int = 0, indices: Tensor | None = None) -> Images:
    """x + U(-level, level), clipped to [0, 1]; the same draws as `corrupt(images, "uniform_noise", ...)`."""
    draws = prepare(images, level, "uniform_noise", seed, indices)
    return finish(uniform_noise(as_pixels(images), {"level": level}, draws), images)


def prepare(images: Images, level: float, name: str, seed: int, indices: Tensor | None) -> ImageDraws:
    """Check what was given."""
    check_pixels(images)
    require(0 <= level <= 1, "level", "from 0 to 1, in pixel units", level)
    return ImageDraws(seed, name, check_indices(indices, len(images)))


def finish(noisy: Images, images: Images) -> Images:
    """Clipped, in the dtype of the images; bytes are rounded to the nearest, floats not at all."""
    clipped = noisy.clamp_(0, 1)
    return clipped.mul_(255).round_().to(torch.uint8) if images.dtype == torch.uint8 else clipped.to(images.dtype)
