"""Cross-entropy and what changes its labels or weights: label smoothing and the focal loss."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import SurefootError, require
from ..types import Images, Labels, Logits, Terms, check_labels
from .base import Objective, log_probabilities, weighted_sum
from .passes import one_pass

# What a model should say: one class for each image, or a share for every class (soft labels); and weights of classes.


def as_targets(labels: Tensor, logits: Logits) -> Tensor:
    """Whole numbers as int64, or images x classes of shares that sum to 1, in float32 at least: half precision rounds 0.9."""
    if not (labels.ndim == 2 and labels.is_floating_point()):
        return check_labels(labels, logits.shape[1], len(logits))
    require(labels.shape == logits.shape, "soft labels", f"images x classes = {tuple(logits.shape)}", tuple(labels.shape))
    sound = bool((labels >= 0).all() and ((labels.sum(1) - 1).abs() < 1e-4).all()) if labels.device.type == "cpu" else True
    if not sound:
        raise SurefootError("soft labels must be at least 0 and sum to 1 for each image.")
    return labels.to(torch.promote_types(logits.dtype, torch.float32))


def check_class_weights(weights: Sequence[float] | None) -> list[float] | None:
    """Positive weights, one for each class, or none."""
    if weights is None:
        return None
    values = [float(weight) for weight in weights]
    require(
        len(values) >= 2 and min(values) >= 0 and max(values) > 0, "class_weights", "one number >= 0 for each class", values
    )
    return values


def weight_tensor(weights: list[float] | None, logits: Logits) -> Tensor | None:
    """The weights beside the logits; their number must be the number of classes."""
    if weights is None:
        return None
    require(len(weights) == logits.shape[1], "class_weights", f"one for each of {logits.shape[1]} classes", len(weights))
    return torch.tensor(weights, dtype=logits.dtype, device=logits.device)


def balanced_weights(labels: Labels, num_classes: int) -> list[float]:
    """Weights that make every class count the same: images / (classes x images of the class)."""
    counts = labels.bincount(minlength=num_classes).clamp_min(1).double()
    return (len(labels) / (num_classes * counts)).tolist()


# Plain cross-entropy: the baseline.


class CrossEntropy(Objective):
    """L = mean over images of -log p_y(x)  (macs Eq. 2); each loss is multiplied by the weight of its class, if any."""

    def __init__(self, class_weights: Sequence[float] | None = None) -> None:
        super().__init__()
        self.class_weights = check_class_weights(class_weights)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = one_pass(model, images)
        loss = F.cross_entropy(
            logits, as_targets(labels, logits), weight_tensor(self.class_weights, logits), reduction="none"
        ).mean()
        return weighted_sum(logits, cross_entropy=(1, loss))


# Cross-entropy against labels that keep a share for every class (Szegedy et al. 2016).


class LabelSmoothing(Objective):
    """L = mean of -sum_k q_k log p_k(x) with q = (1 - smoothing) onehot(y) + smoothing / classes."""

    def __init__(self, smoothing: float = 0.1, class_weights: Sequence[float] | None = None) -> None:
        super().__init__()
        require(0 <= smoothing < 1, "smoothing", "at least 0 and below 1", smoothing)
        self.smoothing = smoothing
        self.class_weights = check_class_weights(class_weights)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = one_pass(model, images)
        weights = weight_tensor(self.class_weights, logits)
        loss = F.cross_entropy(
            logits, as_targets(labels, logits), weights, label_smoothing=self.smoothing, reduction="none"
        ).mean()
        return weighted_sum(logits, smoothed_cross_entropy=(1, loss))


# The focal loss: less weight on what is already right (Lin et al. 2017).


class Focal(Objective):
    """L = mean of -(1 - p_y(x))^gamma log p_y(x); for soft labels q, the sum over classes weighted by q_k."""

    def __init__(self, gamma: float = 2.0) -> None:
        super().__init__()
        require(gamma >= 0, "gamma", "at least 0", gamma)
        self.gamma = gamma

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = one_pass(model, images)
        targets = as_targets(labels, logits)
        log_p = log_probabilities(logits)
        shares = targets if targets.ndim == 2 else F.one_hot(targets, logits.shape[1]).to(log_p.dtype)
        doubt = (-torch.expm1(log_p)).clamp_min(torch.finfo(log_p.dtype).tiny)  # 1 - p; its power has a gradient at 0
        loss = -(shares * doubt**self.gamma * log_p).sum(1).mean()
        return weighted_sum(logits, focal=(1, loss))
