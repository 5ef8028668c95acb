"""Our own method, experimental: every picture as it is, and every fourth once more, mixed and then noisy, blurred or flat."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Terms
from ..views.augmix import AugMixChains
from ..views.base import Span, View
from ..views.combinations import Chain, OneOf
from ..views.simple import Contrast, GaussianBlur, GaussianNoise
from ..views.table import build_view
from .base import Objective, weighted_sum
from .cross_entropy import as_targets
from .passes import check_batch_norm, logits_of, perturbed


class Surefoot(Objective):
    """L = mean of CE over the images x of the batch and over T(x) of every n-th of them; labels are smoothed.

    T is AugMix's mixed chains (Hendrycks et al. 2020) and then one of three changes, drawn for each image: Gaussian noise of a
    deviation from U(0, noise_std), a 3 x 3 Gaussian blur, less contrast. None for `blur_sigma` or `contrast` leaves it out, and
    `view` takes the place of all. Noise, blur and contrast are then not foreign to the net; the corruptions of C-bar are.
    AugMix needs three passes over the batch and this 1 + 1 / n. Less contrast asks for 1 or 3 channels. Over several processes
    the images are those of one process where the share of each is a multiple of n. How the defaults were found is in
    docs/results.
    """

    def __init__(
        self,
        mixed_stride: int = 4,
        noise_std: float = 0.1,
        blur_sigma: Span | None = (0.1, 2.0),
        contrast: Span | None = (0.2, 1.0),
        severity: float = 3,
        width: int = 3,
        smoothing: float = 0.05,
        view: Any = None,
        batch_norm: str = "together",
    ) -> None:
        super().__init__()
        require(mixed_stride >= 1, "mixed_stride", "at least 1", mixed_stride)
        require(noise_std >= 0, "noise_std", "at least 0", noise_std)
        require(0 <= smoothing < 1, "smoothing", "in [0, 1)", smoothing)
        self.mixed_stride, self.noise_std, self.blur_sigma, self.contrast = mixed_stride, noise_std, blur_sigma, contrast
        self.severity, self.width, self.smoothing = severity, width, smoothing
        self.view, self.batch_norm = view, check_batch_norm(batch_norm)
        self.perturb = self.mixture() if view is None else build_view(view)

    def mixture(self) -> Chain:
        """AugMix, then one of the changes that are asked for."""
        changes: list[View] = [GaussianNoise((0.0, self.noise_std))]
        if self.blur_sigma is not None:
            changes.append(GaussianBlur(self.blur_sigma))
        if self.contrast is not None:
            changes.append(Contrast(self.contrast))
        return Chain([AugMixChains(self.severity, self.width), OneOf(changes) if len(changes) > 1 else changes[0]])

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        some = slice(None, None, self.mixed_stride)
        clean, mixed = logits_of(model, [images, perturbed(self.perturb, images[some], generator)], self.batch_norm)
        targets = as_targets(labels, clean)
        share = len(mixed) / max(1, len(clean) + len(mixed))
        return weighted_sum(
            clean,
            cross_entropy=(1 - share, F.cross_entropy(clean, targets, label_smoothing=self.smoothing)),
            mixed=(share, F.cross_entropy(mixed, targets[some], label_smoothing=self.smoothing)),
        )
