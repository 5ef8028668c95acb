"""The fast gradient sign method (Goodfellow et al. 2015)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from ..types import Images, Labels, Logits, check_images, check_labels
from .gradients import input_gradient, untouched, warn_if_randomised
from .norms import Ball


def fgsm(model: nn.Module, images: Images, labels: Labels, eps: float = 8 / 255) -> Images:
    """clip(x + eps * sign(grad_x CE(f(x), y)), 0, 1): one step to the corner of the L-inf ball."""
    ball = Ball("linf", eps)
    check_images(images)
    images = images.detach()

    def measure(logits: Logits) -> Tensor:
        return F.cross_entropy(logits, check_labels(labels, logits.shape[1], len(images)), reduction="none")

    with untouched(model):
        warn_if_randomised(model, "use pgd with eot=10")
        gradient, _ = input_gradient(model, images.clone(), measure)
        return (images + eps * ball.steepest(gradient)).clamp_(0, 1)
