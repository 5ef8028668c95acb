"""How far predictions are from each other, for each image, from logits; in float32 at least, and finite for finite logits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..types import Logits


def log_probabilities(logits: Logits) -> Tensor:
    """log p, in float32 or better whatever the precision of the model."""
    return logits.log_softmax(1, dtype=torch.float64 if logits.dtype == torch.float64 else torch.float32)


def kl(p: Logits, q: Logits) -> Tensor:
    """D(p || q) = sum_k p_k (log p_k - log q_k) for each image, with gradient through both sides."""
    log_p, log_q = log_probabilities(p), log_probabilities(q)
    return (log_p.exp() * (log_p - log_q)).sum(1)


def jensen_shannon(predictions: Sequence[Logits]) -> Tensor:
    """The mean of D(p_i || m) with m the mean of the p_i, for each image (magnma Eq. 5)."""
    log_p = torch.stack([log_probabilities(logits) for logits in predictions])
    log_mean = log_p.logsumexp(0) - math.log(len(predictions))
    return (log_p.exp() * (log_p - log_mean)).sum(2).mean(0)
