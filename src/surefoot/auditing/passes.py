"""Two passes over the images: the clean pictures first, then every condition while a picture is in memory.

What must be fitted is fitted between them. A task is a chunk of images and some conditions; whoever does it, and in which
order, does not change its rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ..cluster import RETRIES, connect
from ..data.dataset import Split, TensorSplit
from ..data.streaming import StreamedSplit
from ..data.subsets import chunks_of
from ..errors import SurefootError, UnknownName
from ..measurements.base import CLEAN, STANDARD, Beside, Condition, Measurement, Rows, Summary
from ..measurements.context import Context, pixel_names
from ..measurements.summaries import columns_of
from ..progress import now, progress_bar
from ..seeds import global_seed
from ..types import Batch, Predictions
from .plan import Plan, Task, chunk_size, groups_of, nested_chunks
from .store import Store, name_of, share_of_work
from .table import Part, in_order

BLOCK = 1 << 22  # logits that are looked at together
NOTE = "left out"  # what is kept of a measurement that the model does not allow
Measurements = Mapping[str, Measurement]


def first_plan(
    context: Context, measurements: Measurements, about: dict[str, Any], seconds: float = 0, spent: float = 0
) -> Plan:
    """The plan of the first pass; `seconds` is what an image takes to go through the model."""
    everything, size = range(len(context.images)), images_of_chunk(context)
    chunks = [list(everything[start : start + size]) for start in range(0, len(everything), size)]
    tasks = [Task(number, number, CLEAN, (CLEAN,)) for number in range(len(chunks))]
    return Plan(about, seconds, chunks, tasks, added_columns(measurements), spent)


def column_names(measurements: Measurements) -> dict[str, dict[str, str]]:
    """What the table calls the columns of each measurement: `label.column` where an earlier one has taken the name.

    So `curvature` beside `curvature-noise`, with other draws, overwrites nothing.
    """
    names: dict[str, dict[str, str]] = {}
    for label, measurement in measurements.items():
        taken = {*STANDARD, *(name for other in names.values() for name in other.values())}
        names[label] = {
            name: f"{label}.{name}" if name in taken and name not in measurement.alike else name for name in measurement.adds
        }
    return names


def added_columns(measurements: Measurements) -> list[str]:
    return list(dict.fromkeys(name for own in column_names(measurements).values() for name in own.values()))


def images_of_chunk(context: Context) -> int:
    return chunk_size(context.batch_size, context.data.channels * math.prod(context.data.image_size))


def whole_plan(plan: Plan, context: Context, measurements: Measurements) -> Plan:
    """The plan with the second pass, whose images may depend on what the first one found."""
    first = [task for task in plan.tasks if task.label == CLEAN]
    chunks, tasks = plan.chunks[: len(first)], list(first)
    wanted = {label: measurements[label].rows(context).tolist() for label in second_pass(context, measurements)}
    nested = [rows for label, rows in wanted.items() if not measurements[label].scattered]
    scattered = [rows for label, rows in wanted.items() if measurements[label].scattered]
    streamed = not isinstance(context.images, TensorSplit | StreamedSplit)
    everything = sorted(set().union(*nested, *scattered))
    for rows in nested_chunks([*nested, everything], images_of_chunk(context), streamed=streamed):
        seen: set[str] = set()
        for label, own in wanted.items():
            inside = len(set(own).intersection(rows))
            names = [each.name for each in audited_ones(measurements[label], context) if each.name not in seen]
            seen.update(names if inside else ())
            if inside:
                groups = groups_of(names, images_of_chunk(context), plan.seconds * measurements[label].passes)
                looks = [()] if measurements[label].adds or measurements[label].sees else []
                tasks += [Task(len(tasks) + index, len(chunks), label, group) for index, group in enumerate([*groups, *looks])]
        chunks = [*chunks, rows]
    size = images_of_chunk(context)
    for label, measurement in measurements.items():
        for other in [each for each in measurement.conditions(context) if isinstance(each, Beside)]:
            for start in range(0, len(other.split), size):
                tasks.append(Task(len(tasks), len(chunks), label, (other.name,)))
                chunks = [*chunks, list(range(start, min(start + size, len(other.split))))]
    return replace(plan, chunks=chunks, tasks=tasks)


def audited_ones(measurement: Measurement, context: Context) -> list[Condition]:
    """The conditions that the audited pictures are put under."""
    return [each for each in measurement.conditions(context) if not isinstance(each, Beside)]


def second_pass(context: Context, measurements: Measurements) -> list[str]:
    """The measurements that look at images one by one, under conditions or as they are."""
    return [
        label
        for label, measurement in measurements.items()
        if measurement.adds or measurement.sees or audited_ones(measurement, context)
    ]


@dataclass(frozen=True)
class Worker:
    """Does tasks on chunks that are in memory."""

    context: Context
    measurements: Measurements

    @cached_property
    def conditions(self) -> dict[str, Condition]:
        return {condition.name: condition for each in self.measurements.values() for condition in each.conditions(self.context)}

    @cached_property
    def names(self) -> dict[str, dict[str, str]]:
        return column_names(self.measurements)

    def do(self, task: Task, rows: Sequence[int], batch: Batch) -> Part | Any:
        """The part of a task; of columns, plain values by image; of a measurement that is not possible here, the reason."""
        if task.label == CLEAN:
            logits = self.context.forward(batch.images, CLEAN, task.chunk)
            names = np.array(image_names(self.context, batch), object)
            return {CLEAN: {"image": names, **standard(logits, batch, None), "logits": logits.numpy()}}
        other = self.beside(task)
        if other is not None:
            return {other.name: self.rows_beside(other, torch.tensor(rows), batch)}
        measurement = self.measurements[task.label]
        wanted = measurement.rows(self.context)
        chosen = torch.isin(torch.tensor(rows), wanted)
        own = batch if bool(chosen.all()) else batch[chosen.nonzero().flatten()]
        if not task.conditions:
            return self.look(measurement, own, task)
        indices = torch.tensor(rows)[chosen]
        source = self.context.temperatures
        temperatures = None if source is None else source.temperatures[indices]
        part = {}
        for name in task.conditions:
            with global_seed(self.context.seed, "audit", name, task.chunk):
                logits = self.conditions[name].logits(self.context, own)
                part[name] = standard(logits, own, temperatures) | self.promised(logits, own, indices)
        return part

    def promised(self, logits: torch.Tensor, batch: Batch, rows: torch.Tensor, strangers: torch.Tensor | None = None) -> Rows:
        """The columns of promises, where there are any; a row below 0 is a stranger, whose fold is given."""
        promises = self.context.promises
        if promises is None:
            return {}
        folds = promises.folds[rows.clamp_min(0)]
        if strangers is not None:
            folds = torch.where(rows < 0, strangers % len(promises.sets), folds)
        return promises.columns(logits, batch.labels, folds)

    def beside(self, task: Task) -> Beside | None:
        """The condition of a task on another set of pictures."""
        condition = self.conditions.get(task.conditions[0]) if task.conditions else None
        return condition if isinstance(condition, Beside) else None

    def split_of(self, task: Task) -> Split:
        other = self.beside(task)
        return self.context.images if other is None else other.split

    def rows_beside(self, other: Beside, rows: torch.Tensor, batch: Batch) -> Rows:
        """What is fitted comes from the fold of a picture's partner, and for others from one by the hash of their id."""
        context, partners = self.context, other.partners(self.context)[rows]
        names = other.image_names(context, batch, partners)
        hashes = [int.from_bytes(blake2b(f"{context.seed} {name}".encode(), digest_size=4).digest()) for name in names]
        strangers, source = torch.tensor(hashes) % 2, context.temperatures
        temperatures = None
        if source is not None:
            fits = torch.tensor([fit.temperature for fit in source.fits], dtype=torch.float64)
            known = source.temperatures.double()[partners.clamp_min(0)]
            temperatures = torch.where(partners < 0, fits[strangers % len(fits)], known)
        logits = other.logits(context, batch)
        promised = self.promised(logits, batch, partners, strangers)
        return {"image": np.array(names, object), **standard(logits, batch, temperatures), **promised}

    def look(self, measurement: Measurement, batch: Batch, task: Task) -> Any:
        """What a measurement adds to each image, and what it sees."""
        try:
            with global_seed(self.context.seed, "audit", task.label, task.chunk):
                added, seen = measurement.columns(self.context, batch), measurement.see(self.context, batch)
                tensors = measurement.tensors(self.context, batch)
        except SurefootError as error:
            return {NOTE: str(error)}
        names = self.names[task.label]
        columns = {names[name]: values.detach().cpu().float().tolist() for name, values in added.items()}
        return {"columns": {"index": batch.indices.tolist(), **columns}, "seen": seen, "tensors": tensors}


def standard(logits: torch.Tensor, batch: Batch, temperatures: torch.Tensor | None) -> Rows:
    """The columns of every condition."""
    check_finite(logits)
    columns = columns_of(logits, batch.labels, temperatures)
    fitted = {} if temperatures is None else {"temperature": temperatures.double().numpy()}
    return {"index": batch.indices.numpy(), **columns, **fitted}


def image_names(context: Context, batch: Batch) -> list[str]:
    """The id of each image, the same on every machine: its path in the data, or a hash of its pixels."""
    if context.has_files:
        return [str(context.file_of(index)) for index in batch.indices.tolist()]
    return pixel_names(batch.images)


def check_finite(logits: torch.Tensor) -> None:
    Predictions.from_logits(logits, torch.zeros(len(logits), dtype=torch.long))


def run_tasks(
    worker: Worker, store: Store, tasks: Sequence[Task], *, title: str, progress: bool, engine: str = "local"
) -> None:
    """Do the tasks that are not done yet: this process its share, a run of chunks, and then wait for the others."""
    rank, processes = share_of_work()
    if processes > 1 and store.folder is None:
        raise SurefootError("An audit by several processes needs an output folder, where they find each other's results.")
    mine = [task for index, task in enumerate(tasks) if index * processes // len(tasks) == rank]
    left = [task for task in mine if not store.has(task)]
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = progress_bar(*columns, show=progress and rank == 0)
    weights = {task.number: weight(worker, store.plan, task) for task in mine}
    before = sum(weights[task.number] for task in mine if task not in left)
    shown = bar.add_task(title, total=sum(weights.values()), completed=int(before))
    with bar:
        for task, result in (on_ray if engine == "ray" else one_by_one)(worker, store.plan, left):
            keep(store, task, result)
            bar.update(shown, advance=weights[task.number], description=f"{title}: {task.label}")
    store.wait(tasks)


def keep(store: Store, task: Task, result: Any) -> None:
    if task.conditions:
        store.write_part(task, result)
    else:
        store.write(name_of(task), {key: value for key, value in result.items() if key != "tensors"}, result.get("tensors"))


def weight(worker: Worker, plan: Plan, task: Task) -> float:
    """About how many passes through the model a task takes."""
    images = len(plan.chunks[task.chunk])
    if task.label == CLEAN:
        return images
    under = sum(worker.conditions[name].passes for name in task.conditions) or 1
    return images * worker.measurements[task.label].passes * under


def one_by_one(worker: Worker, plan: Plan, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
    """Chunk after chunk, each read once; a first pass goes by the split's own order."""
    splits = {id(split): split for split in map(worker.split_of, tasks)}
    for split in splits.values():
        own = [task for task in tasks if worker.split_of(task) is split]
        chunks = list(dict.fromkeys(task.chunk for task in own))
        rows = [torch.tensor(plan.chunks[chunk]) for chunk in chunks]
        for chunk, batch in zip(chunks, chunks_of(split, rows, worker.context.device), strict=True):
            for task in own:
                if task.chunk == chunk:
                    yield task, worker.do(task, plan.chunks[chunk], batch)
            worker.context.forget()


def on_ray(worker: Worker, plan: Plan, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
    """Every chunk on a worker of the cluster; when one dies, its chunk is done again. Rows come back to this process."""
    ray = connect()
    alone = replace(worker, context=replace(worker.context, work=None))
    worker_there, plan_there = ray.put(alone), ray.put(plan)
    remote = ray.remote(max_retries=RETRIES, retry_exceptions=False)(chunk_there)
    by_chunk: dict[int, list[Task]] = {}
    for task in tasks:
        by_chunk.setdefault(task.chunk, []).append(task)
    running = [remote.remote(worker_there, plan_there, own, torch.get_num_threads()) for own in by_chunk.values()]
    while running:
        done, running = ray.wait(running, num_returns=1)
        yield from ray.get(done[0])


def chunk_there(worker: Worker, plan: Plan, tasks: list[Task], threads: int) -> list[tuple[Task, Any]]:
    torch.set_num_threads(threads)
    return list(one_by_one(worker, plan, tasks))


def clean_predictions(store: Store) -> Predictions:
    """Predictions of the first pass, in the order of the split."""
    parts = [store.read_part(task)[CLEAN] for task in store.plan.tasks if task.label == CLEAN]
    columns = [np.concatenate([part[name] for part in parts]) for name in ("logits", "label", "index")]
    logits, labels, indices = (torch.from_numpy(np.ascontiguousarray(values)) for values in columns)
    return Predictions.from_logits(logits, labels.long(), indices=indices)


class AuditTable:
    """The rows of both passes, as summaries take them."""

    def __init__(self, context: Context, store: Store) -> None:
        self.context, self.store = context, store
        self._last_read: tuple[tuple[int, ...], dict[str, Rows]] = ((), {})

    def rows(self, condition: str, max_images: int | None = None) -> Rows:
        """The columns under a condition, of a subset; the parts of its neighbours are kept for the next question."""
        tasks = [task for task in self.store.plan.tasks if condition in task.conditions]
        if not tasks:
            names = dict.fromkeys(name for task in self.store.plan.tasks for name in task.conditions)
            raise UnknownName("condition", condition, list(names))
        numbers = tuple(task.number for task in tasks)
        if self._last_read[0] != numbers:
            parts = [self.store.read_part(task) for task in tasks]
            shared = set.intersection(*(set(part) for part in parts))
            self._last_read = (numbers, {name: in_order([part[name] for part in parts]) for name in shared})
        rows = self._last_read[1][condition]
        if max_images is None:
            return rows
        wanted = self.context.rows(max_images)
        if len(wanted) >= len(rows["index"]):
            return rows
        where = np.searchsorted(rows["index"], np.sort(self.context.indices[wanted].numpy()))
        return {name: values[where] for name, values in rows.items()}

    @cached_property
    def everything(self) -> Rows:
        """All images as they are, in the order of their index, with what measurements added: NaN where they did not look."""
        clean = self.context.clean
        assert clean.indices is not None
        step, source = max(1, BLOCK // clean.num_classes), self.context.temperatures
        blocks = [
            columns_of(clean.logits[block], clean.labels[block], None if source is None else source.temperatures[block])
            for block in (slice(start, start + step) for start in range(0, len(clean), step))
        ]
        rows = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        if source is not None:
            rows["temperature"] = source.temperatures.double().numpy()
        promises = self.context.promises
        if promises is not None:
            rows |= promises.columns(clean.logits, clean.labels, promises.folds)
        whole = in_order([{"index": clean.indices.numpy(), **rows}])
        for task in self.store.plan.tasks:
            result = None if task.conditions else self.store.read(name_of(task))
            if result is not None and "columns" in result:
                where = np.searchsorted(whole["index"], result["columns"]["index"])
                for name, values in result["columns"].items():
                    if name != "index":
                        column = whole.setdefault(name, np.full(len(whole["index"]), np.nan, np.float32))
                        column[where] = np.array(values, np.float32)  # None becomes NaN
        return whole

    def clean(self, max_images: int | None = None) -> Rows:
        """The images of a subset, in the order of their index."""
        indices = np.sort(self.context.indices[self.context.rows(max_images)].numpy())
        where = np.searchsorted(self.everything["index"], indices)
        return {name: values[where] for name, values in self.everything.items()}

    def seen(self, label: str) -> list[Any]:
        """What a measurement saw, chunk by chunk."""
        tasks = [task for task in self.store.plan.tasks if task.label == label and not task.conditions]
        return [self.store.read(name_of(task))["seen"] for task in tasks]


@dataclass(frozen=True)
class OwnColumns:
    """The table as one measurement sees it: its columns under the names that it gave them."""

    table: AuditTable
    names: Mapping[str, str]

    def clean(self, max_images: int | None = None) -> Rows:
        rows = self.table.clean(max_images)
        return rows | {name: rows[stored] for name, stored in self.names.items() if stored in rows}

    def rows(self, condition: str, max_images: int | None = None) -> Rows:
        return self.table.rows(condition, max_images)

    def seen(self, label: str) -> list[Any]:
        return self.table.seen(label)


def left_out(store: Store, label: str) -> str | None:
    """Why a measurement could not be made, if so."""
    tasks = [task for task in store.plan.tasks if task.label == label and not task.conditions]
    values = [*(store.read(name_of(task)) for task in tasks), store.read(label)]
    return next((value[NOTE] for value in values if isinstance(value, dict) and NOTE in value), None)


def run_whole(context: Context, store: Store, measurements: Measurements) -> None:
    """What looks at the model as a whole: each measurement by one process."""
    rank, processes = share_of_work()
    for index, (label, measurement) in enumerate(measurements.items()):
        if index % processes == rank and store.read(label) is None:
            now(f"measuring {label}")
            with global_seed(context.seed, "audit", label):
                try:
                    result = measurement.run(context)
                except SurefootError as error:
                    result = {NOTE: str(error)}
            store.write(label, {"found": result} if not (isinstance(result, dict) and NOTE in result) else result)
    for label in measurements:
        store.wait_for(label)


def summaries(
    context: Context, store: Store, table: AuditTable, measurements: Measurements
) -> tuple[dict[str, Summary], list[str]]:
    """Every measurement summed up, and a note for each that was not possible."""
    by_label, notes = dict[str, Summary](), []
    names = column_names(measurements)
    for label, measurement in measurements.items():
        reason = left_out(store, label)
        if reason is None:
            try:
                by_label[label] = measurement.summarise(context, OwnColumns(table, names[label]), store.read(label)["found"])
            except SurefootError as error:
                reason = str(error)
        if reason is not None:
            notes.append(f"{label.replace('-', ' ')}: {reason}")
    return by_label, notes


def measure(context: Context, measurement: Measurement, label: str = "measurement") -> Summary:
    """One measurement by itself, in memory, as a study makes it; what is not possible is an error."""
    one = {label: measurement}
    plan = whole_plan(first_plan(context, one, {}), context, one)
    store = Store(plan, None, {})
    tasks = [task for task in plan.tasks if task.label != CLEAN]
    if tasks:
        run_tasks(Worker(context, one), store, tasks, title=label, progress=False)
    with global_seed(context.seed, "audit", label):
        result = measurement.run(context)
    reason = left_out(store, label)
    if reason is not None:
        raise SurefootError(reason)
    return measurement.summarise(context, AuditTable(context, store), result)
