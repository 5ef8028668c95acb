"""Calibration of each class: a factor, an offset, or a rising function."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import SurefootError
from ..types import Logits, Predictions
from .calibrators import Calibrator, FittedOn
from .temperature import CELLS, best_scale

# Vector scaling and class bias: a factor, an offset, or both, for each class (Guo et al. 2017).


logger = logging.getLogger("surefoot")
RIDGE = 1e-6  # on the distance from where the fit starts, so that there is one minimum whatever the labels
STEPS, TOLERANCE = 500, 1e-9


@dataclass(frozen=True, kw_only=True)
class ClassScaling(Calibrator):
    """z'_c = factor_c z_c + offset_c."""

    factors: Tensor
    offsets: Tensor

    def apply(self, logits: Logits) -> Logits:
        return logits * self.factors.to(logits) + self.offsets.to(logits)


@dataclass(frozen=True, kw_only=True)
class ClassBias(Calibrator):
    """z'_c = z_c + offset_c."""

    offsets: Tensor

    def apply(self, logits: Logits) -> Logits:
        return logits + self.offsets.to(logits)


def fit_vector(predictions: Predictions) -> ClassScaling:
    """The factors and offsets that minimise NLL, from temperature scaling on; offsets have mean 0, since their sum is free."""
    check_classes("vector", predictions)
    scale = best_scale(predictions.logits, predictions.labels)
    start = torch.full((predictions.num_classes,), scale.value, dtype=torch.float64)
    if scale.note:  # NLL of the scale alone has no minimum, and with more freedom still less
        fitted, note = torch.stack([start, torch.zeros_like(start)]), scale.note
    else:
        fitted, note = minimise(predictions, torch.stack([start, torch.zeros_like(start)]), moves_factors=True)
    return ClassScaling(factors=fitted[0], offsets=fitted[1] - fitted[1].mean(), note=note, fitted_on=FittedOn.of(predictions))


def fit_bias(predictions: Predictions) -> ClassBias:
    """The offsets that minimise NLL; their mean is 0."""
    check_classes("bias", predictions)
    start = torch.stack([torch.ones(predictions.num_classes), torch.zeros(predictions.num_classes)]).double()
    fitted, note = minimise(predictions, start, moves_factors=False)
    return ClassBias(offsets=fitted[1] - fitted[1].mean(), note=note, fitted_on=FittedOn.of(predictions))


def check_classes(method: str, predictions: Predictions) -> None:
    """A class that never occurs would be pushed away without end."""
    if len(predictions) == 0:
        raise SurefootError("predictions must be of at least one image, got 0.")
    absent = (predictions.labels.bincount(minlength=predictions.num_classes) == 0).nonzero().squeeze(1).tolist()
    if absent:
        what = f"{len(absent)} of {predictions.num_classes} never occur among {len(predictions)} images (first: {absent[0]})"
        raise SurefootError(f"labels must hold every class for the method '{method}'; {what}. Temperature needs no class.")


def minimise(predictions: Predictions, start: Tensor, *, moves_factors: bool) -> tuple[Tensor, str]:
    """L-BFGS in float64 on the convex NLL, the logits in batches; factors and offsets as two rows."""
    point = start.clone()
    optimiser = torch.optim.LBFGS(
        [point], max_iter=STEPS, tolerance_grad=TOLERANCE, tolerance_change=0, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        loss, gradient = loss_and_gradient(predictions, point)
        if not moves_factors:
            gradient[0] = 0
        away = point.detach() - start
        point.grad = gradient + RIDGE * away
        return loss + RIDGE / 2 * float(away.square().sum())

    optimiser.step(closure)
    closure()
    assert point.grad is not None
    left = float(point.grad.abs().max())
    note = "" if left < 1e-6 else f"The fit ended after {STEPS} steps with a slope of {left:.1g} left."
    if note:
        logger.warning(note)
    return point.detach(), note


def loss_and_gradient(predictions: Predictions, point: Tensor) -> tuple[float, Tensor]:
    """Mean NLL, and its slope in factors (mean of (p - y) z) and offsets (mean of p - y)."""
    loss, gradient = 0.0, torch.zeros_like(point)
    rows = max(1, CELLS // predictions.num_classes)
    for start in range(0, len(predictions), rows):
        z = predictions.logits[start : start + rows].detach().cpu().double()
        labels = predictions.labels[start : start + rows].cpu().unsqueeze(1)
        log_p = (z * point[0] + point[1]).log_softmax(1)
        loss -= float(log_p.gather(1, labels).sum())
        excess = log_p.exp().scatter_add(1, labels, torch.full_like(labels, -1, dtype=torch.float64))
        gradient += torch.stack([(excess * z).sum(0), excess.sum(0)])
    return loss / len(predictions), gradient / len(predictions)


# Isotonic regression of each class against the rest (Zadrozny and Elkan 2002).


FLOOR = 1e-6  # a probability that the fit puts at 0 becomes this, so that one surprise does not cost an infinite NLL


@dataclass(frozen=True, kw_only=True)
class Isotonic(Calibrator):
    """Each class's probability by a rising line through knots (classes x knots, the last repeated), then divided by their sum.

    Between knots the line is straight, outside it is level, and where it is level classes may come to be equal.
    """

    knots: Tensor
    values: Tensor

    def apply(self, logits: Logits) -> Logits:
        p = logits.double().softmax(1).T.contiguous()
        knots, values = self.knots.to(p), self.values.to(p)
        right = torch.searchsorted(knots, p).clamp(1, knots.shape[1] - 1)
        x0, x1, y0, y1 = (table.gather(1, indices) for table in (knots, values) for indices in (right - 1, right))
        share = ((p - x0) / (x1 - x0)).nan_to_num(1.0, 1.0, 0.0).clamp(0, 1)
        fitted = (y0 + share * (y1 - y0)).clamp_min(FLOOR)
        return (fitted / fitted.sum(0)).log().T.to(logits.dtype)


def fit_isotonic(predictions: Predictions) -> Isotonic:
    """The rising function of each class's probability with the least squared error to "is it this class"."""
    check_classes("isotonic", predictions)
    p = predictions.logits.detach().cpu().double().softmax(1)
    fits = [rising_fit(p[:, c], (predictions.labels.cpu() == c).double()) for c in range(p.shape[1])]
    longest = max(2, *(len(knots) for knots, _ in fits))

    def padded(values: Tensor) -> Tensor:
        return F.pad(values, (0, longest - len(values)), value=float(values[-1]))

    knots, values = (torch.stack([padded(pair[side]) for pair in fits]) for side in (0, 1))
    return Isotonic(knots=knots, values=values, fitted_on=FittedOn.of(predictions))


def rising_fit(inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Knots and values of the isotonic least-squares fit: the slopes of the greatest convex minorant of the summed targets.

    The minorant can bend only where the targets change, so runs of equal targets are taken as one: their ends suffice.
    """
    x, inverse, counts = inputs.unique(return_inverse=True, return_counts=True)
    means = torch.zeros_like(x).index_add_(0, inverse, targets) / counts
    starts = F.pad(means[1:] != means[:-1], (1, 0), value=True).nonzero().squeeze(1)
    ends = F.pad(starts[1:] - 1, (0, 1), value=len(x) - 1)
    weights = F.pad(counts.double().cumsum(0), (1, 0))
    blocks: list[list[float]] = []  # weight, sum, first and last input of the pool of adjacent violators
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        weight = float(weights[end + 1] - weights[start])
        block = [weight, weight * float(means[start]), start, end]
        while blocks and blocks[-1][1] * block[0] >= block[1] * blocks[-1][0]:
            last = blocks.pop()
            block = [last[0] + block[0], last[1] + block[1], last[2], block[3]]
        blocks.append(block)
    table = torch.tensor(blocks, dtype=torch.float64)
    edges = table[:, 2:].long().view(-1)
    return x[edges], (table[:, 1] / table[:, 0]).repeat_interleave(2)
