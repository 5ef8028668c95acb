"""How a measurement runs a model: checked inputs, batches, one function at all points, noise that belongs to an image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..attacks.gradients import is_randomised, one_gradient
from ..errors import require
from ..models.last_layer import evaluating
from ..progress import progress_bar
from ..seeds import derive, reseed_all
from ..types import Images, Labels, Logits, check_labels


def slices(count: int, batch_size: int, progress: bool, what: str) -> Iterator[slice]:
    """Consecutive slices of `count` images, with a bar on stderr where one is wanted."""
    require(batch_size >= 1, "batch_size", "at least 1", batch_size)
    with progress_bar(show=progress) as bar:
        for start in bar.track(range(0, count, batch_size), description=what):
            yield slice(start, min(start + batch_size, count))


def prepared(model: nn.Module, images: Images, half: bool = True) -> Images:
    """The images in the dtype and on the device of the model's first weights; an empty batch is refused.

    Without `half` so is a model of half precision, in whose rounding a difference of gradients drowns.
    """
    require(images.ndim >= 2 and len(images) > 0, "images", "at least one image, batch first", tuple(images.shape))
    require(images.is_floating_point(), "images", "floating point", images.dtype)
    like = next((weight for weight in model.parameters() if weight.is_floating_point()), images)
    exact = like.dtype in (torch.float32, torch.float64)
    require(half or exact, "the model", "of single or double precision here: use model.float()", like.dtype)
    return differentiable(images, like.device, like.dtype)


def checked_labels(labels: Labels, images: Images) -> Labels:
    """One whole number for each image, where the images are; their range is checked with the logits."""
    require(
        labels.ndim == 1 and len(labels) == len(images), "labels", f"one for each of {len(images)} images", tuple(labels.shape)
    )
    whole = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
    require(whole, "labels", "whole numbers", labels.dtype)
    return differentiable(labels, images.device, torch.int64)


def prepared_batch(model: nn.Module, images: Images, labels: Labels, half: bool = True) -> tuple[Images, Labels]:
    """Images as `prepared` gives them, and their checked labels beside them."""
    images = prepared(model, images, half)
    return images, checked_labels(labels, images)


def differentiable(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The tensor without its graph on this device; a copy if it was made in inference mode, where autograd may not use it."""
    with torch.inference_mode(False):
        return (tensor.clone() if tensor.is_inference() else tensor.detach()).to(device, dtype)


def norms(points: Tensor) -> Tensor:
    """The Euclidean norm of everything that belongs to an image."""
    lengths: Tensor = torch.linalg.vector_norm(points.flatten(1), dim=1)
    return lengths


def column(values: Tensor, like: Tensor) -> Tensor:
    """One number for each image, shaped to broadcast over `like`."""
    return values.view(-1, *[1] * (like.ndim - 1))


@contextmanager
def forward_hooks(layers: Iterable[nn.Module], hook: Callable[[nn.Module, Any, Any], None]) -> Iterator[None]:
    """Call `hook` with every one of these layers, its inputs and its output, inside the block."""
    handles = [layer.register_forward_hook(hook) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def deterministic(model: nn.Module) -> Iterator[None]:
    """Evaluation mode; a model that draws anew at every call draws the same each time, and torch's generator is left alone.

    Otherwise the difference of two draws would count as the difference of two points.
    """
    with evaluating(model):
        if not is_randomised(model):
            yield
            return
        hook = model.register_forward_pre_hook(seeded)
        try:
            with torch.random.fork_rng():
                yield
        finally:
            hook.remove()


def seeded(model: nn.Module, inputs: tuple[Any, ...]) -> None:
    """The same seed for torch's generator before every pass."""
    reseed_all("steady")


def base_seed(generator: torch.Generator | None) -> int:
    """One number from the caller's generator (torch's own without one), from which all noise of a measurement is derived."""
    device = "cpu" if generator is None else generator.device
    return int(torch.randint(2**62, (), generator=generator, device=device))


def gaussian(like: Images, indices: Tensor | int, draw: int, seed: int) -> Tensor:
    """Draw number `draw` of N(0, 1) for images with these indices, or from one index on, seeded by (seed, index, draw)."""
    noise = torch.empty(like.shape, dtype=like.dtype)
    source = torch.Generator()
    known = range(indices, indices + len(noise)) if isinstance(indices, int) else indices.tolist()
    for index, row in zip(known, noise, strict=True):
        row.normal_(generator=source.manual_seed(derive(seed, index, draw)))
    return noise.to(like.device)


def signs(like: Images, indices: Tensor | int, draw: int, seed: int) -> Tensor:
    """As `gaussian`, but +1 or -1."""
    return torch.where(gaussian(like, indices, draw, seed) < 0, -1.0, 1.0).to(like.dtype)


def loss_gradient(model: nn.Module, points: Images, labels: Labels) -> Tensor:
    """The gradient of the loss of each image: summed over the batch, which keeps images apart."""
    return one_gradient(model, points.detach().requires_grad_(), losses(labels))[0]


def gradient_norms(model: nn.Module, images: Images, labels: Labels, batch_size: int, progress: bool) -> Tensor:
    """||grad l(x)|| of every image."""
    images, labels = prepared_batch(model, images, labels)
    with deterministic(model):
        parts = slices(len(images), batch_size, progress, "loss gradients")
        return torch.cat([norms(loss_gradient(model, images[part], labels[part])) for part in parts])


def losses(labels: Labels) -> Callable[[Logits], Tensor]:
    """The cross-entropy of each image, as a function of the logits."""

    def measure(logits: Logits) -> Tensor:
        return F.cross_entropy(logits, check_labels(labels, logits.shape[1], len(logits)), reduction="none")

    return measure
