"""Margin and dispersion alone say nothing: both can be scaled without changing a prediction (discriminative Prop. 5.3)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..errors import SurefootError, require
from ..models.observing import bare, evaluating, head_of, observed
from ..types import Images
from .boundary import prepared

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
RULE = (
    "the scale transformation needs features that come out of one linear or convolution layer, with its batch norm if it has"
    " one, through nothing but ReLU, leaky ReLU, pooling, flattening or dropout"
)


def scale_transformed(model: nn.Module, images: Images, factor: float) -> nn.Module:
    """A copy of the model whose features and logits are `factor` times as large, so its predicted classes are the same.

    Multiplies the layer before the features (the batch norm behind it, where there is one) and the head's bias (Prop. 5.3).
    The argmax is all that stays: margins, dispersions and logits scale, and with them the confidences. Residual sums, layer
    norms and smooth activations between that layer and the features do not scale along: such a net is refused, which is
    found by running both models on `images`.
    """
    require(factor > 0, "factor", "positive", factor)
    images = prepared(model, images)
    other = copy.deepcopy(bare(model))
    head = head_of(other, images)
    with evaluating(other), torch.no_grad():
        before = observed(other, head, images)
        name, layer, norm = last_layer(other, head, images)
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
    """The linear or convolution layer that is called last before the head, and the batch norm that takes its output."""
    names = {layer: name for name, layer in model.named_modules()}
    calls: list[tuple[nn.Module, Tensor]] = []
    norms: dict[nn.Module, _BatchNorm] = {}

    def record(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        if isinstance(layer, LAYERS):
            calls.append((layer, output))
        elif isinstance(layer, _BatchNorm) and calls and inputs[0] is calls[-1][1]:
            norms[calls[-1][0]] = layer

    hooks = [layer.register_forward_hook(record) for layer in names if layer is not head]
    try:
        model(images)
    finally:
        for hook in hooks:
            hook.remove()
    if not calls:
        raise SurefootError(f"{RULE}; {type(model).__name__} has no such layer before its head.")
    layer = calls[-1][0]
    return names[layer], layer, norms.get(layer)


def multiply(layer: nn.Module, norm: _BatchNorm | None, factor: float) -> None:
    """Scale what the layer, or its batch norm, gives."""
    scaled: list[Any] = [layer.weight, layer.bias] if norm is None else [norm.weight, norm.bias]
    if norm is not None and not norm.affine:
        scaled = [layer.weight, layer.bias, norm.running_mean]
    for values in scaled:
        if isinstance(values, Tensor):
            values.mul_(factor)
