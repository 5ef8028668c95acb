"""What moves pixels in CIFAR-10-C-bar and ImageNet-C-bar: refraction, twirls, ripples, colour fringes, a spin.

From Mintun, Kirillov and Xie (2021); see `cbar_noise`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from ..imageops.filters import apply, gaussian_matrix
from ..seeds import ImageDraws
from ..types import Images
from .cbar_noise import STRONGEST
from .severities import Constants

REFRACTION = 4.0  # index of the glass
FLAT = 1 - 1e-3  # a normal that points up so far refracts nothing
ORIGIN = 250.0  # where the caustics' coordinates begin
TURNS = 21  # rotations that a circular motion blur averages
SMALL = 64 * 64  # pixels of images whose rotations are kept
EDGE = 1e-9  # pixels that rounding may carry a coordinate over the border


def caustic_refraction(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """The image seen through glass with the relief of caustics c, blurred by a pixel, and lit from a corner.

    With (a, b) the differences of c below and above, right and left, L^2 = 1 + a^2 + b^2 and index n, Snell's law moves a pixel
    by (a, b) / L * (sqrt(1 - (a^2 + b^2) / (n L)^2) - 1 / (n L)) * lens. At the largest magnitude the lens is half the side and
    light adds 2 (a - b). Beyond the border all is black.
    """
    height, width = images.shape[2:]
    share = constants["magnitude"] / STRONGEST
    rows, columns = (gaussian_matrix(side, 1.0, border="reflect") for side in (height, width))
    relief = F.pad(apply(rows, caustics(draws.uniform((2,)), height, width), columns), (1, 1, 1, 1)).to(images)
    a = relief[:, 2:, 1:-1] - relief[:, :-2, 1:-1]
    b = relief[:, 1:-1, 2:] - relief[:, 1:-1, :-2]
    slope = a.square() + b.square()
    upright = (slope + 1).rsqrt_()  # 1 / L
    sine = slope * upright.square() / REFRACTION**2
    size = (1 - sine).sqrt_().sub_(upright / REFRACTION).mul_(upright).mul_(share * 0.5 * min(height, width))
    size.masked_fill_(upright >= FLAT, 0)
    light = (a - b).mul_(share * 2)
    return sample(images, a * size, b * size).add_(light[:, None])


def caustics(uniform: Tensor, height: int, width: int) -> Tensor:
    """Light on the floor of a pool, in [0, 1]: batch x height x width, repeated every 0.75 to 1.25 sides.

    With p = 2 pi (coordinate / period mod 1) - 250 and i = p at first, five times, with t = time (1 - 3.5 / n):
    i = p + (cos(t - i0) + sin(t + i1), sin(t - i1) + cos(t + i0)), c += 200 / |(p0 / sin(i0 + t), p1 / cos(i1 + t))|.
    c begins at 1, and the light is |1.17 - (c / 5)^1.4|^8. Sines of sums are put together from sines and cosines of i.
    """
    time, period = uniform.double()[:, 0] * 1.5 + 0.5, (uniform.double()[:, 1:] * 0.5 + 0.75) * min(height, width)
    shape = (len(uniform), height, width)
    coordinates = [((torch.arange(side) / period) % 1) * (2 * math.pi) - ORIGIN for side in (height, width)]
    p0, p1 = coordinates[0].float()[:, :, None], coordinates[1].float()[:, None]
    q0, q1 = (axis.remainder(2 * math.pi).float() for axis in coordinates)  # the same for the sines, more exact in float32
    q0, q1 = q0[:, :, None], q1[:, None]
    s0, c0, s1, c1, total = q0.sin(), q0.cos(), q1.sin(), q1.cos(), torch.ones(shape)
    for n in range(1, 6):
        t = time * (1 - 3.5 / n)
        sin, cos = (value.float()[:, None, None] for value in (t.sin(), t.cos()))
        i0 = (c0 + s1).mul_(cos).add_((s0 + c1).mul_(sin)).add_(q0)
        i1 = (c0 - s1).mul_(cos).add_((c1 - s0).mul_(sin)).add_(q1)
        s0, c0, s1, c1 = i0.sin(), i0.cos_(), i1.sin(), i1.cos_()
        above, beside = (s0 * cos).add_(c0 * sin), (c1 * cos).sub_(s1 * sin)
        length = (beside * p0).square_().add_((above * p1).square_()).sqrt_().clamp_min_(1e-20)
        total.add_(above.mul_(beside).abs_().mul_(200).div_(length))
    light: Tensor = total.div_(5).pow_(1.4).neg_().add_(1.17)
    return light.square_().square_().square_().clamp_max_(1)


def pinch_and_twirl(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Round cells, 3 or 5 along the side, pinched towards their centres and twirled, each to the left or to the right.

    At the share d of a cell's radius a pixel comes from sin(pi d / 2)^-amount times as far, turned by angle (1 - d)^2; at the
    largest magnitude the angle is 90 degrees and the amount 0.5.
    """
    height, width = images.shape[2:]
    share = constants["magnitude"] / STRONGEST
    cell = max(min(height, width) // int(constants["cells"]), 1)
    numbers, moves = twirls(height, width, cell, share * 0.4 + 0.1, share * math.pi / 2)
    signs = draws.uniform((1 + int(numbers.max()),))
    left = (signs[:, numbers.flatten()].view(-1, height, width) < 0.5).to(images.device)
    (down, across), (other_down, other_across) = moves.to(images)
    return sample(images, torch.where(left, down, other_down), torch.where(left, across, other_across))


@lru_cache(maxsize=32)
def twirls(height: int, width: int, cell: int, amount: float, angle: float) -> tuple[Tensor, Tensor]:
    """The number of each pixel's cell, and how far down and across it is read, turned one way and the other: 2 x 2 x h x w."""
    radius = cell / 2
    y, x = torch.meshgrid(torch.arange(height).double(), torch.arange(width).double(), indexing="ij")
    row, column = (y / cell).floor(), (x / cell).floor()
    dy, dx = y - (row + 0.5) * cell, x - (column + 0.5) * cell
    distance = torch.hypot(dy, dx)
    whole = (row < height // cell) & (column < width // cell)  # beyond the last whole cell nothing moves
    still = ~whole | (distance > radius) | (distance < 5e-4)
    share = (distance / radius).clamp(1e-6, 1)
    farther, turn = (share * (math.pi / 2)).sin() ** -amount, angle * (1 - share) ** 2
    moves = []
    for sign in (1, -1):
        cos, sin = turn.cos() * farther, (sign * turn).sin() * farther
        moves.append(torch.stack([dy * cos - dx * sin - dy, dy * sin + dx * cos - dx]))
    numbers = (row * (width // cell + 1) + column).long()
    return numbers, torch.stack(moves).masked_fill(still, 0).float()


def ripple(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Rows and columns shifted by sines of their own position: 0.025 of the side at most, every 0.1 to 0.3 sides."""
    height, width = images.shape[2:]
    side = min(height, width)
    uniform = draws.uniform((4,)).double()
    lengths, phases = (uniform[:, :2] * 0.2 + 0.1) * side, uniform[:, 2:] * (2 * math.pi)
    amplitude = constants["magnitude"] / STRONGEST * 0.025 * side
    moves = [
        torch.sin(torch.arange(length) * (2 * math.pi / lengths[:, n : n + 1]) + phases[:, n : n + 1]) * amplitude
        for n, length in enumerate((height, width))
    ]
    down, across = (move.to(images) for move in moves)
    return sample(images, down[:, :, None].expand(-1, -1, width), across[:, None].expand(-1, height, -1))


def sample(images: Images, down: Tensor, across: Tensor) -> Images:
    """Read each pixel bilinearly so far down and across (batch x height x width, in pixels); beyond the border all is black."""
    height, width = images.shape[2:]
    rows, columns = (torch.arange(side).to(images) for side in (height, width))
    grid = torch.stack([(across + columns + 0.5).mul_(2 / width), (down + rows[:, None] + 0.5).mul_(2 / height)], 3).sub_(1)
    read = F.grid_sample(images, grid, align_corners=False)
    return torch.where(((down == 0) & (across == 0))[:, None], images, read)  # exactly, where nothing moves


def transverse_chromatic_abberation(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Channels enlarged by 1, 1 + s / 2 and 1 + s, in an order that is drawn, with s = 0.5 at the largest magnitude.

    Enlarged with cubic B-splines that are not interpolating, so that they also blur. One channel takes any of the three.
    """
    height, width = images.shape[2:]
    spread = constants["magnitude"] / STRONGEST * 0.5
    order = draws.uniform((3,)).argsort(dim=1, stable=True).to(images.device)[:, :, None, None].expand(-1, -1, height, width)
    channels = images.expand(-1, 3, -1, -1).gather(1, order)
    factors = (1.0, 1 + spread / 2, 1 + spread)
    zoomed = [
        apply(spline_zoom(height, factor), channels[:, n], spline_zoom(width, factor)) for n, factor in enumerate(factors)
    ]
    return torch.empty_like(channels).scatter_(1, order, torch.stack(zoomed, 1))[:, : images.shape[1]]


@lru_cache(maxsize=128)
def spline_zoom(side: int, factor: float) -> Tensor:
    """The middle of a side enlarged to round(side * factor) samples, corners on corners, by cubic B-splines (side x side)."""
    long = round(side * factor)
    begin = (long - side) // 2
    coordinates = torch.arange(begin, begin + side, dtype=torch.float64) * ((side - 1) / max(long - 1, 1))
    return spline_matrix(coordinates, side)


def spline_matrix(coordinates: Tensor, side: int) -> Tensor:
    """One row for each coordinate, with the weights of its four neighbours."""
    neighbours, weights = spline_taps(coordinates, side)
    return torch.zeros(len(coordinates), side, dtype=torch.float64).scatter_add_(1, neighbours.long().T, weights.T)


def spline_taps(coordinates: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """The four neighbours of each coordinate, mirrored at the ends, and their cubic B-spline weights: both 4 x coordinates."""
    below = coordinates.floor()
    share, last = coordinates - below, side - 1
    ahead = 1 - share
    inner = [4 - 6 * near**2 + 3 * near**3 for near in (share, ahead)]
    weights = torch.stack([ahead**3, *inner, share**3]).div_(6)
    neighbours = (below + torch.arange(-1, 3).view(-1, *[1] * coordinates.ndim)).abs_()
    return neighbours.neg_().add_(last).abs_().neg_().add_(last).clamp_min_(0).int(), weights


def circular_motion_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """The mean of 21 rotations about the centre, from -angle to angle, weighted by exp(-2 z^2) for z in [-1, 1].

    The angle is 15 degrees at the largest magnitude. All images turn alike, and what comes from beyond the border is black.
    Rotations interpolate with cubic splines, as SciPy does.
    """
    count, channels, height, width = images.shape
    angle = constants["magnitude"] / STRONGEST * 15
    coefficients = apply(spline_filter(height), images, spline_filter(width)).reshape(-1, height * width).T.contiguous()
    if height * width <= SMALL:
        groups = iter([kept_spin(height, width, angle)])
    else:
        groups = (spin(height, width, angle, (n,)) for n in range(TURNS))
    turned = sum(
        F.embedding_bag(taps.to(images.device), coefficients, mode="sum", per_sample_weights=weights.to(images))
        for taps, weights in groups
    )
    return torch.as_tensor(turned).T.reshape(count, channels, height, width)


@lru_cache(maxsize=32)
def spline_filter(side: int) -> Tensor:
    """The matrix that makes cubic B-splines interpolate: the inverse of their weights at the pixels."""
    inverse: Tensor = torch.linalg.inv(spline_matrix(torch.arange(side, dtype=torch.float64), side))
    return inverse


@lru_cache(maxsize=16)
def kept_spin(height: int, width: int, angle: float) -> tuple[Tensor, Tensor]:
    """All rotations of small images."""
    return spin(height, width, angle, tuple(range(TURNS)))


def spin(height: int, width: int, angle: float, numbers: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Which pixels some of the rotations take each pixel from, and how much: both (height * width) x (16 for each rotation)."""
    shares = torch.linspace(-1, 1, TURNS, dtype=torch.float64)
    chances = torch.exp(-2 * shares**2)
    chances, turns = (
        values[list(numbers)].view(-1, 1, 1) for values in (chances / chances.sum(), torch.deg2rad(angle * shares))
    )
    middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
    y, x = torch.arange(height)[:, None] - middle_row, torch.arange(width) - middle_column
    rows = y * turns.cos() + x * turns.sin() + middle_row  # rotations x height x width
    columns = x * turns.cos() - y * turns.sin() + middle_column
    inside = (rows > -EDGE) & (rows < height - 1 + EDGE) & (columns > -EDGE) & (columns < width - 1 + EDGE)
    down, share_down = spline_taps(rows.clamp_(0, height - 1).float(), height)
    across, share_across = spline_taps(columns.clamp_(0, width - 1).float(), width)
    taps = down.mul_(width)[:, None] + across  # 4 x 4 x rotations x height x width
    weights = share_down.mul_(inside * chances.float())[:, None] * share_across
    return taps.view(-1, height * width).T.contiguous(), weights.view(-1, height * width).T.contiguous()
