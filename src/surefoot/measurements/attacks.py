"""When somebody means harm: attacks with calibration under attack, the security curve, transfer, and masked gradients."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..attacks._transfer import transfer
from ..attacks.attempts import GENERATOR, Attack
from ..attacks.auto_attack import AutoAttack
from ..attacks.evaluation import CurvePoint, evaluate, unchanged
from ..attacks.gradient_masking import masking_signs
from ..attacks.gradients import gives_gradients
from ..attacks.presets import budget_of, find_attack
from ..attacks.table import ATTACKS, WITHOUT_GRADIENT
from ..calibration.bootstrap import mean_estimate, share_estimate
from ..errors import SurefootError, require
from ..geometry.features import feature_statistics
from ..intervals import Estimate
from ..training.recipes import Recipe
from ..types import Batch, Logits
from .base import Condition, Measurement, Rows, Summary, Table
from .features import success_by_cosine
from .scores import attack_draws, broken, score
from .space import chunk_features, minimum_loss_centres

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .context import Context

CURVE = "pgd"
BLIND = ("square", "rays")  # what a model without gradients is attacked by: from its scores, and from its labels
ENSEMBLE = 5000  # passes of AutoAttack on an image that withstands, about
QUERIES = 200  # of each of them in an audit
NO_GRADIENT = (
    f"The model gives no gradient: it was attacked by Square, from its scores, and RayS, from its labels; {QUERIES} queries."
)
NO_CURVE = "The model gives no gradient: PGD at growing budgets was left out."


@dataclass(frozen=True)
class Attacked(Condition):
    """An attack on the images that are classified correctly, no longer than until they are broken."""

    attack: str
    eps: float | None = None  # another budget than its own
    queries: int | None = None  # another number than its own
    spares_wrong: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.attack if self.eps is None else f"{self.attack}/{255 * self.eps:g}"

    @property
    def passes(self) -> float:
        """A step is a pass forwards and one back, which costs two; when an image is broken and leaves is not known."""
        method: Any = ATTACKS.load(self.attack)
        if self.queries is not None or isinstance(method, AutoAttack):
            return self.queries or ENSEMBLE
        steps = inspect.signature(method).parameters
        known = [steps[name].default for name in ("steps", "iterations", "queries") if name in steps]
        return 1 + 3 * float(known[0] if known else 1)

    def method(self) -> str | Attack:
        if self.queries is not None:
            return find_attack(self.attack, early_stop=True, queries=self.queries)
        if self.eps is None:
            return self.attack
        return unchanged if self.eps == 0 else find_attack(self.attack, early_stop=True, eps=self.eps)

    def logits(self, context: Context, batch: Batch) -> Logits:
        run: dict[str, Any] = {"batch_size": context.batch_size, "seed": context.seed, "indices": batch.indices}
        folder = None if context.work is None else context.work / "attacks"
        return evaluate(context.model, batch.images, batch.labels, self.method(), folder=folder, **run).attacked.logits


def follows_gradients(context: Context) -> bool:
    """Whether attacks that follow the gradient can be run on the model: asked of one picture, once."""
    return context.once(
        "gives gradients",
        lambda: gives_gradients(context.model, next(iter(context.images.batches(1, device=context.device))).images),
    )


@dataclass(frozen=True, kw_only=True)
class AttackSummary:
    """How an attack fared, and how sure the model was of the predictions it was led to.

    `eps` is how far a pixel may change; None for an attack of one's own that does not say.
    """

    images: int
    eps: float | None
    success_rate: Estimate
    robust_accuracy: Estimate
    confidence: Estimate
    ece: Estimate
    nll: Estimate
    signed_error: Estimate


def summarise_attack(clean: Rows, attacked: Rows, eps: float | None, context: Context) -> AttackSummary:
    """Rates with intervals over images, and calibration under attack; success is not defined where nothing was right."""
    lost, right, images = broken(clean, attacked), int(clean["correct"].sum()), len(clean["correct"])
    draws = attack_draws(clean, attacked, context.seed, context.intervals)
    (scored,) = score([attacked], ("ece", "nll", "signed_error"), context)
    return AttackSummary(
        images=images,
        eps=eps,
        success_rate=share_estimate(int(lost.sum()) / right if right else math.nan, draws["success_rate"], right),
        robust_accuracy=share_estimate((right - int(lost.sum())) / images, draws["robust_accuracy"], images),
        confidence=mean_estimate(attacked["confidence"], context.seed, context.intervals, ids=attacked["index"]),
        **{name: scored.estimate(name) for name in ("ece", "nll", "signed_error")},
    )


class OfAttacks(Measurement):
    """What looks at images under attacks by name; a model without gradients is put under those that need none.

    `generator` is the version of the attacks' draws: results of an earlier one can be shown but not computed again.
    """

    def __init__(self, names: Sequence[str], max_images: int | None, generator: int) -> None:
        check_generator(generator)
        for name in names:
            ATTACKS.load(name)
        self.names, self.max_images = tuple(dict.fromkeys(names)), max_images

    def conditions(self, context: Context) -> Sequence[Attacked]:
        if follows_gradients(context):
            return [Attacked(name) for name in self.names]
        asked = [name for name in self.names if name in WITHOUT_GRADIENT or name not in ATTACKS.ours]
        return [*map(Attacked, asked), *(Attacked(name, queries=QUERIES) for name in BLIND if name not in asked)]

    def notes(self, context: Context) -> tuple[str, ...]:
        return () if follows_gradients(context) else (NO_GRADIENT,)


class Attacks(OfAttacks):
    """Success among images that were right, and robust accuracy, of attacks by name (representation-space Table 2)."""

    part = "attacks"

    def __init__(
        self,
        names: Sequence[str] = ("fgsm", "pgd-weak"),
        max_images: int | None = 1000,
        generator: int = GENERATOR,
    ) -> None:
        super().__init__(names, max_images, generator)

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        clean = table.clean(self.max_images)
        rows = {each.name: table.rows(each.name, self.max_images) for each in self.conditions(context)}
        values = {name: summarise_attack(clean, under, budget_of(name), context) for name, under in rows.items()}
        return Summary(values, notes=self.notes(context))

    def numbers(self, summary: Summary) -> dict[str, float]:
        out: dict[str, float] = {}
        for name, attacked in summary.values.items():
            success = 0.0 if math.isnan(attacked.success_rate) else float(attacked.success_rate)
            out |= {f"success.{name}": success, f"robust.{name}": float(attacked.robust_accuracy)}
        return out


def check_generator(generator: int) -> None:
    require(generator == GENERATOR, "generator", f"{GENERATOR}, the attacks' draws of this version", generator)


class SecurityCurve(Measurement):
    """What PGD leaves in balls of growing size; budgets in units of 1/255."""

    part = "security_curve"

    def __init__(self, budgets: Sequence[float] = (0, 0.5, 1, 2, 4, 8), max_images: int | None = 1000) -> None:
        require(len(budgets) > 0 and min(budgets) >= 0, "budgets", "at least one, none below 0", budgets)
        self.budgets, self.max_images = budgets, max_images

    def conditions(self, context: Context) -> Sequence[Condition]:
        return [Attacked(CURVE, budget / 255) for budget in self.budgets] if follows_gradients(context) else []

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        if not follows_gradients(context):
            return Summary((), notes=(NO_CURVE,))
        clean = table.clean(self.max_images)
        right = int(clean["correct"].sum())
        points = []
        for budget in self.budgets:
            rows = table.rows(Attacked(CURVE, budget / 255).name, self.max_images)
            (scored,) = score([rows], ("accuracy", "ece", "signed_error"), context)
            success = int(broken(clean, rows).sum()) / right if right else 0.0
            accuracy, ece, signed = (scored.estimate(name) for name in ("accuracy", "ece", "signed_error"))
            confidence = float(rows["confidence"].mean(dtype=float))
            count = len(clean["index"])
            points.append(
                CurvePoint(CURVE, budget / 255 if budget else 0, count, accuracy, success, confidence, ece, signed, 0)
            )
        return Summary(tuple({name: value for name, value in vars(point).items() if name != "queries"} for point in points))

    def numbers(self, summary: Summary) -> dict[str, float]:
        points = zip(self.budgets, summary.values, strict=False)  # none of a model without gradients
        return {f"accuracy.{budget:g}": float(point["accuracy"]) for budget, point in points}


class Masking(Measurement):
    """Reasons not to trust what gradient attacks found."""

    part = "masking"

    def __init__(self, max_images: int | None = 100) -> None:
        self.max_images = max_images

    def pictures_of(self, context: Context) -> Tensor:
        return context.rows(self.max_images)

    def passes_of_run(self, context: Context) -> float:
        """PGD of 20 steps and of one, 20 draws of noise, and about 100 queries of Square until an image is broken."""
        return (3 * 21 + 20 + 100) * float(context.clean.correct.float().mean())

    def run(self, context: Context) -> Any:
        batch = context.some(self.max_images)
        run: dict[str, Any] = {"batch_size": context.batch_size, "seed": context.seed, "indices": batch.indices}
        return masking_signs(context.model, batch.images, batch.labels, **run)

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        return Summary(tuple(result))

    def numbers(self, summary: Summary) -> dict[str, float]:
        return {"signs": float(len(summary.values))}


@dataclass(frozen=True)
class Transferred(Condition):
    """What an attack made of the images on another model, whether that had them right or not; `sections` are of its recipe."""

    surrogate: str
    attack: str
    sections: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"transfer/{self.surrogate}/{self.attack}"

    def check(self, context: Context) -> None:
        if context.recipe is None or context.trainer is None:
            raise SurefootError("transfer needs the folder of the study's runs.")

    def model(self, context: Context) -> nn.Module:
        """The surrogate, trained or read once for all chunks and attacks."""
        return context.once(("surrogate", self.surrogate), lambda: self.trained(context))

    def trained(self, context: Context) -> nn.Module:
        self.check(context)
        recipe, trainer = context.recipe, context.trainer
        assert recipe is not None
        assert trainer is not None
        own = {"data": recipe.data, "model": recipe.model, "objective": recipe.objective}
        rest = {"training": recipe.training, "augmentation": recipe.augmentation, "seed": recipe.seed}
        other = Recipe.check({**own, **rest, **self.sections})
        other = replace(other, data={**(other.data or {}), "download": (recipe.data or {}).get("download", True)})
        return trainer.run(other).predictor.to(context.device)

    def logits(self, context: Context, batch: Batch) -> Logits:
        models, target = {self.surrogate: self.model(context)}, {"target": context.model}
        run: dict[str, Any] = {"batch_size": context.batch_size, "indices": batch.indices}
        matrix = transfer(models, target, batch.images, batch.labels, [self.attack], **run)
        return matrix[self.surrogate, "target", self.attack].attacked.logits


class Transfer(Measurement):
    """Success of attacks made on surrogates, each the same recipe with other sections (representation-space Table 4).

    A surrogate that is not trained yet is trained here, in its own folder, where its own cell finds it. Images go by in chunks,
    so that there may be any number. `generator` is the version of the attacks' draws.
    """

    def __init__(
        self,
        surrogates: Mapping[str, Mapping[str, Any]],
        names: Sequence[str] = ("fgsm", "pgd-strong"),
        max_images: int | None = 1000,
        generator: int = GENERATOR,
    ) -> None:
        check_generator(generator)
        for name in names:
            ATTACKS.load(name)
        self.surrogates, self.names, self.max_images = surrogates, names, max_images

    def conditions(self, context: Context) -> Sequence[Transferred]:
        return [Transferred(label, name, sections) for label, sections in self.surrogates.items() for name in self.names]

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        clean = table.clean(self.max_images)
        right, values = int(clean["correct"].sum()), dict[str, float]()
        for each in self.conditions(context):
            lost = int(broken(clean, table.rows(each.name, self.max_images)).sum())
            values[f"success.{each.surrogate}.{each.attack}"] = lost / right if right else 0.0
        return Summary(values)


class CosineAttacks(OfAttacks):
    """Attack success where the cosine to the centre is below and above its median, and Pearson r of the two (Fig. 3).

    The figure has the histogram of the cosine, and the success of every attack in each of its bins (Fig. 3, 14 to 24).
    """

    adds = ("label_cosine",)

    def __init__(
        self,
        names: Sequence[str] = ("fgsm", "pgd-weak", "autoattack-weak"),
        max_images: int | None = 1000,
        generator: int = GENERATOR,
    ) -> None:
        super().__init__(names, max_images, generator)

    def columns(self, context: Context, batch: Batch) -> dict[str, Any]:
        features = chunk_features(context, batch).features
        return {"label_cosine": feature_statistics(features, minimum_loss_centres(context), batch.labels).cosine}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        clean = table.clean(self.max_images)
        right, out = clean["correct"], dict[str, float]()
        angles = clean["label_cosine"][right].astype(float)
        low = angles <= np.sort(angles)[(len(angles) - 1) // 2] if len(angles) else angles.astype(bool)
        attacked = {each.name: table.rows(each.name, self.max_images) for each in self.conditions(context)}
        for name, under in attacked.items():
            lost = broken(clean, under)[right].astype(float)
            halves = {"low": lost[low], "high": lost[~low]}
            out |= {f"success.{name}.{half}": float(values.mean()) for half, values in halves.items() if len(values)}
            with np.errstate(invalid="ignore", divide="ignore"):
                out[f"pearson.{name}"] = float(np.corrcoef(angles, lost)[0, 1])
        return Summary(out, {"cosine_attacks": success_by_cosine(clean, attacked, "label_cosine")}, self.notes(context))
