"""Exact products of each image's input Hessian with vectors, and what to say where a model cannot be differentiated twice."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..attacks.gradients import NoGradient
from ..errors import SurefootError
from ..models.observing import bare
from ..types import Images, Labels
from .loss_gradients import losses


class HessianProducts:
    """v -> H v for every image of a batch at once, H the Hessian of the cross-entropy at the pixels.

    One forward and backward pass when it is made, one more backward pass for each product; the graph is kept in between.
    """

    def __init__(self, model: nn.Module, images: Images, labels: Labels) -> None:
        self.model = bare(model)  # compiled code has one derivative only
        self.points = images.detach().clone().requires_grad_()
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):  # the fused attention kernels have one derivative only
            loss = losses(labels)(self.model(self.points)).sum()
            if not loss.requires_grad:
                raise NoGradient(model)
            try:
                self.gradient = torch.autograd.grad(loss, self.points, create_graph=True)[0]
            except RuntimeError as error:
                raise self._explained(error) from error

    def __call__(self, vectors: Tensor) -> Tensor:
        if not self.gradient.requires_grad:  # a loss that is linear in the pixels
            return torch.zeros_like(vectors)
        try:
            found = torch.autograd.grad(self.gradient, self.points, vectors, retain_graph=True, allow_unused=True)[0]
        except RuntimeError as error:
            raise self._explained(error) from error
        return torch.zeros_like(vectors) if found is None else found

    def _explained(self, error: RuntimeError) -> Exception:
        """The same error as one line that names the layer, if it is about a missing second derivative."""
        text = str(error)
        operation = re.search(r"derivative for aten::(\w+?)_backward is not implemented", text)
        if operation is None and "once_differentiable" not in text:
            return error
        name = operation[1] if operation else "once_differentiable"
        layer = layer_with(self.model, self.points, name) if operation else None
        where = f"its layer '{layer}' uses {name}" if layer is not None else f"it uses {name}"
        return SurefootError(
            f"{type(self.model).__name__} cannot be differentiated twice: {where}, which has no second derivative;"
            " input_curvature needs first derivatives only."
        )


def layer_with(model: nn.Module, images: Images, operation: str) -> str | None:
    """The name of the first innermost layer that calls an operation, seen in autograd's graph."""
    found: list[str] = []
    wanted = operation.replace("_", "").lower()
    names = {layer: name for name, layer in model.named_modules()}

    def look(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if not found and isinstance(output, Tensor):
            ends = {value.grad_fn for value in inputs if isinstance(value, Tensor)}
            waiting, seen = [output.grad_fn], set(ends)
            while waiting:
                node = waiting.pop()
                if node is None or node in seen:
                    continue
                seen.add(node)
                if node.name().lower().startswith(wanted):
                    found.append(names[layer])
                    return
                waiting += [parent for parent, _ in node.next_functions]

    hooks = [layer.register_forward_hook(look) for layer in names if layer is not model]
    try:
        with torch.enable_grad():
            model(images[:1])
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else None
