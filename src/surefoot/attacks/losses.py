"""What the attacks of AutoAttack make large, one number for each image, and which classes they aim at."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import UnknownName
from ..models.classifier import logit_margins
from ..types import Labels, Logits

TINY = 1e-12  # as published, where the logits in a denominator are equal


def dlr(logits: Logits, labels: Labels) -> Tensor:
    """Difference of logits ratio: -(z_y - max_{j != y} z_j) / (z_(1) - z_(3)), z sorted from the largest (Croce and Hein 2020).

    It needs three classes; for two it is the margin, its numerator.
    """
    margin = logit_margins(logits, labels)
    if logits.shape[1] < 3:
        return -margin
    largest = logits.topk(3, dim=1).values
    return -margin / (largest[:, 0] - largest[:, 2] + TINY)


def targeted_dlr(logits: Logits, labels: Labels, targets: Labels) -> Tensor:
    """-(z_y - z_t) / (z_(1) - (z_(3) + z_(4)) / 2). It needs four classes; for fewer it is its numerator."""
    difference = (logits.gather(1, targets[:, None]) - logits.gather(1, labels[:, None])).squeeze(1)
    if logits.shape[1] < 4:
        return difference
    largest = logits.topk(4, dim=1).values
    return difference / (largest[:, 0] - (largest[:, 2] + largest[:, 3]) / 2 + TINY)


def probability_margin(logits: Logits, labels: Labels) -> Tensor:
    """max_{j != y} p_j - p_y, which neither vanishes as cross-entropy does nor depends on far classes (Ma et al. 2024)."""
    return -logit_margins(logits.softmax(1), labels)


def cross_entropy(logits: Logits, labels: Labels) -> Tensor:
    return F.cross_entropy(logits, labels, reduction="none")


UNTARGETED: dict[str, Callable[[Logits, Labels], Tensor]] = {
    "ce": cross_entropy,
    "dlr": dlr,
    "probability-margin": probability_margin,
}
TARGETED = {"dlr-targeted": targeted_dlr}
LOSSES = (*UNTARGETED, *TARGETED)


def check_loss(loss: str) -> None:
    if loss not in LOSSES:
        raise UnknownName("loss", loss, LOSSES)


def likely_targets(logits: Logits, labels: Labels, count: int) -> Tensor:
    """The most likely wrong classes, images x at most `count`: all of them where there are fewer."""
    wrong = logits.scatter(1, labels[:, None], -torch.inf)
    return wrong.topk(min(count, logits.shape[1] - 1), dim=1).indices
