"""Spectral complexity (macs Def. 4.1) from the norms of layers as linear operators, and the margin term of Thm 4.2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from ..errors import SurefootError, require
from ..models.last_layer import bare, evaluating
from ..seeds import generator
from ..types import Images, Labels
from ._margins import margins
from .evaluation import forward_hooks, prepared, slices

COMPLEXITY_NOTE = (
    "Def. 4.1 is for layers one after the other: shortcuts and attention are not in it, and layers other than linear,"
    " convolution and batch norm are left out by name."
)
TERM_NOTE = (
    "A term of Thm 4.2, not a bound: the theorem hides constants and logarithms, and the term is usually far above 1. For"
    " models of one architecture on the same data a smaller one is better."
)
CONVOLVE: dict[Any, Callable[..., Tensor]] = {nn.Conv1d: F.conv1d, nn.Conv2d: F.conv2d, nn.Conv3d: F.conv3d}


@dataclass(frozen=True)
class SpectralComplexity:
    """R_f with the norms of every layer's operator; `log_complexity` where the product is too large for a float."""

    names: tuple[str, ...]
    spectral: Tensor
    frobenius: Tensor
    complexity: float
    log_complexity: float
    input_norm: float
    left_out: tuple[str, ...]
    note: str = COMPLEXITY_NOTE


@dataclass(frozen=True)
class MarginTerm:
    """R_f B / (gamma sqrt(n)), its logarithm, and the share of images with a smaller margin than gamma."""

    term: float
    log_term: float
    share_below: float
    margin: float
    count: int
    input_norm: float
    complexity: SpectralComplexity
    note: str = TERM_NOTE


def log_complexity(spectral: Tensor, frobenius: Tensor) -> float:
    """log R_f = sum log ||W||_2 + 3/2 log sum (||W||_F / ||W||_2)^(2/3)  (macs Def. 4.1)."""
    spectral, frobenius = spectral.double(), frobenius.double()
    if bool((spectral == 0).any()):
        return -math.inf  # a layer of zeros
    return float(spectral.log().sum() + 1.5 * (frobenius / spectral).pow(2 / 3).sum().log())


def spectral_complexity(
    model: nn.Module, images: Images, *, steps: int = 500, batch_size: int = 256, progress: bool = False
) -> SpectralComplexity:
    """R_f (macs Def. 4.1) with the norms of the true operators at the size of `images`, batch norm folded in.

    Convolutions take power iteration on the operator, not on the reshaped kernel. `input_norm` is the largest norm of what
    enters the first layer, after any normalisation inside the model: B of Thm 4.2.
    """
    require(steps >= 1, "steps", "at least 1", steps)
    images, inside = prepared(model, images), bare(model)
    with evaluating(inside), torch.no_grad():
        calls, left_out = layer_calls(inside, images[:batch_size])
        if not calls:
            raise SurefootError(f"{type(inside).__name__} has no linear, convolution or batch norm layer.")
        size = calls[0].input_norm
        for part in slices(max(len(images) - batch_size, 0), batch_size, progress, "input norms"):
            rest = images[part.start + batch_size : part.stop + batch_size]
            size = max(size, layer_calls(inside, rest)[0][0].input_norm)
        pairs = []
        for part in slices(len(calls), 1, progress, "layer norms"):
            call: LayerCall = calls[part.start]
            pairs.append((spectral_norm(call, images, steps), frobenius_norm(call, images)))
    spectral, frobenius = torch.tensor(pairs, dtype=torch.float64).T
    logarithm = log_complexity(spectral, frobenius)
    names = tuple(call.name for call in calls)
    return SpectralComplexity(names, spectral, frobenius, exponential(logarithm), logarithm, size, tuple(left_out))


def margin_term(
    model: nn.Module,
    images: Images,
    labels: Labels,
    margin: float = 1.0,
    *,
    steps: int = 500,
    batch_size: int = 256,
    progress: bool = False,
) -> MarginTerm:
    """R_f B / (gamma sqrt(n)) and the share below the margin gamma, on training images (macs Thm 4.2)."""
    require(margin > 0, "margin", "positive", margin)
    gaps = margins(model, images, labels, batch_size=batch_size, progress=progress)
    complexity = spectral_complexity(model, images, steps=steps, batch_size=batch_size, progress=progress)
    count = len(gaps)
    size = math.log(complexity.input_norm) if complexity.input_norm > 0 else -math.inf
    logarithm = complexity.log_complexity + size - math.log(margin) - 0.5 * math.log(count)
    below = float((gaps < margin).double().mean())
    return MarginTerm(exponential(logarithm), logarithm, below, margin, count, complexity.input_norm, complexity)


def exponential(value: float) -> float:
    """e^value, infinite where that is too large for a float."""
    return math.exp(value) if value < 709 else math.inf


@dataclass(frozen=True)
class LayerCall:
    """A layer as it was called: the shape of one input, the largest norm of an input, the batch norm that took its output."""

    name: str
    layer: nn.Module
    shape: tuple[int, ...]
    input_norm: float = 0.0
    norm: _BatchNorm | None = None


def layer_calls(model: nn.Module, images: Tensor) -> tuple[list[LayerCall], list[str]]:
    """The linear, convolution and batch norm layers in the order of their calls, and the names of other layers with weights."""
    names = {layer: name for name, layer in model.named_modules()}
    calls: list[LayerCall] = []
    output_before: Any = None  # one alone, so that no more than the pass itself needs is kept
    left_out: list[str] = []

    def record(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        nonlocal output_before
        if isinstance(layer, _BatchNorm) and inputs[0] is output_before:
            calls[-1] = replace(calls[-1], norm=layer)
        elif isinstance(layer, (nn.Linear, _BatchNorm, *CONVOLVE)):
            size = float(torch.linalg.vector_norm(inputs[0].flatten(1), dim=1).max())
            calls.append(LayerCall(names[layer], layer, tuple(inputs[0].shape[1:]), size))
            output_before = None if isinstance(layer, _BatchNorm) else output
        elif any(True for _ in layer.parameters(recurse=False)):
            left_out.append(names[layer] or type(layer).__name__)

    with forward_hooks(names, record):
        model(images)
    return calls, list(dict.fromkeys(left_out))


def applied(call: LayerCall, points: Tensor, power: int = 1) -> Tensor:
    """The linear part of a layer, its batch norm included and its bias not, with its coefficients to a power."""
    layer = call.layer
    if isinstance(layer, _BatchNorm):
        return points * channels(norm_scale(call.name, layer) ** power, points)
    known: Any = layer  # a parametrised weight is no parameter
    weight: Tensor = known.weight.detach() ** power
    moved = F.linear(points, weight) if isinstance(layer, nn.Linear) else convolved(call.name, layer, points, weight)
    return moved if call.norm is None else moved * channels(norm_scale(call.name, call.norm) ** power, moved)


def convolved(name: str, layer: Any, points: Tensor, weight: Tensor) -> Tensor:
    """A convolution with the layer's own stride, padding, dilation and groups."""
    kind = next(each for each in CONVOLVE if isinstance(layer, each))
    if (type(layer).forward, type(layer)._conv_forward) != (kind.forward, kind._conv_forward):
        raise SurefootError(f"The layer '{name}' is a {type(layer).__name__}, a convolution of its own kind: not supported.")
    padding = layer.padding
    if layer.padding_mode != "zeros":
        points, padding = F.pad(points, layer._reversed_padding_repeated_twice, layer.padding_mode), 0
    return CONVOLVE[kind](points, weight, None, layer.stride, padding, layer.dilation, layer.groups)


def norm_scale(name: str, norm: _BatchNorm) -> Tensor:
    """gamma / sqrt(variance + eps), which batch norm multiplies each channel by in evaluation mode."""
    if norm.running_var is None:
        raise SurefootError(f"The batch norm at '{name}' keeps no statistics, so it is no linear operator.")
    scale = (norm.running_var + norm.eps).rsqrt()
    return scale if norm.weight is None else scale * norm.weight.detach()


def channels(scale: Tensor, like: Tensor) -> Tensor:
    """One number for each channel, shaped to broadcast."""
    return scale.view(1, -1, *[1] * (like.ndim - 2))


def frobenius_norm(call: LayerCall, like: Tensor) -> float:
    """The root of the sum of all squared entries of the operator, exact: the squared kernel applied to ones, summed."""
    layer: Any = call.layer
    mode = getattr(layer, "padding_mode", "zeros")
    if mode not in ("zeros", "circular"):
        raise SurefootError(f"The layer '{call.name}' pads with {mode}, where entries of the operator add up: not supported.")
    if mode == "circular":
        reach = [(k - 1) * d + 1 for k, d in zip(layer.kernel_size, layer.dilation, strict=True)]
        if any(r > s for r, s in zip(reach, call.shape[1:], strict=True)):
            raise SurefootError(f"The layer '{call.name}' wraps around an image smaller than its kernel: not supported.")
    ones = torch.ones(1, *call.shape, dtype=like.dtype, device=like.device)
    return float(applied(call, ones, 2).double().sum().sqrt())


def spectral_norm(call: LayerCall, like: Tensor, steps: int = 500, tolerance: float = 1e-6) -> float:
    """The largest singular value by power iteration on the operator and its transpose; it approaches from below.

    Stops when a step changes it by less than `tolerance` of itself.
    """
    source = generator("spectral norm", call.name)
    start = torch.randn(1, *call.shape, generator=source, dtype=like.dtype).to(like.device)
    with torch.enable_grad():
        points = start.clone().requires_grad_()
        output = applied(call, points)
    norm, vector = 0.0, start / torch.linalg.vector_norm(start)
    for _ in range(steps):
        moved = applied(call, vector)
        before, norm = norm, float(torch.linalg.vector_norm(moved))
        if norm == 0 or norm - before <= tolerance * norm:
            break
        back = torch.autograd.grad(output, points, moved, retain_graph=True)[0]
        vector = back / torch.linalg.vector_norm(back)
    return norm
