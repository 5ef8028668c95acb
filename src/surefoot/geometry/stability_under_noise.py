"""Whether features and loss stay where they are under noise (discriminative Def. 6.1), and what Thm 6.1 makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import require
from ..models.observing import head_of, observed
from ..types import Images, Labels
from .batching import slices
from .boundary import checked_labels, norms, prepared
from .image_noise import base_seed, gaussian
from .loss_gradients import loss_gradient, losses
from .steadiness import steady

NOTE = (
    "Thm 6.1 assumes a loss that is exactly quadratic and logits that are bounded, which exclude each other: numbers to compare"
    " models by, not bounds that hold. K_max is the largest logit seen, and eta and l_out are means over draws."
)


@dataclass(frozen=True)
class NoiseStability:
    """For each image: `values` is eta, the share of draws whose features stay within `distance` of the clean ones.

    `outside_losses` is l_out, the mean loss of the other draws (NaN where there are none); `feature_distances` and
    `squared_loss_changes` are means over all draws.
    """

    values: Tensor
    outside_losses: Tensor
    clean_losses: Tensor
    feature_distances: Tensor
    squared_loss_changes: Tensor
    largest_logit: float
    std: float
    distance: float
    draws: int


@dataclass(frozen=True)
class CurvatureBounds:
    """For each image: `values` is the right side of discriminative Eq. 15 (above sum l^2), `lower` that of Eq. 16.

    Eq. 16 stands below 2 sum l^2 + (sum |l|)^2; negative means that it says nothing.
    """

    values: Tensor
    lower: Tensor
    stability: NoiseStability
    note: str = NOTE


def noise_stability(
    model: nn.Module,
    images: Images,
    labels: Labels,
    std: float = 0.06,
    distance: float = 1.0,
    draws: int = 20,
    generator: torch.Generator | None = None,
    *,
    batch_size: int = 256,
    progress: bool = False,
) -> NoiseStability:
    """eta and l_out of discriminative Def. 6.1 for e ~ N(0, std^2 I); `distance` is delta = 2 delta_v, 1 in the paper."""
    require(std > 0, "std", "positive", std)
    require(distance > 0, "distance", "positive", distance)
    require(draws >= 1, "draws", "at least 1", draws)
    images, labels, seed = prepared(model, images), checked_labels(labels, images), base_seed(generator)
    head = head_of(model, images)
    found, largest = [], 0.0
    with steady(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "stability"):
            loss = losses(labels[part].to(images.device))
            clean = observed(model, head, images[part])
            clean_loss = loss(clean.logits)
            largest = max(largest, float(clean.logits.abs().max()))
            rows = []
            for draw in range(draws):
                noisy = observed(model, head, images[part] + std * gaussian(images[part], part.start, draw, seed))
                largest = max(largest, float(noisy.logits.abs().max()))
                apart, loss_there = norms(noisy.features - clean.features), loss(noisy.logits)
                outside = (apart > distance).to(apart.dtype)
                rows.append(torch.stack([outside, outside * loss_there, apart, (loss_there - clean_loss).square()]))
            found.append(torch.cat([torch.stack(rows).sum(0), clean_loss.unsqueeze(0)]))
    out, out_loss, apart, change, clean_losses = torch.cat(found, 1)
    shares, outside = 1 - out / draws, out_loss / out
    return NoiseStability(shares, outside, clean_losses, apart / draws, change / draws, largest, std, distance, draws)


def curvature_bounds(
    model: nn.Module,
    images: Images,
    labels: Labels,
    std: float = 0.06,
    distance: float = 1.0,
    draws: int = 20,
    generator: torch.Generator | None = None,
    *,
    batch_size: int = 256,
    progress: bool = False,
) -> CurvatureBounds:
    """The two sides of discriminative Thm 6.1 as numbers; its assumptions exclude each other (`note`)."""
    run: dict[str, Any] = {"batch_size": batch_size, "progress": progress}
    prepared(model, images, half=False)
    stability = noise_stability(model, images, labels, std, distance, draws, generator, **run)
    images, labels = prepared(model, images), checked_labels(labels, images)
    with steady(model):
        parts = slices(len(images), batch_size, progress, "loss gradients")
        slopes = [norms(loss_gradient(model, images[part], labels[part].to(images.device))) for part in parts]
    row = float(torch.linalg.vector_norm(head_of(model, images).weight.detach(), dim=1).max())
    eta, outside = stability.values, 1 - stability.values
    upper = 8 / std**4 * (eta * row**2 * distance**2 + 4 * outside * stability.largest_logit**2)
    moved = (outside * (stability.outside_losses - stability.clean_losses).square()).nan_to_num()
    lower = 4 / std**4 * (moved - std**2 * torch.cat(slopes).square())
    return CurvatureBounds(upper, lower, stability)
