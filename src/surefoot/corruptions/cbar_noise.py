"""Noises of CIFAR-10-C-bar and ImageNet-C-bar, fields that are mixed into the image: random spectra, lattices and waves.

Mintun, Kirillov and Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption Robustness" (NeurIPS
2021), chose these sets to be unlike the benchmarks' first nineteen. `cbar.json` holds their magnitudes; 10 is the strongest
that they considered. `side` is the shorter one of an image, which their square ones have only one of."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

STRONGEST = 10.0  # the largest magnitude
BASE_CELLS, OCTAVES, LATTICE = 7, (1, 2, 4, 8, 16), 256  # of Perlin noise: cells along a side, frequencies, hashed points
PLASMA_STEPS = 6


def blue_noise_sample(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Pixels are black where blue noise (amplitude as frequency, deviation 1) is at most 0.3 magnitude - 2.5."""
    height, width = images.shape[2:]
    field = spectral_noise(draws, 1, blue_amplitudes(height, width)).to(images)
    return images * (field > 0.3 * constants["magnitude"] - 2.5)


def brownish_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """x + noise with amplitudes 1 / (f^2 + 1), another in each channel, of deviation 64 / 255 at the largest magnitude."""
    field = spectral_noise(draws, images.shape[1], brownish_amplitudes(*images.shape[2:])).to(images)
    return field.mul_(constants["magnitude"] / STRONGEST * 64 / 255).add_(images)


def spectral_noise(draws: ImageDraws, channels: int, amplitudes: Tensor) -> Tensor:
    """The real part of a field with these amplitudes and random phases, its deviation 1; its mean stays as it comes.

    As published, each phase comes twice: in the spectrum with frequency 0 in the middle, and there turned by 180 degrees.
    """
    count = amplitudes.numel()
    half = draws.uniform((channels, count - count // 2)).mul_(2 * math.pi)
    phases = torch.cat([half, half[..., : count // 2].flip(2)], 2).unflatten(2, amplitudes.shape)
    angles = torch.fft.ifftshift(phases, dim=(2, 3))
    spectrum = torch.complex(angles.cos().mul_(amplitudes), angles.sin().mul_(amplitudes))
    field: Tensor = torch.fft.ifft2(spectrum).real
    exact = field.flatten(2).double()  # so that the deviation does not depend on the order of summation
    deviation = exact.square().mean(2).sub_(exact.mean(2).square_()).clamp_min_(0).sqrt_()
    return field / deviation.clamp_min_(1e-30).float()[..., None, None]


@lru_cache(maxsize=16)
def blue_amplitudes(height: int, width: int) -> Tensor:
    """Amplitude = frequency."""
    return frequencies(height, width)


@lru_cache(maxsize=16)
def brownish_amplitudes(height: int, width: int) -> Tensor:
    """Amplitude = 1 / (frequency^2 + 1)."""
    return frequencies(height, width).square_().add_(1).reciprocal_()


def frequencies(height: int, width: int) -> Tensor:
    """Of the Fourier transform, in periods along the shorter side."""
    side = min(height, width)
    return torch.hypot(torch.fft.fftfreq(height)[:, None] * side, torch.fft.fftfreq(width) * side)


def perlin_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """(1 - a) x + a (1/2 + turbulence / 2), clipped at 1, with a = 0.5 at the largest magnitude."""
    share = constants["magnitude"] / STRONGEST * 0.5
    noise = turbulence(draws, *images.shape[2:]).to(images).mul_(0.5).add_(0.5).clamp_(0, 1)
    return (images * (1 - share)).add_(noise.mul_(share)[:, None])


def turbulence(draws: ImageDraws, height: int, width: int) -> Tensor:
    """The sum of |noise(f x)| / f over five octaves f (Perlin, "An Image Synthesizer", 1985): batch x height x width.

    Unit gradients lie on the points of a lattice, found by a permutation p: the point (i, j) has number p[p[i] + j]. As noise
    is linear in them and pixels lie alike in every image, an octave is two products with fixed matrices.
    """
    period = min(height, width) / BASE_CELLS
    uniform = draws.uniform((3, LATTICE))
    order = uniform[:, 0].argsort(dim=1, stable=True)
    gradients = uniform[:, 1:].mul(2).sub_(1)
    gradients /= torch.hypot(gradients[:, 0], gradients[:, 1]).clamp_min_(1e-6)[:, None]
    gradients = gradients.gather(2, order[:, None].expand(-1, 2, -1)).repeat(1, 1, 2)  # no point lies beyond twice the lattice
    total = torch.zeros(len(uniform), height, width)
    for octave in OCTAVES:
        row_points, row_weights, row_slopes = lattice(height, period / octave)
        points, weights, slopes = lattice(width, period / octave)
        numbers = (order[:, row_points, None] + points).flatten(1)
        down, across = (gradients[:, n].gather(1, numbers).view(-1, len(row_points), len(points)) for n in (0, 1))
        noise = torch.cat([row_slopes, row_weights], 1) @ torch.cat([down @ weights.mT, across @ slopes.mT], 1)
        total += noise.abs_().mul_(1.5 / octave)
    return total


@lru_cache(maxsize=64)
def lattice(side: int, period: float) -> tuple[Tensor, Tensor, Tensor]:
    """Which points of the lattice touch pixels, and for every pixel and point its weight and its weighted distance.

    Weights are 1 - s and s with s = t^2 (3 - 2 t) at the share t of the way from one point to the next.
    """
    coordinates = torch.arange(side, dtype=torch.float64) / period
    below = coordinates.floor()
    share = coordinates - below
    smooth = share**2 * (3 - 2 * share)
    points, columns = torch.stack([below, below + 1]).long().unique(return_inverse=True)
    weights, slopes = torch.zeros(2, side, len(points), dtype=torch.float64)
    weights.scatter_(1, columns.T, torch.stack([1 - smooth, smooth], 1))
    slopes.scatter_(1, columns.T, torch.stack([(1 - smooth) * share, smooth * (share - 1)], 1))
    return points.remainder(LATTICE), weights.float(), slopes.float()


def plasma_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """(1 - a) x + a plasma, in [-1, 1], with a = 64 / 255 at the largest magnitude; an image of one channel takes the first."""
    share = constants["magnitude"] / STRONGEST * 64 / 255
    fields = plasma(draws.uniform((4,)), images.shape[1:]).to(images)
    return (images * (1 - share)).add_(fields.mul_(share))


def plasma(uniform: Tensor, shape: torch.Size) -> Tensor:
    """Coordinates that bend each other in 4 to 6 steps of rising frequency, seen through sines: batch x `shape`, as an image.

    A step adds (c - 0.3 s, s + 0.3 c) / d to (x, y), with c = cos(f y + time / g), s = sin(f x + time / g), and then multiplies
    f by 1.93, g by 1.15 and d by 2.25 - sharpness. The published code has one more phase, which is always 0.
    """
    time, steps, sharpness, scale = uniform.view(-1, 4, 1, 1).unbind(1)
    time, steps, sharpness = time * (6 * math.pi), (steps * 3).floor() + 4, sharpness * 0.5 + 0.5
    channels, height, width = shape
    scale = (scale * 0.125 + 0.075) * min(height, width)
    x = (torch.arange(width) / scale).expand(-1, height, -1).contiguous()
    y = (torch.arange(height)[:, None] / scale).expand(-1, -1, width).contiguous()
    frequency, slowness, depth = 1.0, 1.0, torch.ones_like(time)
    for step in range(PLASMA_STEPS):
        phase, size = time / slowness, (step < steps) / depth
        cosine, sine = (y * frequency).add_(phase).cos_().mul_(size), (x * frequency).add_(phase).sin_().mul_(size)
        x.add_(cosine).sub_(sine * 0.3)
        y.add_(sine).add_(cosine.mul_(0.3))
        frequency, slowness, depth = frequency * 1.93, slowness * 1.15, depth * (2.25 - sharpness)
    red = x - time
    if channels == 1:
        return red.sin_()[:, None]
    return torch.stack([red, (x + y).add_(time.sin()).mul_(0.5), y.add_(time)], 1).sin_()


def single_frequency_greyscale(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """x + sin(f . position + phase), of amplitude 196 / 255 at the largest magnitude.

    One component of the frequency is uniform in (-pi, pi) for a pixel, the other no larger; which is which is drawn too.
    """
    height, width = images.shape[2:]
    larger, smaller, swap, phase = draws.uniform((4,)).double().unbind(1)
    larger = (larger * 2 - 1) * math.pi
    pair = torch.stack([larger, (smaller * 2 - 1) * larger.abs()])
    x, y = torch.where(swap < 0.5, pair, pair.flip(0))
    across = torch.arange(width) * x[:, None]
    down = torch.arange(height) * y[:, None] + 2 * math.pi * phase[:, None]
    amplitude = constants["magnitude"] / STRONGEST * 196 / 255
    sines = ((down.sin() * amplitude, across.cos()), (down.cos() * amplitude, across.sin()))
    first, second = (rows.to(images)[:, :, None] * columns.to(images)[:, None] for rows, columns in sines)
    wave: Tensor = first.add_(second)
    return images + wave[:, None]


def cocentric_sine_waves(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """x + rings in [-1/2, 1/2] about a point of the image, of height 128 / 255 at the largest magnitude.

    A ring rises with the distance, which waves around the point: r + amplitude sin(frequency angle), modulo the rings' width.
    Frequency is uniform up to 10, amplitude and width up to a tenth of the side.
    """
    height, width = images.shape[2:]
    uniform = draws.uniform((5,)).to(images)
    column, row, frequency, amplitude, ring = uniform.view(-1, 5, 1, 1).unbind(1)
    side = min(height, width)
    x = torch.arange(width).to(images) - column * width
    y = torch.arange(height).to(images)[:, None] - row * height
    waves = angles(x, y).mul_(frequency * 10).sin_().mul_(amplitude * (side / 10))
    rings = waves.add_((x.square() + y.square()).sqrt_()).div_((ring * (side / 10)).clamp_min_(1e-3))
    rings = rings.sub_(rings.floor()).sub_(0.5).mul_(constants["magnitude"] / STRONGEST * 128 / 255)
    return images + rings[:, None]


def angles(x: Tensor, y: Tensor) -> Tensor:
    """The angle from the y axis to each of batch x height x width pixels, given by their columns and rows."""
    shape = torch.broadcast_shapes(x.shape, y.shape)
    return torch.atan2(x.expand(shape).contiguous(), y.expand(shape).contiguous())


# What covers part of the image in CIFAR-10-C-bar and ImageNet-C-bar: squares, sparkles and lines.
#
# From Mintun, Kirillov and Xie (2021); see `cbar_noise`.


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
        centre, count = uniform[:, number, :2], uniform[:, number, 2]
        shares, glow = rays(centre, count, lengths[:, number], height, width)
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


def rays(centres: Tensor, counts: Tensor, lengths: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """What a star of 50 to 199 rays does to each pixel: 1 - (its position between two rays)^2, and (length / distance)^2.

    `centres` and `counts` are uniform in [0, 1), `lengths` has one for each ray that there could be. In between two rays the
    length is interpolated; the position there goes from -1/2 to 1/2.
    """
    counts = (counts * (MOST_RAYS - LEAST_RAYS)).floor_().add_(LEAST_RAYS)
    around = lengths.gather(1, torch.arange(MOST_RAYS + 1, device=lengths.device) % counts.long()[:, None])
    steps = around.diff(dim=1)
    y = torch.arange(height).to(centres)[:, None] - centres[:, :1, None] * height
    x = torch.arange(width).to(centres) - centres[:, 1:, None] * width
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
