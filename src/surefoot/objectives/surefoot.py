"""Our own method, experimental: MaCS whose consistency is on every fourth image, against that image mixed and made worse."""

from __future__ import annotations

from typing import Any

from ..views.augmix import AugMixChains
from ..views.combinations import Chain, OneOf
from ..views.simple import Contrast, GaussianNoise
from .macs import MaCS, blur_then_noise


class Surefoot(MaCS):
    """The loss of MaCS (macs Eq. 6): its consistency is on every fourth image, with another view T, its margin 4 in place of 1.

    T is AugMix's mixed chains (Hendrycks et al. 2020) and then one of four changes for each image: noise, blur, less contrast,
    or blur and noise. So noise, blur and contrast are trained on; no corruption of C-bar is. Statistics of batch norm are of
    clean images. How the defaults were found is in docs/results.
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
