"""The slope of the margin at an image: a local Lipschitz estimate from gradients, and the distance it suggests."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..types import Images, Labels, check_labels
from .batching import slices
from .boundary import checked_labels, norms, prepared
from .lipschitz_radii import NOTE
from .steadiness import steady


@dataclass(frozen=True)
class LocalLipschitz:
    """For each image: `values` is max over rivals j of ||grad (f_y - f_j)||_2 at the image.

    `radii` is the first-order distance min over rivals of (f_y - f_j) / ||grad (f_y - f_j)||, 0 where the answer is wrong;
    exact for a linear net.
    """

    values: Tensor
    radii: Tensor
    rivals: int
    note: str = NOTE


def local_lipschitz(
    model: nn.Module, images: Images, labels: Labels, *, rivals: int = 9, batch_size: int = 256, progress: bool = False
) -> LocalLipschitz:
    """Gradient norms of logit differences to the `rivals` classes with the largest logits (L_g of macs Thm 4.5 as r goes to 0).

    One backward pass for each rival. Around a kink, and further away, the net may be steeper: this is no upper bound.
    """
    require(rivals >= 1, "rivals", "at least 1", rivals)
    images, labels = prepared(model, images), checked_labels(labels, images)
    steepest, nearest = [], []
    count = rivals
    with steady(model), torch.enable_grad():
        for part in slices(len(images), batch_size, progress, "local slopes"):
            points = images[part].clone().requires_grad_()
            logits = model(points)
            right = check_labels(labels[part].to(images.device), logits.shape[1], len(points)).unsqueeze(1)
            count = min(rivals, logits.shape[1] - 1)
            others = logits.detach().scatter(1, right, -torch.inf).topk(count, 1).indices
            gaps = logits.gather(1, right) - logits.gather(1, others)
            slopes = []
            for rival in range(count):
                slopes.append(norms(slope(gaps[:, rival], points, keep=rival + 1 < count)))
            steep = torch.stack(slopes, 1)
            steepest.append(steep.amax(1))
            nearest.append((gaps.detach() / steep).amin(1).clamp_min(0))
    return LocalLipschitz(torch.cat(steepest), torch.cat(nearest), count)


def slope(gaps: Tensor, points: Images, keep: bool) -> Tensor:
    """The gradient of each image's number at the pixels; `keep` for another one after it."""
    found = torch.autograd.grad(gaps.sum(), points, retain_graph=keep, allow_unused=True)[0] if gaps.requires_grad else None
    if found is None:
        raise SurefootError("The model does not react to its input: no gradient reaches the images.")
    return found
