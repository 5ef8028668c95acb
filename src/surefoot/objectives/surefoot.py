"""Our own method, experimental: MaCS on every fourth image, whose other view is mixed and then noisy, blurred or flat."""

from __future__ import annotations

from typing import Any

from ..views.augmix import AugMixChains
from ..views.combinations import Chain, OneOf
from ..views.simple import Contrast, GaussianNoise
from .macs import MaCS, blur_then_noise


class Surefoot(MaCS):
    """The loss of MaCS (macs Eq. 6) with its consistency on every fourth image, another T, and a margin of 4 in place of 1.

    T is AugMix's mixed chains (Hendrycks et al. 2020) and then one of three changes for each image: MaCS's blur and noise, one
    of them alone, or less contrast. Noise, blur and contrast are then not foreign to the net; the corruptions of C-bar are.
    Statistics of batch norm are of clean images. How the defaults were found is in docs/results.
    """

    def __init__(
        self,
        margin: float = 4.0,
        margin_weight: float = 0.1,
        consistency_weight: float = 0.5,
        view: Any = None,
        batch_norm: str = "clean",
        consistency_stride: int = 4,
    ) -> None:
        super().__init__(margin, margin_weight, consistency_weight, view, batch_norm, consistency_stride)
        if view is None:
            self.perturb = mixed_then_worse()


def mixed_then_worse() -> Chain:
    """AugMix's chains, then noise, blur, less contrast, or blur and noise, all equally likely."""
    return Chain([AugMixChains(), OneOf([GaussianNoise(0.1), "blur", Contrast((0.2, 1.0)), blur_then_noise()])])
