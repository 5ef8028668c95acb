"""Local Lipschitz constants, from samples and from gradients, and the radii that they suggest (macs Thm 4.5, Cor. 4.6)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..models.classifier import logit_margins
from ..seeds import check_indices
from ..types import Images, Labels, Logits, check_labels, finite_logits
from .evaluation import base_seed, deterministic, gaussian, norms, prepared_batch, slices

RADIUS_NOTE = (
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
    note: str = RADIUS_NOTE


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
    indices: Tensor | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> RadiusEstimates:
    """The radii of macs Thm 4.5 and Cor. 4.6 with Lipschitz constants from `draws` of Gaussian noise around each image.

    They are no certificate: a sampled Lipschitz constant is a lower bound of the true one. r is the shortest draw.
    """
    require(std > 0, "std", "positive", std)
    require(draws >= 1, "draws", "at least 1", draws)
    (images, labels), seed = prepared_batch(model, images, labels), base_seed(generator)
    indices = check_indices(indices, len(images))
    batches = []
    with deterministic(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "radius estimates"):
            clean = finite_logits(model(images[part]))
            gaps = logit_margins(clean, labels[part])
            steepest = gaps.new_zeros(2, len(gaps))
            shortest = torch.full_like(gaps, torch.inf)
            for draw in range(draws):
                noise = std * gaussian(images[part], indices[part], draw, seed)
                lengths, moved = norms(noise), finite_logits(model(images[part] + noise)) - clean
                slopes = torch.stack([difference_moves(moved, labels[part]), moved.abs().amax(1)]) / lengths
                steepest, shortest = torch.maximum(steepest, slopes), torch.minimum(shortest, lengths)
            batches.append(torch.cat([gaps.unsqueeze(0), steepest, shortest.unsqueeze(0)]))
    gaps, differences, logits, reach = torch.cat(batches, 1)
    radii = robustness_radius(gaps, differences, reach), logit_radius(gaps, logits, reach)
    return RadiusEstimates(*radii, gaps, differences, logits, reach)


def difference_moves(moved: Logits, labels: Labels) -> Tensor:
    """max over j != y of |g_yj(z) - g_yj(x)|, from how far each logit moved."""
    return (moved.gather(1, labels.unsqueeze(1)) - moved).abs().amax(1)


@dataclass(frozen=True)
class LocalLipschitz:
    """For each image: `values` is max over rivals j of ||grad (f_y - f_j)||_2 at the image.

    `radii` is the first-order distance min over rivals of (f_y - f_j) / ||grad (f_y - f_j)||, 0 where the prediction is wrong;
    exact for a linear net.
    """

    values: Tensor
    radii: Tensor
    rivals: int
    note: str = RADIUS_NOTE


def local_lipschitz(
    model: nn.Module, images: Images, labels: Labels, *, rivals: int = 9, batch_size: int = 256, progress: bool = False
) -> LocalLipschitz:
    """Gradient norms of logit differences to the `rivals` classes with the largest logits (L_g of macs Thm 4.5 as r goes to 0).

    One backward pass for each rival. Around a kink, and further away, the net may be steeper: this is no upper bound.
    """
    require(rivals >= 1, "rivals", "at least 1", rivals)
    images, labels = prepared_batch(model, images, labels)
    steepest, nearest = [], []
    count = rivals
    with deterministic(model), torch.enable_grad():
        for part in slices(len(images), batch_size, progress, "local slopes"):
            points = images[part].clone().requires_grad_()
            logits = model(points)
            right = check_labels(labels[part], logits.shape[1], len(points)).unsqueeze(1)
            count = min(rivals, logits.shape[1] - 1)
            others = logits.detach().scatter(1, right, -torch.inf).topk(count, 1).indices
            gaps = logits.gather(1, right) - logits.gather(1, others)
            gradients = (slope(gaps[:, rival], points, keep=rival + 1 < count) for rival in range(count))
            slopes = torch.stack([norms(gradient) for gradient in gradients], 1)
            steepest.append(slopes.amax(1))
            nearest.append((gaps.detach() / slopes).amin(1).clamp_min(0))
    return LocalLipschitz(torch.cat(steepest), torch.cat(nearest), count)


def slope(gaps: Tensor, points: Images, keep: bool) -> Tensor:
    """The gradient of each image's number at the pixels; `keep` for another one after it."""
    gradient = torch.autograd.grad(gaps.sum(), points, retain_graph=keep, allow_unused=True)[0] if gaps.requires_grad else None
    if gradient is None:
        raise SurefootError("The model does not react to its input: no gradient reaches the images.")
    return gradient
