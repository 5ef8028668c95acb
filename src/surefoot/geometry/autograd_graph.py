"""The operations of a model, read off autograd's graph of one pass."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..attacks.gradients import NoGradient
from ..models.last_layer import evaluating
from ..types import Images
from .evaluation import forward_hooks

ARITHMETIC = "add sub neg mean sum mul div mm bmm addmm baddbmm addbmm matmul linear convolution mkldnnconvolution"
SHAPES = (
    "t view viewas reshape reshapealias unsafeview transpose permute squeeze unsqueeze expand clone alias copyslices copys"
    " tocopy cat stack slice select split splitwithsizes unbind index flip roll constantpadnd reflectionpad2d replicationpad2d"
    " asstrided"
)
POOLING = (
    "avgpool1d avgpool2d adaptiveavgpool2d mkldnnadaptiveavgpool2d maxpool1d maxpool2dwithindices adaptivemaxpool2d"
    " upsamplebilinear2d upsamplenearest2d upsamplebicubic2d"
)
NORMS = "nativebatchnorm cudnnbatchnorm"  # an affine map in evaluation mode
KINKS = "relu leakyrelu prelukernel threshold hardtanh clamp clampmin clampmax abs max min amax amin maximum minimum where"
KNOWN = {"accumulategrad", *" ".join((ARITHMETIC, SHAPES, POOLING, NORMS, KINKS)).split()}
PRODUCTS = {"mul": 0, "mm": 0, "bmm": 0, "matmul": 0, "linear": 0, "convolution": 0, "addmm": 1, "baddbmm": 1, "addbmm": 1}


def curved_operation(model: nn.Module, images: Images) -> str | None:
    """The name of an operation between the input and the logits that is not piecewise linear, or None.

    Products count as linear where one side alone depends on the input. What is not known by name counts as curved.
    """
    with evaluating(model), torch.enable_grad():
        points = images.detach().clone().requires_grad_()
        logits = model(points)
    if logits.grad_fn is None:
        raise NoGradient(model)
    reached = dependent_nodes(logits.grad_fn, lambda node: getattr(node, "variable", None) is points)
    for node in reached:
        name = operation_name(node)
        kind = name.lower()
        parents = [parent in reached for parent, _ in node.next_functions]
        if kind not in KNOWN:
            return name
        if kind in NORMS.split() and getattr(node, "_saved_training", True):
            return f"{name} by the statistics of its own input"
        if (kind in PRODUCTS and sum(parents[PRODUCTS[kind] :]) > 1) or (kind == "div" and any(parents[1:])):
            return f"{name} of values that both depend on the input"
    return None


def operation_name(node: Any) -> str:
    """`Relu` of ReluBackward0."""
    return re.sub(r"Backward\d*$", "", node.name().split("::")[-1])


def dependent_nodes(end: Any, starts_at: Callable[[Any], bool]) -> list[Any]:
    """The nodes of autograd's graph on the paths from the start nodes to the end; the start nodes come first."""
    children: dict[Any, list[Any]] = defaultdict(list)
    seen, waiting, starts = {end}, [end], []
    while waiting:
        node = waiting.pop()
        if starts_at(node):
            starts.append(node)
        for parent, _ in node.next_functions:
            if parent is None:
                continue
            children[parent].append(node)
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    reached = dict.fromkeys(starts)
    while starts:
        for child in children[starts.pop()]:
            if child not in reached:
                reached[child] = None
                starts.append(child)
    return list(reached)


def layer_of_operation(model: nn.Module, images: Images, operation: str) -> str | None:
    """The name of the first innermost layer that calls an operation, seen in autograd's graph."""
    layers: list[str] = []
    wanted = operation.replace("_", "").lower()
    names = {layer: name for name, layer in model.named_modules()}

    def look(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if not layers and isinstance(output, Tensor):
            ends = {value.grad_fn for value in inputs if isinstance(value, Tensor)}
            waiting, seen = [output.grad_fn], set(ends)
            while waiting:
                node = waiting.pop()
                if node is None or node in seen:
                    continue
                seen.add(node)
                if node.name().lower().startswith(wanted):
                    layers.append(names[layer])
                    return
                waiting += [parent for parent, _ in node.next_functions]

    with forward_hooks([layer for layer in names if layer is not model], look), torch.enable_grad():
        model(images[:1])
    return layers[0] if layers else None
