"""Adversarial training (Madry et al. 2018)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..attacks._pgd import pgd
from ..errors import require
from ..models.observing import bare
from ..seeds import default_generator
from ..types import Images, Labels, Terms, check_labels
from .base import Objective, weighted_sum
from .passes import one_pass


class AdversarialTraining(Objective):
    """L = CE(f(x + d), y) with d from PGD in the L-inf ball of radius eps (magnma Eq. 2); x + d stays in [0, 1].

    `step_size` is 2.5 eps / steps unless given. The attack sees the model in evaluation mode and changes nothing in it.
    """

    def __init__(self, eps: float = 8 / 255, steps: int = 7, step_size: float | None = None) -> None:
        super().__init__()
        self.eps, self.steps, self.step_size = check_budget(eps, steps, step_size)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        draws = generator or default_generator(images.device)  # anew at every step
        attacked = pgd(bare(model), images, labels, self.eps, self.steps, self.step_size, generator=draws)
        logits = one_pass(model, attacked)
        labels = check_labels(labels, logits.shape[1], len(images))
        return weighted_sum(logits, adversarial_cross_entropy=(1, F.cross_entropy(logits, labels)))


def check_budget(eps: float, steps: int, step_size: float | None) -> tuple[float, int, float | None]:
    require(eps >= 0, "eps", "at least 0", eps)
    require(steps >= 1, "steps", "at least 1", steps)
    require(step_size is None or step_size > 0, "step_size", "positive", step_size)
    return eps, steps, step_size
