"""Noise as an attack: what is broken without looking at the gradient, or at the model's answers in between."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import require
from ..models.logit_margins import logit_margins
from ..types import Images, Labels, check_images
from .gradients import untouched
from .norms import Ball, sources


def noise(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    draws: int = 20,
    norm: str = "linf",
    generator: torch.Generator | None = None,
    *,
    seed: int = 0,
    indices: Tensor | None = None,
) -> Images:
    """Of `draws` points drawn uniformly from the ball, the one with the smallest margin; seeded as `pgd` is."""
    ball = Ball(norm, eps)
    require(draws >= 1, "draws", "at least 1", draws)
    check_images(images)
    source = sources("noise", len(images), generator, seed, indices)(slice(None))
    with untouched(model), torch.no_grad():
        found, smallest = images.clone(), torch.full((len(images),), torch.inf, device=images.device)
        for number in range(draws if len(images) else 0):
            points = ball.draw(images, source, f"draw {number}")
            margins = logit_margins(model(points), labels).float()
            better = margins < smallest
            found[better], smallest[better] = points[better], margins[better]
    return found
