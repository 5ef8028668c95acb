"""The fast gradient sign method (Goodfellow et al. 2015)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, check_images, check_labels
from .guarding import untouched


def fgsm(model: nn.Module, images: Images, labels: Labels, eps: float = 8 / 255) -> Images:
    """clip(x + eps * sign(grad_x CE(f(x), y)), 0, 1): one step to the corner of the L-inf ball."""
    require(eps >= 0, "eps", "at least 0", eps)
    check_images(images)
    with untouched(model), torch.enable_grad():
        points = images.detach().clone().requires_grad_()
        logits = model(points)
        labels = check_labels(labels, logits.shape[1], len(images))
        (gradient,) = torch.autograd.grad(F.cross_entropy(logits, labels, reduction="sum"), points)
    return (images + eps * gradient.sign()).clamp(0, 1).detach()
