"""Views made of views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..errors import require
from ..seeds import draw
from ..types import Images
from .base import View

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
