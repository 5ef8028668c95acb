"""Vector scaling and class bias: a factor, an offset, or both, for each class (Guo et al. 2017)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import SurefootError
from ..types import Logits, Predictions
from .calibrators import Calibrator, FittedOn
from .scale_search import CELLS, best_scale

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
        found, note = torch.stack([start, torch.zeros_like(start)]), scale.note
    else:
        found, note = minimise(predictions, torch.stack([start, torch.zeros_like(start)]), moves_factors=True)
    return ClassScaling(factors=found[0], offsets=found[1] - found[1].mean(), note=note, fitted_on=FittedOn.of(predictions))


def fit_bias(predictions: Predictions) -> ClassBias:
    """The offsets that minimise NLL; their mean is 0."""
    check_classes("bias", predictions)
    start = torch.stack([torch.ones(predictions.num_classes), torch.zeros(predictions.num_classes)]).double()
    found, note = minimise(predictions, start, moves_factors=False)
    return ClassBias(offsets=found[1] - found[1].mean(), note=note, fitted_on=FittedOn.of(predictions))


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
