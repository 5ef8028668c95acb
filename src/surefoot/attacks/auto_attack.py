"""AutoAttack (Croce and Hein 2020): the authors' own attacks from `pyautoattack`, run as an ensemble that stops early."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError, UnknownName, require
from ..types import Images, Labels, Logits
from .attempts import Attack, attempt
from .gradients import OutOfTime, untouched, warn_if_randomised
from .norms import Ball

VERSIONS = {
    "standard": ("apgd-ce", "apgd-t", "fab-t", "square"),
    "fast": ("apgd-ce", "apgd-t"),
    "rand": ("apgd-ce", "apgd-dlr"),
}
TARGETS = 9  # classes that the targeted attacks try
DRAWS = 20  # of a randomised model, averaged
EARLY = (
    25  # passes within which it is cheaper to start again on half of the images than to go on with all: there are 100 and more
)
QUIET = logging.Logger("autoattack", logging.CRITICAL)


@dataclass(frozen=True)
class AutoAttack:
    """An ensemble of published attacks without parameters to tune; `fast` leaves out FAB and Square.

    `iterations` of the gradient attacks and `queries` of Square are the published ones; fewer give a weaker attack.
    """

    eps: float = 8 / 255
    norm: str = "linf"
    version: str = "standard"
    iterations: int = 100
    queries: int = 5000

    def __post_init__(self) -> None:
        Ball(self.norm, self.eps)
        if self.version not in VERSIONS:
            raise UnknownName("version", self.version, VERSIONS)
        require(self.iterations >= 1, "iterations", "at least 1", self.iterations)
        require(self.queries >= 1, "queries", "at least 1", self.queries)

    def __call__(self, model: nn.Module, images: Images, labels: Labels) -> Images:
        drawn = int(torch.randint(2**31, ()))  # from the generator that the caller seeded
        return attempt(model, images, labels, self, batch_size=max(1, len(images)), seed=drawn)[0]

    def parts(self, classes: int, size: tuple[int, int]) -> dict[str, Attack]:
        """The attacks in their order: those that are defined for so many classes and images of this size.

        The targeted DLR loss needs four classes, the untargeted three; Square in L2 is left out where its pattern does not fit.
        """
        names = list(VERSIONS[self.version])
        if classes < 4:
            names = ["apgd-dlr" if name == "apgd-t" else name for name in names]
        if classes < 3:
            names = [name for name in names if name != "apgd-dlr"]
        if self.norm == "l2" and not square_fits(*size):
            names = [name for name in names if name != "square"]
        return {name: partial(run_part, name, self, classes) for name in names}


def square_fits(height: int, width: int) -> bool:
    """Whether Square's first pattern in L2, tiles of a fifth of the height behind a border, stays inside the image.

    It does at 28, 32, 64, 96 and 224 pixels, for example, and not below 5, nor at 12 or 18, where the authors' code fails.
    """
    tile = height // 5
    border = (height - 5 * tile) // 2
    return tile == 1 or (tile > 1 and all(border + side // tile * tile <= side for side in (height, width)))


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
    seconds: float | None = None,
    progress: bool = False,
    folder: str | Path | None = None,
) -> Images:
    """Adversarial images where one was found, and the clean ones elsewhere; needs the extra `autoattack`.

    The rest is as for `evaluate`, which also says what the images do.
    """
    ensemble = AutoAttack(eps, norm, version)
    options: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "seconds": seconds}
    return attempt(model, images, labels, ensemble, progress=progress, folder=folder, **options)[0]


def run_part(name: str, ensemble: AutoAttack, classes: int, model: nn.Module, images: Images, labels: Labels) -> Images:
    """One attack on a batch. Where most of it breaks within a few passes, the attack starts again on the rest."""
    ball, adversarial = Ball(ensemble.norm, ensemble.eps), images.detach().clone()
    if ball.eps == 0:
        return adversarial
    rows = torch.arange(len(images), device=images.device)
    with untouched(model):
        if ensemble.version != "rand":
            warn_if_randomised(model, "use version='rand'")
        while len(rows):
            watch = Watch(model, images[rows].float().contiguous(), labels[rows].long(), ball, ensemble.version != "rand")
            try:
                points = build(name, ensemble, classes, watch).perturb(watch.images.clone(), watch.labels)
            except (Enough, OutOfTime) as stop:
                adversarial[rows] = ball.project(watch.points.to(images), images[rows])
                if isinstance(stop, OutOfTime):
                    stop.images = adversarial
                    raise
                rows = rows[~watch.broken]
            else:
                adversarial[rows] = ball.project(points.detach().to(images), images[rows])
                break
    return adversarial


def build(name: str, ensemble: AutoAttack, classes: int, predict: Watch) -> Any:
    """One of the authors' attacks with the published settings, seeded from torch's generator."""
    common = {
        "norm": {"linf": "Linf", "l2": "L2"}[ensemble.norm],
        "eps": ensemble.eps,
        "seed": int(torch.randint(2**31, ())),
        "device": predict.images.device,
        "verbose": False,
    }
    targets = min(TARGETS, classes - 1)
    if name == "square":
        return theirs("square", "SquareAttack")(predict, p_init=0.8, n_queries=ensemble.queries, resc_schedule=False, **common)
    if name == "fab-t":
        return theirs("fab_pt", "FABAttack_PT")(
            predict, n_iter=ensemble.iterations, targeted=True, n_target_classes=targets, **common
        )
    common |= {
        "n_iter": ensemble.iterations,
        "rho": 0.75,
        "eot_iter": DRAWS if ensemble.version == "rand" else 1,
        "logger": QUIET,
    }
    if name == "apgd-t":
        return theirs("autopgd_base", "APGDAttack_targeted")(predict, n_target_classes=targets, **common)
    return theirs("autopgd_base", "APGDAttack")(predict, loss=name.removeprefix("apgd-"), **common)


def theirs(module: str, attribute: str) -> Any:
    """Something of the authors' package, or what to install."""
    try:
        return getattr(import_module(f"pyautoattack.{module}"), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("pyautoattack"):
            raise
        raise SurefootError("AutoAttack needs the package pyautoattack: pip install 'surefoot[autoattack]'.") from error


class Enough(Exception):
    """Every image of the batch is broken, or at least half of them so early that it pays to start again with the rest."""


class Watch:
    """The model as a function that remembers the points of the ball where an image was classified wrongly.

    Only passes over the whole batch are looked at, since an attack on some of its images does not say on which.
    """

    def __init__(self, model: nn.Module, images: Images, labels: Labels, ball: Ball, remember: bool) -> None:
        self.model, self.images, self.labels, self.ball, self.remember = model, images, labels, ball, remember
        self.points, self.broken = images.clone(), torch.zeros(len(images), dtype=torch.bool, device=images.device)
        self.dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), images.dtype)
        self.passes, self.classes = 0, 0

    def __call__(self, points: Images) -> Logits:
        if not len(points):
            return points.new_zeros(0, self.classes)
        logits: Tensor = self.model(points.to(self.dtype)).float()
        self.passes, self.classes = self.passes + 1, logits.shape[1]
        if self.remember and len(points) == len(self.images):
            self.look(points.detach(), logits.detach())
        return logits

    def look(self, points: Images, logits: Logits) -> None:
        """Note what is broken; stop the attack when that is enough."""
        new = (logits.argmax(1) != self.labels) & ~self.broken
        if not bool(new.any()):
            return
        new &= self.ball.contains(points, self.images)
        self.points[new] = points[new]
        self.broken |= new
        count = int(self.broken.sum())
        if count == len(self.images) or (self.passes <= EARLY and 2 * count >= len(self.images)):
            raise Enough
