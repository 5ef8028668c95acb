"""Our own method, experimental: pictures that are mixed, then noisy, blurred or flat, are what is trained on."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..seeds import draw
from ..types import Images, Labels, Terms
from ..views.augmix import AugMixChains
from ..views.base import Span, View
from ..views.combinations import Chain, OneOf, on_some
from ..views.simple import Contrast, GaussianBlur, GaussianNoise
from ..views.table import build_view
from .base import Objective, jensen_shannon, weighted_sum
from .cross_entropy import as_targets
from .passes import check_batch_norm, logits_of, one_pass, perturbed


class Surefoot(Objective):
    """L = CE(t, y) + consistency_weight mean JS(p(t); p(x)), the mean over every n-th image of the batch.

    t is T(x) with probability `mixed_share`, drawn for each image, and x itself otherwise, which keeps clean accuracy.

    The defaults are the best of a search on validation images, which trained with `ema_decay` 0.998 (docs/results); agreement
    did not help there and is off. Labels are smoothed.

    T is AugMix's mixed chains (Hendrycks et al. 2020) and then one of three changes, drawn for each image: Gaussian noise of a
    deviation from U(0, noise_std), a 3 x 3 Gaussian blur, less contrast. None for `blur_sigma` or `contrast` leaves it out, and
    `view` takes the place of all. Noise, blur and contrast are then not foreign to the net; the corruptions of C-bar are.
    AugMix trains on x and needs three passes; here t is what is trained on, so that at most the n-th part of the batch goes
    through the net a second time: about 1 + 1 / n of a cross-entropy step, and the view.
    """

    def __init__(
        self,
        noise_std: float = 0.1,
        blur_sigma: Span | None = (0.1, 2.0),
        contrast: Span | None = (0.2, 1.0),
        mixed_share: float = 0.5,
        severity: float = 3,
        width: int = 3,
        consistency_weight: float = 0.0,
        consistency_stride: int = 4,
        smoothing: float = 0.05,
        view: Any = None,
        batch_norm: str = "together",
    ) -> None:
        super().__init__()
        require(noise_std >= 0, "noise_std", "at least 0", noise_std)
        require(0 < mixed_share <= 1, "mixed_share", "in (0, 1]", mixed_share)
        require(consistency_weight >= 0, "consistency_weight", "at least 0", consistency_weight)
        require(consistency_stride >= 1, "consistency_stride", "at least 1", consistency_stride)
        require(0 <= smoothing < 1, "smoothing", "in [0, 1)", smoothing)
        self.noise_std, self.mixed_share, self.severity, self.width = noise_std, mixed_share, severity, width
        self.smoothing = smoothing
        self.consistency_weight, self.consistency_stride = consistency_weight, consistency_stride
        self.view, self.batch_norm = view, check_batch_norm(batch_norm)
        self.blur_sigma, self.contrast = blur_sigma, contrast
        self.perturb = self.mixture() if view is None else build_view(view)

    def mixture(self) -> Chain:
        """AugMix, then one of the changes that are asked for."""
        changes: list[View] = [GaussianNoise((0.0, self.noise_std))]
        if self.blur_sigma is not None:
            changes.append(GaussianBlur(self.blur_sigma))
        if self.contrast is not None:
            changes.append(Contrast(self.contrast))
        return Chain([AugMixChains(self.severity, self.width), OneOf(changes) if len(changes) > 1 else changes[0]])

    def perturbed(self, images: Images, generator: torch.Generator | None) -> Images:
        """T(x) for a share of the images, drawn for each; the others as they are."""
        view = partial(perturbed, self.perturb)
        if self.mixed_share == 1:
            return view(images, generator)
        return on_some(view, images, draw(torch.rand, (len(images),), images, generator) < self.mixed_share, generator)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        changed = self.perturbed(images, generator)
        if self.consistency_weight == 0:
            logits, consistency = one_pass(model, changed), images.new_zeros(())
        else:
            some = slice(None, None, self.consistency_stride)
            logits, clean = logits_of(model, [changed, images[some]], self.batch_norm)
            consistency = jensen_shannon([logits[some], clean]).mean()
        targets = as_targets(labels, logits)
        return weighted_sum(
            logits,
            cross_entropy=(1, F.cross_entropy(logits, targets, label_smoothing=self.smoothing)),
            consistency=(self.consistency_weight, consistency),
        )
