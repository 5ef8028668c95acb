"""The slope of a loss at the pixels, from one forward and one backward pass, and what can be wrong with it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..types import Images, Logits
from .pacing import Paced

Loss = Callable[[Logits], Tensor]  # one number for each image, to be made large


class NoGradient(SurefootError):
    """The logits do not depend on the images as far as autograd can see."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(f"{kind_of(model)} does not react to its input, or hides it: no gradient reaches the images.")


def kind_of(model: nn.Module) -> str:
    """The class of the model, whether its passes are counted or not."""
    return type(model.model if isinstance(model, Paced) else model).__name__


def input_gradient(model: nn.Module, points: Images, measure: Loss, eot: int = 1) -> tuple[Tensor, Logits]:
    """The gradient of the summed loss, which keeps images apart, and the logits: both means over `eot` draws of the model."""
    points = points.detach().requires_grad_()
    gradient, answers = one_gradient(model, points, measure)
    for _ in range(eot - 1):
        more, logits = one_gradient(model, points, measure)
        gradient, answers = gradient + more, answers + logits
    if eot > 1:
        gradient, answers = gradient / eot, answers / eot
    if gradient.device.type == "cpu":  # elsewhere looking at it would make the device wait
        check_gradient(model, points, gradient)
    return gradient, answers


def one_gradient(model: nn.Module, points: Images, measure: Loss) -> tuple[Tensor, Logits]:
    """Gradient and logits of a single draw."""
    with torch.enable_grad():
        logits = model(points)
        require(logits.ndim == 2, "the model's output", "images x classes", tuple(logits.shape))
        total = measure(logits).sum()
    slope = torch.autograd.grad(total, points, allow_unused=True)[0] if total.requires_grad else None
    if slope is None:
        raise NoGradient(model)
    return slope, logits.detach()


def check_gradient(model: nn.Module, points: Images, gradient: Tensor) -> None:
    """Name the first image whose gradient is not a number, and refuse a model that says the same whatever it sees."""
    size = float(torch.linalg.vector_norm(gradient, 1))
    if size == 0 and len(points):
        with torch.no_grad():
            if torch.equal(model(points), model(1 - points)):
                raise SurefootError(f"{kind_of(model)} does not react to its input: other images get the same output.")
    if size - size != 0:  # infinite or not a number
        bad = (~torch.isfinite(gradient)).flatten(1).any(1).nonzero().flatten()
        if len(bad):
            first, count = int(bad[0]), f"{len(bad)} of {len(gradient)}"
            raise SurefootError(f"The gradient is not finite for {count} images, the first at place {first}.")
