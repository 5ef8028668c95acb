"""What an attack does to a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..models.observing import evaluating
from ..types import Images, Labels, Predictions
from .presets import ATTACKS

Attack = Callable[[nn.Module, Images, Labels], Images]


@dataclass(frozen=True)
class AttackResult:
    """Per-image outcome of an attack; the rates follow from it."""

    clean: Predictions
    attacked: Predictions

    @property
    def broken(self) -> Tensor:
        """Which images were right before and are wrong now."""
        return self.clean.correct & ~self.attacked.correct

    @property
    def success_rate(self) -> float:
        """Share of the images that were classified correctly before and are not now; 0 if none was."""
        right = int(self.clean.correct.sum())
        return int(self.broken.sum()) / right if right else 0.0

    @property
    def robust_accuracy(self) -> float:
        """Share of all images that are right before and under attack."""
        return float((self.clean.correct & self.attacked.correct).float().mean())


def evaluate(model: nn.Module, images: Images, labels: Labels, attack: str | Attack, *, batch_size: int = 256) -> AttackResult:
    """Attack the images that are classified correctly (the others need no attack) and compare."""
    require(len(images) > 0, "images", "at least one", 0)
    method: Attack = ATTACKS.load(attack) if isinstance(attack, str) else attack
    clean = _logits(model, images, batch_size)
    before = Predictions.from_logits(clean, labels.cpu())
    attacked = clean.clone()
    for chosen in before.correct.nonzero().flatten().split(batch_size):
        where = chosen.to(images.device)
        adversarial = method(model, images[where], labels[where])
        attacked[chosen] = _logits(model, adversarial, batch_size)
    return AttackResult(before, Predictions.from_logits(attacked, labels.cpu()))


def _logits(model: nn.Module, images: Images, batch_size: int) -> Tensor:
    with evaluating(model), torch.no_grad():
        return torch.cat([model(part).float().cpu() for part in images.split(batch_size)])
