"""From a model and data to an audit: preflight, the steps, and what they add up to."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..attacks.attempts import GENERATOR as ATTACK_DRAWS
from ..attacks.cache import fingerprint
from ..attacks.presets import ATTACKS
from ..calibration.bins import reliability
from ..calibration.calibrators import Calibrated
from ..calibration.scoring import scores
from ..corruptions.engine import GENERATOR as CORRUPTION_DRAWS
from ..corruptions.published import open_copies
from ..data.choosing import indices_of
from ..data.dataset import Dataset, Split
from ..data.preprocessing import TINY
from ..data.settings import settings_of
from ..data.splitting import SPLITS
from ..errors import SurefootError, require
from ..files import inside
from ..models.observing import NoHead, head_of
from ..models.prediction import pick_device, predict
from ..models.preflight import Finding, preflight
from ..progress import duration
from ..seeds import generator, global_seed
from ..training.processes import is_first
from ..types import Batch, Predictions
from .abstaining import RISKS, thresholds
from .attacking import attack_notes, attack_steps, summarise_attacks
from .cells import record_of
from .corrupting import (
    corruption_steps,
    noise_steps,
    occlusion_steps,
    summarise_corruptions,
    summarise_noise,
    summarise_occlusions,
)
from .depths import Depth, find_depth
from .examples import confident_mistakes, corrupted_examples, example_points, places_of
from .geometric import geometry_points, geometry_steps, summarise_geometry
from .pairing import paired_draws
from .records import Record, Workbook
from .result import DATA, Audit
from .setting import Setting, measure_speed
from .sliding import feature_scale_grid, temperature_grid
from .steps import Step, remaining, run_steps
from .subgroups import check_groups, class_results, group_results
from .subjects import check_provenance, source_of, subject
from .temperatures import CROSS_FIT, Source, check_source, choose_temperatures, scaled

SAMPLE = 256  # images that preflight looks at
WORTH_SAYING = 5  # seconds: a shorter wait is not announced
SLIDING = 1e-6  # seconds for a logit at every step of the sliders
logger = logging.getLogger("surefoot")


def audit(
    model: nn.Module,
    data: Dataset,
    *,
    depth: str | Depth = "quick",
    attacks: Sequence[str] = (),
    split: str = "test",
    name: str = "model",
    batch_size: int = 256,
    seed: int = 0,
    calibrate_on: str | Predictions = CROSS_FIT,
    allow_leakage: bool = False,
    corrupted: str | Path | None = None,
    risks: Sequence[float] = RISKS,
    groups: Sequence[str] | None = None,
    provenance: Mapping[str, str] | None = None,
    device: str = "auto",
    output: str | Path | None = None,
    progress: bool = True,
) -> Audit:
    """Measure accuracy, calibration, corruptions, attacks and geometry of a model that takes pixels in [0, 1].

    `depth` is quick, standard or full; `attacks` are names, or `package.module:function` of one's own, beyond those of the
    depth. `calibrate_on` says where the temperature comes from: "cross-fit" for a model whose
    training data are not known, "calibration" (or another split, never train) for one that has not seen it, or predictions on a
    set of your own. `corrupted` is a folder of corrupted copies (CIFAR-C, ImageNet-C) to use instead of generating them.
    `risks` are error rates for which a threshold of confidence is sought; `groups` names the group of each image;
    `provenance` is what else the page should say of how it came about (recipe, command).
    Writes `audit.json` and `audit-data/` into `output` if one is given; an interrupted audit goes on from there.
    """
    check_source(calibrate_on)
    wanted = with_attacks(find_depth(depth), attacks)
    for risk in risks:
        require(0 < risk < 1, "risks", "between 0 and 1", risk)
    if output is not None:
        inside(output, DATA, "work")
    chosen, place = data.split(split), pick_device(device)
    if len(chosen) == 0:
        raise SurefootError(f"The {split} split has no images.")
    check_groups(groups, len(chosen))
    check_provenance(provenance or {})
    model = model.to(place)
    sample = next(iter(chosen.batches(SAMPLE, shuffle=generator(0, "preflight"), device=place)))
    findings = check_first(model, sample, data)
    copies = None if corrupted is None else open_copies(corrupted, data.class_names)
    with global_seed(seed, "audit"):  # the caller's own generator is left alone, whatever the model draws
        speed = measure_speed(model, sample, batch_size)
        setting = Setting(model, data, split, chosen, wanted, place, batch_size, seed, speed, copies)
        book = Workbook(None if output is None else work_folder(output, key_of(setting, sample, calibrate_on)))
        shown: dict[str, Any] = {"seed": seed, "title": f"auditing {name}", "progress": progress}
        clean = answers_on(chosen, "clean", setting, book, **shown)
        refuse_seen(model, clean, data, allow_leakage)
        held_out = calibrate_on if isinstance(calibrate_on, Predictions) else None
        if calibrate_on in SPLITS:
            held_out = answers_on(data.split(str(calibrate_on)), "held-out", setting, book, **shown)
        source = choose_temperatures(clean, split, calibrate_on, seed, held_out, allow_leakage=allow_leakage)
        steps = steps_of(setting, book, clean, source)
        left = remaining(steps, book)
        if progress and left > WORTH_SAYING and is_first():
            logger.info("auditing %s (%s) takes about %s", name, setting.depth.name, duration(left))
        run_steps(steps, book, **shown)
        result = assemble(setting, book, clean, source, held_out, name, findings, risks, groups, provenance or {})
    if output is not None and is_first():
        result.save(output)
    book.close()
    return result


def with_attacks(depth: Depth, more: Sequence[str]) -> Depth:
    """The depth with more attacks; all of them are found before anything is measured."""
    if isinstance(more, str):
        raise SurefootError(f"attacks must be a list of names, got '{more}'.")
    names = tuple(dict.fromkeys((*depth.attacks, *more)))
    for name in names:
        ATTACKS.load(name)
    return replace(depth, attacks=names)


def work_folder(output: str | Path, key: str) -> Path:
    """Where unfinished work is kept."""
    return inside(output, DATA, "work", key, "attacks").parent


def key_of(setting: Setting, sample: Batch, calibrate_on: str | Predictions) -> str:
    """A name for the work: what an interrupted audit must agree in to go on."""
    given = calibrate_on if isinstance(calibrate_on, str) else calibrate_on.logits
    own = [ATTACKS.load(name) for name in setting.depth.attacks if name not in ATTACKS]  # what they do may have been edited
    return fingerprint(
        setting.model, sample.images, sample.labels, len(setting.images), source_of(setting.data), setting.split, setting.depth,
        *(setting.batch_size, setting.seed, given, str(setting.copies), own, ATTACK_DRAWS, CORRUPTION_DRAWS),
    )  # fmt: skip


def answers_on(images: Split, name: str, setting: Setting, book: Workbook, **shown: Any) -> Predictions:
    """Answers on images as they are, as a step of its own."""

    def work() -> Record:
        found = predict(setting.model, images.batches(setting.batch_size, device=setting.device), setting.device)
        assert found.indices is not None
        return Record({}, {"logits": found.logits, "labels": found.labels, "indices": found.indices})

    run_steps([Step(name, work, setting.cost(len(images)))], book, **shown)
    record = book.wait(name)
    return Predictions(record.tensors["logits"], record.tensors["labels"], indices=record.tensors["indices"])


def steps_of(setting: Setting, book: Workbook, clean: Predictions, source: Source | None) -> list[Step]:
    """Everything that the depth asks for."""
    temperatures = None
    if source is not None:
        rows = corruption_rows(setting)
        temperatures = source.temperatures if rows is None else source.temperatures[rows]
    kept = None if book.folder is None else book.folder / "attacks"
    return [
        *corruption_steps(setting, temperatures),
        *noise_steps(setting),
        *occlusion_steps(setting),
        *attack_steps(setting, kept),
        *geometry_steps(setting),
        Step("mistakes", lambda: confident_mistakes(setting, clean), setting.cost(len(setting.images), forward=0.1)),
        Step("examples", lambda: corrupted_examples(setting), 1.0),
        Step("slider", lambda: slider(setting, clean, source), SLIDING * clean.logits.numel()),
    ]


def slider(setting: Setting, clean: Predictions, source: Source | None) -> Record:
    """The reliability diagram at every temperature and feature scale that the page can slide to."""
    bias = None if isinstance(setting.model, Calibrated) else bias_of(setting)
    fitted = () if source is None else tuple(fit.temperature for fit in source.fits)
    return Record({"temperatures": temperature_grid(clean, fitted), "feature_scales": feature_scale_grid(clean, bias)})


def bias_of(setting: Setting) -> torch.Tensor | None:
    """What the final layer adds to its features, for a model that ends in a linear layer."""
    few = next(iter(setting.images.batches(2, device=setting.device))).images
    try:
        return head_of(setting.model, few).bias
    except NoHead:
        return None


def corruption_rows(setting: Setting) -> torch.Tensor | None:
    """Where the images that are corrupted stand among all; None for all."""
    some = setting.corruption_images
    if some is setting.images:
        return None
    indices = indices_of(some, setting.batch_size)
    return torch.tensor(places_of(setting.images, indices.tolist(), setting.batch_size))


def assemble(
    setting: Setting,
    book: Workbook,
    clean: Predictions,
    source: Source | None,
    held_out: Predictions | None,
    name: str,
    findings: tuple[Finding, ...],
    risks: Sequence[float],
    groups: Sequence[str] | None,
    provenance: Mapping[str, str],
) -> Audit:
    """The audit, from the records of its steps."""
    data, depth, seed = setting.data, setting.depth, setting.seed
    rows = corruption_rows(setting)
    worse = summarise_corruptions(setting, book, record_of(clean if rows is None else clean[rows], None, seed))
    curve = [book.read(f"curve/{eps:.6f}") for eps in depth.curve_budgets]
    signs, mistakes, examples = book.read("masking"), book.wait("mistakes"), book.wait("examples")
    figures = {
        **book.wait("slider").values,
        "mistakes": mistakes.values["mistakes"],
        "examples": example_points(setting, book, examples),
        **geometry_points(setting, book, clean),
    }
    notes = [*data.notes, *attack_notes(setting)]
    more = {"depth": depth.name, "notes": notes, "classes": list(data.class_names), **provenance}
    more["weights"] = fingerprint(setting.model)
    return Audit(
        subject=subject(name, data.source, setting.split, len(setting.images), seed, **more),
        calibration=scores(clean, seed=seed),
        temperature=None if source is None else scaled(clean, source, seed, worse),
        thresholds=thresholds(clean, risks, seed, held_out),
        corruptions=worse,
        noise=summarise_noise(setting, book),
        occlusions=summarise_occlusions(setting, book),
        attacks=summarise_attacks(setting, book),
        security_curve=tuple(record.values["point"] for record in curve if record is not None),
        draws=paired_draws(setting, book),
        masking=() if signs is None else tuple(signs.values["lines"]),
        preflight=findings,
        geometry=summarise_geometry(setting, book, clean),
        classes=class_results(clean, data.class_names),
        groups=() if groups is None else group_results(clean, list(groups), seed),
        reliability=reliability(clean),
        predictions=clean,
        figures=figures,
    )


def check_first(model: nn.Module, sample: Batch, data: Dataset) -> tuple[Finding, ...]:
    """Preflight on a sample; a wrong number of classes ends the audit, since no score would mean anything."""
    source = getattr(model, "source", None)
    native = settings_of(source["name"], source["pretrained"]).image_size if source and min(data.image_size) > TINY else None
    found = preflight(model, sample.images, sample.labels, num_classes=data.num_classes, native_size=native)
    wrong = next((finding for finding in found if finding.name == "class-count"), None)
    if wrong:
        raise SurefootError(f"{wrong.message} {wrong.advice}")
    return tuple(found)


def refuse_seen(model: nn.Module, clean: Predictions, data: Dataset, allow_leakage: bool) -> None:
    """A calibrated copy is not audited on the images that its calibrator was fitted on."""
    if isinstance(model, Calibrated) and model.calibrator.fitted_on.data == source_of(data) and not allow_leakage:
        seen = model.calibrator.fitted_on.overlap(clean)
        if seen:
            raise SurefootError(
                f"{seen} of {len(clean)} images were fitted on when this run was calibrated, so their scores would flatter; "
                "audit another split, or pass allow_leakage=True (--allow-leakage)."
            )
