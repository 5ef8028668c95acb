"""Projected gradient descent in a ball around each image (Madry et al. 2018), and its sibling that maximises a divergence."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import SurefootError, UnknownName, require
from ..models.logit_margins import logit_margins
from ..seeds import draw
from ..types import Images, Labels, Logits, check_images, check_labels
from .guarding import untouched

NORMS, LOSSES = ("linf", "l2"), ("ce", "margin")
Loss = Callable[[Logits], Tensor]  # one number for each image, to be made large


def pgd(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    steps: int = 7,
    step_size: float | None = None,
    norm: str = "linf",
    random_start: bool = True,
    restarts: int = 1,
    loss: str = "ce",
    generator: torch.Generator | None = None,
) -> Images:
    """x <- project(x + step_size * direction of the loss's gradient), `steps` times; the result lies in the ball and in [0, 1].

    `step_size` is 2.5 eps / steps unless given. With several restarts, an image keeps its first point that is classified
    wrongly, or else the one with the largest loss. `loss` is cross-entropy or the margin max_{j != y} f_j - f_y.
    """
    require(restarts >= 1, "restarts", "at least 1", restarts)
    if loss not in LOSSES:
        raise UnknownName("loss", loss, LOSSES)
    with untouched(model):
        with torch.no_grad():
            logits = model(images[:1]) if len(images) else images.new_zeros(0, 1)
        labels = check_labels(labels, logits.shape[1], len(images))

        def measure(logits: Logits) -> Tensor:
            if loss == "ce":
                return F.cross_entropy(logits, labels, reduction="none")
            return -logit_margins(logits, labels)

        best = best_loss = broken = None
        for _ in range(restarts):
            found = climb(model, images, measure, eps, steps, step_size, norm, random_start, generator)
            if restarts == 1:
                return found
            with torch.no_grad():
                answers = model(found)
            value, wrong = measure(answers), logit_margins(answers, labels) < 0
            if best is None or best_loss is None or broken is None:
                best, best_loss, broken = found, value, wrong
                continue
            better = ~broken & (wrong | (value > best_loss))
            best = torch.where(better.view(-1, 1, 1, 1), found, best)
            best_loss, broken = torch.where(better, value, best_loss), broken | wrong
    assert best is not None
    return best


def kl_pgd(
    model: nn.Module,
    images: Images,
    eps: float = 8 / 255,
    steps: int = 7,
    step_size: float | None = None,
    norm: str = "linf",
    generator: torch.Generator | None = None,
) -> Images:
    """The point of the ball where D(p(x) || p(x')) is largest, sought as by `pgd` from a random start: at x it has no slope."""
    with untouched(model):
        with torch.no_grad():
            log_p = model(images).log_softmax(1)

        def measure(logits: Logits) -> Tensor:
            return F.kl_div(logits.log_softmax(1), log_p, log_target=True, reduction="none").sum(1)

        return climb(model, images, measure, eps, steps, step_size, norm, True, generator)


def climb(
    model: nn.Module,
    images: Images,
    measure: Loss,
    eps: float,
    steps: int,
    step_size: float | None,
    norm: str,
    random_start: bool,
    generator: torch.Generator | None,
) -> Images:
    """Projected ascent on the sum of `measure`, which keeps images apart; the model is not guarded here."""
    check_images(images)
    require(eps >= 0, "eps", "at least 0", eps)
    require(steps >= 1, "steps", "at least 1", steps)
    step = 2.5 * eps / steps if step_size is None else step_size
    require(step >= 0, "step_size", "at least 0", step)
    if norm not in NORMS:
        raise UnknownName("norm", norm, NORMS)
    points = images.detach()
    if random_start and eps > 0:
        points = (points + random_in_ball(points, eps, norm, generator)).clamp(0, 1)
    for _ in range(steps if len(images) else 0):
        points = points.detach().requires_grad_()
        with torch.enable_grad():
            total = measure(model(points)).sum()
        (gradient,) = torch.autograd.grad(total, points)
        check_gradient(gradient)
        points = project(points.detach() + step * direction(gradient, norm), images, eps, norm)
    return points.detach()


def direction(gradient: Tensor, norm: str) -> Tensor:
    """The steepest step of length 1 in the norm; 0 where the gradient is."""
    if norm == "linf":
        return gradient.sign()
    length = gradient.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    unit: Tensor = gradient / length.clamp_min(torch.finfo(gradient.dtype).tiny)
    return unit


def project(points: Images, images: Images, eps: float, norm: str) -> Images:
    """The nearest point of the ball around each image, then of [0, 1]: both sets hold the image, so the result is in both."""
    change = points - images
    if norm == "linf":
        change = change.clamp(-eps, eps)
    else:
        length = change.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        change = change * (eps / length.clamp_min(torch.finfo(length.dtype).tiny)).clamp_max(1)
    return (images + change).clamp(0, 1)


def random_in_ball(images: Images, eps: float, norm: str, generator: torch.Generator | None) -> Tensor:
    """Uniform in the ball."""
    if norm == "linf":
        return eps * (2 * draw(torch.rand, images.shape, images, generator) - 1)
    ray = draw(torch.randn, images.shape, images, generator)
    share = draw(torch.rand, (len(images), 1, 1, 1), images, generator) ** (1 / images[0].numel())
    return eps * share * direction(ray, "l2")


def check_gradient(gradient: Tensor) -> None:
    """Name the first image whose gradient is not a number; checked on the CPU only, where it does not make the device wait."""
    if gradient.device.type != "cpu" or bool(torch.isfinite(gradient).all()):
        return
    bad = (~torch.isfinite(gradient)).flatten(1).any(1).nonzero().flatten()
    raise SurefootError(
        f"The gradient is not finite for {len(bad)} of {len(gradient)} images, the first at place {int(bad[0])}."
    )
