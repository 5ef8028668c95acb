"""Adversarial training and TRADES."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..attacks._pgd import kl_pgd, pgd
from ..errors import require
from ..models.last_layer import bare
from ..seeds import default_generator
from ..types import Images, Labels, Terms, check_labels
from .base import Objective, kl, weighted_sum
from .cross_entropy import as_targets
from .passes import check_batch_norm, logits_of, one_pass

# Adversarial training (Madry et al. 2018).


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


# TRADES: accuracy on the image, agreement on the worst image near it (Zhang et al. 2019).


class TRADES(Objective):
    """L = CE(x) + weight max over ||d||_inf <= eps of D(p(x) || p(x + d))  (magnma Eq. 3); x + d stays in [0, 1].

    The maximum is sought by PGD on D from a random start, where its gradient is not 0. The weight is ours, not the paper's.
    """

    def __init__(
        self,
        eps: float = 8 / 255,
        steps: int = 7,
        step_size: float | None = None,
        weight: float = 6.0,
        batch_norm: str = "apart",
    ) -> None:
        super().__init__()
        require(weight >= 0, "weight", "at least 0", weight)
        self.eps, self.steps, self.step_size = check_budget(eps, steps, step_size)
        self.weight, self.batch_norm = weight, check_batch_norm(batch_norm)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        draws = generator or default_generator(images.device)  # anew at every step
        attacked = kl_pgd(bare(model), images, self.eps, self.steps, self.step_size, generator=draws)
        clean, other = logits_of(model, [images, attacked], self.batch_norm)
        return weighted_sum(
            clean,
            cross_entropy=(1, F.cross_entropy(clean, as_targets(labels, clean))),
            robustness=(self.weight, kl(clean, other).mean()),
        )
