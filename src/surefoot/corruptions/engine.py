"""From images, a name and a severity to the corrupted images."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import require
from ..types import Images, check_images
from .draws import ImageDraws
from .families import CORRUPTIONS
from .severities import constants, scale_for


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

    `indices` are the images' places in their data set (0, 1, ... if not given): with the seed they decide the random draws.
    Results are clipped to [0, 1] and rounded down to 8 bits, as the published files are.
    """
    function = CORRUPTIONS.load(name)
    whole = images.dtype == torch.uint8
    pixels = images.float() / 255 if whole else images
    check_images(pixels)
    indices = torch.arange(len(images)) if indices is None else torch.as_tensor(indices)
    require(len(indices) == len(images), "indices", f"one for each of {len(images)} images", len(indices))
    chosen = scale_for(*images.shape[2:]) if scale == "auto" else scale
    settings = constants(name, severity, chosen)
    if len(images) == 0:
        return images.clone()
    levels: Tensor = function(pixels, settings, ImageDraws(seed, name, indices)).clamp(0, 1).mul(255).floor()
    return levels.to(torch.uint8) if whole else levels / 255
