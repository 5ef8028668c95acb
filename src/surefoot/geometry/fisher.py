"""The Fisher information of the predictions about the pixels (magnma Eq. 7 to 10): its trace and its spectrum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..attacks.gradients import NoGradient
from ..errors import require
from ..types import Images
from .evaluation import base_seed, deterministic, norms, prepared, slices
from .heads import mean_and_error


@dataclass(frozen=True)
class Trace:
    """For each image: `values`, and their standard `errors` where they come from draws; `method` says how."""

    values: Tensor
    errors: Tensor | None
    draws: int  # 0 where it is exact
    method: str


@dataclass(frozen=True)
class FisherSpectrum:
    """For each image: `values` is the largest eigenvalue, `eigenvalues` all that can be above 0, falling (images x classes)."""

    values: Tensor
    eigenvalues: Tensor


def fisher_trace(model: nn.Module, images: Images, *, batch_size: int = 256, progress: bool = False) -> Trace:
    """Tr G(x) = sum_k p_k ||grad log p_k||^2 (magnma Eq. 7, 10), exact: one backward pass for each class.

    sigma^2 / 2 times it is the expected divergence under small noise (Eq. 8), sigma_max^2 / 6 times it the regulariser (Eq. 9).
    For a net that is piecewise linear in its input it is the trace of the loss's Hessian, whatever the label (Prop. 1).
    """
    images = prepared(model, images)
    batches = []
    with deterministic(model), torch.enable_grad():
        for part in slices(len(images), batch_size, progress, "Fisher trace"):
            total = torch.zeros(len(images[part]), dtype=images.dtype, device=images.device)
            for shares, gradient in class_gradients(model, images[part]):
                total += shares * norms(gradient).square()
            batches.append(total)
    return Trace(torch.cat(batches), None, 0, "exact")


def sampled_fisher_trace(
    model: nn.Module,
    images: Images,
    draws: int = 10,
    generator: torch.Generator | None = None,
    *,
    batch_size: int = 256,
    progress: bool = False,
) -> Trace:
    """The mean of ||grad log p_k||^2 over classes k drawn from p, not the label: cheaper for many classes."""
    require(draws >= 1, "draws", "at least 1", draws)
    images, seed = prepared(model, images), base_seed(generator)
    source = torch.Generator().manual_seed(seed)
    uniform = torch.rand(len(images), draws, generator=source, dtype=torch.float64)
    batches = []
    with deterministic(model), torch.enable_grad():
        for part in slices(len(images), batch_size, progress, "sampled Fisher trace"):
            points = images[part].clone().requires_grad_()
            logs = log_probabilities(model, points)
            steps = logs.detach().double().exp().cumsum(1)
            drawn = uniform[part].to(steps.device) * steps[:, -1:]
            classes = torch.searchsorted(steps, drawn, right=True).clamp_max(logs.shape[1] - 1)
            rows = []
            for draw in range(draws):
                chosen = logs.gather(1, classes[:, draw : draw + 1]).sum()
                rows.append(norms(torch.autograd.grad(chosen, points, retain_graph=draw + 1 < draws)[0]).square())
            batches.append(torch.stack(rows))
    return Trace(*mean_and_error(batches), draws, "sampled")


def fisher_spectrum(model: nn.Module, images: Images, *, batch_size: int = 16, progress: bool = False) -> FisherSpectrum:
    """The eigenvalues of G(x), exact, from the Gram matrix of the vectors sqrt(p_k) grad log p_k.

    At most one fewer than classes are not 0. Memory: batch x classes x pixels. For piecewise linear nets they are the
    Hessian's (Prop. 1), also where the model cannot be differentiated twice.
    """
    images = prepared(model, images)
    batches = []
    with deterministic(model), torch.enable_grad():
        for part in slices(len(images), batch_size, progress, "Fisher spectrum"):
            rows = [shares.sqrt().unsqueeze(1) * slope.flatten(1) for shares, slope in class_gradients(model, images[part])]
            vectors = torch.stack(rows, 1).double()
            batches.append(torch.linalg.eigvalsh(vectors @ vectors.transpose(1, 2)).flip(1).clamp_min(0).to(images.dtype))
    eigenvalues = torch.cat(batches)
    return FisherSpectrum(eigenvalues[:, 0], eigenvalues)


def log_probabilities(model: nn.Module, points: Images) -> Tensor:
    """log p of every class, which must depend on the pixels."""
    logs: Tensor = model(points).log_softmax(1)
    if not logs.requires_grad:
        raise NoGradient(model)
    return logs


def class_gradients(model: nn.Module, images: Images) -> Iterator[tuple[Tensor, Tensor]]:
    """p_k and grad log p_k of every image, class after class, from one forward pass."""
    points = images.clone().requires_grad_()
    logs = log_probabilities(model, points)
    shares, classes = logs.detach().exp(), logs.shape[1]
    for number in range(classes):
        yield shares[:, number], torch.autograd.grad(logs[:, number].sum(), points, retain_graph=number + 1 < classes)[0]
