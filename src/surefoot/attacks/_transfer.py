"""Adversarial images made on one model and shown to another (representation-space Table 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ..errors import require
from ..seeds import check_indices, global_seed
from ..types import Images, Labels, Predictions, check_images
from .attempts import GENERATOR, Attack, AttackResult, logits_of, with_draws
from .cache import Cache, fingerprint
from .presets import find_attack


@dataclass(frozen=True)
class TransferMatrix:
    """The outcome for every (surrogate, target, attack)."""

    surrogates: tuple[str, ...]
    targets: tuple[str, ...]
    attacks: tuple[str, ...]
    cells: dict[tuple[str, str, str], AttackResult]

    def __getitem__(self, names: tuple[str, str, str]) -> AttackResult:
        return self.cells[names]

    @property
    def success_rates(self) -> Tensor:
        """Surrogates x targets x attacks; among the images that the target classifies correctly when they are clean."""
        rows = [[[self[s, t, a].success_rate for a in self.attacks] for t in self.targets] for s in self.surrogates]
        return torch.tensor(rows, dtype=torch.float64)

    def rows(self) -> list[dict[str, str | float]]:
        """A line for each cell, for tables and files."""
        return [
            {"surrogate": s, "target": t, "attack": a, "success_rate": result.success_rate, "accuracy": result.robust_accuracy}
            for (s, t, a), result in self.cells.items()
        ]


def transfer(
    surrogates: Mapping[str, nn.Module],
    targets: Mapping[str, nn.Module],
    images: Images,
    labels: Labels,
    attacks: Sequence[str] | Mapping[str, Attack],
    *,
    batch_size: int = 256,
    seed: int = 0,
    indices: Tensor | None = None,
    folder: str | Path | None = None,
) -> TransferMatrix:
    """Attack every image on every surrogate, once, and show the result to every target.

    The attacks go on after the surrogate is wrong, since what has just crossed its boundary seldom crosses another's. (Only
    AutoAttack and its parts cannot: they stop there, and leave the images that the surrogate has wrong as they are.) With a
    folder the adversarial images are kept there, under a name that stands for weights, attack, images and seed. `indices` are
    the images' indices in their data set (0, 1, ... if not given), by which attacks draw.
    """
    for name, value in (("images", images), ("surrogates", surrogates), ("targets", targets), ("attacks", attacks)):
        require(len(value) > 0, name, "at least one", 0)
    check_images(images)
    numbers = check_indices(indices, len(images)).cpu()
    chosen = dict(attacks) if isinstance(attacks, Mapping) else {name: name for name in attacks}
    methods = {name: find_attack(attack, early_stop=False) for name, attack in chosen.items()}
    clean = {
        name: Predictions.from_logits(logits_of(model, images, batch_size, seed), labels.cpu())
        for name, model in targets.items()
    }
    cells = {}
    for surrogate, model in surrogates.items():
        for name, method in methods.items():
            what = (GENERATOR, model, images, labels, name, method, seed, numbers, batch_size)
            cache = Cache(None if folder is None else Path(folder), "" if folder is None else fingerprint(*what))
            adversarial = made_once(cache, model, images, labels, method, batch_size, seed, numbers, name)
            for target, other in targets.items():
                attacked = Predictions.from_logits(logits_of(other, adversarial, batch_size, seed), labels.cpu())
                cells[surrogate, target, name] = AttackResult(clean[target], attacked)
    return TransferMatrix(tuple(surrogates), tuple(targets), tuple(methods), cells)


def made_once(
    cache: Cache,
    model: nn.Module,
    images: Images,
    labels: Labels,
    method: Attack,
    batch_size: int,
    seed: int,
    indices: Tensor,
    name: str,
) -> Images:
    """The adversarial images of one surrogate and attack, from disk if they are there."""
    kept = cache.read("adversarial")
    if kept is not None:
        return kept["images"].to(images)
    parts = []
    for number, rows in enumerate(torch.arange(len(images)).split(batch_size)):
        where = rows.to(images.device)
        with global_seed(seed, name, number):
            parts.append(with_draws(method, seed, indices[rows])(model, images[where], labels[where]))
    adversarial = torch.cat(parts)
    cache.write({"images": adversarial}, "adversarial")
    return adversarial
