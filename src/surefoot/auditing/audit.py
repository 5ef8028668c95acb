"""From a model and data to an audit: preflight, the plan, two passes over the images, and what they sum up to."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..attacks.attempts import GENERATOR as ATTACK_DRAWS
from ..attacks.cache import fingerprint
from ..calibration.arguments import CROSS_FIT
from ..calibration.calibrators import Calibrated
from ..corruptions.engine import GENERATOR as CORRUPTION_DRAWS
from ..corruptions.published import open_copies
from ..data.dataset import Dataset, Split
from ..data.loading import load_data
from ..data.preprocessing import TINY
from ..data.settings import settings_of
from ..data.subsets import taken
from ..errors import SurefootError
from ..files import check_folder, inside, only_writer, remove, sweep
from ..measurements.base import CLEAN, Measurement
from ..measurements.context import Context
from ..measurements.groups import check_groups
from ..measurements.members import several_in
from ..measurements.registry import MEASUREMENTS, build, check_measure, default_options
from ..measurements.sample import Kept, Sample
from ..measurements.shifts import Shifts, open_shifts
from ..measurements.temperatures import check_source
from ..measurements.thresholds import RISKS
from ..models.class_mapping import with_classes
from ..models.classifier import pick_device
from ..models.foreign import Normalised
from ..models.last_layer import evaluating, given_copies
from ..models.preflight import CHANGED_INPUT, PROBABILITIES, Finding, preflight, unknown_classes
from ..ood.checks import check_foreign
from ..ood.foreign import foreign_sets
from ..progress import duration, now, speaking
from ..registry import import_own, is_code
from ..seeds import generator, global_seed
from ..training.launcher import is_first
from ..types import Batch, Predictions
from ..version import VERSION
from .arguments import check_engine, check_risks
from .assembly import assemble
from .batch_sizes import chosen_batch_size
from .budget import Budget, affordable, expected, fit_to_time
from .depths import Depth, find_depth
from .exclusions import chosen_ones, find_lacks, possible_ones
from .passes import (
    AuditTable,
    Worker,
    added_columns,
    clean_predictions,
    first_plan,
    run_tasks,
    run_whole,
    summaries,
    weight,
    whole_plan,
)
from .plan import Plan, Task, read_plan, refuse_other
from .result import DATA, Audit
from .store import PAUSE, Store, name_of, share_of_work
from .subjects import check_provenance, source_of
from .table import schema_of
from .table_files import FOLDER

SAMPLE = 256  # images that preflight looks at, and half of it of pictures above `LARGE` pixels, which cost far more
LARGE = 128
WORTH_SAYING = 5  # seconds: a shorter wait is not announced
logger = logging.getLogger("surefoot")


def audit(
    model: nn.Module,
    data: Any,
    *,
    depth: str | Depth = "quick",
    time_budget: float | None = None,
    began: float | None = None,
    measure: Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
    corruptions: Sequence[str] = (),
    attacks: Sequence[str] = (),
    skip: Sequence[str] = (),
    only: Sequence[str] = (),
    shifts: Mapping[str, Any] | Sequence[str] = (),
    classes: str | Path | Mapping[str, Any] | Sequence[int] | None = None,
    split: str = "test",
    name: str = "model",
    batch_size: int | None = None,
    seed: int = 0,
    calibrate_on: str | Predictions = CROSS_FIT,
    allow_leakage: bool = False,
    corrupted: str | Path | None = None,
    foreign: Mapping[str, Any] | Sequence[str] = (),
    risks: Sequence[float] = RISKS,
    groups: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    provenance: Mapping[str, str] | None = None,
    device: str = "auto",
    engine: str = "local",
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Audit:
    """Measure accuracy, calibration, corruptions, attacks and geometry of a model that takes pixels in [0, 1].

    `data` are what `load_data` gives, or anything that it takes. What the model cannot give (a gradient, features) is left out,
    and a note says so; `skip` and `only` name parts ("attacks", "geometry", ...) or measurements. `shifts` are further test
    sets, by name or as objects; `classes` says which output stands for which class where that is not one to one
    (`models/class_mapping.py`). Without `batch_size` it follows from the model, the size of pictures and the free memory.
    `depth` is clean, quick, standard or full; with `time_budget`, in seconds, fewer images are taken where that must be; it
    counts from the call, or from `began` (of `time.perf_counter`), where reading the model and the data is to count too.
    `measure`, `corruptions` and `attacks` are names, or `package.module:name` of one's own, beyond those of the depth.
    `calibrate_on` says where the temperature comes from: "cross-fit" for a model whose
    training data are not known, "calibration" (or another split, never train) for one that has not seen it, or predictions on a
    set of your own. `corrupted` is a folder of corrupted copies (CIFAR-C, ImageNet-C) to use instead of generating them.
    `foreign` are sets of pictures that are none of the classes: names, folders, `.npz` files, or in a mapping by name also data
    sets, splits and tensors; without any some are made (`near:` before a name says that a set is near).
    `risks` are error rates for which a threshold of confidence is sought; `groups` names the group of each image,
    `class_names` the classes that the model was trained for; `provenance` is what else the page should say of how it came
    about (recipe, command). `engine` is "local", or "ray" for a cluster that shares the chunks of images.
    Writes `audit.json` and `audit-data/` into `output` if one is given; an interrupted audit goes on from there, and one that
    was begun otherwise is refused unless `overwrite`.

    >>> import surefoot as sf
    >>> data = sf.load_data("digits", max_images=50)
    >>> model = sf.load_model("tiny-resnet", data=data, seed=0)
    >>> found = sf.audit(model, data, depth="clean", output="audits/mine", progress=False)
    >>> found.calibration.ece.low <= found.calibration.ece <= found.calibration.ece.high
    True
    """
    began = time.perf_counter() if began is None else began
    check_source(calibrate_on)
    check_engine(engine)
    chosen = find_depth(depth)
    measured = labelled(chosen, measure, corruptions, attacks)
    if several_in(model) is not None and "members" not in measured:
        measured["members"] = check_measure("members", {})
    if foreign and "foreign" not in measured:
        measured["foreign"] = check_measure("foreign", {})
    measured = chosen_ones(measured, skip, only)
    check_model(model)
    data = load_data(data)  # which leaves alone what it gave
    about_model = list(getattr(model, "found", ()))
    check_risks(risks)
    check_folder(output)
    folder = None if output is None else inside(output, DATA)
    images, torch_device = data.split(split), pick_device(device)
    if len(images) == 0:
        raise SurefootError(f"The {split} split has no images.")
    check_groups(groups, len(images))
    check_provenance(provenance or {})
    with global_seed(seed, "outputs"):  # the caller's own generator is left alone, whatever the model draws
        model, lines = with_classes(model, data.class_names, data.image_size, data.channels, classes)
    about_model += lines
    model = model.to(torch_device)
    now(f"auditing {name}: a first look")
    looked_at = SAMPLE if max(data.image_size) <= LARGE else SAMPLE // 2
    sample = next(iter(images.batches(looked_at, shuffle=generator(0, "preflight"), device=torch_device)))
    findings = check_first(model, sample, data, class_names, bool(lines))
    if any(finding.name == PROBABILITIES for finding in findings):  # scored as what they are
        model = Normalised(model, 0.0, 1.0, data.channels, returns="probabilities")
    copied = given_copies(model) if any(finding.name == CHANGED_INPUT for finding in findings) else nullcontext()
    with global_seed(seed, "lacks"):
        batch_size, said = chosen_batch_size(model, sample, folder, batch_size)
        measured, left_out = possible_ones(measured, find_lacks(model, sample))
        planned = unfinished_plan(folder)
        seconds = planned.seconds if planned else seconds_of(model, sample, batch_size)
    spent = planned.spent if planned else round(time.perf_counter() - began, 1)
    budget = None if time_budget is None else Budget(time_budget, spent)
    rows, fewer = (None, []) if budget is None or corrupted is not None else affordable(images, seconds, budget, seed)
    part_of = None if rows is None else (images, rows)
    if rows is not None:
        images, groups = taken(images, rows), None if groups is None else [groups[row] for row in rows.tolist()]
    about_model += [*said, *left_out, *fewer]
    said = [*said, *fewer]
    for line in [*said, *left_out] if is_first() else ():
        logger.info("%s", line)
    copies = None if corrupted is None else open_copies(corrupted, data.class_names)
    sets = foreign_sets(foreign, data, split, seed) if foreign else {}
    findings = (*findings, *check_foreign(sets, data, split))
    measurements = {label: build(kind, options) for label, (kind, options) in measured.items()}
    if copies is not None:  # they are of all images
        for measurement in measurements.values():
            measurement.max_images = None if measurement.part == "corruptions" else measurement.max_images
    further = open_shifts(shifts, data)
    if further:
        measurements["shift"] = Shifts(further)
    measurements["sample"] = Sample(list(measurements.values()))
    sources: dict[str, Any] = {"calibrate_on": calibrate_on, "allow_leakage": allow_leakage, "copies": copies, "foreign": sets}
    context = Context(model, data, images, torch_device, split, batch_size, seed, part_of=part_of, **sources)
    about = what_it_is(context, sample, measured, calibrate_on, corrupted) | shifted(further)
    about |= {} if time_budget is None else {"time_budget": time_budget}
    with (
        copied,
        speaking(progress and is_first()),
        ExitStack() as stack,
        global_seed(seed, "audit"),
    ):  # the caller's own generator is left alone, whatever the model draws
        for measurement in measurements.values():
            for condition in measurement.conditions(context):
                condition.check(context)
        shown: dict[str, Any] = {"title": f"auditing {name}", "progress": progress, "engine": engine}
        stack.enter_context(only_writer(output) if output is not None and is_first() else nullcontext())
        store = begin(context, measurements, about, seconds, spent, folder, overwrite=overwrite)
        if store.work is not None:
            context = replace(context, work=store.work)
        worker = Worker(context, measurements)
        run_tasks(worker, store, store.plan.tasks[: store.plan.first], **shown)
        context.kept["clean"] = clean_predictions(store)
        refuse_seen(model, context.clean, data, allow_leakage)
        if time_budget is not None:  # by the plan, which several processes share
            budget = Budget(time_budget, store.plan.spent)
            about_model += fit_to_time(measurements, context, store.plan.seconds, budget)
        go_on(store, context, measurements)
        tasks = store.plan.tasks[store.plan.first :]
        announce(worker, store, tasks, name, chosen.name, progress)
        if tasks:
            run_tasks(worker, store, tasks, **shown)
        context.kept["sample"] = Kept.of([store.read_tensors(name_of(task)) for task in tasks if task.label == "sample"])
        run_whole(context, store, measurements)
        now(f"auditing {name}: intervals")
        table = AuditTable(context, store)
        results, notes = summaries(context, store, table, measurements)
        told = {**(provenance or {}), **({"model": about_model} if about_model else {})}
        result = assemble(context, table, measurements, results, notes, findings, name, chosen.name, risks, groups, told)
        result.subject["table"] = store.plan.key
        if output is None:
            store.merge(table.everything)
            return replace(result, rows=store.frame)
        if is_first():
            store.merge(table.everything)
            result.save(output)
        store.close()
        return replace(result, rows=Path(output))


def labelled(
    depth: Depth, measure: Sequence[str] | Mapping[str, Mapping[str, Any]], corruptions: Sequence[str], attacks: Sequence[str]
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every measurement by its label, with its options complete; all names are found before anything is measured."""
    wanted = {label: dict(options) for label, options in depth.measure.items()}
    for what, given, label in (("corruptions", corruptions, "corruptions"), ("attacks", attacks, "attacks")):
        if isinstance(given, str):
            raise SurefootError(f"{what} must be a list of names, got '{given}'.")
        if given:
            before = wanted.get(label, {}).get("names", default_options(label)["names"] if label in wanted else ())
            wanted[label] = {**wanted.get(label, {}), "names": tuple(dict.fromkeys((*before, *given)))}
    if isinstance(measure, str):
        raise SurefootError(f"measure must be a list of names, got '{measure}'.")
    more = measure.items() if isinstance(measure, Mapping) else [(name, {}) for name in measure]
    wanted |= {name: dict(options) for name, options in more}
    by_label = {label: check_measure(label, options) for label, options in wanted.items()}
    if "corruptions" in by_label:
        shown = {key: by_label["corruptions"][1][key] for key in ("names", "severities")}
        by_label["pictures"] = check_measure("pictures", shown)
    return by_label


def what_it_is(
    context: Context, sample: Batch, measured: Mapping[str, Any], calibrate_on: str | Predictions, corrupted: object
) -> dict[str, Any]:
    """What an interrupted audit must agree in to go on."""
    own = [MEASUREMENTS.load(name) for name, _ in measured.values() if name not in MEASUREMENTS.ours]
    for _, options in measured.values():
        own += [load_own(name) for name in options.get("names", ()) if is_code(str(name))]
    given = calibrate_on if isinstance(calibrate_on, str) else fingerprint(calibrate_on.logits, calibrate_on.labels)
    description = {
        "surefoot": VERSION,
        "corruptions": CORRUPTION_DRAWS,
        "attacks": ATTACK_DRAWS,
        "weights": fingerprint(context.model),
        "data": source_of(context.data),
        "split": context.split,
        "images": len(context.images),
        "sample": fingerprint(sample.images, sample.labels, sample.indices),
        "measure": {label: {"measurement": name, **options} for label, (name, options) in measured.items()},
        "calibrate_on": given,
        "corrupted": None if corrupted is None else str(corrupted),
        "foreign": {name: [len(each), each.near, *map(str, each.class_names)] for name, each in context.foreign.items()},
        "batch_size": context.batch_size,
        "seed": context.seed,
        "code": fingerprint(*own),
    }
    plain_values: dict[str, Any] = json.loads(json.dumps(description, default=list))
    return plain_values


def load_own(name: str) -> Any:
    return [import_own("name", link) for link in name.split("+") if is_code(link)]


def begin(
    context: Context,
    measurements: Mapping[str, Measurement],
    about: dict[str, Any],
    seconds: float,
    spent: float,
    folder: Path | None,
    *,
    overwrite: bool,
) -> Store:
    """The plan of an audit that was interrupted here, or a new one, and where its parts are."""
    rank, _ = share_of_work()
    for place in () if folder is None or rank else (folder.parent, folder, inside(folder, FOLDER)):
        sweep(place)
    unfinished = folder is not None and (folder / "work").is_dir()
    plan = read_plan(folder) if folder is not None and unfinished else None
    if plan is not None and folder is not None and not overwrite and rank == 0:
        refuse_other(plan, about, folder)
    schema = schema_of(added_columns(measurements), context.data.num_classes)
    if plan is not None and plan.about == about:
        return Store(plan, schema, {}, folder)
    if rank and folder is not None:
        return Store(wait_for_plan(folder, about), schema, {}, folder)
    plan = first_plan(context, measurements, about, seconds, spent)
    if folder is not None:
        clear(folder)
        plan.save(folder)
        inside(folder, "work").mkdir(parents=True)  # while it is there, the audit is not finished
    return Store(plan, schema, {}, folder)


def wait_for_plan(folder: Path, about: Mapping[str, Any]) -> Plan:
    """The plan that the first process writes."""
    while (plan := read_plan(folder)) is None or plan.about != about or not (folder / "work").is_dir():
        time.sleep(PAUSE)
    return plan


def clear(folder: Path) -> None:
    """Remove what an earlier audit left."""
    for name in (FOLDER, "work"):
        if (folder / name).exists():
            remove(inside(folder, name))


def go_on(store: Store, context: Context, measurements: Mapping[str, Measurement]) -> None:
    """The second half of the plan, and the names of the images."""
    store.plan = whole_plan(store.plan, context, measurements)
    store.names = store.image_names()
    if store.folder is not None and is_first():
        store.plan.save(store.folder)


def unfinished_plan(folder: Path | None) -> Plan | None:
    """The plan of an audit that was begun here: what an image took then decides which images are looked at."""
    return read_plan(folder) if folder is not None and (folder / "work").is_dir() else None


def seconds_of(model: nn.Module, sample: Batch, batch_size: int) -> float:
    """How long an image takes to go through the model, about: two significant digits of the better of two passes."""
    images, times = sample.images[:batch_size], []
    with evaluating(model), torch.inference_mode():
        for _ in range(2):
            began = time.perf_counter()
            float(model(images).sum())  # waits for the device
            times.append(time.perf_counter() - began)
    return float(f"{min(times) / len(images):.2g}")


def announce(worker: Worker, store: Store, tasks: Sequence[Task], name: str, depth: str, progress: bool) -> None:
    """Say how long it takes, if it is long."""
    weights = [(weight(worker, store.plan, task), store.has(task)) for task in tasks]
    undone = sum(each for each, done in weights if not done) / max(sum(each for each, _ in weights), 1e-9)
    whole = expected(worker.measurements, worker.context, store.plan.seconds)
    left = undone * sum(seconds for label, seconds in whole.items() if label != CLEAN) / share_of_work()[1]
    if progress and left > WORTH_SAYING and is_first():
        logger.info("auditing %s (%s) takes about %s", name, depth, duration(left))


def check_model(model: Any) -> None:
    """Only modules are audited; what else people have becomes one by `adapt` or `load_model`."""
    if not isinstance(model, nn.Module):
        kind = type(model).__name__
        advice = "sf.load_model(...)" if isinstance(model, str | Path) else "sf.adapt(model, returns=..., image_size=...)"
        raise SurefootError(f"model must be a module, got {kind}: {advice} makes one.")


def shifted(shifts: Mapping[str, Split]) -> dict[str, Any]:
    """The shifts and their sizes, for the plan; an audit without any has the plan that it always had."""
    return {"shifts": {name: len(split) for name, split in shifts.items()}} if shifts else {}


def check_first(
    model: nn.Module, sample: Batch, data: Dataset, trained_for: Sequence[str] | None, mapped: bool
) -> tuple[Finding, ...]:
    """Preflight on a sample; a wrong number of classes ends the audit, since no score would mean anything."""
    source = getattr(model, "source", None)
    native = settings_of(source["name"], source["pretrained"]).image_size if source and min(data.image_size) > TINY else None
    findings = preflight(model, sample.images, sample.labels, num_classes=data.num_classes, native_size=native, mapped=mapped)
    wrong = next((finding for finding in findings if finding.name == "class-count"), None)
    if wrong:
        raise SurefootError(f"{wrong.message} {wrong.advice}")
    other = unknown_classes(trained_for, data.class_names)
    return tuple(findings if other is None else [other, *findings])


def refuse_seen(model: nn.Module, clean: Predictions, data: Dataset, allow_leakage: bool) -> None:
    """A calibrated copy is not audited on the images that its calibrator was fitted on."""
    if isinstance(model, Calibrated) and model.calibrator.fitted_on.data == source_of(data) and not allow_leakage:
        seen = model.calibrator.fitted_on.overlap(clean)
        if seen:
            raise SurefootError(
                f"{seen} of {len(clean)} images were fitted on when this run was calibrated, so their scores would flatter; "
                "audit another split, or pass allow_leakage=True (--allow-leakage)."
            )
