"""How far an image may move before its class can change, if the sampled Lipschitz constants were the true ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..models.logit_margins import logit_margins
from ..types import Images, Labels, Logits, finite_logits
from .batching import slices
from .boundary import checked_labels, norms, prepared
from .image_noise import base_seed, gaussian
from .steadiness import steady

NOTE = (
    "An estimate, not a certificate: a Lipschitz constant from samples is a lower bound of the true one (by about the square"
    " root of the dimension), so these radii are too large. For a certificate use randomised smoothing (certify)."
)


@dataclass(frozen=True)
class RadiusEstimates:
    """For each image: `values` is the radius of macs Thm 4.5, `logit_radii` that of Cor. 4.6.

    Both are 0 where the margin is not positive.
    `difference_lipschitz` and `logit_lipschitz` are the sampled L_g and L_f, `reach` the r within which they were sampled.
    """

    values: Tensor
    logit_radii: Tensor
    margins: Tensor
    difference_lipschitz: Tensor
    logit_lipschitz: Tensor
    reach: Tensor
    note: str = NOTE


def robustness_radius(margins: Tensor, difference_lipschitz: Tensor, reach: Tensor | float = torch.inf) -> Tensor:
    """min(r, gamma / L_g), 0 where the margin is not positive (macs Thm 4.5); a certificate if L_g is truly one within r."""
    radii = torch.minimum(margins / difference_lipschitz, torch.as_tensor(reach, dtype=margins.dtype, device=margins.device))
    return torch.where(margins > 0, radii, 0.0)


def logit_radius(margins: Tensor, logit_lipschitz: Tensor, reach: Tensor | float = torch.inf) -> Tensor:
    """min(r, gamma / (2 L_f)), since L_g is at most 2 L_f (macs Cor. 4.6)."""
    return robustness_radius(margins, 2 * logit_lipschitz, reach)


def radius_estimates(
    model: nn.Module,
    images: Images,
    labels: Labels,
    std: float = 0.1,
    draws: int = 10,
    generator: torch.Generator | None = None,
    *,
    batch_size: int = 256,
    progress: bool = False,
) -> RadiusEstimates:
    """The radii of macs Thm 4.5 and Cor. 4.6 with Lipschitz constants from `draws` of Gaussian noise around each image.

    They are no certificate: a sampled Lipschitz constant is a lower bound of the true one. r is the shortest draw.
    """
    require(std > 0, "std", "positive", std)
    require(draws >= 1, "draws", "at least 1", draws)
    images, labels, seed = prepared(model, images), checked_labels(labels, images), base_seed(generator)
    found = []
    with steady(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "radius estimates"):
            labels_here, clean = labels[part].to(images.device), finite_logits(model(images[part]))
            gaps = logit_margins(clean, labels_here)
            steepest = gaps.new_zeros(2, len(gaps))
            shortest = torch.full_like(gaps, torch.inf)
            for draw in range(draws):
                noise = std * gaussian(images[part], part.start, draw, seed)
                lengths, moved = norms(noise), finite_logits(model(images[part] + noise)) - clean
                slopes = torch.stack([difference_moves(moved, labels_here), moved.abs().amax(1)]) / lengths
                steepest, shortest = torch.maximum(steepest, slopes), torch.minimum(shortest, lengths)
            found.append(torch.cat([gaps.unsqueeze(0), steepest, shortest.unsqueeze(0)]))
    gaps, differences, logits, reach = torch.cat(found, 1)
    radii = robustness_radius(gaps, differences, reach), logit_radius(gaps, logits, reach)
    return RadiusEstimates(*radii, gaps, differences, logits, reach)


def difference_moves(moved: Logits, labels: Labels) -> Tensor:
    """max over j != y of |g_yj(z) - g_yj(x)|, from how far each logit moved."""
    return (moved.gather(1, labels.unsqueeze(1)) - moved).abs().amax(1)
