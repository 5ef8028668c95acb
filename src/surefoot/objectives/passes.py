"""Clean and perturbed images through one model.

Batch norm makes a difference: it may take its statistics over clean and perturbed images apart, one pass each, or together, one
pass over all. Methods name their choice as `batch_norm`. "clean" trains the same weights as "apart", but the statistics that it
keeps for later are those of the clean images, which come first. A model without batch norm gives the same either way and always
gets one pass, which keeps an accelerator busier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from ..errors import SurefootError, UnknownName, require
from ..models.last_layer import head_of, observed
from ..types import Images, Logits, Outputs

CHOICES = ("apart", "together", "clean")


def check_batch_norm(choice: str) -> str:
    if choice not in CHOICES:
        raise UnknownName("batch_norm", choice, CHOICES)
    return choice


def one_pass(model: nn.Module, images: Images) -> Logits:
    """The logits of one batch."""
    return logits_of(model, [images])[0]


def logits_of(model: nn.Module, batches: Sequence[Images], batch_norm: str = "apart") -> list[Logits]:
    """The logits of several batches of images, in their order."""
    return run(lambda module, images: module(images), model, batches, batch_norm)


def outputs_of(model: nn.Module, batches: Sequence[Images], batch_norm: str = "apart") -> list[Outputs]:
    """Logits and features of several batches of images, in their order."""
    head = head_of(model, batches[0])
    pairs = run(lambda module, images: unpack(observed(module, head, images)), model, batches, batch_norm)
    return [Outputs(*pair) for pair in pairs]


def unpack(outputs: Outputs) -> tuple[Tensor, Tensor]:
    return outputs.logits, outputs.features


def run(call: Callable[[nn.Module, Images], Any], model: nn.Module, batches: Sequence[Images], batch_norm: str) -> list[Any]:
    """Call the model once for all batches or once for each; a wrapper such as DDP is called only once for a backward pass."""
    try:
        if len(batches) > 1 and (batch_norm == "together" or not has_batch_norm(model)):
            outputs = call(model, torch.cat(list(batches)))
            sizes = [len(images) for images in batches]
            if isinstance(outputs, tuple):
                return list(zip(*(part.split(sizes) for part in outputs), strict=True))
            return list(outputs.split(sizes))
        inner = model.module if isinstance(model, DistributedDataParallel) else model
        first, *others = batches
        outputs = [call(model, first)]
        with untracked(inner) if batch_norm == "clean" else nullcontext():
            return outputs + [call(inner, images) for images in others]
    except ValueError as error:
        if "more than 1 value per channel" in str(error):
            raise SurefootError("images must be at least 2 to train a model with batch norm, got 1.") from error
        raise


@contextmanager
def untracked(model: nn.Module) -> Iterator[None]:
    """Batch norm normalises by the batch, as in training, and forgets its statistics."""
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm) and layer.track_running_stats]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True


def has_batch_norm(model: nn.Module) -> bool:
    """Whether a layer takes statistics over the batch."""
    return any(isinstance(layer, _BatchNorm) and layer.training for layer in model.modules())


def full_precision(like: Tensor) -> AbstractContextManager[Any]:
    """Mixed precision off: it would round pixels, and distances in feature space, to 8 bits."""
    return torch.autocast(like.device.type, enabled=False)


def in_full(values: Tensor) -> Tensor:
    """Half precision as float32; anything wider as it is."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def perturbed(view: Callable[..., Images], images: Images, generator: torch.Generator | None) -> Images:
    """The view of the images, which must be images of the same shape and dtype, without NaN."""
    with full_precision(images):
        changed = view(images, generator=generator)
    name = getattr(view, "__qualname__", type(view).__name__)
    require(isinstance(changed, torch.Tensor), f"view {name}'s result", "a tensor", type(changed).__name__)
    require(changed.shape == images.shape, f"view {name}'s shape", str(tuple(images.shape)), tuple(changed.shape))
    require(changed.dtype == images.dtype, f"view {name}'s dtype", str(images.dtype), changed.dtype)
    if changed.device.type == "cpu" and not bool(torch.isfinite(changed).all()):
        raise SurefootError(f"view {name}'s pixels must be finite, got NaN or infinity.")
    return changed
