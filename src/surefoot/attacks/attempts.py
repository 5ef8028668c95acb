"""Run an attack over a set: part by part, batch by batch, only on images that are still right; and what it did."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from ..calibration.bins import ReliabilityBins, reliability
from ..errors import require
from ..progress import progress_bar
from ..seeds import check_indices, global_seed
from ..types import Images, Labels, Predictions, check_images
from .cache import Cache, fingerprint
from .gradients import OutOfTime, Paced, untouched

Attack = Callable[[nn.Module, Images, Labels], Images]
GENERATOR = 2  # of the draws: those of version 1 depended on the batch
logger = logging.getLogger("surefoot")


@dataclass(frozen=True)
class AttackResult:
    """Per-image outcome of an attack; the rates follow from it.

    `parts` names the attacks of an ensemble in their order, `broken_by` says for each image which of them broke it (-1: none),
    and `finished` which images were broken or withstood all of them; None stands for all. `queries` counts the images that went
    through the model on behalf of the attack.
    """

    clean: Predictions
    attacked: Predictions
    _: KW_ONLY
    parts: tuple[str, ...] = ()
    broken_by: Tensor | None = None
    finished: Tensor | None = None
    queries: int = 0

    @property
    def broken(self) -> Tensor:
        """Which images were right before and are wrong now."""
        return self.clean.correct & ~self.attacked.correct

    @property
    def success_rate(self) -> float:
        """Share of the images that were classified correctly before and are not now; 0 if none was."""
        right = int(self.clean.correct.sum())
        return int(self.broken.sum()) / right if right else 0.0

    @property
    def robust_accuracy(self) -> float:
        """Share of all images that are right before and under attack; an upper bound where an attack was not finished."""
        return float((self.clean.correct & self.attacked.correct).float().mean())

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which robust accuracy under the whole attack lies: equal unless time ran out."""
        standing = self.clean.correct & self.attacked.correct
        proven = standing if self.finished is None else standing & self.finished
        return float(proven.float().mean()), float(standing.float().mean())

    @property
    def confidence(self) -> float:
        """Mean confidence under attack, in whatever class is predicted."""
        return float(self.attacked.confidences.mean())

    @property
    def calibration(self) -> ReliabilityBins:
        """Confidence against accuracy under attack: its `ece` and `signed_error`, and the bins of the diagram."""
        return reliability(self.attacked)

    @property
    def queries_per_image(self) -> float:
        """How often the model was asked, on average over the images that were attacked; 0 if none was."""
        attacked = int(self.clean.correct.sum())
        return self.queries / attacked if attacked else 0.0

    @property
    def share_of_parts(self) -> dict[str, int]:
        """How many images each part of an ensemble broke; a part sees only what the ones before it left."""
        if self.broken_by is None:
            return {}
        return {name: int((self.broken_by == index).sum()) for index, name in enumerate(self.parts)}


@torch.inference_mode(False)
def attempt(
    model: nn.Module,
    images: Images,
    labels: Labels,
    attack: Attack,
    *,
    batch_size: int = 256,
    seed: int = 0,
    indices: Tensor | None = None,
    seconds: float | None = None,
    progress: bool = False,
    folder: str | Path | None = None,
) -> tuple[Images, AttackResult]:
    """The adversarial images (clean where the model was wrong anyway) and what they did.

    An attack with arguments `seed` and `indices` is given the seed and the images' indices in their data set (0, 1, ... if not
    given), to draw for each image whatever its batch; torch's own generator is seeded for each batch.
    An attack with a method `parts(classes, size)` is an ensemble: each part works on what the ones before it left standing.
    After `seconds` the rest is left undone, and the result says what is proven so far. With a folder, what was done is read
    from there.
    """
    require(len(images) > 0, "images", "at least one", 0)
    require(batch_size >= 1, "batch_size", "at least 1", batch_size)
    require(seconds is None or seconds > 0, "seconds", "positive", seconds)
    check_images(images)
    numbers = check_indices(indices, len(images)).cpu()
    cache = Cache(None if folder is None else Path(folder), "")
    if folder is not None:
        cache = Cache(Path(folder), fingerprint(GENERATOR, model, images, labels, attack, seed, numbers, batch_size))
    clean = logits_of(model, images, batch_size, seed)
    before = Predictions.from_logits(clean, labels.cpu())
    parts: dict[str, Attack] = {"": attack}
    if hasattr(attack, "parts"):
        parts = attack.parts(clean.shape[1], tuple(images.shape[2:]))
    adversarial, attacked = images.detach().clone(), clean.clone()
    broken_by, tried = torch.full((len(images),), -1), torch.zeros(len(images), dtype=torch.long)
    finished = ~before.correct
    bar = progress_bar(show=progress, keep=True)
    task = bar.add_task("attacking", total=int(before.correct.sum()) * len(parts))
    said = ""

    def tick(passes: int) -> None:
        bar.update(task, description=f"{said}, pass {passes}")

    paced, spent = Paced(model, seconds, tick), 0
    with bar:
        for index, (name, part) in enumerate(parts.items()):
            standing = (~finished).nonzero().flatten()
            for number, rows in enumerate(standing.split(batch_size) if len(standing) else ()):
                said = f"{name or 'attack'}: {int((broken_by >= 0).sum())} of {int(before.correct.sum())} broken"
                where = rows.to(images.device)
                kept, ended = cache.read(index, number), True
                if kept is None:
                    asked = paced.queries
                    own = with_draws(part, seed, numbers[rows])
                    points, ended = run(own, paced, images[where], labels[where], (seed, name, number))
                    kept = {"images": points, "logits": logits_of(model, points, batch_size, seed)}
                    kept["queries"] = torch.tensor(paced.queries - asked)
                    if ended:
                        cache.write(kept, index, number)
                spent += int(kept.get("queries", 0))
                adversarial[where], attacked[rows] = kept["images"].to(images), kept["logits"]
                broken = attacked[rows].argmax(1) != before.labels[rows]
                broken_by[rows[broken]] = index
                if not ended:
                    finished[rows[broken]] = True
                    return adversarial, stopped(result_of(before, attacked, parts, broken_by, finished, spent), seconds)
                tried[rows] += 1
                finished[rows] = broken | (tried[rows] == len(parts))
                bar.update(task, completed=int((tried + finished * before.correct * (len(parts) - tried)).sum()))
    return adversarial, result_of(before, attacked, parts, broken_by, finished, spent)


def with_draws(attack: Attack, seed: int, indices: Tensor) -> Attack:
    """The attack with `seed` and `indices`, where it takes them and nobody decided how it draws."""
    given = attack.keywords if isinstance(attack, partial) else {}
    if given.keys() & {"seed", "indices", "generator"}:
        return attack
    takes = inspect.signature(attack).parameters
    return partial(attack, **{name: value for name, value in {"seed": seed, "indices": indices}.items() if name in takes})


def run(part: Attack, model: nn.Module, images: Images, labels: Labels, keys: tuple[int | str, ...]) -> tuple[Images, bool]:
    """The adversarial images of one batch, and whether the attack came to its end."""
    with global_seed(*keys):
        try:
            points = part(model, images, labels)
        except OutOfTime as stop:
            return images if stop.images is None else stop.images, False
    require(points.shape == images.shape, "an attack's images", f"of shape {tuple(images.shape)}", tuple(points.shape))
    check_images(points, "an attack's images")
    return points, True


def result_of(
    before: Predictions, attacked: Tensor, parts: dict[str, Attack], broken_by: Tensor, finished: Tensor, queries: int
) -> AttackResult:
    names = tuple(name for name in parts if name)
    after = Predictions.from_logits(attacked, before.labels)
    by = broken_by if names else None
    ends = None if finished.all() else finished
    return AttackResult(before, after, parts=names, broken_by=by, finished=ends, queries=queries)


def stopped(result: AttackResult, seconds: float | None) -> AttackResult:
    """The same result, after a line in the log that says what is proven so far."""
    right, broken, (low, high) = int(result.clean.correct.sum()), int(result.broken.sum()), result.bounds
    withstood = round(low * len(result.clean))
    logger.warning(
        "Stopped after %g s: of %d images that were right, %d are broken, %d withstood everything and %d are not finished; "
        "robust accuracy is %.1f to %.1f %%.",
        *(seconds, right, broken, withstood, right - broken - withstood, 100 * low, 100 * high),
    )
    return result


def logits_of(model: nn.Module, images: Images, batch_size: int, seed: int) -> Tensor:
    """Logits on the CPU, in evaluation mode, with seeded draws if the model draws any."""
    with global_seed(seed, "answers"), untouched(model), torch.no_grad():
        return torch.cat([model(part).float().cpu() for part in images.split(batch_size)])
