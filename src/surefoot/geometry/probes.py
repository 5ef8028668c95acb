"""How much of another task the frozen features of a model carry: a linear probe (representation-space App. M, Tab. 10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.dataset import Dataset
from ..errors import require
from ..types import Features, Labels, check_labels
from .features import observed_features
from .heads import at_least_single

STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
Labelled = tuple[Features, Labels]


@dataclass(frozen=True)
class LinearProbe:
    """A linear classifier on standardised features, and how it did with each regularisation.

    `values` is the validation accuracy for each of `strengths`; `strength` is the one chosen by it, before the test images were
    looked at. Logits of features f are ((f - mean) / std) weight^T + bias.
    """

    test_accuracy: float
    strength: float
    strengths: Tensor
    values: Tensor
    weight: Tensor
    bias: Tensor
    mean: Tensor
    std: Tensor


def fit_probe(
    features: Features, labels: Labels, num_classes: int, strength: float = 1e-3, iterations: int = 200
) -> tuple[Tensor, Tensor]:
    """Multinomial logistic regression: weight and bias that minimise mean cross-entropy + strength / 2 ||weight||^2.

    Full-batch L-BFGS from 0; the problem is convex, so nothing depends on a seed.
    """
    require(strength >= 0, "strength", "at least 0", strength)
    features = at_least_single(features.detach())
    labels = check_labels(labels, num_classes, len(features))
    with torch.inference_mode(False), torch.enable_grad():
        weight = torch.zeros(num_classes, features.shape[1], dtype=features.dtype, device=features.device, requires_grad=True)
        bias = torch.zeros(num_classes, dtype=features.dtype, device=features.device, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [weight, bias], max_iter=iterations, tolerance_grad=1e-6, tolerance_change=1e-10, line_search_fn="strong_wolfe"
        )

        def closure() -> Tensor:
            optimiser.zero_grad()
            loss = F.cross_entropy(F.linear(features, weight, bias), labels) + strength / 2 * weight.square().sum()
            loss.backward()
            return loss

        optimiser.step(closure)
    return weight.detach(), bias.detach()


def probe_features(
    train: Labelled, validation: Labelled, test: Labelled, num_classes: int, strengths: Sequence[float] = STRENGTHS
) -> LinearProbe:
    """Fit on `train`, choose the regularisation on `validation` (the largest of the best), and only then look at `test`.

    Features are standardised with mean and deviation of the training features; one that does not vary becomes 0.
    """
    require(len(strengths) > 0, "strengths", "at least one", list(strengths))
    for name, split in (("train", train), ("validation", validation), ("test", test)):
        require(len(split[0]) > 0, name, "at least one image", 0)
    known = at_least_single(train[0].detach())
    mean, std = known.mean(0), known.std(0, correction=0)
    std = torch.where(std > 0, std, torch.inf)

    def standardised(features: Features) -> Features:
        return (at_least_single(features.detach()) - mean) / std

    def accuracy(fitted: tuple[Tensor, Tensor], split: Labelled) -> float:
        return float((F.linear(standardised(split[0]), *fitted).argmax(1) == split[1]).double().mean())

    inputs, best, best_accuracy, chosen = standardised(train[0]), None, -math.inf, math.nan
    accuracies = []
    for strength in sorted(strengths):
        fitted = fit_probe(inputs, train[1], num_classes, strength)
        accuracies.append(accuracy(fitted, validation))
        if accuracies[-1] >= best_accuracy:
            best, best_accuracy, chosen = fitted, accuracies[-1], strength
    assert best is not None
    tried = torch.tensor(sorted(strengths), dtype=torch.float64)
    values = torch.tensor(accuracies, dtype=torch.float64)
    return LinearProbe(accuracy(best, test), chosen, tried, values, *best, mean, std)


def linear_probe(
    model: nn.Module, data: Dataset, strengths: Sequence[float] = STRENGTHS, batch_size: int = 256, progress: bool = False
) -> LinearProbe:
    """Train a linear classifier on the model's frozen features of another data set, and test it there."""
    weight = next((parameter for parameter in model.parameters() if parameter.is_floating_point()), torch.empty(0))

    def collect(split: str) -> Labelled:
        features, labels = [], []
        for batch in getattr(data, split).batches(batch_size):
            images = batch.images.to(weight.device, weight.dtype)
            features.append(observed_features(model, images, batch_size, progress).features)
            labels.append(batch.labels.to(weight.device))
        return torch.cat(features), torch.cat(labels)

    for name in ("train", "validation", "test"):
        require(len(getattr(data, name)) > 0, f"images of {name}", "at least 1", 0)
    splits = [collect(split) for split in ("train", "validation", "test")]
    return probe_features(splits[0], splits[1], splits[2], data.num_classes, strengths)
