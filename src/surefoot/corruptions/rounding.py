"""From pixels to the 256 levels of the published files, which round down."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types import Images

SLACK = 1e-3  # of a level: what float32 loses in a blur of a flat region must not cost a whole one


def to_levels(images: Images) -> Tensor:
    """Clip to [0, 1] and round down to whole levels in [0, 255], still as floats."""
    return torch.add(images.new_tensor(SLACK), images, alpha=255).clamp_(0, 255).floor_()
