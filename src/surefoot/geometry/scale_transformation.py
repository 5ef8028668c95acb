"""Margin and dispersion alone say nothing: both can be scaled without changing a prediction (discriminative Prop. 5.3)."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..errors import SurefootError, require
from ..models.last_layer import bare, head_of, modes_kept, observed
from ..types import Images
from .autograd_graph import POOLING, SHAPES, dependent_nodes, operation_name
from .evaluation import forward_hooks, prepared

CHECKED = 256  # images on which the two models are compared
LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
KEEPING = "relu leakyrelu prelukernel mean sum mul div add max amax"  # positive factors
HOMOGENEOUS = {*SHAPES.split(), *POOLING.split(), *KEEPING.split()}
RULE = (
    "the scale transformation needs features that come out of one linear or convolution layer, with its batch norm if it has"
    " one, through nothing but ReLU, leaky ReLU, pooling, flattening or dropout"
)


class Call(NamedTuple):
    """A layer, the batch norm behind it, what it gave, and where that is in autograd's graph."""

    layer: nn.Module
    norm: _BatchNorm | None
    output: Tensor | None
    node: Any


def scale_transformed(model: nn.Module, images: Images, factor: float) -> nn.Module:
    """A copy of the model whose features and logits are `factor` times as large, so its predicted classes are the same.

    Multiplies the layer before the features (the batch norm behind it, where there is one) and the head's bias (Prop. 5.3).
    The argmax is all that stays: margins, dispersions and logits scale, and with them the confidences. Residual sums, layer
    norms and smooth activations between that layer and the features do not scale along: such a net is refused. That is read
    off the operations, and checked by running both models on the first `images`.
    """
    require(factor > 0, "factor", "positive", factor)
    images = prepared(model, images)[:CHECKED]
    other = copy.deepcopy(bare(model))
    head = head_of(other, images)
    with modes_kept(other), torch.no_grad():
        other.eval()
        name, layer, norm = last_layer(other, head, images)
        before = observed(other, head, images)
        multiply(layer, norm, factor)
        if head.bias is not None:
            head.bias.mul_(factor)
        after = observed(other, head, images)
    scale = float(before.features.abs().max()) * factor
    error = float((after.features - factor * before.features).abs().max())
    if not error <= 1e3 * torch.finfo(images.dtype).eps * scale:
        raise SurefootError(f"{RULE}; those of {type(model).__name__} do not scale with its last layer '{name}'.")
    return other


def last_layer(model: nn.Module, head: nn.Module, images: Images) -> tuple[str, nn.Module, _BatchNorm | None]:
    """The linear or convolution layer that is called last before the head, and the batch norm that takes its output.

    Refuses what lies between it and the features unless it keeps positive factors, which small features might hide.
    """
    names = {layer: name for name, layer in model.named_modules()}
    calls: list[Call] = []

    def record(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        if isinstance(layer, LAYERS):
            calls.append(Call(layer, None, output, output.grad_fn))
        elif isinstance(layer, _BatchNorm) and calls and inputs[0] is calls[-1].output:
            calls[-1] = Call(calls[-1].layer, layer, None, output.grad_fn)

    with forward_hooks([layer for layer in names if layer is not head], record), torch.enable_grad():
        features = observed(model, head, images[:1].clone().requires_grad_()).features
    if not calls:
        raise SurefootError(f"{RULE}; {type(model).__name__} has no such layer before its head.")
    last = calls[-1]
    for node in dependent_nodes(features.grad_fn, lambda node: node is last.node)[1:]:
        if operation_name(node).lower() not in HOMOGENEOUS:
            reason = f"after its last layer '{names[last.layer]}' there is {operation_name(node)}"
            raise SurefootError(f"{RULE}; {type(model).__name__} is not such a net: {reason}.")
    return names[last.layer], last.layer, last.norm


def multiply(layer: nn.Module, norm: _BatchNorm | None, factor: float) -> None:
    """Multiply the output of the layer, or of its batch norm, by changing its weights in place."""
    scaled: list[Any] = [layer.weight, layer.bias] if norm is None else [norm.weight, norm.bias]
    if norm is not None and not norm.affine:
        scaled = [layer.weight, layer.bias, norm.running_mean]
    for values in scaled:
        if isinstance(values, Tensor):
            values.mul_(factor)
