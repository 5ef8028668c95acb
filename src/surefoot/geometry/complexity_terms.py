"""Spectral complexity (macs Def. 4.1) and the margin term of Thm 4.2: numbers to compare models by."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..models.observing import bare, evaluating
from ..types import Images, Labels
from .batching import slices
from .boundary import prepared
from .layer_norms import LayerCall, frobenius_norm, layer_calls, spectral_norm
from .logit_margins import margins

COMPLEXITY_NOTE = (
    "Def. 4.1 is for layers one after the other: shortcuts and attention are not in it, and layers other than linear,"
    " convolution and batch norm are left out by name."
)
TERM_NOTE = (
    "A term of Thm 4.2, not a bound: the theorem hides constants and logarithms, and the term is usually far above 1. For"
    " models of one architecture on the same data a smaller one is better."
)


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


def complexity_of(spectral: Tensor, frobenius: Tensor) -> float:
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
    logarithm = complexity_of(spectral, frobenius)
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
    found = spectral_complexity(model, images, steps=steps, batch_size=batch_size, progress=progress)
    count = len(gaps)
    size = math.log(found.input_norm) if found.input_norm > 0 else -math.inf
    logarithm = found.log_complexity + size - math.log(margin) - 0.5 * math.log(count)
    below = float((gaps < margin).double().mean())
    return MarginTerm(exponential(logarithm), logarithm, below, margin, count, found.input_norm, found)


def exponential(value: float) -> float:
    """e^value, infinite where that is too large for a float."""
    return math.exp(value) if value < 709 else math.inf
