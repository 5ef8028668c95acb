"""Find the linear layer that a classifier ends in, and see what enters it, without changing the module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError
from ..types import Features, Images, Outputs


def find_head(module: nn.Module, images: Images) -> str:
    """The name of the linear layer whose output is the module's output, found by running the module once."""
    names: dict[nn.Module, str] = {layer: name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)}
    calls: list[tuple[str, Tensor, Tensor]] = []

    def record(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        calls.append((names[layer], inputs[0], output))

    hooks = [layer.register_forward_hook(record) for layer in names]
    try:
        with evaluating(module), torch.no_grad():
            logits = module(images)
    finally:
        for hook in hooks:
            hook.remove()
    kind = type(module).__name__
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        shown = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise SurefootError(f"{kind} must give a tensor of images x classes, got {shown}.")
    for name, features, output in reversed(calls):
        if features.ndim == 2 and output.shape == logits.shape and torch.equal(output, logits):
            return name
    raise SurefootError(f"{kind} must end in one linear layer; no nn.Linear gives its output.")


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; every layer gets its own mode back afterwards."""
    modes = {layer: layer.training for layer in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for layer, mode in modes.items():
            layer.training = mode


def observed(module: nn.Module, head: nn.Module, images: Images) -> Outputs:
    """The module's logits and the features that entered `head`, from one pass, with gradient."""
    seen: list[Features] = []
    hook = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        logits = module(images)
    finally:
        hook.remove()
    if not seen:
        raise SurefootError(f"The final layer of {type(module).__name__} was not called.")
    return Outputs(logits, seen[-1])
