"""When somebody means harm: attacks with calibration under attack, the security curve, and signs of masked gradients."""

from __future__ import annotations

import math
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..attacks.attempts import AttackResult
from ..attacks.evaluation import evaluate, security_curve
from ..attacks.gradient_masking import NOT_TRIED, masking_signs
from ..attacks.presets import budget_of
from ..calibration.bootstrap import mean_estimate, resampled_sums, share_estimate
from ..calibration.scoring import estimates
from ..data.choosing import choose
from ..data.dataset import whole
from ..types import Predictions
from .records import Record, Workbook
from .result import AttackSummary
from .setting import Setting
from .steps import Step

CURVE = "pgd"
PASSES = {  # forward and backward for each image; what withstands AutoAttack is tried 5,000 and 1,900 times
    "fgsm": (1, 1),
    "noise": (20, 0),
    "pgd": (7, 7),
    "pgd-weak": (7, 7),
    "pgd-strong": (7, 7),
    "autoattack-weak": (4000, 1500),
    "autoattack": (400, 300),
    "autoattack-strong": (400, 300),
}
OWN = (10, 10)  # a guess at the passes of an attack of one's own
NEEDS_EXTRA = "AutoAttack was left out: pip install 'surefoot[autoattack]'."


def attacks_of(setting: Setting) -> tuple[str, ...]:
    """The attacks of the depth that this installation can run."""
    able = find_spec("pyautoattack") is not None
    return tuple(name for name in setting.depth.attacks if able or not name.startswith("autoattack"))


def attack_notes(setting: Setting) -> list[str]:
    notes = [] if attacks_of(setting) == setting.depth.attacks else [NEEDS_EXTRA]
    return notes + ([NOT_TRIED] if setting.depth.masking_images and find_spec("pyautoattack") is None else [])


def attack_steps(setting: Setting, folder: Path | None) -> list[Step]:
    """A step for each attack, one for each budget of the security curve, one for the signs of masking."""
    count, steps = len(setting.attack_images), []
    for name in attacks_of(setting):
        forward, backward = PASSES.get(name, OWN)
        cost = setting.cost(count, forward=forward, backward=backward)
        steps.append(Step(f"attacks/{name}", partial(attacked, setting, name, folder), cost))
    for eps in setting.depth.curve_budgets:
        cost = setting.cost(count, forward=7, backward=7) if eps else setting.cost(count)
        steps.append(Step(f"curve/{eps:.6f}", partial(curve_point, setting, eps), cost))
    if setting.depth.masking_images:
        cost = setting.cost(setting.depth.masking_images, forward=350, backward=35)
        steps.append(Step("masking", partial(masking, setting), cost))
    return steps


def attacked(setting: Setting, name: str, folder: Path | None) -> Record:
    """An attack on every batch; finished batches are kept in the folder."""
    parts, indices = [], []
    run: dict[str, Any] = {"batch_size": setting.batch_size, "seed": setting.seed, "folder": folder}
    for batch in setting.attack_images.batches(setting.batch_size, device=setting.device):
        parts.append(evaluate(setting.model, batch.images, batch.labels, name, indices=batch.indices, **run))
        indices.append(batch.indices)
    found = attack_record(joined(parts), budget_of(name), setting.seed)
    return Record(found.values, {**found.tensors, "indices": torch.cat(indices)})


def joined(parts: list[AttackResult]) -> AttackResult:
    """The batches as one."""
    return AttackResult(*(Predictions.join([getattr(part, side) for part in parts]) for side in ("clean", "attacked")))


def attack_record(whole: AttackResult, eps: float | None, seed: int) -> Record:
    """Rates with intervals over images, and calibration under attack; success is not defined where no answer was right."""
    broken, correct = whole.broken, whole.clean.correct
    draws, right, images = attack_draws(broken, correct, seed), int(correct.sum()), len(correct)
    summary = AttackSummary(
        images=len(whole.clean),
        eps=eps,
        success_rate=share_estimate(whole.success_rate if right else math.nan, draws["success_rate"], right),
        robust_accuracy=share_estimate(float((correct & ~broken).double().mean()), draws["robust_accuracy"], images),
        confidence=mean_estimate(whole.attacked.confidences, seed),
        **estimates(whole.attacked, ["ece", "nll", "signed_error"], seed=seed),
    )
    return Record({"summary": vars(summary)}, {"broken": broken, "correct": correct})


def attack_draws(broken: Tensor, correct: Tensor, seed: int) -> dict[str, Tensor]:
    """The rates in every bootstrap draw; NaN where a draw has no right answer to break."""
    sums = resampled_sums(torch.stack([broken.double(), correct.double()], 1), seed)
    lost, right = sums.unbind(1)
    return {"success_rate": lost / right.where(right > 0, torch.nan), "robust_accuracy": (right - lost) / len(broken)}


def curve_point(setting: Setting, eps: float) -> Record:
    """What PGD leaves in a ball of this size."""
    batch = whole(setting.attack_images, setting.batch_size, setting.device)
    run: dict[str, Any] = {"batch_size": setting.batch_size, "seed": setting.seed, "indices": batch.indices}
    return Record({"point": vars(security_curve(setting.model, batch.images, batch.labels, CURVE, [eps], **run)[0])})


def masking(setting: Setting) -> Record:
    """Reasons not to trust what gradient attacks found."""
    few = choose(setting.images, setting.depth.masking_images, setting.seed)
    batch = whole(few, setting.batch_size, setting.device)
    run: dict[str, Any] = {"batch_size": setting.batch_size, "seed": setting.seed, "indices": batch.indices}
    lines = masking_signs(setting.model, batch.images, batch.labels, **run)
    return Record({"lines": [line for line in lines if line != NOT_TRIED]})


def summarise_attacks(setting: Setting, book: Workbook) -> dict[str, AttackSummary]:
    found = {}
    for name in attacks_of(setting):
        record = book.read(f"attacks/{name}")
        assert record is not None
        found[name] = AttackSummary(**record.values["summary"])
    return found
