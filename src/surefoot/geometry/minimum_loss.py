"""Where the loss of a class is least in feature space: the minimum, and whether there is one (representation-space 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import require
from .centres import descend
from .evaluation import slices
from .heads import weights_of

RATE, STEPS = 0.01, 200  # the paper's gradient descent, where there is no minimum to converge to
BLOCK = 2**23  # entries of the weighted rows that are in memory at once


@dataclass(frozen=True)
class MinimumLoss:
    """The minimum-loss point of each target: targets x dimensions, in double precision.

    `finite` says whether the loss has a minimum at all, `converged` whether the point is it: the gradient is `gradient` long
    there, at most the tolerance times the mean length of the weights. Without a minimum the loss falls all the way to infinity:
    the point is where the paper's gradient descent stands after `steps` steps, and its norm grows with them.
    """

    points: Tensor
    finite: Tensor
    converged: Tensor
    gradient: Tensor
    steps: int


def class_targets(classes: int, smoothing: float = 0.0, other: int | None = None, share: float = 1.0) -> Tensor:
    """The target of each class (classes x classes), smoothed; with `other`, mixed with that class as Mixup and CutMix do.

    t = (1 - smoothing) (share e_y + (1 - share) e_other) + smoothing / classes.
    """
    require(0 <= smoothing < 1, "smoothing", "at least 0 and below 1", smoothing)
    require(0 <= share <= 1, "share", "between 0 and 1", share)
    require(share == 1 or other is not None, "other", "given for a share below 1", other)
    require(other is None or 0 <= other < classes, "other", f"a class from 0 to {classes - 1}", other)
    hard = torch.eye(classes, dtype=torch.float64)
    mixed = hard if other is None else share * hard + (1 - share) * hard[other]
    return (1 - smoothing) * mixed + smoothing / classes


def minimum_loss_points(
    head: nn.Linear,
    targets: Tensor | None = None,
    tolerance: float = 1e-9,
    iterations: int = 200,
    steps: int = STEPS,
    learning_rate: float = RATE,
    progress: bool = False,
) -> MinimumLoss:
    """argmin over f of -sum_c t_c log softmax(W f + b)_c, for each row t of the targets; those of hard labels unless given.

    Newton's method with backtracking, in the span of the differences of the rows of W: outside it nothing changes the loss, and
    no gradient leads there. The minimum exists exactly when t W lies within the convex hull of the rows and not on its border
    (the condition for a maximum-likelihood estimate of an exponential family): always for a target without zeros, never for a
    hard label where the weights are affinely independent.
    """
    require(tolerance > 0, "tolerance", "positive", tolerance)
    require(iterations >= 1, "iterations", "at least 1", iterations)
    require(steps >= 1, "steps", "at least 1", steps)
    weight, bias = (each.double() for each in weights_of(head))
    classes = len(weight)
    targets = class_targets(classes) if targets is None else targets.double()
    targets = targets.to(weight.device)
    require(targets.ndim == 2 and targets.shape[1] == classes, "targets", f"any number x {classes} classes", targets.shape)
    sums = targets.sum(1)
    proper = bool((targets >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=1e-6)
    require(proper, "targets", "shares of at least 0 that add up to 1", targets)
    finite = has_minimum(weight, targets)
    points = torch.empty(len(targets), weight.shape[1], dtype=torch.float64, device=weight.device)
    with torch.no_grad():
        basis = span_of(weight - weight.mean(0))
        inner = weight @ basis
        block = max(1, BLOCK // max(1, inner.numel()))
        settled = finite.nonzero().flatten()
        for part in slices(len(settled), block, progress, "minima"):
            rows = settled[part]
            points[rows] = newton(targets[rows], inner, bias, tolerance, iterations) @ basis.T
        if not bool(finite.all()):
            points[~finite] = descend(targets[~finite], weight, bias, None, [learning_rate] * steps)
        gradient = torch.linalg.vector_norm((torch.addmm(bias, points, weight.T).softmax(1) - targets) @ weight, dim=1)
        bound = tolerance * torch.linalg.vector_norm(weight, dim=1).mean()
    return MinimumLoss(points, finite, finite & (gradient <= bound), gradient, steps)


def span_of(rows: Tensor) -> Tensor:
    """An orthonormal basis (dimensions x rank) of the span of these rows."""
    _, sizes, directions = torch.linalg.svd(rows, full_matrices=False)
    limit = max(rows.shape) * torch.finfo(rows.dtype).eps * sizes[:1]
    basis: Tensor = directions[sizes > limit].T
    return basis


def newton(targets: Tensor, inner: Tensor, bias: Tensor, tolerance: float, iterations: int) -> Tensor:
    """Coefficients (targets x rank) of the minimum for weights within their span; a row stops where it has converged."""
    spots = torch.zeros(len(targets), inner.shape[1], dtype=inner.dtype, device=inner.device)
    if not spots.numel():
        return spots
    if inner.shape[1] == len(inner) - 1:  # every distribution is in reach: W f + b = log t up to a constant
        wanted = targets.log() - bias
        centred = inner - inner.mean(0)
        spots = torch.linalg.lstsq(centred, (wanted - wanted.mean(1, keepdim=True)).T).solution.T.contiguous()
    bound = tolerance * torch.linalg.vector_norm(inner, dim=1).mean() / 10
    ridge = torch.eye(inner.shape[1], dtype=inner.dtype, device=inner.device) * inner.square().sum(1).mean() * 1e-14
    active = torch.arange(len(targets), device=inner.device)
    for _ in range(iterations):
        wanted = targets[active]
        p = torch.addmm(bias, spots[active], inner.T).softmax(1)
        gradient = (p - wanted) @ inner
        going = torch.linalg.vector_norm(gradient, dim=1) > bound
        active, wanted, p, gradient = active[going], wanted[going], p[going], gradient[going]
        if not len(active):
            break
        mean = p @ inner
        hessian = (inner.T * p[:, None, :]) @ inner - mean[:, :, None] * mean[:, None, :] + ridge
        step = torch.linalg.solve(hessian, gradient)
        spots[active] -= backtracked(spots[active], step, gradient, wanted, inner, bias)
    return spots


def backtracked(spots: Tensor, step: Tensor, gradient: Tensor, targets: Tensor, inner: Tensor, bias: Tensor) -> Tensor:
    """The step of each row, halved until the loss falls by a tenth of a thousandth of what its slope promises."""

    def loss(points: Tensor) -> Tensor:
        return -(torch.addmm(bias, points, inner.T).log_softmax(1) * targets).sum(1)

    before, slope = loss(spots), (step * gradient).sum(1)
    length = torch.ones_like(before)
    slack = 4 * torch.finfo(before.dtype).eps * before.abs()  # near the minimum rounding hides what is gained
    for _ in range(60):
        late = loss(spots - length[:, None] * step) > before - 1e-4 * length * slope + slack
        if not bool(late.any()):
            break
        length = torch.where(late, length / 2, length)
    return length[:, None] * step


def has_minimum(weight: Tensor, targets: Tensor) -> Tensor:
    """Whether the loss of each target has a minimum: whether t W is sum_c q_c w_c with shares q that are all positive.

    With affinely independent weights q is t itself. Otherwise the largest least share is a linear programme.
    """
    full = (targets > 0).all(1)
    centred = weight - weight.mean(0)
    if bool(full.all()) or span_of(centred).shape[1] == len(weight) - 1:
        return full
    from scipy.optimize import linprog

    classes = len(weight)
    basis = span_of(centred)
    rows = (centred @ basis).cpu().numpy()
    size = max(float(np.abs(rows).max()), np.finfo(float).tiny)
    equal = np.vstack([np.hstack([rows.T / size, np.zeros((rows.shape[1], 1))]), np.append(np.ones(classes), 0.0)])
    below = np.hstack([-np.eye(classes), np.ones((classes, 1))])  # least share <= each share
    goal = np.append(np.zeros(classes), -1.0)
    out = full.clone()
    for number in (~full).nonzero().flatten().tolist():
        mean = targets[number].cpu().numpy() @ rows / size
        limits = [(0, None)] * classes + [(None, None)]
        solved = linprog(goal, below, np.zeros(classes), equal, np.append(mean, 1.0), limits, method="highs")
        out[number] = bool(solved.status == 0 and -solved.fun > 1e-9)
    return out
