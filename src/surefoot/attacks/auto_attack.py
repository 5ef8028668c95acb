"""AutoAttack (Croce and Hein 2020): published attacks without parameters to tune, run as an ensemble that stops early."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..errors import UnknownName, require
from ..types import Images, Labels
from ._apgd import apgd
from ._fab import fab
from ._square import NORMS as SQUARE_NORMS
from ._square import square
from .attempts import Attack, attempt
from .norms import Ball

VERSIONS = {
    "standard": ("apgd-ce", "apgd-t", "fab-t", "square"),
    "fast": ("apgd-ce", "apgd-t"),
    "rand": ("apgd-ce", "apgd-dlr"),
}
TARGETS = 9  # classes that the targeted attacks try
DRAWS = 20  # of a randomised model, averaged
IN_L1 = {"restarts": 5, "targets": 5}  # of the untargeted and the targeted APGD in L1


@dataclass(frozen=True)
class AutoAttack:
    """An ensemble of published attacks without parameters to tune; `fast` leaves out FAB and Square.

    `iterations` of the gradient attacks and `queries` of Square are the published ones; fewer give a weaker attack. Where the
    DLR losses are not defined, below three and four classes, their numerators stand in. Square is not defined in L1.
    """

    eps: float = 8 / 255
    norm: str = "linf"
    version: str = "standard"
    iterations: int = 100
    queries: int = 5000
    generator: int = field(default=2, init=False, repr=False)  # of the draws: those of 1, its authors' code, were the batch's

    def __post_init__(self) -> None:
        Ball(self.norm, self.eps)
        if self.version not in VERSIONS:
            raise UnknownName("version", self.version, VERSIONS)
        require(self.iterations >= 1, "iterations", "at least 1", self.iterations)
        require(self.queries >= 1, "queries", "at least 1", self.queries)

    def __call__(
        self, model: nn.Module, images: Images, labels: Labels, *, seed: int = 0, indices: Tensor | None = None
    ) -> Images:
        run: dict[str, Any] = {"batch_size": max(1, len(images)), "seed": seed, "indices": indices}
        return attempt(model, images, labels, self, **run)[0]

    def parts(self, classes: int, size: tuple[int, int]) -> dict[str, Attack]:
        """The attacks in their order, for any number of classes and any size of the images."""
        ball: dict[str, Any] = {"eps": self.eps, "norm": self.norm}
        sparse = self.norm == "l1"
        climbing = partial(apgd, **ball, iterations=self.iterations, eot=DRAWS if self.version == "rand" else 1)
        again = IN_L1["restarts"] if sparse and self.version != "rand" else 1
        known: dict[str, Attack] = {
            "apgd-ce": partial(climbing, loss="ce", restarts=again),
            "apgd-dlr": partial(climbing, loss="dlr"),
            "apgd-t": partial(climbing, loss="dlr-targeted", targets=IN_L1["targets"] if sparse else TARGETS),
            "fab-t": partial(fab, **ball, iterations=self.iterations, targets=TARGETS),
        }
        if self.norm in SQUARE_NORMS:
            known["square"] = partial(square, **ball, queries=self.queries, rescale=False)
        return {name: known[name] for name in VERSIONS[self.version] if name in known}


def autoattack(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    norm: str = "linf",
    version: str = "standard",
    *,
    batch_size: int = 256,
    seed: int = 0,
    indices: Tensor | None = None,
    seconds: float | None = None,
    progress: bool = False,
    folder: str | Path | None = None,
) -> Images:
    """Adversarial images where one was found, and the clean ones elsewhere; the rest is as for `evaluate`, which says more."""
    ensemble = AutoAttack(eps, norm, version)
    options: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "indices": indices, "seconds": seconds}
    return attempt(model, images, labels, ensemble, progress=progress, folder=folder, **options)[0]
