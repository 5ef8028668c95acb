"""What an attack does to a model: at its own budget, and as the budget grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..calibration.scoring import scores
from ..errors import SurefootError, require
from ..types import Estimate, Images, Labels
from .attempts import Attack, AttackResult, attempt
from .presets import find_attack, takes_budget

BUDGETS = (0, 1 / 255, 2 / 255, 4 / 255, 8 / 255)


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
    which makes wrong predictions more confident. `seconds` is a time budget, after which the result says what is proven
    (`bounds`); in `folder` finished batches are kept, and the same call goes on from there. An attack that takes `seed` and
    `indices`, as ours do where they draw, draws for each image by these; `indices` are those in the whole data set (0, 1,
    ... if not given).
    """
    method = find_attack(attack, early_stop=True)
    options: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "indices": indices}
    return attempt(model, images, labels, method, **options, seconds=seconds, progress=progress, folder=folder)[1]


@dataclass(frozen=True)
class CurvePoint:
    """What is left at one budget; `eps` is None for an attack whose budget belongs to its name.

    Accuracy has its interval over images; `unfinished` counts the images that a time budget left undecided, and `queries` is
    how often the model was asked about an image that was attacked, on average (None: not counted).
    """

    attack: str
    eps: float | None
    images: int
    accuracy: Estimate
    success_rate: float
    confidence: float
    ece: Estimate
    signed_error: Estimate
    unfinished: int
    queries: float | None = None


def security_curve(
    model: nn.Module,
    images: Images,
    labels: Labels,
    attack: str,
    budgets: Sequence[float] | None = None,
    *,
    options: dict[str, Any] | None = None,
    batch_size: int = 256,
    seed: int = 0,
    indices: Tensor | None = None,
    seconds: float | None = None,
    progress: bool = False,
    folder: str | Path | None = None,
) -> list[CurvePoint]:
    """Attack anew at every budget, 0 to 8/255 if none are given; `options` are the attack's own, `seconds` is for each budget.

    An attack that has its budget in its name, such as "pgd-weak", takes no other, and an attack of one's own without an `eps`
    takes none: the curve is one point.
    """
    varied = takes_budget(attack)
    if budgets is not None and not varied:
        raise SurefootError(f"{attack} has its own budget: budgets are for the attacks without one in their name.")
    wanted = BUDGETS if budgets is None else budgets
    require(len(wanted) > 0, "budgets", "at least one", 0)
    require(min(wanted) >= 0, "budgets", "at least 0", min(wanted))
    points = []
    for eps in wanted if varied else [None]:
        given = dict(options or {}) if eps is None else {**(options or {}), "eps": eps}
        method = find_attack(attack, early_stop=True, **given)
        if eps == 0:
            method = unchanged
        run: dict[str, Any] = {"seed": seed, "indices": indices, "seconds": seconds, "progress": progress, "folder": folder}
        _, result = attempt(model, images, labels, method, batch_size=batch_size, **run)
        calibration = scores(result.attacked, seed=seed)
        points.append(
            CurvePoint(
                attack,
                eps,
                len(images),
                calibration.accuracy,
                result.success_rate,
                result.confidence,
                calibration.ece,
                calibration.signed_error,
                0 if result.finished is None else int((~result.finished).sum()),
                result.queries_per_image,
            )
        )
    return points


def unchanged(model: nn.Module, images: Images, labels: Labels) -> Images:
    """The only point of a ball of radius 0."""
    return images
