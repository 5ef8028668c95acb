"""Features and logits of any model on images, a batch at a time, with the model left as it was."""

from __future__ import annotations

import torch
from torch import nn

from ..attacks.gradients import untouched
from ..errors import require
from ..models.observing import head_of, observed
from ..types import Images, Outputs
from .batching import slices


def observed_features(model: nn.Module, images: Images, batch_size: int = 256, progress: bool = False) -> Outputs:
    """What enters the model's last linear layer and what leaves it, in evaluation mode."""
    require(len(images) > 0, "images", "at least one", len(images))
    head = head_of(model, images)
    logits, features = [], []
    with untouched(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "features"):
            outputs = observed(model, head, images[part])
            logits.append(outputs.logits)
            features.append(outputs.features)
    return Outputs(torch.cat(logits), torch.cat(features))
