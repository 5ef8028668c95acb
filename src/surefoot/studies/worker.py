"""A cell: train, then measure what is missing, writing each result as it is finished.

`python -m surefoot.studies.worker FOLDER` is what the engines start (the folder is for people who look at `ps`). It reads the
paths of jobs from its standard input, does one after the other, and ends when its input does, that is, with the process that
started it, so that killing a study leaves nothing behind.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

from ..auditing.passes import measure as measured
from ..corruptions.published import open_copies
from ..corruptions.weather import frost_photographs
from ..data.arguments import SPLITS
from ..data.dataset import Dataset
from ..errors import SurefootError
from ..measurements.context import Context
from ..measurements.corruptions import GENERATED
from ..measurements.registry import build, validation_only
from ..measurements.temperatures import source_in
from ..models.classifier import Classifier, pick_device
from ..registry import search_current_folder
from ..training.recipes import Recipe
from ..version import VERSION
from .cell_runs import Beside, alone, run_folder, train
from .cells import Cell, measure_digest, whole
from .engines import DONE, FAILED, Job, read_job
from .results import Results

SAMPLE_SEED = 0  # every cell sees the same test images, so that differences are paired


def job_of(cell: Cell, labels: list[str], results: Path, work: Path, **resources: Any) -> Job:
    """The job that is left of a cell."""
    measure = {label: cell.measure[label] for label in labels}
    folders = (str(results.resolve()), str(work.resolve()))
    more = {**resources, "drawn": tuple(sorted(cell.drawn))}
    return Job(cell.name, cell.recipe.to_yaml(), str(cell.labels["data"]), cell.trained, measure, *folders, **more)


def run_job(job: Job) -> list[str]:
    """Do a job in this process; the failures, by the label of the measurement or "training"."""
    import yaml

    torch.set_num_threads(job.threads)
    recipe, results, work = Recipe.check(yaml.safe_load(job.recipe)), Results(job.results), Path(job.work)
    with alone(work, f"{job.cell}.results"):
        origin = {"surefoot": VERSION, "versions": versions(), "data_label": job.data_label}
        results.begin(job.cell, whole(recipe, job.trained), origin)
    try:
        context = context_of(job, recipe, work, results)
    except Exception:
        traceback.print_exc()
        return ["training"]
    failed = []
    for label, measure in job.measure.items():
        name, options = measure
        began = time.perf_counter()
        print(f"measuring {label}", flush=True)
        try:
            seen = context.without_test() if name in validation_only() else context
            measurement = build(name, options)
            with frost_of(job, options):
                summary = measured(seen, measurement, label)
        except Exception:
            traceback.print_exc()
            failed.append(label)
            continue
        about = {"seconds": round(time.perf_counter() - began, 2), "surefoot": VERSION}
        found = measure_digest(job.cell, measure)
        with alone(work, f"{job.cell}.results"):  # another study may add to the same cell
            if label in job.drawn:
                results.add_points(found, summary.figures)
            results.add(job.cell, found, measure, measurement.numbers(summary), about)
    return failed


def context_of(job: Job, recipe: Recipe, work: Path, results: Results) -> Context:
    """The trained model and its data, or the pretrained one as it is."""
    device, began = pick_device(job.device), time.perf_counter()
    data: Dataset = recipe.load_data()
    if job.trained:
        finished = (run_folder(work, job.cell) / "model.safetensors").is_file()
        print("reading the run" if finished else "training", flush=True)
        run = train(recipe, job.data_label, work, job.device, job.processes)
        took = round(time.perf_counter() - began, 2)
        if not finished:
            last = run.history[-1] if run.history else {}
            about = {"seconds": took, "threads": job.threads, "images": len(data.train), "epochs": len(run.history)}
            with alone(work, f"{job.cell}.results"):
                results.add_training(job.cell, {**about, "last_epoch": last})
        model, objective, predictor = run.model, run.objective, run.predictor
    else:
        model, objective = recipe.build_model(data).eval(), recipe.build_objective()
        predictor = model
    chosen = run.recipe.training["precision"] if job.trained else "float32"
    with alone(work, f"{job.cell}.results"):
        results.add_setting(job.cell, {**sizes_of(model, data), "precision": chosen})
    known: dict[str, Any] = {"recipe": recipe, "objective": objective, "space": model}
    known |= {"trainer": Beside(work, job.data_label, str(device)), "calibrate_on": source_in(data), "intervals": 0}
    copies = {origin: folder for origin, folder in job.origins.items() if not origin.startswith(GENERATED)}
    known["published"] = {origin: open_copies(folder, data.class_names) for origin, folder in copies.items()}
    return Context(predictor.to(device), data, data.test, device, seed=SAMPLE_SEED, **known)


def sizes_of(model: Classifier, data: Dataset) -> dict[str, Any]:
    """The size of the images, the size that the model enlarges them to, and how many are in each split."""
    images = {name: len(data.split(name)) for name in SPLITS}
    return {"image_size": list(data.image_size), "resize_to": model.resize_to and list(model.resize_to), "images": images}


def frost_of(job: Job, options: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Photographs of frost for a measurement that names them; else our own texture."""
    origin = options.get("origin", GENERATED)
    if origin == GENERATED or not origin.startswith(GENERATED):
        return nullcontext()
    if origin not in job.origins:
        raise SurefootError(f"The photographs of '{origin}' are not at hand: give their folder (--frost).")
    return frost_photographs(job.origins[origin])


def versions() -> dict[str, str]:
    import timm

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "timm": timm.__version__,
        "machine": platform.machine(),
    }


def orders() -> Iterator[Path]:
    """The jobs named on standard input, a line each. The process ends with its input, at once, whatever it is doing."""
    waiting = SimpleQueue[str]()

    def listen() -> None:
        rest = b""
        while got := os.read(0, 4096):  # not sys.stdin, whose lock would be held when the interpreter ends
            *lines, rest = (rest + got).split(b"\n")
            for line in lines:
                waiting.put(line.decode())
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield Path(waiting.get())


def main() -> None:
    outcomes = os.dup(1)
    search_current_folder()
    for path in orders():
        job = read_job(path)
        with open(job.log, "a", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        failed = run_job(job)
        if failed:
            print(f"failed: {', '.join(failed)}", flush=True)
        os.write(outcomes, FAILED if failed else DONE)


if __name__ == "__main__":
    main()
