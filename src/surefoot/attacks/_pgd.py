"""Gradient attacks: one step (FGSM) and many (PGD), with restarts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import UnknownName, require
from ..models.classifier import logit_margins
from ..types import Images, Labels, Logits, check_images, check_labels
from .gradients import input_gradient, untouched, warn_if_randomised
from .norms import Ball, Rows, sources

# The fast gradient sign method (Goodfellow et al. 2015).


def fgsm(model: nn.Module, images: Images, labels: Labels, eps: float = 8 / 255) -> Images:
    """clip(x + eps * sign(grad_x CE(f(x), y)), 0, 1): one step to the corner of the L-inf ball."""
    ball = Ball("linf", eps)
    check_images(images)
    images = images.detach()

    def measure(logits: Logits) -> Tensor:
        return F.cross_entropy(logits, check_labels(labels, logits.shape[1], len(images)), reduction="none")

    with untouched(model):
        warn_if_randomised(model, "use pgd with eot=10")
        gradient, _, _ = input_gradient(model, images.clone(), measure)
        return (images + eps * ball.steepest(gradient)).clamp_(0, 1)


# Projected gradient descent in a ball around each image (Madry et al. 2018), and its sibling that maximises a divergence.


LOSSES = ("ce", "margin")
STEEP = ("linf", "l2")  # in L1 the steepest step changes one pixel, which leads nowhere: apgd has wider ones
Start = Callable[[Images], Images]
Measure = Callable[[Rows, Logits], Tensor]  # one number for each of these images


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
    eot: int = 1,
    early_stop: bool = False,
    *,
    seed: int = 0,
    indices: Tensor | None = None,
) -> Images:
    """x <- project(x + step_size * direction of the loss's gradient), `steps` times; the result lies in the ball and in [0, 1].

    `step_size` is 2.5 eps / steps unless given. With several restarts, an image keeps its first point that is classified
    wrongly, or else the one with the largest loss. `loss` is cross-entropy or the margin max_{j != y} f_j - f_y. `eot` averages
    the gradient over so many draws of a randomised model. With `early_stop` an image is left where it is first seen to be
    classified wrongly, which costs no pass, so that later steps have fewer images to work on.

    Starts are drawn for each image by (seed, image index), whatever its batch; `indices` are the images' indices in their data
    set (0, 1, ... if not given). A `generator` draws for the batch instead, anew at every call, as training does.
    """
    ball = steep_ball(norm, eps)
    require(restarts >= 1, "restarts", "at least 1", restarts)
    require(restarts == 1 or random_start, "restarts", "1 without random_start", restarts)
    require(eot >= 1, "eot", "at least 1", eot)
    if loss not in LOSSES:
        raise UnknownName("loss", loss, LOSSES)

    source = sources("pgd", len(images), generator, seed, indices)
    with untouched(model):
        if eot == 1:
            warn_if_randomised(model, "use eot=10")

        def run(rows: Rows, purpose: str) -> tuple[Images, Measure, Measure]:
            measure, wrong = aims(labels[rows], len(images[rows]), loss)
            start = partial(ball.draw, source=source(rows), purpose=purpose) if random_start else torch.clone
            stop = wrong if early_stop else None
            return climb(model, images[rows], measure, ball, steps, step_size, start, eot, stop), measure, wrong

        adversarial, measure, wrong = run(slice(None), "start")
        if restarts == 1:
            return adversarial
        value, broken = outcome(model, adversarial, measure, wrong)
        for restart in range(1, restarts):
            rows = (~broken).nonzero().flatten()
            if not len(rows):
                break
            again, measure, wrong = run(rows, f"restart {restart}")
            new_value, new_broken = outcome(model, again, measure, wrong)
            better = new_broken | (new_value > value[rows])
            adversarial[rows[better]], value[rows[better]] = again[better], new_value[better]
            broken[rows] = new_broken
    return adversarial


def steep_ball(norm: str, eps: float) -> Ball:
    """A ball in which steps along the gradient lead somewhere."""
    if norm not in STEEP:
        raise UnknownName("norm", norm, STEEP)
    return Ball(norm, eps)


def aims(labels: Labels, count: int, loss: str) -> tuple[Measure, Measure]:
    """The loss to be made large, and whether a prediction is wrong; labels are checked against the first logits there are."""

    def measure(rows: Rows, logits: Logits) -> Tensor:
        right = check_labels(labels, logits.shape[1], count)[rows]
        return F.cross_entropy(logits, right, reduction="none") if loss == "ce" else -logit_margins(logits, right)

    def wrong(rows: Rows, logits: Logits) -> Tensor:
        return logits.argmax(1) != labels[rows]

    return measure, wrong


def outcome(model: nn.Module, points: Images, measure: Measure, wrong: Measure) -> tuple[Tensor, Tensor]:
    """The loss at the points, and which of them are classified wrongly."""
    with torch.no_grad():
        logits = model(points)
        return measure(slice(None), logits), wrong(slice(None), logits)


def kl_pgd(
    model: nn.Module,
    images: Images,
    eps: float = 8 / 255,
    steps: int = 7,
    step_size: float | None = None,
    norm: str = "linf",
    generator: torch.Generator | None = None,
    *,
    seed: int = 0,
    indices: Tensor | None = None,
) -> Images:
    """The point of the ball where D(p(x) || p(x')) is largest, sought as by `pgd` from a random start: at x it has no slope."""
    ball = steep_ball(norm, eps)
    start = partial(ball.draw, source=sources("kl-pgd", len(images), generator, seed, indices)(slice(None)))
    with untouched(model):
        with torch.no_grad():
            log_p = model(images).log_softmax(1)

        def measure(rows: Rows, logits: Logits) -> Tensor:
            return F.kl_div(logits.log_softmax(1), log_p[rows], log_target=True, reduction="none").sum(1)

        return climb(model, images, measure, ball, steps, step_size, start)


def climb(
    model: nn.Module,
    images: Images,
    measure: Measure,
    ball: Ball,
    steps: int,
    step_size: float | None,
    start: Start,
    eot: int = 1,
    wrong: Measure | None = None,
) -> Images:
    """Projected ascent on `measure` from `start`; images that are `wrong` are left where they are. The model is not guarded."""
    check_images(images)
    require(steps >= 1, "steps", "at least 1", steps)
    step = 2.5 * ball.eps / steps if step_size is None else step_size
    require(step >= 0, "step_size", "at least 0", step)
    images = images.detach()
    points = start(images)
    ended = points if wrong is None else points.clone()
    rows, anchors = torch.arange(len(images), device=images.device), ball.anchors(images)
    chosen: Rows = slice(None)  # all, until an image is left behind
    for _ in range(steps if len(images) else 0):
        gradient, logits, _ = input_gradient(model, points, partial(measure, chosen), eot)
        if wrong is not None and bool((left := wrong(chosen, logits)).any()):
            ended[rows] = points
            rows, points, gradient = rows[~left], points[~left], gradient[~left]
            anchors = tuple(part[~left] for part in anchors)
            chosen = rows
            if not len(rows):
                return ended
        points = ball.step(points, gradient, step, anchors)
    if isinstance(chosen, slice):
        return points
    ended[rows] = points
    return ended
