"""Bring any module of your own behind the face of `Classifier`."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from .classifier import Classifier


def adapt(
    module: nn.Module,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    image_size: int | tuple[int, int],
    *,
    channels: int = 3,
) -> Classifier:
    """Wrap a module that takes images normalised by `mean` and `std` so that it takes pixels in [0, 1].

    A module that takes pixels in [0, 1] already has mean 0 and std 1. Its last linear layer is found by running it once.
    """
    return Classifier(module, mean, std, image_size, channels)
