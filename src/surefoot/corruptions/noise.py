"""Corruptions of the noise family: every value by itself."""

from __future__ import annotations

import torch
from torch import Tensor

from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

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
