"""How fast the loss gradient turns around an image (discriminative Eq. 21): by finite differences, and by the Hessian."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Images, Labels
from .batching import slices
from .boundary import checked_labels, prepared
from .hessian_products import HessianProducts
from .image_noise import base_seed, gaussian
from .loss_gradients import loss_gradient
from .steadiness import steady


@dataclass(frozen=True)
class Curvature:
    """For each image: `values` is the mean over the draws, `errors` its standard error (NaN for one draw)."""

    values: Tensor
    errors: Tensor
    draws: int
    step: float  # 0 for the Hessian's own


def input_curvature(
    model: nn.Module,
    images: Images,
    labels: Labels,
    draws: int = 20,
    step: float = 0.01,
    generator: torch.Generator | None = None,
    *,
    batch_size: int = 256,
    progress: bool = False,
) -> Curvature:
    """Mean over draws of ||grad l(x + t e) - grad l(x)||^2 / t^2, e ~ N(0, I) not normalised (discriminative Eq. 21).

    For a smooth net and a small step this is the sum of the squared Hessian eigenvalues. With ReLU a step of 0.01 crosses
    kinks, which dominate: it then tells how the slope changes over that distance, unlike `hessian_curvature`.
    Pixel units: the figure scales with the fourth power of the normalisation's std.
    """
    require(draws >= 1, "draws", "at least 1", draws)
    require(step > 0, "step", "positive", step)
    images, labels, seed = prepared(model, images, half=False), checked_labels(labels, images), base_seed(generator)
    found = []
    with steady(model):
        for part in slices(len(images), batch_size, progress, "curvature"):
            points, right = images[part], labels[part].to(images.device)
            clean = loss_gradient(model, points, right)
            rows = []
            for draw in range(draws):
                moved = gaussian(points, part.start, draw, seed).mul_(step).add_(points)
                rows.append(squares(loss_gradient(model, moved, right).sub_(clean)) / step**2)
            found.append(torch.stack(rows))
    return summed(found, draws, step)


def hessian_curvature(
    model: nn.Module,
    images: Images,
    labels: Labels,
    draws: int = 20,
    generator: torch.Generator | None = None,
    *,
    batch_size: int = 64,
    progress: bool = False,
) -> Curvature:
    """Mean over draws of ||H e||^2, e ~ N(0, I): the sum of squared Hessian eigenvalues by exact Hessian-vector products.

    Needs a model that can be differentiated twice. For a ReLU net H is that of the linear piece the image lies in.
    """
    require(draws >= 1, "draws", "at least 1", draws)
    images, labels, seed = prepared(model, images, half=False), checked_labels(labels, images), base_seed(generator)
    found = []
    with steady(model):
        for part in slices(len(images), batch_size, progress, "Hessian"):
            product = HessianProducts(model, images[part], labels[part].to(images.device))
            rows = [squares(product(gaussian(images[part], part.start, draw, seed))) for draw in range(draws)]
            found.append(torch.stack(rows))
    return summed(found, draws, 0.0)


def squares(points: Tensor) -> Tensor:
    """The squared norm of everything that belongs to an image."""
    return points.flatten(1).square().sum(1)


def summed(found: list[Tensor], draws: int, step: float) -> Curvature:
    """Means and standard errors of draws x images."""
    table = torch.cat(found, 1)
    errors = table.std(0) / draws**0.5 if draws > 1 else torch.full_like(table[0], torch.nan)
    return Curvature(table.mean(0), errors, draws, step)
