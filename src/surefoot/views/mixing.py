"""MAGNMA's mixed augmentations: an image mixed with one change of its tone (magnma section 3 (b))."""

from __future__ import annotations

import torch

from ..errors import require
from ..seeds import beta, draw
from ..types import Images
from .base import View
from .operations import TONES, operate


class MixedTone(View):
    """w x + (1 - w) T_a(x): a one of autocontrast, equalize, posterize, solarize at level 1 to 10, w ~ Beta(beta, beta)."""

    def __init__(self, beta: float = 1.0) -> None:
        require(beta > 0, "beta", "positive", beta)
        self.beta = beta

    @torch.no_grad()
    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        operation, level = draw(torch.rand, (len(images), 2), images, generator).unbind(1)
        weight = beta(self.beta, (len(images), 1, 1, 1), images, generator)
        changed = operate(images, (len(TONES) * operation).long(), 1 + (10 * level).floor())
        return torch.lerp(changed, images, weight)
