"""The loss around an image, along its gradient and across it (discriminative-noise Fig. 11)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..attacks.gradients import input_gradient, untouched
from ..errors import require
from ..seeds import check_indices, draw
from ..types import Images, Labels
from .evaluation import base_seed, gaussian, losses, prepared_batch, slices


@dataclass(frozen=True)
class LossLandscape:
    """Cross-entropy at x + a g + b o, g the unit gradient of the loss and o a random unit direction orthogonal to it.

    `offsets` are the values of a and of b, L2 lengths in pixel units; `loss` is images x a x b; `gradient_norm` one number for
    each image. The paper draws the negative loss.
    """

    offsets: Tensor
    loss: Tensor
    gradient_norm: Tensor


def loss_landscape(
    model: nn.Module,
    images: Images,
    labels: Labels,
    reach: float = 1.0,
    resolution: int = 25,
    generator: torch.Generator | None = None,
    batch_size: int = 256,
    progress: bool = False,
    *,
    indices: Tensor | None = None,
) -> LossLandscape:
    """The loss on a grid of `resolution` x `resolution` points around each image, not clipped to [0, 1].

    `reach` and `resolution` are ours: the paper gives none. Where the gradient is 0, its direction is 0 as well. With `indices`
    the other direction belongs to the image; without, to its place in the batch.
    """
    require(reach > 0, "reach", "positive", reach)
    require(
        resolution >= 3 and resolution % 2 == 1, "resolution", "odd and at least 3, with the image in the middle", resolution
    )
    images, labels = prepared_batch(model, images, labels)
    along, across, norms = directions(model, images, labels, generator, batch_size, indices)
    offsets = torch.linspace(-reach, reach, resolution, dtype=images.dtype, device=images.device)
    shifts = torch.cartesian_prod(offsets, offsets)
    cells = len(shifts)
    loss = []
    with untouched(model), torch.no_grad():
        for part in slices(len(images) * cells, batch_size, progress, "landscape"):
            points = torch.arange(part.start, part.stop, device=images.device)
            image, cell = points // cells, points % cells
            a, b = (shifts[cell, k].view(-1, 1, 1, 1) for k in (0, 1))
            logits = model(images[image] + a * along[image] + b * across[image])
            loss.append(F.cross_entropy(logits, labels[image], reduction="none"))
    return LossLandscape(offsets, torch.cat(loss).view(len(images), resolution, resolution), norms)


def directions(
    model: nn.Module,
    images: Images,
    labels: Labels,
    generator: torch.Generator | None,
    batch_size: int,
    indices: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The unit gradient at each image, a random unit direction orthogonal to it, and the norm of the gradient."""
    gradients = []
    with untouched(model):
        for part in slices(len(images), batch_size, False, "gradients"):
            gradients.append(input_gradient(model, images[part], losses(labels[part]))[0])
    gradient = torch.cat(gradients).flatten(1)
    tiny = torch.finfo(gradient.dtype).tiny
    norms = torch.linalg.vector_norm(gradient, dim=1)
    along = gradient / norms.clamp_min(tiny)[:, None]
    if indices is None:
        across = draw(torch.randn, gradient.shape, gradient, generator)
    else:
        across = gaussian(gradient, check_indices(indices, len(gradient)), 0, base_seed(generator))
    for _ in range(2):  # the second time removes what rounding left of the first
        across = across - along * (along * across).sum(1, keepdim=True)
    across = across / torch.linalg.vector_norm(across, dim=1, keepdim=True).clamp_min(tiny)
    return along.view_as(images), across.view_as(images), norms
