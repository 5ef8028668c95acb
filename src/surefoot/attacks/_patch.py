"""One patch for all pictures (Brown et al. 2017, "Adversarial patch"): trained to mislead wherever in a picture it lies."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import require
from ..seeds import ImageDraws, check_indices, generator
from ..types import Images, Labels, check_images, check_labels
from .gradients import untouched

BATCH = 64  # pictures of a step
FIRST, LAST = 0.1, 0.01  # how far a pixel moves in the first and the last step


def patch_side(share: float, height: int, width: int) -> int:
    """The side of a square with this share of a picture, in pixels: 0 for none, and never longer than the picture's."""
    require(0 <= share <= 1, "share", "from 0 to 1", share)
    return min(round(math.sqrt(share * height * width)), height, width)


def put_patch(images: Images, patch: Tensor, *, seed: int = 0, indices: Tensor | None = None, purpose: str = "") -> Images:
    """The pictures with the patch on each, where (seed, image index, purpose) says; any place is as likely."""
    side = patch.shape[-1]
    if side == 0:
        return images.clone()
    rooms = torch.tensor([images.shape[2] - side + 1, images.shape[3] - side + 1])
    corners = (ImageDraws(seed, "patch", check_indices(indices, len(images)).cpu()).uniform((2,), purpose) * rooms).long()
    top, left = (each[:, None].to(images.device) + torch.arange(side, device=images.device) for each in corners.unbind(1))
    pictures = torch.arange(len(images), device=images.device)[:, None, None, None]
    channels = torch.arange(images.shape[1], device=images.device)[None, :, None, None]
    covered = images.clone()
    covered[pictures, channels, top[:, None, :, None], left[:, None, None, :]] = patch.to(images)
    return covered


def train_patch(
    model: nn.Module, images: Images, labels: Labels, share: float = 0.05, steps: int = 200, *, seed: int = 0
) -> Tensor:
    """A square patch, channels x side x side, that makes the model wrong on these pictures, at places drawn anew in each step.

    Signed ascent on the mean cross-entropy from grey; steps shrink from 0.1 to 0.01 by a constant factor. It is for other
    pictures of the same kind: judge it there.
    """
    check_images(images)
    require(steps >= 1, "steps", "at least 1", steps)
    side = patch_side(share, *images.shape[2:])
    patch = torch.full((images.shape[1], side, side), 0.5, device=images.device)
    if side == 0:
        return patch
    with untouched(model), torch.enable_grad():
        for step in range(steps):
            rows = torch.randperm(len(images), generator=generator(seed, "patch", step))[:BATCH]
            patch.requires_grad_()
            shown = put_patch(images[rows], patch, seed=seed, indices=rows, purpose=f"step {step}")
            logits = model(shown)
            aimed = check_labels(labels[rows].to(logits.device), logits.shape[1], len(rows))
            (slope,) = torch.autograd.grad(F.cross_entropy(logits, aimed), patch)
            size = FIRST * (LAST / FIRST) ** (step / max(steps - 1, 1))
            patch = (patch.detach() + size * slope.sign()).clamp_(0, 1)
    return patch.detach()
