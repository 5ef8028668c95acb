"""How much predictions, loss and features change under noise (macs Def. 4.3, Tab. 10; discriminative Def. 6.1, Thm 6.1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..attacks.gradients import untouched
from ..corruptions.noise import add_gaussian_noise, add_uniform_noise
from ..errors import UnknownName, require
from ..models.last_layer import head_of, observed
from ..objectives.base import kl
from ..seeds import check_indices, derive
from ..types import Images, Labels, finite_logits
from ._margins import margins
from .evaluation import base_seed, deterministic, gaussian, gradient_norms, losses, norms, prepared, prepared_batch, slices

NOISES = {"gaussian": add_gaussian_noise, "uniform": add_uniform_noise}
STABILITY_NOTE = (
    "Thm 6.1 assumes a loss that is exactly quadratic and logits that are bounded, which exclude each other: numbers to compare"
    " models by, not bounds that hold. K_max is the largest logit seen, and eta and l_out are means over draws."
)


@dataclass(frozen=True)
class Sensitivity:
    """Means over the draws, for each image: `values` is L(x), `probability_change` S(x), `divergence` D_KL(p(x) || p(x + e)).

    `largest` is the largest of the draws' L: the sampled Lipschitz constant of the logits in the maximum norm.
    """

    values: Tensor
    probability_change: Tensor
    divergence: Tensor
    largest: Tensor
    std: float
    draws: int


@dataclass(frozen=True)
class MarginRatio:
    """Margin against sensitivity (macs Tab. 10): `values` for each image, the ratio of the means, and the median."""

    values: Tensor
    margins: Tensor
    sensitivities: Tensor
    ratio_of_means: float
    median: float


def sensitivity(
    model: nn.Module,
    images: Images,
    std: float = 0.1,
    draws: int = 10,
    generator: torch.Generator | None = None,
    *,
    indices: Tensor | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> Sensitivity:
    """L(x) = E ||f(x + e) - f(x)||_inf / ||e||_2 (macs Tab. 10) and S(x) = E ||p(x) - p(x + e)||_1 (Def. 4.3).

    The noise e ~ N(0, std^2 I) is not clipped. In pixel units the figures do not compare with the paper's.
    """
    require(std > 0, "std", "positive", std)
    require(draws >= 1, "draws", "at least 1", draws)
    images, seed = prepared(model, images), base_seed(generator)
    indices = check_indices(indices, len(images))
    batches = []
    with deterministic(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "sensitivity"):
            clean = model(images[part])
            rows = []
            for draw in range(draws):
                noise = std * gaussian(images[part], indices[part], draw, seed)
                noisy = model(images[part] + noise)
                slope = (noisy - clean).abs().amax(1) / norms(noise)
                change = (clean.softmax(1) - noisy.softmax(1)).abs().sum(1)
                rows.append(torch.stack([slope, change, kl(clean, noisy).to(slope.dtype)]))
            table = torch.stack(rows)
            batches.append(torch.cat([table.mean(0), table[:, 0].amax(0, keepdim=True)]))
    slopes, changes, divergences, largest = torch.cat(batches, 1)
    return Sensitivity(slopes, changes, divergences, largest, std, draws)


def margin_ratio(
    model: nn.Module,
    images: Images,
    labels: Labels,
    std: float = 0.1,
    draws: int = 10,
    generator: torch.Generator | None = None,
    *,
    indices: Tensor | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> MarginRatio:
    """gamma / L (macs Tab. 10): mean margin over mean sensitivity, as the paper's figures imply, and image by image."""
    gaps = margins(model, images, labels, batch_size=batch_size, progress=progress)
    moved = sensitivity(model, images, std, draws, generator, indices=indices, batch_size=batch_size, progress=progress).values
    each = gaps / moved
    whole = float(gaps.double().mean() / moved.double().mean())
    return MarginRatio(each, gaps, moved, whole, float(each.double().quantile(0.5)))


def noisy_correct(
    model: nn.Module,
    images: Images,
    labels: Labels,
    level: float = 0.06,
    noise: str = "gaussian",
    draws: int = 10,
    seed: int = 0,
    batch_size: int = 256,
    progress: bool = False,
    *,
    indices: Tensor | None = None,
) -> Tensor:
    """count(i): in how many of `draws` noisy copies each image gets its label (discriminative-noise 7.3).

    `level` is the deviation of "gaussian" and the amplitude of "uniform" noise, in pixel units; copies are clipped to [0, 1].
    An image's noise depends on `seed` and its index alone, not on the batch.
    """
    if noise not in NOISES:
        raise UnknownName("noise", noise, NOISES)
    require(draws >= 1, "draws", "at least 1", draws)
    indices = check_indices(indices, len(images))
    counts = torch.zeros(len(images), dtype=torch.long, device=images.device)
    with untouched(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "noise"):
            for draw in range(draws):
                key = derive(seed, draw, "noisy answers")
                copies = NOISES[noise](images[part], level, seed=key, indices=indices[part])
                counts[part] += finite_logits(model(copies)).argmax(1) == labels[part]
    return counts


@dataclass(frozen=True)
class NoiseStability:
    """For each image: `values` is eta, the share of draws whose features stay within `distance` of the clean ones.

    `outside_losses` is l_out, the mean loss of the other draws (NaN where there are none); `feature_distances` and
    `squared_loss_changes` are means over all draws; `largest_logits` is the largest |logit| of each image and its draws.
    """

    values: Tensor
    outside_losses: Tensor
    clean_losses: Tensor
    feature_distances: Tensor
    squared_loss_changes: Tensor
    largest_logits: Tensor
    std: float
    distance: float
    draws: int

    @property
    def largest_logit(self) -> float:
        """K_max of Thm 6.1: the largest |logit| seen."""
        return float(self.largest_logits.max())


@dataclass(frozen=True)
class CurvatureBounds:
    """For each image: `values` is the right side of discriminative Eq. 15 (above sum l^2), `lower` that of Eq. 16.

    Eq. 16 stands below 2 sum l^2 + (sum |l|)^2; negative means that it says nothing.
    """

    values: Tensor
    lower: Tensor
    stability: NoiseStability
    note: str = STABILITY_NOTE


def noise_stability(
    model: nn.Module,
    images: Images,
    labels: Labels,
    std: float = 0.06,
    distance: float = 1.0,
    draws: int = 20,
    generator: torch.Generator | None = None,
    *,
    indices: Tensor | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> NoiseStability:
    """eta and l_out of discriminative Def. 6.1 for e ~ N(0, std^2 I); `distance` is delta = 2 delta_v, 1 in the paper."""
    require(std > 0, "std", "positive", std)
    require(distance > 0, "distance", "positive", distance)
    require(draws >= 1, "draws", "at least 1", draws)
    (images, labels), seed = prepared_batch(model, images, labels), base_seed(generator)
    indices = check_indices(indices, len(images))
    head = head_of(model, images)
    batches, largest = [], []
    with deterministic(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "stability"):
            loss = losses(labels[part])
            clean = observed(model, head, images[part])
            clean_loss = loss(clean.logits)
            highest = clean.logits.abs().amax(1)
            rows = []
            for draw in range(draws):
                noisy = observed(model, head, images[part] + std * gaussian(images[part], indices[part], draw, seed))
                highest = torch.maximum(highest, noisy.logits.abs().amax(1))
                apart, loss_there = norms(noisy.features - clean.features), loss(noisy.logits)
                outside = (apart > distance).to(apart.dtype)
                rows.append(torch.stack([outside, outside * loss_there, apart, (loss_there - clean_loss).square()]))
            batches.append(torch.cat([torch.stack(rows).sum(0), clean_loss.unsqueeze(0)]))
            largest.append(highest)
    out, out_loss, apart, change, clean_losses = torch.cat(batches, 1)
    shares, outside = 1 - out / draws, out_loss / out
    means = apart / draws, change / draws
    return NoiseStability(shares, outside, clean_losses, *means, torch.cat(largest), std, distance, draws)


def curvature_bounds(
    model: nn.Module,
    images: Images,
    labels: Labels,
    std: float = 0.06,
    distance: float = 1.0,
    draws: int = 20,
    generator: torch.Generator | None = None,
    *,
    indices: Tensor | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> CurvatureBounds:
    """The two sides of discriminative Thm 6.1 as numbers; its assumptions exclude each other (`note`)."""
    images = prepared(model, images, half=False)
    stability = noise_stability(
        model, images, labels, std, distance, draws, generator, indices=indices, batch_size=batch_size, progress=progress
    )
    slopes = gradient_norms(model, images, labels, batch_size, progress)
    upper = eigenvalue_bound(stability.values, stability.largest_logit, longest_row(head_of(model, images)), std, distance)
    moved = ((1 - stability.values) * (stability.outside_losses - stability.clean_losses).square()).nan_to_num()
    lower = 4 / std**4 * (moved - std**2 * slopes.square())
    return CurvatureBounds(upper, lower, stability)


def eigenvalue_bound(shares: Tensor, largest_logit: float, row: float, std: float, distance: float) -> Tensor:
    """8 / std^4 (eta row^2 distance^2 + 4 (1 - eta) K_max^2), the right side of discriminative Eq. 15."""
    return 8 / std**4 * (shares * row**2 * distance**2 + 4 * (1 - shares) * largest_logit**2)


def longest_row(head: nn.Linear) -> float:
    """The largest norm of a class's weights."""
    return float(torch.linalg.vector_norm(head.weight.detach(), dim=1).max())
