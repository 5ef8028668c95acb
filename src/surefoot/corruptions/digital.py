"""Digital: brightness, contrast and saturation, elastic transform, pixelation and JPEG."""

from __future__ import annotations

import io
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from ..imageops.filters import apply, gaussian_matrix
from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

# From pixels to the 256 levels of the published files, which round down.


SLACK = 1e-3  # of a level: what float32 loses in a blur of a flat region must not cost a whole one


def to_levels(images: Images) -> Tensor:
    """Clip to [0, 1] and round down to whole levels in [0, 255], still as floats."""
    return torch.add(images.new_tensor(SLACK), images, alpha=255).clamp_(0, 255).floor_()


# Brightness, contrast and saturation in the benchmarks' definitions, without a round trip through HSV.
#
# With V the largest and m the smallest channel of a pixel, saturation is S = (V - m) / V. Changing V alone scales the pixel;
# changing S alone scales the channels' distances from V.


TINY = 1e-6


def contrast(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """(x - channel mean) * factor + channel mean."""
    means = images.mean((2, 3), keepdim=True)
    return torch.lerp(means, images, constants["factor"])


def brightness(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """HSV value + shift; black becomes grey."""
    value = largest(images)
    lighter = (value + constants["value_shift"]).clamp_(max=1)
    black = lighter * (value <= TINY)
    return torch.addcmul(black, images, lighter.div_(value.clamp_min(TINY)))


def saturate(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """HSV saturation * scale + shift; grey has the hue of red, so that a shift makes it reddish.

    Images of one channel have no saturation and stay as they are.
    """
    if images.shape[1] == 1:
        return images.clone()
    value = largest(images)
    spread = largest(-images).add_(value)
    wanted = spread.div(value.clamp_min(TINY)).mul_(constants["scale"]).add_(constants["shift"]).clamp_(0, 1)
    factor = wanted.mul(value).div_(spread.clamp_min(TINY))
    coloured = torch.lerp(value, images, factor)
    if constants["shift"] == 0:
        return coloured
    pale = value * (1 - wanted)
    return torch.where(spread > TINY, coloured, torch.cat([value, pale, pale], 1))


def largest(images: Images) -> Images:
    """The largest channel of each pixel, one by one: `amax` over channels is slow."""
    value = images[:, :1]
    for channel in range(1, images.shape[1]):
        value = torch.maximum(value, images[:, channel : channel + 1])
    return value


# Elastic transform: a random affine map, then a smooth random displacement.


TRUNCATE = 3.0  # standard deviations of the displacement's blur


def elastic_transform(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Three points moved by up to affine * side, then U(-1, 1) blurred by sigma * side and scaled by alpha * side; bilinear."""
    height, width = images.shape[2:]
    side = min(height, width) * constants["stretch"]
    uniform = draws.uniform((6 + 2 * height * width,)).mul_(2).sub_(1)
    moves = uniform[:, :6].double().reshape(-1, 3, 2) * (constants["affine"] * side)
    warped = sample(images, affine_coordinates(moves, height, width).to(images), edge_repeated=False)
    if constants["alpha"] == 0:
        return warped
    spread = constants["sigma"] * side
    rows, columns = (gaussian_matrix(length, spread, TRUNCATE, "reflect") for length in (height, width))
    field = apply(rows, uniform[:, 6:].reshape(-1, 2, height, width).to(images), columns).mul_(constants["alpha"] * side)
    field[:, 0] += torch.arange(width).to(field)
    field[:, 1] += torch.arange(height).to(field)[:, None]
    return sample(warped, field.permute(0, 2, 3, 1), edge_repeated=True)


def sample(images: Images, coordinates: Tensor, *, edge_repeated: bool) -> Images:
    """Bilinear at (x, y) in pixels, batch x height x width x 2; borders mirrored at the edge pixels' centres or behind them."""
    sides = torch.tensor([images.shape[3], images.shape[2]]).to(coordinates)
    last = (sides - 1).clamp_min(1)
    grid = coordinates.mul(2 / sides).add_(1 / sides - 1) if edge_repeated else coordinates.mul(2 / last).sub_(1)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=not edge_repeated)


def affine_coordinates(moves: Tensor, height: int, width: int) -> Tensor:
    """Where each pixel is read under the map that moves three points about the centre: batch x height x width x (x, y)."""
    middle, third = torch.tensor([width // 2, height // 2]).double(), float(max(min(height, width) // 3, 1))
    points = middle + torch.tensor([[third, third], [third, -third], [-third, -third]]).double()
    ones = torch.ones(3, 1, dtype=torch.float64)
    forward = torch.linalg.solve(torch.cat([points, ones], 1), points + moves)  # batch x 3 x 2: [x, y, 1] @ forward
    back: Tensor = torch.linalg.inv(forward[:, :2])
    shift = -forward[:, 2:] @ back
    x, y = torch.arange(width).double()[:, None], torch.arange(height).double()[:, None]
    by_column, by_row = (x * back[:, :1]).float(), (y * back[:, 1:] + shift).float()
    return torch.add(by_row[:, :, None], by_column[:, None])


# Pixelation and JPEG: what storing a picture does to it.


THREADED = 64 * 64  # pixels; below, Pillow spends its time in Python, and threads wait for one another
TIE = 1e-4  # halves are rounded up, also where float32 falls just short of one


def pixelate(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Box filter down to a fraction of the side and up again, the small image in whole levels."""
    height, width = images.shape[2:]
    rows, columns = (max(1, int(side * constants["fraction"])) for side in (height, width))
    sums = segment_sums(segment_sums(images * 255, edges(height, rows), 2), edges(width, columns), 3)
    sizes = edges(height, rows).diff()[:, None] * edges(width, columns).diff()
    small = sums.div_(sizes.to(images)).add_(0.5 + TIE).floor_().div_(255)
    return small.index_select(3, nearest(columns, width).to(images.device)).index_select(
        2, nearest(rows, height).to(images.device)
    )


def edges(side: int, parts: int) -> Tensor:
    """Where Pillow's box filter divides `side` pixels into `parts`: each pixel belongs to the part its centre lies in."""
    ends = torch.arange(parts + 1, dtype=torch.float64) * side / parts
    return (ends + 0.5).floor().long()


def nearest(small: int, side: int) -> Tensor:
    """The pixel of a small side that each pixel of a large one shows."""
    return ((torch.arange(side, dtype=torch.float64) + 0.5) * small / side).long()


def segment_sums(values: Tensor, bounds: Tensor, dim: int) -> Tensor:
    """Sums of consecutive segments along a dimension."""
    running = values.cumsum(dim).index_select(dim, (bounds[1:] - 1).to(values.device))
    return running.diff(dim=dim, prepend=torch.zeros_like(running.narrow(dim, 0, 1)))


def jpeg_compression(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """JPEG at a quality, colours at half the resolution, by Pillow's codec (the published one) on the CPU, in threads.

    Levels are made with NumPy: torch's own threads would wait for work on the very cores that the codec needs.
    """
    quality, pixels = int(constants["quality"]), images.cpu().numpy()
    result = np.empty_like(pixels)

    def through(part: slice) -> None:
        levels = np.multiply(pixels[part], 255)
        levels += 0.5
        stored = np.ascontiguousarray(levels.transpose(0, 2, 3, 1), dtype=np.uint8)
        for image in stored[..., 0] if stored.shape[3] == 1 else stored:
            image[:] = through_jpeg(image, quality)
        np.divide(stored.transpose(0, 3, 1, 2), 255, out=result[part], dtype=result.dtype)

    workers = (os.cpu_count() or 1) if pixels[0, 0].size >= THREADED else 1
    step = max(1, len(pixels) // (4 * workers))
    with ThreadPoolExecutor(workers) as threads:
        deque(threads.map(through, [slice(start, start + step) for start in range(0, len(pixels), step)]), maxlen=0)
    return torch.from_numpy(result).to(images.device)


def through_jpeg(levels: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """One picture, height x width (x 3), written as JPEG and read again; the decoder is called without looking for a header."""
    picture, file = Image.fromarray(levels), io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return np.asarray(Image.frombytes(picture.mode, picture.size, file.getvalue(), "jpeg", picture.mode, ""))
