"""The columns that every condition has: what one forward pass says of each image."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..models.logit_margins import logit_margins
from ..types import Labels, Logits
from .base import STANDARD

EXACT = 1e-30  # a smaller probability is taken from the logits


def columns_of(logits: Logits, labels: Labels, temperatures: Tensor | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Each column of `STANDARD` from logits on the CPU; the last only where each image has a temperature.

    `rank` is how many classes come before the label, 0 where the prediction is right; of equals the first counts.
    """
    labels = labels.cpu()
    probabilities = logits.softmax(1)
    own = probabilities.gather(1, labels[:, None]).squeeze(1).double()
    tiny = own < EXACT
    nll = torch.where(tiny, 0.0, -own.log())
    if bool(tiny.any()):
        exact = logits[tiny].double()
        nll[tiny] = exact.logsumexp(1) - exact.gather(1, labels[tiny, None]).squeeze(1)
    mine = logits.gather(1, labels[:, None])
    before = torch.arange(logits.shape[1]) < labels[:, None]
    rank = ((logits > mine) | ((logits == mine) & before)).sum(1)
    predicted = logits.argmax(1)
    found: dict[str, Tensor] = {
        "label": labels,
        "predicted": predicted,
        "correct": predicted == labels,
        "confidence": probabilities.amax(1),
        "nll": nll.clamp_min_(0),
        "brier": (torch.linalg.vector_norm(probabilities, dim=1).double().square() - 2 * own + 1).clamp_min_(0),
        "rank": rank,
        "margin": logit_margins(logits.double(), labels),
        "logit_norm": torch.linalg.vector_norm(logits, dim=1, dtype=torch.float64),
        "largest_logit": logits.amax(1),
    }
    if temperatures is not None:
        found["scaled_confidence"] = (logits.double() / temperatures.double()[:, None]).softmax(1).amax(1)
    return {name: values.numpy().astype(STANDARD[name]) for name, values in found.items()}
