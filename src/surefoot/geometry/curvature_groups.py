"""Is an image with low input-loss curvature answered more reliably under noise? (discriminative-noise 7.3, 7.4)"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import require
from .correlation import pearson


@dataclass(frozen=True)
class AccuracyByCurvature:
    """Accuracy under noise (`values`) of the `shares` of images with the lowest curvature, `counts` of them (Fig. 8)."""

    shares: Tensor
    counts: Tensor
    values: Tensor


@dataclass(frozen=True)
class CurvatureByCount:
    """Mean curvature (`values`) of the images with 0, 1, ... right answers out of `draws`, NaN where there is none (Fig. 9).

    `correlation` is Pearson r over the groups, as the paper's, NaN for two groups, which always lie on a line;
    `image_correlation` over the images, which groups of very different sizes do not flatter.
    """

    draws: int
    values: Tensor
    counts: Tensor
    correlation: float
    image_correlation: float


@dataclass(frozen=True)
class CurvatureSpread:
    """Minimum, quartiles and maximum of the lowest `share` of curvatures of each model: names x 5 (Fig. 10)."""

    names: tuple[str, ...]
    share: float
    values: Tensor


def accuracy_by_curvature(
    curvature: Tensor, correct: Tensor, shares: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
) -> AccuracyByCurvature:
    """acc(D(p)): mean of `correct` (1 or 0, or the share of right draws) over the ceil(p n) images of lowest curvature.

    The paper takes curvatures below the p-quantile, which is the same up to one image where no two are equal.
    """
    check_pair(curvature, correct, "correct")
    require(all(0 < share <= 1 for share in shares), "shares", "above 0 and at most 1", list(shares))
    ordered = correct.double()[curvature.argsort(stable=True)].cumsum(0)
    counts = torch.tensor([math.ceil(round(share * len(curvature), 9)) for share in shares], device=curvature.device)
    return AccuracyByCurvature(torch.tensor(shares, dtype=torch.float64), counts, ordered[counts - 1] / counts)


def curvature_by_count(curvature: Tensor, counts: Tensor, draws: int = 10) -> CurvatureByCount:
    """Mean curvature by the number of right answers, as `noisy_correct` counts them."""
    check_pair(curvature, counts, "counts")
    inside = bool((counts >= 0).all() and (counts <= draws).all()) and not counts.is_floating_point()
    require(inside, "counts", f"whole numbers from 0 to {draws}", counts.dtype)
    curvature = curvature.double()
    sizes = torch.bincount(counts, minlength=draws + 1)
    means = torch.bincount(counts, weights=curvature, minlength=draws + 1) / sizes
    steps = torch.arange(draws + 1, dtype=torch.float64, device=curvature.device)
    correlation = pearson(steps, means) if int((sizes > 0).sum()) > 2 else math.nan
    return CurvatureByCount(draws, means, sizes, correlation, pearson(counts.double(), curvature))


def curvature_spread(curvatures: Mapping[str, Tensor], share: float = 0.9) -> CurvatureSpread:
    """The box plot of the ceil(share n) lowest curvatures of each model."""
    require(0 < share <= 1, "share", "above 0 and at most 1", share)
    require(len(curvatures) > 0, "curvatures", "of at least one model", 0)
    quarters = torch.linspace(0, 1, 5, dtype=torch.float64)
    rows = []
    for name, values in curvatures.items():
        require(values.ndim == 1 and len(values) > 0, f"curvatures['{name}']", "one number for each image", tuple(values.shape))
        lowest = values.detach().double().cpu().sort().values[: math.ceil(round(share * len(values), 9))]
        rows.append(lowest.quantile(quarters))
    return CurvatureSpread(tuple(curvatures), share, torch.stack(rows))


def check_pair(curvature: Tensor, other: Tensor, argument: str) -> None:
    """One number of each kind for each image."""
    require(curvature.ndim == 1 and len(curvature) > 0, "curvature", "one number for each image", tuple(curvature.shape))
    require(other.shape == curvature.shape, argument, f"one for each of {len(curvature)} images", tuple(other.shape))
