"""Signs that a model looks robust because its gradients mislead, and noise as an attack beside them."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import require
from ..models.classifier import logit_margins
from ..seeds import check_indices, global_seed
from ..types import Images, Labels, Logits, Predictions, check_images
from ._pgd import pgd
from ._square import square
from .attempts import Attack, attempt, logits_of
from .gradients import NoGradient, one_gradient, untouched
from .norms import Ball, sources

# Noise as an attack: what is broken without looking at the gradient, or at the model's predictions in between.


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
        worst, smallest = images.clone(), torch.full((len(images),), torch.inf, device=images.device)
        for number in range(draws if len(images) else 0):
            points = ball.draw(images, source, f"draw {number}")
            margins = logit_margins(model(points), labels).float()
            better = margins < smallest
            worst[better], smallest[better] = points[better], margins[better]
    return worst


# Signs that a model looks robust because its gradients mislead, not because it is (Athalye et al. 2018).


MANY = 0.1  # share of images without a gradient


def masking_signs(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    norm: str = "linf",
    steps: int = 20,
    queries: int = 500,
    *,
    batch_size: int = 256,
    seed: int = 0,
    indices: Tensor | None = None,
) -> list[str]:
    """A plain line for each reason not to trust what gradient attacks find in this ball; an empty list if none was seen.

    Looks for gradients that are zero, noise as strong as PGD, steps that do not help, Square stronger than PGD, and
    predictions that differ from call to call; in L-inf or L2.
    """
    Ball(norm, eps)
    require(len(images) > 0, "images", "at least one", 0)
    check_images(images)
    numbers = check_indices(indices, len(images)).cpu()
    clean = Predictions.from_logits(logits_of(model, images, batch_size, seed), labels.cpu())
    again = logits_of(model, images[:batch_size], batch_size, seed + 1)
    right = clean.correct.nonzero().flatten().to(images.device)
    if not len(right):
        return ["No image is classified correctly, so there is nothing to attack."]
    images, labels, count = images[right], labels[right], len(right)
    run: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "indices": numbers[right.cpu()]}
    lines = []
    if not torch.allclose(again, clean.logits[:batch_size], rtol=1e-3, atol=1e-4):
        lines.append("The model predicts differently from call to call: attack it with eot=10 or AutoAttack's version 'rand'.")
    flat = without_gradient(model, images, labels, batch_size, seed)
    if flat > MANY * count:
        lines.append(
            f"The gradient is zero for {flat} of {count} images, so an attack that follows it goes nowhere: its low success "
            "shows nothing. Try loss='margin' and Square."
        )

    def broken(attack: Attack) -> int:
        try:
            return int(attempt(model, images, labels, attack, **run)[1].broken.sum())
        except NoGradient:
            return 0

    climbing = partial(pgd, eps=eps, norm=norm, early_stop=True)
    many, one = broken(partial(climbing, steps=steps)), broken(partial(climbing, steps=1, step_size=eps, random_start=False))
    drawn = broken(partial(noise, eps=eps, norm=norm))
    if drawn and drawn >= many:
        lines.append(
            f"Random noise breaks {drawn} of {count} images and PGD only {many}: the gradient does not lead to errors."
        )
    if one and many <= one and many < count:
        lines.append(
            f"More steps do not help: 1 step breaks {one} of {count} images, {steps} steps break {many}. Either the model is "
            "nearly linear in this ball or its gradients mislead."
        )
    if (blind := broken(partial(square, eps=eps, norm=norm, queries=queries))) > many:
        lines.append(
            f"Square, which sees no gradient, breaks {blind} of {count} images and PGD only {many}: gradients are masked."
        )
    return lines


def without_gradient(model: nn.Module, images: Images, labels: Labels, batch_size: int, seed: int) -> int:
    """The number of images where the gradient of the cross-entropy is exactly zero, or there is none."""
    count = 0
    with untouched(model), global_seed(seed, "gradient"):
        for points, right in zip(images.split(batch_size), labels.split(batch_size), strict=True):

            def measure(logits: Logits, right: Labels = right) -> Tensor:
                return F.cross_entropy(logits, right.long(), reduction="none")

            try:
                gradient, _, _ = one_gradient(model, points.detach().clone().requires_grad_(), measure)
            except NoGradient:
                count += len(points)
            else:
                count += int((gradient.flatten(1).abs().amax(1) == 0).sum())
    return count
