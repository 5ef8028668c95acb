"""What a cheaper MaCS keeps: cross-entropy, MaCS, and MaCS with its consistency on a part of each batch, over seeds.

`python benchmarks/cheap_macs.py --cifar FOLDER` trains what is not there yet (a run that was stopped goes on) and prints two
tables in Markdown: digits, and a tenth of the CIFAR-10 folder, small net. `step_cost.py` measures the cost of a step.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import torch

import surefoot as sf
from surefoot.corruptions import NAMES, corrupt
from surefoot.data.dataset import Dataset
from surefoot.models.classifier import predict, transformed
from surefoot.seeds import generator
from surefoot.types import Batch, Predictions

METHODS = {
    "cross-entropy": sf.objectives.CrossEntropy,
    "MaCS": sf.objectives.MaCS,
    "MaCS, every 4th image": lambda: sf.objectives.MaCS(consistency_stride=4),
    "MaCS, every 8th image": lambda: sf.objectives.MaCS(consistency_stride=8),
}
SEVERITIES, IMAGES = (3,), 1000
COLUMNS = ("accuracy", "ECE", "accuracy, noise 0.1", "ECE, noise 0.1", "accuracy, 19 corruptions", "ECE, 19 corruptions")


def noisy(batch: Batch) -> torch.Tensor:
    """Gaussian noise of standard deviation 0.1, the same for every method and seed, clipped as a picture is."""
    draws = torch.stack([torch.randn(batch.images[0].shape, generator=generator("noise", int(i))) for i in batch.indices])
    return (batch.images + 0.1 * draws).clamp(0, 1)


def pair(answers: Predictions) -> tuple[float, float]:
    return float(answers.correct.double().mean()), sf.calibration.reliability(answers).ece


def measure(model: torch.nn.Module, data: Dataset) -> list[float]:
    """Accuracy and ECE: clean, under noise, and the mean over the 19 corruptions at severity 3."""
    chosen = torch.randperm(len(data.test), generator=generator("chosen"))[:IMAGES].sort().values
    batches = [
        Batch(batch.images[keep], batch.labels[keep], batch.indices[keep])
        for start, batch in zip(range(0, len(data.test), 250), data.test.batches(250), strict=False)
        if len(keep := chosen[(chosen >= start) & (chosen < start + 250)] - start)
    ]
    cells = [
        pair(predict(model, transformed(batches, lambda b, n=name, s=severity: corrupt(b.images, n, s, indices=b.indices))))
        for name in NAMES
        for severity in SEVERITIES
    ]
    means = [statistics.fmean(cell[k] for cell in cells) for k in range(2)]
    return [*pair(predict(model, data.test.batches(250))), *pair(predict(model, transformed(batches, noisy))), *means]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cifar", type=Path, help="folder with train/ and test/ of CIFAR-10")
    parser.add_argument("--runs", type=Path, default=Path("runs/cheap-macs"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="a part of the name of a data set")
    parser.add_argument("--train-only", action="store_true", help="leave the measurements for another call")
    given = parser.parse_args()
    sets = {"digits": (lambda: sf.load_data("digits"), 20)}
    if given.cifar:
        sets["a tenth of CIFAR-10"] = (lambda: sf.load_data(str(given.cifar), fraction=0.1, image_size=32), 12)
    for title, (load, epochs) in sets.items():
        if given.only and given.only not in title:
            continue
        data = load()
        print(f"\n{title}: {len(data.train)} training images, {epochs} epochs, {given.seeds} seeds, mean and deviation in %\n")
        print("| | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (len(COLUMNS) + 1))
        for name, make in METHODS.items():
            rows = []
            for seed in range(given.seeds):
                model = sf.load_model("small-resnet", data=data, seed=seed)
                folder = given.runs / f"{title}-{name}-{seed}".replace(" ", "-").replace(",", "")
                run = sf.fit(model, make(), data, epochs=epochs, seed=seed, output=folder, progress=False)
                if not given.train_only:
                    rows.append(measure(run.predictor, data))
            if rows:
                shown = [f"{100 * statistics.fmean(c):.1f} ± {100 * statistics.stdev(c):.1f}" for c in zip(*rows, strict=True)]
                print(f"| {name} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
