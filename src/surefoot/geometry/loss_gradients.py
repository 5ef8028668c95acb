"""The slope of the cross-entropy at the pixels, image by image."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from ..attacks.gradients import one_gradient
from ..types import Images, Labels, Logits, check_labels


def loss_gradient(model: nn.Module, points: Images, labels: Labels) -> Tensor:
    """The gradient of the loss of each image: summed over the batch, which keeps images apart."""
    return one_gradient(model, points.detach().requires_grad_(), losses(labels))[0]


def losses(labels: Labels) -> Callable[[Logits], Tensor]:
    """The cross-entropy of each image, as a function of the logits."""

    def measure(logits: Logits) -> Tensor:
        return F.cross_entropy(logits, check_labels(labels, logits.shape[1], len(logits)), reduction="none")

    return measure
