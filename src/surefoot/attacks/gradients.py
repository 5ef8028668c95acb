"""What an attack asks of a model: the slope of a loss at the pixels, within a time budget, and the model left as it was."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..models.last_layer import evaluating
from ..types import Images, Logits

Loss = Callable[[Logits], Tensor]  # one number for each image, to be made large
logger = logging.getLogger("surefoot")
_TOLD: WeakSet[nn.Module] = WeakSet()


class OutOfTime(Exception):
    """Raised from inside a forward pass; `images` are adversarial where an image was broken before, if the attack knows any."""

    def __init__(self) -> None:
        super().__init__("the time budget is used up")
        self.images: Images | None = None


class Paced(nn.Module):
    """The model itself to whoever attacks it; it counts passes, and as `queries` the images that went through."""

    def __init__(self, model: nn.Module, seconds: float | None, tick: Callable[[int], None]) -> None:
        super().__init__()
        self.model, self.tick, self.passes, self.queries = model, tick, 0, 0
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.training = model.training

    def forward(self, images: Images) -> Logits:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime
        self.passes, self.queries = self.passes + 1, self.queries + len(images)
        self.tick(self.passes)
        logits: Logits = self.model(images)
        return logits

    def __getattr__(self, name: str) -> Any:
        """Whatever else the model has."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without parameter gradients inside the block; all as before afterwards, even after an error."""
    wanted = {parameter: parameter.requires_grad for parameter in model.parameters()}
    with evaluating(model):
        try:
            for parameter in wanted:
                parameter.requires_grad_(False)
            yield
        finally:
            for parameter, flag in wanted.items():
                parameter.requires_grad_(flag)


def is_randomised(model: nn.Module) -> bool:
    """Whether the model, or a model inside it, says that it draws anew at every call."""
    return any(getattr(layer, "randomised", False) is True for layer in model.modules())


def warn_if_randomised(model: nn.Module, remedy: str) -> None:
    """Log once for each model that a gradient of one draw is not the gradient of what the model does on average."""
    model = model.model if isinstance(model, Paced) else model
    if is_randomised(model) and model not in _TOLD:
        _TOLD.add(model)
        kind = type(model).__name__
        logger.warning("%s draws anew at every call, and this attack sees one draw at a time: %s.", kind, remedy)


class NoGradient(SurefootError):
    """The logits do not depend on the images as far as autograd can see."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(f"{kind_of(model)} does not react to its input, or hides it: no gradient reaches the images.")


def kind_of(model: nn.Module) -> str:
    """The class of the model, whether its passes are counted or not."""
    return type(model.model if isinstance(model, Paced) else model).__name__


def gives_gradients(model: nn.Module, images: Images) -> bool:
    """Whether autograd sees how the logits depend on the images: not for a function or an exported graph, for example."""
    with untouched(model):
        try:
            one_gradient(model, images[:1].detach().clone().requires_grad_(), lambda logits: logits.sum(1))
        except NoGradient:
            return False
    return True


def input_gradient(model: nn.Module, points: Images, measure: Loss, eot: int = 1) -> tuple[Tensor, Logits, Tensor]:
    """The gradient of the summed loss, which keeps images apart, the logits, means over `eot` draws both, and the loss."""
    points = points.detach().requires_grad_()
    gradient, mean_logits, loss = one_gradient(model, points, measure)
    for _ in range(eot - 1):
        more, logits, _ = one_gradient(model, points, measure)
        gradient, mean_logits = gradient + more, mean_logits + logits
    if eot > 1:
        gradient, mean_logits = gradient / eot, mean_logits / eot
        loss = measure(mean_logits)
    if gradient.device.type == "cpu":  # elsewhere looking at it would make the device wait
        check_gradient(model, points, gradient)
    return gradient, mean_logits, loss


def one_gradient(model: nn.Module, points: Images, measure: Loss) -> tuple[Tensor, Logits, Tensor]:
    """Gradient, logits and loss of a single draw."""
    with torch.enable_grad():
        logits = model(points)
        require(logits.ndim == 2, "the model's output", "images x classes", tuple(logits.shape))
        loss = measure(logits)
        total = loss.sum()
    slope = torch.autograd.grad(total, points, allow_unused=True)[0] if total.requires_grad else None
    if slope is None:
        raise NoGradient(model)
    return slope, logits.detach(), loss.detach()


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
            raise SurefootError(f"The gradient is not finite for {count} images, the first at index {first}.")
