"""Elastic transform: a random affine map, then a smooth random displacement."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..imageops.blur import gaussian_matrix
from ..imageops.separable import apply
from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

TRUNCATE = 3.0  # standard deviations of the displacement's blur


def elastic_transform(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Three points moved by up to affine * side, then U(-1, 1) blurred by sigma * side and scaled by alpha * side; bilinear."""
    height, width = images.shape[2:]
    side = min(height, width) * constants["stretch"]
    uniform = draws.uniform((6 + 2 * height * width,)).mul_(2).sub_(1)
    moves = uniform[:, :6].double().reshape(-1, 3, 2) * (constants["affine"] * side)
    warped = sample(images, affine_places(moves, height, width).to(images), edge_repeated=False)
    if constants["alpha"] == 0:
        return warped
    spread = constants["sigma"] * side
    rows, columns = (gaussian_matrix(length, spread, TRUNCATE, "reflect") for length in (height, width))
    field = apply(rows, uniform[:, 6:].reshape(-1, 2, height, width).to(images), columns).mul_(constants["alpha"] * side)
    field[:, 0] += torch.arange(width).to(field)
    field[:, 1] += torch.arange(height).to(field)[:, None]
    return sample(warped, field.permute(0, 2, 3, 1), edge_repeated=True)


def sample(images: Images, places: Tensor, *, edge_repeated: bool) -> Images:
    """Bilinear at (x, y) in pixels, batch x height x width x 2; borders mirrored at the edge pixels' centres or behind them."""
    sides = torch.tensor([images.shape[3], images.shape[2]]).to(places)
    last = (sides - 1).clamp_min(1)
    grid = places.mul(2 / sides).add_(1 / sides - 1) if edge_repeated else places.mul(2 / last).sub_(1)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=not edge_repeated)


def affine_places(moves: Tensor, height: int, width: int) -> Tensor:
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
