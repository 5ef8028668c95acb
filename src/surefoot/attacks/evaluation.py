"""What an attack does to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..types import Images, Labels
from .attempts import Attack, attempt
from .presets import find_attack
from .results import AttackResult


def evaluate(
    model: nn.Module,
    images: Images,
    labels: Labels,
    attack: str | Attack,
    *,
    batch_size: int = 256,
    seed: int = 0,
    indices: Tensor | None = None,
    seconds: float | None = None,
    progress: bool = False,
    folder: str | Path | None = None,
) -> AttackResult:
    """Attack the images that are classified correctly, no longer than until they are broken, and compare.

    An attack that takes `early_stop` gets it, unless it was given another value: `partial(pgd, early_stop=False)` goes on,
    which makes wrong answers more confident. `seconds` is a time budget, after which the result says what is proven (`bounds`);
    in `folder` finished batches are kept, and the same call goes on from there. An attack that takes `seed` and `indices`, as
    ours do where they draw, draws for each image by these; `indices` are places in the whole data set (0, 1, ... if not given).
    """
    method = find_attack(attack, early_stop=True)
    options: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "indices": indices}
    return attempt(model, images, labels, method, **options, seconds=seconds, progress=progress, folder=folder)[1]
