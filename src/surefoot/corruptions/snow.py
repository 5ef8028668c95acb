"""Snow: flakes, blurred by their fall, over a paler image."""

from __future__ import annotations

import torch

from ..imageops.colour import grey
from ..imageops.separable import apply, zoom_matrix
from ..seeds import ImageDraws
from ..types import Images
from .motion import along
from .rounding import to_levels
from .severities import Constants


def snow(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """keep * x + (1 - keep) * max(x, 1.5 * grey(x) + 0.5) + flakes + flakes turned by 180 degrees."""
    height, width = images.shape[2:]
    layer = draws.normal((1, height, width)).to(images).mul_(constants["std"]).add_(constants["mean"])
    layer = apply(zoom_matrix(height, constants["zoom"]), layer, zoom_matrix(width, constants["zoom"]))
    layer = to_levels(layer.masked_fill_(layer < constants["threshold"], 0)).div_(255)
    turns = draws.uniform((1,), "angle")[:, 0] - 0.5
    flakes = along(layer, -90.0, turns, constants["radius"], constants["sigma"])
    pale = torch.maximum(images, grey(images).mul(1.5).add_(0.5))
    return torch.lerp(pale, images, constants["keep"]).add_(flakes + flakes.flip((2, 3)))
