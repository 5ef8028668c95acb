"""The measurements of an audit, in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor, nn

from ..attacks.evaluation import evaluate
from ..attacks.results import AttackResult
from ..calibration.bins import reliability
from ..calibration.bootstrap import estimate, mean_estimate, resampled_sums
from ..calibration.cross_fitting import divided
from ..calibration.repairs import Calibrated
from ..calibration.scoring import estimates, scores
from ..corruptions.engine import corrupt
from ..data.dataset import Dataset, Split
from ..data.preprocessing import TINY
from ..data.settings import settings_of
from ..errors import SurefootError
from ..geometry.logit_margins import logit_margins
from ..models.prediction import pick_device, predict, transformed
from ..models.preflight import Finding, preflight
from ..seeds import generator, global_seed
from ..types import Batch, Predictions
from .result import AttackSummary, Audit, CorruptionCell, Corruptions, Geometry
from .subjects import source_of, subject
from .temperatures import CROSS_FIT, check_source, choose_temperatures, scaled

SEVERITIES = (1, 2, 3, 4, 5)
CORRUPTIONS = ("gaussian_noise", "gaussian_blur", "contrast")
ATTACKS = ("fgsm",)  # presets that an audit runs
SAMPLE = 256  # images that preflight looks at
Tick = Callable[[], None]


def audit(
    model: nn.Module,
    data: Dataset,
    *,
    split: str = "test",
    name: str = "model",
    batch_size: int = 256,
    seed: int = 0,
    calibrate_on: str | Predictions = CROSS_FIT,
    allow_leakage: bool = False,
    device: str = "auto",
    output: str | Path | None = None,
    progress: bool = True,
) -> Audit:
    """Measure accuracy, calibration, corruptions, FGSM and margins of a model that takes pixels in [0, 1].

    `calibrate_on` says where the temperature comes from: "cross-fit" for a model whose training data are not known,
    "calibration" (or another split, never train) for one that has not seen it, or predictions on a set of your own.
    Writes `audit.json` and `audit-data/` into `output` if one is given.
    """
    check_source(calibrate_on)
    chosen, place = data.split(split), pick_device(device)
    if len(chosen) == 0:
        raise SurefootError(f"The {split} split has no images.")
    model = model.to(place)
    findings = check_first(model, chosen, data, place)
    bar = Progress(console=Console(stderr=True), disable=not progress)
    task = bar.add_task(f"auditing {name}", total=1 + len(CORRUPTIONS) * len(SEVERITIES) + len(ATTACKS))
    with bar, global_seed(seed, "audit"):  # a randomised predictor draws from torch's own generator
        clean = predict(model, chosen.batches(batch_size), place)
        refuse_seen(model, clean, data, allow_leakage)
        bar.advance(task)

        def answers_on(name: str) -> Predictions:
            return predict(model, data.split(name).batches(batch_size), place)

        source = choose_temperatures(clean, split, calibrate_on, seed, answers_on)
        temperatures = None if source is None else source.temperatures
        worse = corruptions(model, chosen, batch_size, seed, place, temperatures, lambda: bar.advance(task))
        attacked = attacks(model, chosen, batch_size, seed, place, lambda: bar.advance(task))
    result = Audit(
        subject=subject(name, data.source, split, len(chosen), seed, notes=list(data.notes), classes=list(data.class_names)),
        calibration=scores(clean, seed=seed),
        temperature=None if source is None else scaled(clean, source, seed, worse),
        corruptions=worse,
        attacks=attacked,
        preflight=findings,
        geometry=Geometry(mean_estimate(logit_margins(clean.logits, clean.labels), seed)),
        reliability=reliability(clean),
        predictions=clean,
    )
    if output is not None:
        result.save(output)
    return result


def check_first(model: nn.Module, split: Split, data: Dataset, device: torch.device) -> tuple[Finding, ...]:
    """Preflight on a sample; a wrong number of classes ends the audit, since no score would mean anything."""
    sample = next(split.batches(SAMPLE, shuffle=generator(0, "preflight"), device=device))
    source = getattr(model, "source", None)
    native = settings_of(source["name"], source["pretrained"]).image_size if source and min(data.image_size) > TINY else None
    found = preflight(model, sample.images, sample.labels, num_classes=data.num_classes, native_size=native)
    wrong = next((finding for finding in found if finding.name == "class-count"), None)
    if wrong:
        raise SurefootError(f"{wrong.message} {wrong.advice}")
    return tuple(found)


def refuse_seen(model: nn.Module, clean: Predictions, data: Dataset, allow_leakage: bool) -> None:
    """A calibrated copy is not audited on the images that its repair was fitted on."""
    if isinstance(model, Calibrated) and model.repair.fitted_on.data == source_of(data) and not allow_leakage:
        seen = model.repair.fitted_on.overlap(clean)
        if seen:
            raise SurefootError(
                f"{seen} of {len(clean)} images were fitted on when this run was calibrated, so their scores would flatter; "
                "audit another split, or pass allow_leakage=True (--allow-leakage)."
            )


def corruptions(
    model: nn.Module,
    split: Split,
    batch_size: int,
    seed: int,
    device: torch.device,
    temperatures: Tensor | None,
    tick: Tick,
) -> Corruptions:
    """A cheap corruption of each kind at every severity, before and after the temperature of each image."""
    cells: list[CorruptionCell] = []
    right = torch.zeros(len(split), dtype=torch.float64)
    for name in CORRUPTIONS:
        for severity in SEVERITIES:

            def change(batch: Batch, name: str = name, severity: int = severity) -> Tensor:
                return corrupt(batch.images, name, severity, seed=seed, indices=batch.indices)

            answers = predict(model, transformed(split.batches(batch_size), change), device)
            found = estimates(answers, ["accuracy", "ece", "nll"], seed=seed)
            after = None if temperatures is None else estimates(divided(answers, temperatures), ["ece"], seed=seed)["ece"]
            cells.append(CorruptionCell(name, severity, **found, scaled_ece=after))
            right += answers.correct
            tick()
    return Corruptions(mean_estimate(right / len(cells), seed), tuple(cells))


def attacks(
    model: nn.Module, split: Split, batch_size: int, seed: int, device: torch.device, tick: Tick
) -> dict[str, AttackSummary]:
    """Every attack of the audit."""
    found = {}
    for name in ATTACKS:
        parts = []
        for batch in split.batches(batch_size, device=device):
            parts.append(evaluate(model, batch.images, batch.labels, name, batch_size=batch_size))
        found[name] = summarise(parts, seed)
        tick()
    return found


def summarise(parts: list[AttackResult], seed: int) -> AttackSummary:
    """Rates over all batches, with intervals over images."""
    whole = AttackResult(*(_join([getattr(part, side) for part in parts]) for side in ("clean", "attacked")))
    broken, correct = whole.broken.double(), whole.clean.correct.double()
    sums = resampled_sums(torch.stack([broken, correct], 1), seed)
    rates = sums[:, 0] / sums[:, 1].clamp_min(1)
    return AttackSummary(estimate(whole.success_rate, rates), mean_estimate(correct - broken, seed))


def _join(parts: list[Predictions]) -> Predictions:
    return Predictions(torch.cat([p.logits for p in parts]), torch.cat([p.labels for p in parts]))
