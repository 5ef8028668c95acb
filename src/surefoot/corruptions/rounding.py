"""From pixels to the 256 levels of the published files, which round down."""

from __future__ import annotations

from torch import Tensor

from ..types import Images

SLACK = 1e-3  # of a level: what float32 loses in a blur of a flat region must not cost a whole one


def to_levels(images: Images) -> Tensor:
    """Clip to [0, 1] and round down to whole levels in [0, 255], still as floats."""
    return images.clamp(0, 1).mul_(255).add_(SLACK).floor_()
