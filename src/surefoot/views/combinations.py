"""Views made of views, and MAGNMA's mixed augmentations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..errors import require
from ..seeds import beta, draw
from ..types import Images
from .augmix import TONES, operate
from .base import View

# Views made of views.


AnyView = Callable[..., Images]


class Chain(View):
    """One view after the other."""

    def __init__(self, views: Sequence[Any]) -> None:
        from .table import build_view

        require(len(views) > 0, "views", "at least one", len(views))
        self.views = [build_view(view) for view in views]

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        for view in self.views:
            images = view(images, generator)
        return images


class OneOf(View):
    """One of the views for each image, all equally likely; each is computed for all, so draws do not depend on the choice."""

    def __init__(self, views: Sequence[Any]) -> None:
        from .table import build_view

        require(len(views) > 0, "views", "at least one", len(views))
        self.views = [build_view(view) for view in views]

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        choice = (draw(torch.rand, (len(images), 1, 1, 1), images, generator) * len(self.views)).long()
        out = images
        for number, view in enumerate(self.views):
            out = torch.where(choice == number, view(images, generator), out)
        return out


# MAGNMA's mixed augmentations: an image mixed with one change of its tone (magnma section 3 (b)).


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
