"""How much logits and probabilities move under small noise (macs Def. 4.3, Tab. 10), and the margin against it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..objectives.divergences import kl
from ..types import Images, Labels
from .batching import slices
from .boundary import norms, prepared
from .image_noise import base_seed, gaussian
from .logit_margins import margins
from .steadiness import steady


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
    batch_size: int = 256,
    progress: bool = False,
) -> Sensitivity:
    """L(x) = E ||f(x + e) - f(x)||_inf / ||e||_2 (macs Tab. 10) and S(x) = E ||p(x) - p(x + e)||_1 (Def. 4.3).

    The noise e ~ N(0, std^2 I) is not clipped. In pixel units the figures do not compare with the paper's.
    """
    require(std > 0, "std", "positive", std)
    require(draws >= 1, "draws", "at least 1", draws)
    images, seed = prepared(model, images), base_seed(generator)
    found = []
    with steady(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "sensitivity"):
            clean = model(images[part])
            rows = []
            for draw in range(draws):
                noise = std * gaussian(images[part], part.start, draw, seed)
                noisy = model(images[part] + noise)
                slope = (noisy - clean).abs().amax(1) / norms(noise)
                change = (clean.softmax(1) - noisy.softmax(1)).abs().sum(1)
                rows.append(torch.stack([slope, change, kl(clean, noisy).to(slope.dtype)]))
            table = torch.stack(rows)
            found.append(torch.cat([table.mean(0), table[:, 0].amax(0, keepdim=True)]))
    slopes, changes, divergences, largest = torch.cat(found, 1)
    return Sensitivity(slopes, changes, divergences, largest, std, draws)


def margin_ratio(
    model: nn.Module,
    images: Images,
    labels: Labels,
    std: float = 0.1,
    draws: int = 10,
    generator: torch.Generator | None = None,
    *,
    batch_size: int = 256,
    progress: bool = False,
) -> MarginRatio:
    """gamma / L (macs Tab. 10): mean margin over mean sensitivity, as the paper's figures imply, and image by image."""
    gaps = margins(model, images, labels, batch_size=batch_size, progress=progress)
    moved = sensitivity(model, images, std, draws, generator, batch_size=batch_size, progress=progress).values
    each = gaps / moved
    whole = float(gaps.double().mean() / moved.double().mean())
    return MarginRatio(each, gaps, moved, whole, float(each.double().quantile(0.5)))
