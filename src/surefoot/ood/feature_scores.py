"""How foreign a picture looks from its features h and the last layer f = W h + b; higher is more foreign.

- `react`: the energy of W min(h, c) + b, c the 90th percentile of known activations (Sun, Guo and Li 2021, "ReAct:
  out-of-distribution detection with rectified activations").
- `scale`: the energy of W h exp(r) + b, r the sum of h over the sum of its largest 15 % (Xu et al. 2024, "Scaling for training
  time and post-hoc out-of-distribution detection enhancement").
- `mahalanobis`: min_c (h - m_c)^T S^-1 (h - m_c), S shared by the classes (Lee et al. 2018, "A simple unified framework for
  detecting out-of-distribution samples and adversarial attacks").
- `relative-mahalanobis`: that minus (h - m)^T S_0^-1 (h - m) of all classes together (Ren et al. 2021, "A simple fix to
  Mahalanobis distance for improving near-OOD detection").
- `knn`: the distance to the k-th nearest known feature, both of length 1 (Sun et al. 2022, "Out-of-distribution detection with
  deep nearest neighbors"); k is a thousandth of the sample, as 50 of CIFAR's 50,000 there.
- `vim`: a |r| - log sum_k exp f_k, r the part of h + W^+ b outside the first D principal directions, a = the mean largest logit
  over the mean |r| of known pictures (Wang et al. 2022, "ViM: out-of-distribution with virtual-logit matching").
- `neco`: -max_k f_k |P h| / |h|, h standardised, P the projection on its first d principal directions (Ammar et al. 2024,
  "NECO: neural collapse based out-of-distribution detection"). Its authors search for d; ours is classes - 1, the
  dimension that collapsed class means span, and at most half of the features.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..types import Features, Logits
from .known import Known, whitening
from .logit_scores import energy

Score = Callable[[Logits, Features], Tensor]
Head = tuple[Tensor, Tensor]  # weight and bias
CLIPPED = 0.90  # of the activations lie below the bound of ReAct
PRUNED = 0.85  # of a picture's activations are not among the largest of SCALE
NEIGHBOUR = 0.001  # of the sample
ROWS = 2048  # pictures whose distances are held at once


def react(known: Known, head: Head) -> Score:
    bound = float(np.quantile(known.features.numpy(), CLIPPED))
    weight, bias = head
    return lambda _, features: energy(F.linear(features.clamp_max(bound), weight, bias))


def scale(known: Known, head: Head) -> Score:
    weight, bias = head
    largest = max(1, known.dimensions - round(PRUNED * known.dimensions))

    def score(_: Logits, features: Features) -> Tensor:
        top = features.topk(largest, dim=1).values.sum(1)
        ratio = features.sum(1) / torch.where(top == 0, 1.0, top)
        return energy(F.linear(features * ratio.exp()[:, None], weight, bias))

    return score


def squared_lengths(centre: Tensor, white: Tensor) -> Callable[[Features], Tensor]:
    """(h - centre)^T M M^T (h - centre)."""
    origin, white = centre.float(), white.float()
    return lambda features: ((features - origin) @ white).square().sum(1)


def mahalanobis(known: Known, head: Head) -> Score:
    centre, white = known.mean.float(), known.whitening_within.float()
    means = ((known.class_means - known.mean) @ known.whitening_within).float()  # moved by the centre, as h is

    def score(_: Logits, features: Features) -> Tensor:
        distances = torch.cdist((features - centre) @ white, means, compute_mode="use_mm_for_euclid_dist")
        return distances.amin(1).square()

    return score


def relative_mahalanobis(known: Known, head: Head) -> Score:
    own, background = mahalanobis(known, head), squared_lengths(known.mean, whitening(known.covariance))
    return lambda logits, features: own(logits, features) - background(features)


def knn(known: Known, head: Head) -> Score:
    bank = F.normalize(known.features, dim=1)
    place = max(1, round(NEIGHBOUR * len(bank)))

    def score(_: Logits, features: Features) -> Tensor:
        cosines = F.normalize(features, dim=1) @ bank.T
        nearest = cosines.topk(place, dim=1).values[:, -1]
        return (2 - 2 * nearest).clamp_min(0).sqrt()

    return score


def vim(known: Known, head: Head) -> Score:
    weight, bias = head
    centre = -torch.linalg.pinv(weight.double()) @ bias.double()
    _, vectors = torch.linalg.eigh(known.moment_around(centre))
    residual = vectors[:, : known.dimensions - principal_dimensions(known.dimensions)].float()

    def outside(features: Features) -> Tensor:
        length: Tensor = torch.linalg.vector_norm((features - centre.float()) @ residual, dim=1)
        return length

    there = torch.cat([outside(part) for part in known.features.split(ROWS)]).double().mean()
    factor = float(known.largest.double().mean() / there) if there > 0 else 0.0
    return lambda logits, features: factor * outside(features) + energy(logits)


def principal_dimensions(dimensions: int) -> int:
    """1000 of 2048 or more, 512 of 768 or more, as the authors of ViM take; half of fewer."""
    return 1000 if dimensions >= 2048 else 512 if dimensions >= 768 else dimensions // 2


def neco(known: Known, head: Head) -> Score:
    deviation = known.covariance.diagonal().clamp_min(0).sqrt()
    deviation = torch.where(deviation > 0, deviation, 1.0)
    _, vectors = torch.linalg.eigh(known.covariance / deviation.outer(deviation))
    count = max(1, min(known.classes - 1, known.dimensions // 2))
    first, mean, spread = vectors[:, -count:].float(), known.mean.float(), deviation.float()

    def score(logits: Logits, features: Features) -> Tensor:
        standard = (features - mean) / spread
        length = torch.linalg.vector_norm(standard, dim=1)
        share = torch.linalg.vector_norm(standard @ first, dim=1) / torch.where(length > 0, length, 1.0)
        closeness: Tensor = share * logits.amax(1)
        return -closeness

    return score
