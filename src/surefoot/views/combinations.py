"""Views made of views, and MAGNMA's mixed augmentations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..errors import require
from ..seeds import beta, draw, drawn_for
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


def on_some(view: AnyView, images: Images, chosen: Tensor, generator: torch.Generator | None = None) -> Images:
    """The view of the chosen images, and the others as they are.

    A view that draws by `seeds.draw` draws for all, so that its draws, and those after it, do not depend on the choice.
    """
    some = bool(chosen.any())
    rows = chosen.nonzero().flatten() if some else torch.arange(len(images), device=chosen.device)[:1]  # one for its draws
    with drawn_for(rows, len(images)):
        changed = view(images[rows], generator)
    require(changed.dtype == images.dtype, "view's dtype", str(images.dtype), changed.dtype)
    return images.index_copy(0, rows, changed) if some else images


class OneOf(View):
    """One of the views for each image, all equally likely."""

    def __init__(self, views: Sequence[Any]) -> None:
        from .table import build_view

        require(len(views) > 0, "views", "at least one", len(views))
        self.views = [build_view(view) for view in views]

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        choice = (draw(torch.rand, (len(images),), images, generator) * len(self.views)).long()
        for number, view in enumerate(self.views):
            images = on_some(view, images, choice == number, generator)
        return images


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
