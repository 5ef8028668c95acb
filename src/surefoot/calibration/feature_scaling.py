"""Feature scaling: one number multiplies the penultimate features (representation-space.txt, Section 4.3 and App. L)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Logits, Predictions
from .calibrators import Calibrator, FittedOn, widened
from .scale_search import best_scale


@dataclass(frozen=True, kw_only=True)
class FeatureScaling(Calibrator):
    """z' = W (S f) + b = S (z - b) + b: temperature 1 / S but for the bias b of the final layer."""

    scale: float
    bias: Tensor

    def apply(self, logits: Logits) -> Logits:
        bias = self.bias.to(logits)
        return (logits - bias) * self.scale + bias


def scale_features(predictions: Predictions, head: nn.Linear) -> FeatureScaling:
    """The factor of the features that entered `head` which minimises NLL, to machine precision.

    Without a bias in the head this is temperature scaling with T = 1 / S.
    """
    require(head.out_features == predictions.num_classes, "head", f"of {predictions.num_classes} classes", head.out_features)
    bias = torch.zeros(head.out_features) if head.bias is None else head.bias.detach().cpu()
    logits = widened(predictions.logits)
    lines = logits - bias.to(logits)
    found = best_scale(lines, predictions.labels, bias)
    return FeatureScaling(scale=found.value, bias=bias, note=found.note, fitted_on=FittedOn.of(predictions))
