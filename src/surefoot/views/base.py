"""What every view is: a callable with readable options, whose ranges are drawn for each image."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..errors import require
from ..seeds import draw
from ..types import Images

Span = float | Sequence[float]  # one value for all images, or (low, high): uniform for each image


class View:
    """`view(images, generator=None)` gives images of the same shape and dtype.

    Constructor arguments are kept as attributes of the same name, so that a recipe can say what a view was.
    """

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        raise TypeError(f"{type(self).__name__} must define __call__(images, generator=None).")

    def options(self) -> dict[str, Any]:
        """The constructor arguments that would make this view again."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options().items())})"


def check_span(argument: str, span: Span, low: float, high: float) -> tuple[float, float]:
    """Both ends of a span, which must lie in [low, high]."""
    ends = (float(span), float(span)) if isinstance(span, (int, float)) else tuple(float(end) for end in span)
    sound = len(ends) == 2 and low <= ends[0] <= ends[1] <= high
    require(sound, argument, f"a number or (low, high) in [{low:g}, {high:g}]", span)
    return ends[0], ends[1]


def uniform(ends: tuple[float, float], images: Images, generator: torch.Generator | None) -> Tensor:
    """A number from U(low, high) for each image; without a range, nothing is drawn."""
    low, high = ends
    if low == high:
        return images.new_full((len(images),), low)
    return low + (high - low) * draw(torch.rand, (len(images),), images, generator)
