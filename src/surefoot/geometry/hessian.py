"""The loss's Hessian at the pixels: products with vectors, trace, extreme eigenvalues, and how far the loss can change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..attacks.gradients import NoGradient
from ..errors import SurefootError, require
from ..models.last_layer import bare
from ..seeds import check_indices
from ..types import Images, Labels
from .autograd_graph import curved_operation, layer_of_operation
from .evaluation import (
    base_seed,
    column,
    deterministic,
    gaussian,
    gradient_norms,
    losses,
    norms,
    prepared,
    prepared_batch,
    signs,
    slices,
)
from .fisher import Trace, fisher_trace
from .heads import mean_and_error

CHANGE_NOTE = (
    "Holds up to o(distance^2), for one-hot labels; Eq. 11 takes the Hessian as positive semidefinite, which it is for"
    " piecewise linear nets: elsewhere read `two_sided`. Lanczos approaches the eigenvalue from below."
)


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
            product = torch.autograd.grad(self.gradient, self.points, vectors, retain_graph=True, allow_unused=True)[0]
        except RuntimeError as error:
            raise self._explained(error) from error
        return torch.zeros_like(vectors) if product is None else product

    def _explained(self, error: RuntimeError) -> Exception:
        """The same error as one line that names the layer, if it is about a missing second derivative."""
        text = str(error)
        operation = re.search(r"derivative for aten::(\w+?)_backward is not implemented", text)
        if operation is None and "once_differentiable" not in text:
            return error
        name = operation[1] if operation else "once_differentiable"
        layer = layer_of_operation(self.model, self.points, name) if operation else None
        where = f"its layer '{layer}' uses {name}" if layer is not None else f"it uses {name}"
        return SurefootError(
            f"{type(self.model).__name__} cannot be differentiated twice: {where}, which has no second derivative;"
            " input_curvature needs first derivatives only."
        )


@dataclass(frozen=True)
class Eigenvalues:
    """For each image: `values` is the largest eigenvalue, `smallest` the other end, `residuals` how far `values` may be off.

    Lanczos approaches both ends from inside; an eigenvalue lies within the residual of each value.
    """

    values: Tensor
    smallest: Tensor
    residuals: Tensor
    steps: int


def hessian_trace(
    model: nn.Module,
    images: Images,
    labels: Labels,
    draws: int = 20,
    generator: torch.Generator | None = None,
    *,
    indices: Tensor | None = None,
    batch_size: int = 64,
    progress: bool = False,
) -> Trace:
    """Tr H(x) by Hutchinson's estimate, the mean of e^T H e over signs e, with exact Hessian-vector products."""
    require(draws >= 1, "draws", "at least 1", draws)
    (images, labels), seed = prepared_batch(model, images, labels, half=False), base_seed(generator)
    indices = check_indices(indices, len(images))
    batches = []
    with deterministic(model):
        for part in slices(len(images), batch_size, progress, "Hessian trace"):
            product = HessianProducts(model, images[part], labels[part])
            vectors = (signs(images[part], indices[part], draw, seed) for draw in range(draws))
            batches.append(torch.stack([(vector * product(vector)).flatten(1).sum(1) for vector in vectors]))
    return Trace(*mean_and_error(batches), draws, "Hutchinson")


def exact_hessian_trace(model: nn.Module, images: Images, *, batch_size: int = 256, progress: bool = False) -> Trace:
    """Tr H(x) = Tr G(x) without draws or second derivatives, for nets piecewise linear in their input (magnma Prop. 1).

    A net with another operation on the way is refused by the name of the operation. The label does not matter.
    """
    curved = curved_operation(model, prepared(model, images)[:1])
    if curved is not None:
        raise SurefootError(
            f"{type(model).__name__} is not piecewise linear in its input ({curved}), so its Hessian is not its Fisher"
            " information; use hessian_trace."
        )
    return fisher_trace(model, images, batch_size=batch_size, progress=progress)


def hessian_eigenvalues(
    model: nn.Module,
    images: Images,
    labels: Labels,
    steps: int = 20,
    generator: torch.Generator | None = None,
    *,
    indices: Tensor | None = None,
    batch_size: int = 32,
    progress: bool = False,
) -> Eigenvalues:
    """The largest and smallest eigenvalue of H(x) by `steps` of Lanczos with full orthogonalisation; one product a step.

    Memory: batch x steps x pixels.
    """
    require(steps >= 1, "steps", "at least 1", steps)
    (images, labels), seed = prepared_batch(model, images, labels, half=False), base_seed(generator)
    indices = check_indices(indices, len(images))
    steps = min(steps, images[0].numel())
    batches = []
    with deterministic(model):
        for part in slices(len(images), batch_size, progress, "Hessian eigenvalues"):
            product = HessianProducts(model, images[part], labels[part])
            starts = torch.stack([gaussian(images[part], indices[part], step, seed) for step in range(steps)])
            batches.append(lanczos(product, starts))
    largest, smallest, residuals = torch.cat(batches, 1)
    return Eigenvalues(largest, smallest, residuals, steps)


def lanczos(product: HessianProducts, starts: Tensor) -> Tensor:
    """Largest and smallest Ritz value and the residual of the largest, 3 x images.

    `starts` (steps x images) are random: the first begins, the others go on where a Krylov space is exhausted, with 0 in the
    tridiagonal matrix, so that no eigenvalue is made up.
    """
    steps, count = starts.shape[:2]
    basis = [starts[0] / column(norms(starts[0]), starts[0])]
    diagonal: list[Tensor] = []
    beside: list[Tensor] = []
    for step in range(steps):
        moved = product(basis[-1])
        diagonal.append((basis[-1] * moved).flatten(1).sum(1))
        rest = orthogonalised(moved, basis)
        lengths = norms(rest)
        scale = torch.stack(diagonal).abs().amax(0) + (torch.stack(beside).amax(0) if beside else 0)
        done = lengths <= 100 * torch.finfo(starts.dtype).eps * scale.clamp_min(torch.finfo(starts.dtype).tiny)
        beside.append(torch.where(done, 0.0, lengths))
        if step + 1 < steps:
            fresh = orthogonalised(starts[step + 1], basis)
            rest = torch.where(column(done, rest), fresh, rest)
            basis.append(rest / column(norms(rest), rest))
    table = torch.diag_embed(torch.stack(diagonal, 1))
    if steps > 1:
        table = table + torch.diag_embed(torch.stack(beside[:-1], 1), 1) + torch.diag_embed(torch.stack(beside[:-1], 1), -1)
    eigenvalues, vectors = torch.linalg.eigh(table)
    residuals = beside[-1] * vectors[:, -1, -1].abs()
    return torch.stack([eigenvalues[:, -1], eigenvalues[:, 0], residuals]).view(3, count)


def orthogonalised(vectors: Tensor, basis: list[Tensor]) -> Tensor:
    """What is left of the vectors beside the basis; twice, since once is not enough in floating point."""
    for _ in range(2):
        for known in basis:
            vectors = vectors - column((vectors * known).flatten(1).sum(1), vectors) * known
    return vectors


@dataclass(frozen=True)
class LossChange:
    """For each image: `values` is magnma Eq. 11 without its rest; `two_sided` takes the largest |eigenvalue| instead."""

    values: Tensor
    two_sided: Tensor
    gradient_norms: Tensor
    largest_eigenvalues: Tensor
    distance: float
    note: str = CHANGE_NOTE


def loss_change_bound(
    model: nn.Module,
    images: Images,
    labels: Labels,
    distance: float = 0.1,
    steps: int = 20,
    generator: torch.Generator | None = None,
    *,
    indices: Tensor | None = None,
    batch_size: int = 32,
    progress: bool = False,
) -> LossChange:
    """||d|| ||grad l|| + lambda_max ||d||^2 / 2 for ||d|| = `distance` (magnma Eq. 11); `steps` are Lanczos'."""
    require(distance > 0, "distance", "positive", distance)
    run: dict[str, Any] = {"batch_size": batch_size, "progress": progress}
    ends = hessian_eigenvalues(model, images, labels, steps, generator, indices=indices, **run)
    slopes = gradient_norms(model, images, labels, batch_size, progress)
    absolute = torch.maximum(ends.values.abs(), ends.smallest.abs())
    linear, square = distance * slopes, distance**2 / 2
    return LossChange(linear + square * ends.values, linear + square * absolute, slopes, ends.values, distance)
