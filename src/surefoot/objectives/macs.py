"""MaCS: margin and consistency supervision, alone and with AugMix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import require
from ..models.classifier import logit_margins
from ..types import Images, Labels, Logits, Terms, check_labels
from ..views.augmix import AugMixChains
from ..views.combinations import AnyView, Chain
from ..views.simple import GaussianBlur, GaussianNoise
from ..views.table import build_view
from .base import Objective, jensen_shannon, kl, weighted_sum
from .passes import check_batch_norm, in_full, logits_of, one_pass, perturbed

# MaCS: margin and consistency supervision.


class MaCS(Objective):
    """L = CE + margin_weight mean max(0, margin - gamma(x))^2 + consistency_weight mean D(p(x) || p(T(x)))  (macs Eq. 6).

    gamma(x) = f_y - max over j != y of f_j (Eq. 3). T is blur, then noise (section 3.3), or the given view; the gradient goes
    through both sides of D (Algorithm 1). `batch_norm` says whether batch norm sees clean and perturbed images "apart", as in
    Algorithm 1, or "together"; "clean" is apart, with the statistics of the clean images kept for evaluation.

    `consistency_stride` n measures D on every n-th image of the batch, which must be shuffled: the same term from fewer images.
    It costs about 1 + 1 / n of a cross-entropy step in place of 2; docs/how-to-choose.md says what is kept. Several processes
    take the images that one takes where the share of each is a multiple of n.
    """

    def __init__(
        self,
        margin: float = 1.0,
        margin_weight: float = 0.1,
        consistency_weight: float = 0.5,
        view: Any = None,
        batch_norm: str = "apart",
        consistency_stride: int = 1,
    ) -> None:
        super().__init__()
        require(margin >= 0, "margin", "at least 0", margin)
        require(margin_weight >= 0, "margin_weight", "at least 0", margin_weight)
        require(consistency_weight >= 0, "consistency_weight", "at least 0", consistency_weight)
        require(consistency_stride >= 1, "consistency_stride", "at least 1", consistency_stride)
        self.margin, self.margin_weight, self.consistency_weight = margin, margin_weight, consistency_weight
        self.view, self.batch_norm, self.consistency_stride = view, check_batch_norm(batch_norm), consistency_stride
        self.perturb = blur_then_noise() if view is None else build_view(view)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        if self.consistency_weight == 0:
            clean, consistency = one_pass(model, images), images.new_zeros(())
        else:
            chosen = images[:: self.consistency_stride]
            clean, other = logits_of(model, [images, perturbed(self.perturb, chosen, generator)], self.batch_norm)
            consistency = kl(clean[:: self.consistency_stride], other).mean()
        labels = check_labels(labels, clean.shape[1], len(images))
        return weighted_sum(
            clean,
            cross_entropy=(1, F.cross_entropy(clean, labels)),
            margin=(self.margin_weight, margin_loss(clean, labels, self.margin)),
            consistency=(self.consistency_weight, consistency),
        )


def margin_loss(logits: Logits, labels: Labels, margin: float) -> Tensor:
    """mean of max(0, margin - gamma(x))^2  (Eq. 4)."""
    return (margin - logit_margins(in_full(logits), labels)).clamp_min(0).square().mean()


def blur_then_noise() -> AnyView:
    """Section 3.3: Gaussian blur, 3 x 3 with sigma from U(0.1, 2), then Gaussian noise of standard deviation 0.1."""
    return Chain([GaussianBlur((0.1, 2.0)), GaussianNoise(0.1)])


# MaCS and AugMix in one loss (macs Tables 5 and 7).


class MaCSAugMix(Objective):
    """The sum of both: CE + margin_weight margin + consistency_weight D(p(x) || p(T(x))) + jsd_weight JS(p(x); p(x_1); p(x_2)).

    T is MaCS's view, x_1 and x_2 are AugMix's. MaCS with AugMix as its only view is another method: `MaCS(view="augmix")`.
    Batch norm sees all four together, as in AugMix, so that the two compare; `batch_norm="apart"` gives each its own
    statistics, as in MaCS.
    """

    def __init__(
        self,
        margin: float = 1.0,
        margin_weight: float = 0.1,
        consistency_weight: float = 0.5,
        jsd_weight: float = 12.0,
        severity: float = 3,
        width: int = 3,
        alpha: float = 1.0,
        view: Any = None,
        batch_norm: str = "together",
    ) -> None:
        super().__init__()
        weights = {"margin_weight": margin_weight, "consistency_weight": consistency_weight, "jsd_weight": jsd_weight}
        for name, weight in {"margin": margin, **weights}.items():
            require(weight >= 0, name, "at least 0", weight)
        self.margin, self.margin_weight, self.consistency_weight, self.jsd_weight = margin, *weights.values()
        self.severity, self.width, self.alpha, self.view = severity, width, alpha, view
        self.batch_norm = check_batch_norm(batch_norm)
        self.perturb = blur_then_noise() if view is None else build_view(view)
        self.mix = AugMixChains(severity, width, alpha=alpha)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        views = [perturbed(view, images, generator) for view in (self.perturb, self.mix, self.mix)]
        clean, other, *mixed = logits_of(model, [images, *views], self.batch_norm)
        labels = check_labels(labels, clean.shape[1], len(images))
        return weighted_sum(
            clean,
            cross_entropy=(1, F.cross_entropy(clean, labels)),
            margin=(self.margin_weight, margin_loss(clean, labels, self.margin)),
            consistency=(self.consistency_weight, kl(clean, other).mean()),
            jensen_shannon=(self.jsd_weight, jensen_shannon([clean, *mixed]).mean()),
        )
