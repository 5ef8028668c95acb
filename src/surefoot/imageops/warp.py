"""Shifts, mirrors, rotations and perspectives of whole batches, each image with its own."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import require
from ..types import Images

# Shifts and mirrors of whole batches, each image with its own, without a loop over images.


def shift_and_flip(images: Tensor, top: Tensor, left: Tensor, flip: Tensor, padding: int) -> Tensor:
    """Pad with zeros, cut from each image its own window of the old size at (top, left), and mirror those whose flip is true.

    Offsets are whole numbers in [0, 2 * padding]; `padding` for both gives the image itself. Any dtype, uint8 or float.
    One `gather` over flattened pixels beats two gathers, advanced indexing and strided windows (`benchmarks/augmentation.py`).
    """
    require(images.ndim == 4, "images", "batch x channels x height x width", tuple(images.shape))
    require(padding >= 0, "padding", "at least 0", padding)
    count, channels, height, width = images.shape
    for name, offsets in (("top", top), ("left", left)):
        require(offsets.shape == (count,), name, f"one for each of {count} images", tuple(offsets.shape))
        if offsets.device.type == "cpu" and count:  # elsewhere this would make the device wait
            low, high = (int(v) for v in offsets.aminmax())
            require(low >= 0 and high <= 2 * padding, name, f"in [0, {2 * padding}]", (low, high))
    require(flip.shape == (count,) and flip.dtype == torch.bool, "flip", f"{count} truth values", (flip.dtype, *flip.shape))
    padded = F.pad(images, (padding,) * 4) if padding else images
    return padded.flatten(2).gather(2, pixel_indices(top, left, flip, (height, width), padding, channels)).view(images.shape)


def pixel_indices(top: Tensor, left: Tensor, flip: Tensor, size: tuple[int, int], padding: int, channels: int) -> Tensor:
    """Where each output pixel lies in the flattened padded image: batch x channels x (height * width)."""
    height, width = size
    rows = top[:, None] + torch.arange(height, device=top.device)
    columns = torch.arange(width, device=top.device)
    columns = torch.where(flip[:, None], width - 1 - columns, columns) + left[:, None]
    flat = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    return flat.view(len(top), 1, height * width).expand(-1, channels, -1)


def enlarge_boxes(images: Images, boxes: Tensor) -> Images:
    """Each image's own box (top, left, height, width) brought to the size of the image, bilinearly.

    Pixel centres as torch's `interpolate` has them without aligned corners; nothing from outside the box is mixed in.
    """
    require(images.ndim == 4 and images.is_floating_point(), "images", "float, batch x channels x height x width", images.shape)
    require(boxes.shape == (len(images), 4), "boxes", f"{len(images)} x 4", tuple(boxes.shape))
    for axis in (0, 1):
        images = stretched(images, 2 + axis, boxes[:, axis], boxes[:, 2 + axis])
    return images


def stretched(images: Images, axis: int, start: Tensor, length: Tensor) -> Images:
    """The pixels `start` to `start + length` along an axis, brought to all of it; each image has its own."""
    side = images.shape[axis]
    precise = torch.float64 if images.dtype == torch.float64 else torch.float32
    steps = torch.arange(side, device=images.device, dtype=precise) + 0.5
    span = length.to(precise)[:, None]
    position = torch.minimum((steps * span / side - 0.5).clamp(min=0), span - 1)
    low = position.floor()
    weight = (position - low).to(images.dtype)
    shape = (len(images), 1, side, 1) if axis == 2 else (len(images), 1, 1, side)
    below = (low.long() + start[:, None]).view(shape)
    above = (torch.minimum(low + 1, span - 1).long() + start[:, None]).view(shape)
    pair = [torch.take_along_dim(images, index, axis) for index in (below, above)]
    return torch.lerp(pair[0], pair[1], weight.view(shape))


# Rotations and perspectives of whole batches, each image with its own homography, sampled once.
#
# Coordinates are pixels with the origin at the image's centre, x to the right and y down, so that a rotation is a true one
# in images that are not square. A matrix leads from the output to the input; `a @ b` is the warp `a` of the image, then `b`.


OUTSIDE = 4.0  # in grid_sample's units, where the image ends at 1


def warp(images: Images, matrices: Tensor) -> Images:
    """Sample each image through its own 3 x 3 homography, bilinearly; what lies outside the image or behind the horizon is 0.

    In float32 a pixel's position is exact to about 1e-7 of the side.
    """
    require(images.ndim == 4 and images.is_floating_point(), "images", "float, batch x channels x height x width", images.shape)
    count, _, height, width = images.shape
    require(matrices.shape == (count, 3, 3), "matrices", f"{count} x 3 x 3", tuple(matrices.shape))
    if images.numel() == 0:
        return images.clone()
    exact = images if images.dtype in (torch.float32, torch.float64) else images.float()
    points = matrices.to(exact) @ centres(height, width).to(exact)
    depth = points[:, 2:]
    scale = points.new_tensor([[2 / width], [2 / height]])  # grid_sample's -1 and 1 are the outer edges of the image
    flat = (points[:, :2] / depth * scale).clamp(-OUTSIDE, OUTSIDE).masked_fill(depth <= 0, OUTSIDE)
    grid = flat.mT.unflatten(1, (height, width))
    return F.grid_sample(exact, grid, mode="bilinear", padding_mode="zeros", align_corners=False).to(images.dtype)


def centres(height: int, width: int) -> Tensor:
    """The homogeneous coordinates of every pixel's centre, row by row: 3 x (height * width)."""
    rows = torch.arange(height, dtype=torch.float64) - (height - 1) / 2
    columns = torch.arange(width, dtype=torch.float64) - (width - 1) / 2
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    return torch.stack([x, y, torch.ones_like(x)]).view(3, -1)


def rotations(degrees: Tensor) -> Tensor:
    """Matrices that turn each image about its centre by its own angle, anticlockwise as seen: batch x 3 x 3."""
    require(degrees.ndim == 1, "degrees", "one for each image", tuple(degrees.shape))
    angles = degrees.deg2rad()
    cos, sin, zero, one = angles.cos(), angles.sin(), torch.zeros_like(angles), torch.ones_like(angles)
    return torch.stack([cos, -sin, zero, sin, cos, zero, zero, zero, one], 1).view(-1, 3, 3)


def shears(x: Tensor, y: Tensor) -> Tensor:
    """Matrices that read each output row x * (its height) to the right and each column y * (its offset) down: batch x 3 x 3."""
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    return torch.stack([one, x, zero, y, one, zero, zero, zero, one], 1).view(-1, 3, 3)


def translations(x: Tensor, y: Tensor) -> Tensor:
    """Matrices that move each image's content right by x and down by y pixels: batch x 3 x 3."""
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    return torch.stack([one, zero, -x, zero, one, -y, zero, zero, one], 1).view(-1, 3, 3)


def perspectives(inwards: Tensor, height: int, width: int) -> Tensor:
    """Matrices that move the corners of each image's content inwards by so many pixels: batch x 3 x 3.

    `inwards` is batch x 4 x 2: (x, y) for the corners top left, top right, bottom right, bottom left, in float64 best. The four
    correspondences give eight linear equations in the matrix with its last entry 1. Below a third of each side the corners
    always span a convex shape; beyond that a horizon may cross the image, and `warp` leaves what lies behind it black.
    """
    require(inwards.ndim == 3 and inwards.shape[1:] == (4, 2), "inwards", "batch x 4 x 2", tuple(inwards.shape))
    signs = inwards.new_tensor([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    corners = (signs * inwards.new_tensor([width / 2, height / 2])).expand_as(inwards)
    u, v = (corners - signs * inwards).unbind(2)
    x, y = corners.unbind(2)
    zero, one = torch.zeros_like(u), torch.ones_like(u)
    for_x = torch.stack([u, v, one, zero, zero, zero, -u * x, -v * x], 2)
    for_y = torch.stack([zero, zero, zero, u, v, one, -u * y, -v * y], 2)
    entries = torch.linalg.solve(torch.cat([for_x, for_y], 1), torch.cat([x, y], 1))
    return torch.cat([entries, one[:, :1]], 1).view(-1, 3, 3)
