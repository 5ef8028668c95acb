"""`sf.monitor`: a run with its audit on the one hand, pictures or predictions without labels on the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.dataset import Dataset
from ..data.subsets import choose
from ..errors import SurefootError, require
from ..files import read_arrays, read_json, read_tensors
from ..intervals import Estimate
from ..measurements.context import Context
from ..measurements.foreign import AUDITED, KNOWN, Seen, joined, seen_of
from ..measurements.space import space_head
from ..models.classifier import pick_device
from ..ood.detectors import NAMES, OF_LOGITS, Detector, fit_known, head_in
from ..ood.foreign import ForeignSet, opened_set
from ..ood.known import load_known
from ..storage import SUFFIXES, load_unlabelled
from ..training.runs import Run, load_run
from .arguments import AUDIT, check_audited
from .migration import migrate
from .monitoring import (
    FOREIGN,
    Alarm,
    Reference,
    class_drift,
    confidence_drift,
    estimates,
    feature_drift,
    left_out_errors,
    raised,
    share,
)
from .result import DATA


@dataclass(frozen=True)
class Monitored:
    """What can be said of pictures without labels; `accuracy` is by the estimate of the smallest mean error, `by`.

    `errors` are the mean errors of the estimates on families of the audit's conditions. What is not known is None.
    """

    images: int
    audited_images: int
    accuracy: Estimate
    by: str
    audited_accuracy: float
    estimates: dict[str, Estimate]
    errors: dict[str, dict[str, float]]
    answered: Estimate | None
    audited_answered: float | None
    foreign: Estimate | None
    foreign_score: str | None
    confidence: float
    audited_confidence: float
    drift: dict[str, dict[str, float]]
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = field(default=())

    @property
    def alarmed(self) -> bool:
        return any(alarm.on for alarm in self.alarms)


def monitor(
    run: str | Path,
    data: str | Path,
    *,
    audit: str | Path | None = None,
    alarm: Sequence[str] = (),
    max_images: int | None = None,
    batch_size: int = 256,
    device: str = "auto",
    seed: int = 0,
    allow_code: bool = False,
) -> Monitored:
    """Watch a run without labels: `data` is a folder of pictures, a data set, a `.npz`, or a file of predictions.

    `audit` is the folder of its audit, the run's own if not given. A rule of `alarm`, such as "accuracy < 0.8", that holds is
    an alarm. Nothing is remembered.

    >>> import surefoot as sf
    >>> data = sf.load_data("digits", fraction=0.2, max_images=60)
    >>> model = sf.load_model("tiny-resnet", data=data, seed=0)
    >>> run = sf.fit(model, "cross-entropy", data, epochs=1, output="runs/first", progress=False)
    >>> audit = sf.audit(run.predictor, data, depth="clean", output="runs/first", progress=False)
    >>> watched = sf.monitor("runs/first", "digits", alarm=["accuracy < 0.99"], max_images=50)
    >>> watched.alarms[0].on
    True
    """
    require(max_images is None or max_images >= 1, "max_images", "at least 1", max_images)
    folder = Path(run if audit is None else audit)
    check_audited(folder)
    audited = migrate(folder / AUDIT, read_json("audit", folder / AUDIT))
    reference = Reference.of(folder, audited)
    kept = read_tensors("audited features", folder / DATA / AUDITED) if (folder / DATA / AUDITED).is_file() else {}
    seen, head = read_seen(run, data, max_images, batch_size, device, allow_code, features="features" in kept)
    if seen.logits.shape[1] != reference.classes:
        raise SurefootError(f"The new predictions have {seen.logits.shape[1]} classes, and the audit {reference.classes}.")
    if len(seen.logits) < 2:
        raise SurefootError(f"'{data}' has too few pictures to compare: {len(seen.logits)}.")
    confidences = seen.logits.double().softmax(1).amax(1).numpy()
    found = estimates(reference, confidences, seed)
    bound = threshold_of(audited)
    drift = {"confidence": confidence_drift(reference, confidences)}
    drift["classes"] = class_drift(reference, seen.logits.argmax(1).numpy())
    notes = []
    if seen.features is not None and "features" in kept:
        drift["features"] = feature_drift(kept["features"].double().numpy(), seen.features.double().numpy())
    else:
        notes.append("features are not known, so their drift was not tested")
    if bound is None:
        notes.append("no threshold of confidence was promised in the audit, so nothing is answered alone")
    if "fit" not in found:
        notes.append("the audit has too few corruptions for a line through them")
    looks = looking_foreign(folder, audited, seen, kept, head)
    answered = None if bound is None else share(int((confidences >= bound).sum()), len(confidences))
    errors = left_out_errors(reference)
    by = min(found, key=lambda name: mean_error(errors.get(name)))
    accuracy = found[by]
    clean = reference.clean
    numbers: dict[str, float | None] = {
        "accuracy": accuracy,
        "answered": answered,
        "foreign": None if looks is None else looks[0],
        "confidence": float(confidences.mean()),
        **{name: float(value) for name, value in found.items()},
        **{f"{name}_p": test["p"] for name, test in drift.items()},
    }
    return Monitored(
        images=len(confidences),
        audited_images=len(clean.correct),
        accuracy=accuracy,
        by=by,
        audited_accuracy=clean.accuracy,
        estimates=found,
        errors=errors,
        answered=answered,
        audited_answered=None if bound is None else float((clean.confidences >= bound).mean()),
        foreign=None if looks is None else looks[0],
        foreign_score=None if looks is None else looks[1],
        confidence=float(confidences.mean()),
        audited_confidence=float(clean.confidences.mean()),
        drift=drift,
        notes=tuple(notes),
        alarms=tuple(raised(alarm, numbers)),
    )


def mean_error(errors: Mapping[str, float] | None) -> float:
    """Over the families; infinite where none was measured."""
    return float(np.mean(list(errors.values()))) if errors else math.inf


def threshold_of(audit: dict[str, Any]) -> float | None:
    """The page's threshold: of the smallest risk that was promised."""
    for row in audit.get("thresholds") or ():
        if row["thresholds"] and max(row["thresholds"]) <= 1:
            return float(np.mean(row["thresholds"]))
    return None


def read_seen(
    run: str | Path, data: str | Path, max_images: int | None, batch_size: int, device: str, allow_code: bool, *, features: bool
) -> tuple[Seen, Any]:
    """What the model says of the pictures, and its last layer; of a file of predictions, what it holds."""
    path = Path(data)
    if path.suffix in SUFFIXES and path.is_file() and not holds_images(path):
        given = load_unlabelled(path)
        given = given if max_images is None else given[:max_images]
        logits = given.logits.float()
        return Seen(logits, logits, None if given.features is None else given.features.float()), None
    loaded = load_run(run, allow_code=allow_code)
    pictures = pictures_of(loaded, str(data))
    where = pick_device(device)
    context = watched(loaded, pictures, where, batch_size)
    parts = [
        seen_of(context, batch.images, features)
        for batch in pictures.batches(max_images, batch_size, loaded.model.channels, where)
    ]
    return joined(parts), head_in(space_head(context)) if features else None


def holds_images(path: Path) -> bool:
    return path.suffix == ".npz" and "images" in read_arrays(path)


def pictures_of(run: Run, data: str) -> ForeignSet:
    """Pictures as the run's model wants them."""
    height, width = run.model.image_size
    return opened_set("new", data, (height, width), run.recipe.data or {})


def watched(run: Run, pictures: ForeignSet, device: torch.device, batch_size: int) -> Context:
    """What looks at pictures as an audit does."""
    height, width = run.model.image_size
    names = run.class_names or tuple(map(str, range(run.model.num_classes)))
    split = choose(pictures.split, None)
    data = Dataset(split, split, split, split, names, (height, width), run.model.channels)
    return Context(run.predictor.to(device), data, split, device, batch_size=batch_size)


def looking_foreign(
    folder: Path, audit: dict[str, Any], seen: Seen, kept: dict[str, torch.Tensor], head: Any
) -> tuple[Estimate, str] | None:
    """The share of pictures more foreign than 95 % of the audited ones, by the score that was best in the audit."""
    if "logits" not in kept:
        return None
    place = folder / DATA / KNOWN
    known = load_known(place) if place.is_file() else None
    able = seen.features is not None and known is not None and head is not None
    name = best_score(audit, able)
    detector: Detector = fit_known(name, known if able else None, head if able else None)
    ours = Seen(kept["logits"].float(), inner_logits(kept, head, able), kept["features"].float())
    bound = np.quantile(ours.scored(detector), FOREIGN)
    scores = seen.scored(detector)
    return share(int((scores > bound).sum()), len(scores)), name


def inner_logits(kept: dict[str, torch.Tensor], head: Any, able: bool) -> torch.Tensor | None:
    """Logits of the last layer, from the features that were kept."""
    return torch.nn.functional.linear(kept["features"].float(), *head) if able else None


def best_score(audit: dict[str, Any], features: bool) -> str:
    """The score of the largest mean AUROC over the foreign sets of the audit, among those that can be computed here."""
    sets = (audit.get("foreign") or {}).get("sets") or {}
    able = NAMES if features else tuple(OF_LOGITS)
    names = [str(name) for found in sets.values() for name in found["scores"] if name in able]
    if not names:
        return "energy"

    def mean(name: str) -> float:
        return float(np.mean([found["scores"][name]["auroc"]["value"] for found in sets.values()]))

    return max(dict.fromkeys(names), key=mean)
