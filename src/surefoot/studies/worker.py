"""One cell in a process of its own: train, then measure what is missing, writing each result as it is finished.

`python -m surefoot.studies.worker JOB` is what the engines start. It ends when its standard input does, that is, with the
process that started it, so that killing a study leaves nothing behind.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from ..data.dataset import Dataset
from ..errors import SurefootError
from ..models.prediction import pick_device
from ..training.recipes import Recipe
from ..version import VERSION
from .cell_runs import alone, run_folder, train
from .cells import Cell, measure_digest, whole
from .jobs import Job, read_job
from .measuring import MEASUREMENTS, validation_only
from .results import Results
from .subjects import Subject


def job_of(cell: Cell, labels: list[str], results: Path, work: Path, **place: Any) -> Job:
    """The job that is left of a cell."""
    measure = {label: cell.measure[label] for label in labels}
    folders = (str(results.resolve()), str(work.resolve()))
    return Job(cell.name, cell.recipe.to_yaml(), str(cell.labels["data"]), cell.trained, measure, *folders, **place)


def run_job(job: Job) -> list[str]:
    """Do a job in this process; the failures, by the label of the measurement or "training"."""
    import yaml

    torch.set_num_threads(job.threads)
    recipe, results, work = Recipe.check(yaml.safe_load(job.recipe)), Results(job.results), Path(job.work)
    with alone(work, f"{job.cell}.results"):
        results.begin(job.cell, whole(recipe), {"surefoot": VERSION, "versions": versions(), "data_label": job.data_label})
    try:
        subject = subject_of(job, recipe, work, results)
    except Exception:
        traceback.print_exc()
        return ["training"]
    failed = []
    for label, measure in job.measure.items():
        name, options = measure
        began = time.perf_counter()
        print(f"measuring {label}", flush=True)
        try:
            seen = subject.without_test() if name in validation_only() else subject
            metrics = MEASUREMENTS.load(name)(seen, **options)
        except Exception:
            traceback.print_exc()
            failed.append(label)
            continue
        about = {"seconds": round(time.perf_counter() - began, 2), "surefoot": VERSION}
        with alone(work, f"{job.cell}.results"):  # another study may add to the same cell
            results.add(job.cell, measure_digest(job.cell, measure), measure, metrics, about)
    return failed


def subject_of(job: Job, recipe: Recipe, work: Path, results: Results) -> Subject:
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
    return Subject(recipe, model, objective, predictor, data, device, work, job.data_label)


def versions() -> dict[str, str]:
    import timm

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "timm": timm.__version__,
        "machine": platform.machine(),
    }


def end_with_parent() -> None:
    """Leave at once when standard input ends."""

    def wait() -> None:
        while os.read(0, 1):  # not sys.stdin, whose lock would be held when the interpreter ends
            pass
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        raise SurefootError("usage: python -m surefoot.studies.worker JOB")
    end_with_parent()
    failed = run_job(read_job(Path(arguments[0])))
    if failed:
        print(f"failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
