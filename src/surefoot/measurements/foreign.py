"""What the model makes of pictures that are none of its classes: how well each score tells them, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..attacks.cache import fingerprint
from ..calibration.bootstrap import mean_estimate, resampled_sums, share_estimate
from ..calibration.disjoint import uniform_by_image
from ..data.subsets import choose
from ..files import write_tensors
from ..geometry.features import observed_features
from ..intervals import Estimate
from ..models.last_layer import NoHead
from ..ood._separation import Ledger, Separation, best_of, least_foreign, separation
from ..ood.arguments import MADE
from ..ood.detectors import NAMES, OF_LOGITS, Detector, fit_known, head_in
from ..ood.foreign import ForeignSet, foreign_sets
from ..ood.known import BANK, Known, load_known
from ..types import Features, Logits, Predictions
from .base import Whole
from .members import several_in, uncertainties_of
from .pictures import picture
from .space import space_head
from .summaries import evenly
from .thresholds import NONE, RISKS, thresholds

if TYPE_CHECKING:
    from .context import Context

SHOWN = 8  # pictures of each set
ANSWERED = 0.95  # of the known pictures, where no threshold can be promised
MIXTURE = 0.1  # foreign pictures of all, at which the choice of a score is judged
KNOWN, AUDITED = "known.safetensors", "audited.safetensors"  # in the data of the audit
KEPT = 1000  # audited features


@dataclass(frozen=True)
class Seen:
    """What the model said of pictures: its own logits, and features with the logits of the last linear layer."""

    logits: Logits
    inner: Logits | None = None
    features: Features | None = None
    members: Mapping[str, Tensor] = field(default_factory=dict)  # uncertainties of an ensemble

    def scored(self, detector: Detector) -> np.ndarray[Any, Any]:
        own = detector.name in OF_LOGITS
        scores = detector.score(logits=self.logits if own else self.inner, features=self.features)
        values: np.ndarray[Any, Any] = scores.double().numpy()
        return values


class Foreign(Whole):
    """Every score of `sf.ood` on every foreign set of the audit, or on those that are made here where none was given.

    Known features come from at most `train_images` of the training split, in one pass; without a training split each half of
    the audited pictures serves the other. `max_images` are the known pictures, and those of each foreign set.
    """

    part = "foreign"

    def __init__(self, max_images: int | None = 1000, train_images: int | None = 10_000, bank: int = BANK) -> None:
        self.max_images, self.train_images, self.bank = max_images, train_images, bank

    def outputs_of(self, context: Context) -> Tensor:
        return context.rows(self.max_images)

    def passes_of_run(self, context: Context) -> float:
        """Every set, and the training pictures."""
        known, train = len(context.rows(self.max_images)), len(context.data.train)
        return len(context.foreign or MADE) + min(self.train_images or train, train) / known

    def take(self, images: int) -> None:
        before = images if self.max_images is None else self.max_images
        self.max_images = images
        if self.train_images is not None:
            self.train_images = max(1, self.train_images * images // before)

    def run(self, context: Context) -> Any:
        sets = context.foreign or foreign_sets((), context.data, context.split, context.seed)
        known, notes = self.known(context)
        several = several_in(context.model)
        if several is not None:
            parts = [
                uncertainties_of(several, batch.images, context.batch_size)
                for batch in context.subset(self.max_images).batches(context.batch_size, device=context.device)
            ]
            known = replace(known, members={name: torch.cat([part[name] for part in parts]) for name in parts[0]})
        if context.work is not None and known.features is not None:  # what a monitor compares others with
            few = evenly(len(known.features), KEPT)
            write_tensors(context.work.parent / AUDITED, {"features": known.features[few], "logits": known.logits[few]})
        labels = context.clean.labels[context.rows(self.max_images)].cpu()
        names: tuple[str, ...] = NAMES if known.features is not None else tuple(OF_LOGITS)
        detectors, folds, fitted_on = self.detectors(context, names, known, labels)
        ours = self.scores(detectors, folds, known)
        answer = answering(context, context.rows(self.max_images))
        wrong = (known.logits.argmax(1) != labels).numpy()
        results, shown = {}, {}
        for name, each in sets.items():
            seen, pictures = self.look(context, each, known.features is not None)
            own = fold_of(len(seen.logits), f"foreign {name}", context.seed)
            theirs = self.scores(detectors, own, seen)
            results[name] = judged(ours, theirs, wrong, answer, seen, context) | {"near": each.near, "images": len(seen.logits)}
            shown[name] = pictures
        values = {
            "images": len(labels),
            "fitted_on": fitted_on,
            "answered": answer.share,
            "wanted_risk": answer.risk,
            "sets": results,
            **{kind: mean_over(results, near) for kind, near in (("near", True), ("far", False)) if mean_over(results, near)},
        }
        row = {f"auroc.{name}": float(found["scores"][found["best"]]["auroc"]) for name, found in results.items()}
        return {"values": values, "figures": {"foreign": shown}, "notes": notes, "row": row}

    def known(self, context: Context) -> tuple[Seen, list[str]]:
        """The known pictures; without features where the model does not end in a linear layer."""
        rows = context.rows(self.max_images)
        logits = context.clean.logits[rows].float().cpu()
        try:
            outputs, _ = context.outputs(self.max_images)
        except NoHead as error:
            return Seen(logits), [f"features are not available ({error}), so only scores of logits were measured"]
        return Seen(logits, outputs.logits.float().cpu(), outputs.features.float().cpu()), []

    def detectors(
        self, context: Context, names: tuple[str, ...], known: Seen, labels: Tensor
    ) -> tuple[list[dict[str, Detector]], Tensor, str]:
        """One detector of each name, or two where each half of the pictures serves the other; and the fold of each picture."""
        everyone = torch.zeros(len(labels), dtype=torch.long)
        if known.features is None or known.inner is None:
            return [{name: fit_known(name, None, None) for name in names}], everyone, "nothing: scores of logits"
        head = head_in(space_head(context))
        if len(context.data.train) >= 2 * context.data.num_classes:
            statistics = self.statistics(context, known.features.shape[1])
            detectors = {name: fit_known(name, statistics, head) for name in names}
            return [detectors], everyone, f"{statistics.images} pictures of the train split"
        folds = fold_of(len(labels), "known", context.seed)
        pairs = []
        for fold in (0, 1):
            other = (folds != fold).nonzero().flatten()
            half = Known.of(known.inner[other], known.features[other], labels[other], self.bank)
            pairs.append({name: fit_known(name, half, head) for name in names})
        return pairs, folds, f"two-fold cross-fitting on the {context.split} split"

    def statistics(self, context: Context, dimensions: int) -> Known:
        """Of the training features, in one pass; kept in the folder of the audit for the next one of the same weights."""
        train = choose(context.data.train, self.train_images, context.seed)
        place = None if context.work is None else context.work.parent / KNOWN
        about = {"weights": fingerprint(context.model), "data": known_data(context), "images": len(train), "bank": self.bank}
        if place is not None and place.is_file() and (kept := load_known(place, about)) is not None:
            return kept
        known = Known(context.data.num_classes, dimensions, self.bank)
        for batch in train.batches(context.batch_size, device=context.device):
            outputs = observed_features(context.linear, batch.images, context.batch_size)
            known.add(outputs.logits.float(), outputs.features.float(), batch.labels)
        if place is not None:
            known.save(place, about)
        return known

    def scores(self, detectors: list[dict[str, Detector]], folds: Tensor, seen: Seen) -> dict[str, np.ndarray[Any, Any]]:
        """Each picture by the detector that did not see its half."""
        found = {name: seen.scored(detector) for name, detector in detectors[0].items()}
        for more in detectors[1:]:
            found = {name: np.where(folds.numpy() == 0, found[name], seen.scored(more[name])) for name in found}
        return found | {name.replace("_", "-"): values.double().numpy() for name, values in seen.members.items()}

    def look(self, context: Context, foreign: ForeignSet, features: bool) -> tuple[Seen, list[dict[str, Any]]]:
        """What the model says of a set, and the pictures that it was surest of."""
        parts, best = list[Seen](), list[tuple[float, int, int, Tensor]]()
        for batch in foreign.batches(self.max_images, context.batch_size, context.data.channels, context.device):
            part = seen_of(context, batch.images, features)
            parts.append(part)
            sure, answers = part.logits.softmax(1).max(1)
            for at in sure.argsort(descending=True, stable=True)[:SHOWN].tolist():
                best.append((float(sure[at]), int(batch.indices[at]), int(answers[at]), batch.images[at].cpu()))
            best = sorted(best, key=lambda each: (-each[0], each[1]))[:SHOWN]
        pictures = [
            {"picture": picture(image), "confidence": round(sure, 4), "answer": answer, "index": index}
            for sure, index, answer, image in best
        ]
        return joined(parts), pictures


def seen_of(context: Context, images: Tensor, features: bool) -> Seen:
    """One pass, or two where the model is more than its linear part, as a calibrated copy is."""
    several = several_in(context.model)
    members = {} if several is None else uncertainties_of(several, images, context.batch_size)
    if not features:
        return Seen(context.forward(images, "foreign"), members=members)
    outputs = observed_features(context.linear, images, context.batch_size)
    inner = outputs.logits.float().cpu()
    logits = inner if context.linear is context.model else context.forward(images, "foreign")
    return Seen(logits, inner, outputs.features.float().cpu(), members)


def joined(parts: list[Seen]) -> Seen:
    inner = [part.inner for part in parts if part.inner is not None]
    features = [part.features for part in parts if part.features is not None]
    logits = torch.cat([part.logits for part in parts])
    members = {name: torch.cat([part.members[name] for part in parts]) for name in parts[0].members}
    return Seen(logits, torch.cat(inner), torch.cat(features), members) if features else Seen(logits, members=members)


def fold_of(count: int, purpose: str, seed: int) -> Tensor:
    """The fold, 0 or 1, of each picture."""
    folds = torch.empty(count, dtype=torch.long)
    folds[torch.from_numpy(uniform_by_image(count, seed, purpose).argsort(kind="stable"))] = torch.arange(count) % 2
    return folds


def known_data(context: Context) -> str:
    kept = {
        key: value for key, value in context.data.source.items() if key in ("name", "root", "seed", "fraction", "image_size")
    }
    return fingerprint(kept, len(context.data.train))


# How well, and at which price.


@dataclass(frozen=True)
class Answering:
    """The page's threshold: from which confidence the model answers, and the share of known pictures that it answers."""

    bound: float
    share: float
    risk: float | None


def answering(context: Context, rows: Tensor) -> Answering:
    """The threshold of the smallest risk that can be promised; without any, the one that 95 % of the known pictures pass."""
    confidences = context.clean.confidences[rows].double().numpy()
    promised = thresholds(context.clean, RISKS, context.seed, context.held_out) if len(context.clean) > 1 else ()
    for each in promised:
        if all(bound < NONE for bound in each.thresholds):
            bound = float(np.mean(each.thresholds))
            return Answering(bound, float((confidences >= bound).mean()), each.wanted_risk)
    bound = float(np.quantile(confidences, 1 - ANSWERED, method="lower"))
    return Answering(bound, float((confidences >= bound).mean()), None)


def judged(
    ours: Mapping[str, np.ndarray[Any, Any]],
    theirs: Mapping[str, np.ndarray[Any, Any]],
    wrong: np.ndarray[Any, Any],
    answer: Answering,
    seen: Seen,
    context: Context,
) -> dict[str, Any]:
    """Each score on one set: separation, difference to the best, and the joint risk where as many known ones are answered."""
    options: dict[str, Any] = {"seed": context.seed, "intervals": context.intervals}
    found = {name: separation(ours[name], theirs[name], **options) for name in ours}
    best = best_of(found)
    risks = {name: Ledger(wrong, *least_foreign(ours[name], theirs[name], answer.share)).risks(**options) for name in ours}
    cheapest = min(risks, key=lambda name: float(np.nan_to_num(float(risks[name][f"{MIXTURE:g}"]), nan=np.inf)))
    confident = Predictions(seen.logits, torch.zeros(len(seen.logits), dtype=torch.long)).confidences.double().numpy()
    return {
        "best": best,
        "lowest_joint_risk": cheapest,
        "foreign_answered": share_of(confident >= answer.bound, context),
        "confidence": mean_estimate(confident, context.seed, context.intervals),
        "scores": {name: row_of(each, found[best], risks[name]) for name, each in found.items()},
        "mixtures": {name: risks[name] for name in dict.fromkeys(("msp", cheapest))},
    }


def row_of(found: Separation, best: Separation, risks: Mapping[str, Estimate]) -> dict[str, Estimate]:
    numbers = {name: getattr(found, name) for name in ("auroc", "aupr_foreign", "aupr_known", "fpr95")}
    return {**numbers, "auroc_difference": found.minus(best), "joint_risk": risks[f"{MIXTURE:g}"]}


def share_of(values: np.ndarray[Any, Any], context: Context) -> Estimate:
    column = values.astype(np.float64)[:, None]
    drawn = resampled_sums(column, context.seed, context.intervals)[:, 0] / len(column)
    return share_estimate(float(column.mean()), drawn, len(column))


def mean_over(results: Mapping[str, Any], near: bool) -> dict[str, dict[str, float]]:
    """Mean AUROC of each score over the near or the far sets."""
    chosen = [each["scores"] for each in results.values() if each["near"] == near]
    names = chosen[0] if chosen else ()
    return {name: {"auroc": float(np.mean([float(each[name]["auroc"]) for each in chosen]))} for name in names}
