"""How foreign a picture looks from its logits f alone, p their softmax; higher is more foreign.

- `msp`: 1 - max_k p_k (Hendrycks and Gimpel 2017, "A baseline for detecting misclassified and out-of-distribution examples").
- `max-logit`: -max_k f_k (Hendrycks et al. 2022, "Scaling out-of-distribution detection for real-world settings").
- `energy`: -log sum_k exp f_k (Liu et al. 2020, "Energy-based out-of-distribution detection", T = 1).
- `entropy`: -sum_k p_k log p_k.
- `gen`: the sum over the M largest p of p^g (1 - p)^g, g = 0.1, M = 100 (Liu, Lochman and Zach 2023, "GEN: pushing the limits
  of softmax-based out-of-distribution detection").
"""

from __future__ import annotations

from torch import Tensor

from ..types import Logits

GAMMA, LARGEST = 0.1, 100  # of GEN, as its authors set them


def msp(logits: Logits) -> Tensor:
    """From the probability of all other classes, which keeps its digits where the largest is nearly 1."""
    top, at = logits.max(1, keepdim=True)
    others = (logits - top).exp().scatter(1, at, 0.0).sum(1)
    return others / (1 + others)


def max_logit(logits: Logits) -> Tensor:
    return -logits.amax(1)


def energy(logits: Logits) -> Tensor:
    return -logits.logsumexp(1)


def entropy(logits: Logits) -> Tensor:
    log_p = logits.log_softmax(1)
    return -(log_p.exp() * log_p).sum(1)


def gen(logits: Logits, gamma: float = GAMMA, largest: int = LARGEST) -> Tensor:
    """1 - p of the likeliest class is taken from the others, for its digits as in `msp`."""
    p = logits.softmax(1).topk(min(largest, logits.shape[1]), dim=1).values
    rest = 1 - p
    rest[:, 0] = msp(logits)
    return (p * rest.clamp_min(0)).pow(gamma).sum(1)
