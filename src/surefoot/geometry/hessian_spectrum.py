"""Trace and extreme eigenvalues of the loss's Hessian at the pixels, for all images of a batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..types import Images, Labels
from .batching import slices
from .boundary import checked_labels, column, norms, prepared
from .fisher_information import fisher_trace
from .hessian_products import HessianProducts
from .image_noise import base_seed, gaussian, signs
from .piecewise_linear import curved_operation
from .steadiness import steady
from .traces import Trace, trace_of


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
    batch_size: int = 64,
    progress: bool = False,
) -> Trace:
    """Tr H(x) by Hutchinson's estimate, the mean of e^T H e over signs e, with exact Hessian-vector products."""
    require(draws >= 1, "draws", "at least 1", draws)
    images, labels, seed = prepared(model, images, half=False), checked_labels(labels, images), base_seed(generator)
    found = []
    with steady(model):
        for part in slices(len(images), batch_size, progress, "Hessian trace"):
            product = HessianProducts(model, images[part], labels[part].to(images.device))
            vectors = (signs(images[part], part.start, draw, seed) for draw in range(draws))
            found.append(torch.stack([(vector * product(vector)).flatten(1).sum(1) for vector in vectors]))
    return trace_of(found, "Hutchinson")


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
    batch_size: int = 32,
    progress: bool = False,
) -> Eigenvalues:
    """The largest and smallest eigenvalue of H(x) by `steps` of Lanczos with full orthogonalisation; one product a step.

    Memory: batch x steps x pixels.
    """
    require(steps >= 1, "steps", "at least 1", steps)
    images, labels, seed = prepared(model, images, half=False), checked_labels(labels, images), base_seed(generator)
    steps = min(steps, images[0].numel())
    found = []
    with steady(model):
        for part in slices(len(images), batch_size, progress, "Hessian eigenvalues"):
            product = HessianProducts(model, images[part], labels[part].to(images.device))
            starts = torch.stack([gaussian(images[part], part.start, step, seed) for step in range(steps)])
            found.append(lanczos(product, starts))
    largest, smallest, residuals = torch.cat(found, 1)
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
