"""The blocks that a model is made of, found by running it once: what a picture of its layers shows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..models.observing import bare, evaluating, head_of
from ..types import Images
from .layer_features import pooled_square

MOST = 0.9  # of the weights: a part that holds more of them is looked into


def main_blocks(model: nn.Module, images: Images, count: int = 4) -> tuple[str, ...]:
    """Names of at most `count` blocks (stages of a ResNet, blocks of a transformer) in the order of their calls, evenly chosen.

    The last is what gives the features that enter the head, where a module gives them. Names are those of `named_modules()`.
    """
    require(count >= 1, "count", "at least 1", count)
    module, few = bare(model), images[:2].detach()
    head = head_of(module, few)
    outputs, features = outputs_of(module, head, few)
    found = sorted(stages(module, head, outputs), key=list(outputs).index)
    if not found:
        raise SurefootError(f"{type(module).__name__} has no blocks with weights before its last layer.")
    last = next((name for name, output in reversed(outputs.items()) if output is features), None)
    if last is not None and last not in found and not gives(outputs[found[-1]], features):
        found.append(last)
    places = torch.linspace(0, len(found) - 1, min(count, len(found))).round().long() if count > 1 else [-1]
    return tuple(found[int(place)] for place in places)


def outputs_of(module: nn.Module, head: nn.Linear, images: Images) -> tuple[dict[str, Tensor], Tensor]:
    """What each module gives, by name in the order in which they ended, and what enters the head."""
    outputs: dict[str, Tensor] = {}
    features: list[Tensor] = []

    def keep(name: str) -> Any:
        def hook(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            if layer is head:
                features.append(inputs[0])
            elif isinstance(output, Tensor) and 2 <= output.ndim <= 4 and len(output) == len(images):
                outputs[name] = output

        return hook

    hooks = [layer.register_forward_hook(keep(name)) for name, layer in module.named_modules() if name]
    try:
        with evaluating(module), torch.no_grad():
            module(images)
    finally:
        for each in hooks:
            each.remove()
    return outputs, features[-1] if features else images


def stages(module: nn.Module, head: nn.Linear, outputs: dict[str, Tensor]) -> list[str]:
    """The outermost level on which no part has nearly all of the weights."""
    known = dict(module.named_modules())

    def parts(name: str) -> list[str]:
        """The parts of a module that were called; those inside a list, and those beside the head, in place of it."""
        found: list[str] = []
        for own, child in known[name].named_children():
            path = f"{name}.{own}" if name else own
            if child is head or not size(child):
                continue
            inside = path not in outputs or any(layer is head for layer in child.modules())
            found.extend(parts(path) if inside else [path])
        return found

    level = parts("")
    while True:
        blocks = [name for name in level if parts(name)]
        sizes = [size(known[name]) for name in blocks]
        if not blocks or (len(blocks) > 1 and max(sizes) < MOST * sum(sizes)):
            return blocks or level
        level = parts(blocks[sizes.index(max(sizes))])


def size(module: nn.Module) -> int:
    """How many weights."""
    return sum(weight.numel() for weight in module.parameters())


def gives(output: Tensor, features: Tensor) -> bool:
    """Whether the features are the pooled output."""
    own = pooled_square(output)
    return own.shape == features.shape and torch.allclose(own, features, rtol=1e-3, atol=1e-5)
