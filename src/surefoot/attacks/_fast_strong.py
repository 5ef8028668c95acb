"""A quick judge: nearly what AutoAttack finds, at about a tenth of its passes over an image that withstands."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ..types import Images, Labels
from ._apgd import apgd


def fast_strong(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    norm: str = "linf",
    iterations: int = 100,
    targets: int = 3,
    *,
    seed: int = 0,
    indices: Tensor | None = None,
) -> Images:
    """APGD on the margin of probabilities (Ma et al. 2024), then, on what stands, at the `targets` most likely wrong classes.

    Adversarial images where one was found, the clean ones elsewhere; draws as for `apgd`.
    """
    run: dict[str, Any] = {"eps": eps, "norm": norm, "iterations": iterations, "seed": seed, "indices": indices}
    found = apgd(model, images, labels, loss="probability-margin", **run)
    return apgd(model, found, labels, loss="dlr-targeted", targets=targets, **run)
