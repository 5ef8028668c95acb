"""Our own recipe, searched on validation images: one trial is one training at CPU scale (docs/results, "A recipe of our own").

    python scripts/recipe_search.py CIFAR_FOLDER cross-entropy
    python scripts/recipe_search.py CIFAR_FOLDER surefoot --objective consistency_stride=2 --seed 1
    python scripts/recipe_search.py CIFAR_FOLDER surefoot --training ema_decay=0.998

Prints accuracy and ECE in percent: on the validation images as they are, on 600 of them under 19 corruptions at severities 1, 3
and 5, and under the ten of CIFAR-10-C-bar at severity 3. No test image is looked at.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch
import yaml

import surefoot as sf
from surefoot.corruptions import CBAR_CIFAR, COMMON15, EXTRA4, corrupt
from surefoot.data.subsets import choose
from surefoot.studies.cells import cells_of
from surefoot.studies.study_files import read_study
from surefoot.training.recipes import Recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("name")
    parser.add_argument("--objective", nargs="*", default=[], metavar="OPTION=VALUE")
    parser.add_argument("--training", nargs="*", default=[], metavar="OPTION=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    objective, training = values(given.objective), values(given.training)
    cell = cells_of(read_study("main", "cpu"), given.folder)[0].recipe  # cross-entropy in the main comparison
    sections = {"data": cell.data, "model": cell.model, "training": cell.training | training, "seed": given.seed}
    recipe = Recipe.check({**sections, "objective": {"name": given.name, **objective}, "augmentation": cell.augmentation})
    data, model = recipe.load_data(), recipe.run(progress=False).predictor.eval()
    few = choose(data.validation, 600, 0)

    def scored(images: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
        with torch.inference_mode():
            logits = torch.cat([model(part) for part in images.split(250)])
        scores = sf.calibration.scores(sf.Predictions.from_logits(logits, labels), intervals=0)
        return 100 * scores.accuracy, 100 * scores.ece

    def under(names: tuple[str, ...], severities: tuple[int, ...]) -> list[float]:
        pixels = few.images.float() / 255
        cells = [
            scored(corrupt(pixels, name, severity, seed=0, indices=few.indices), few.labels)
            for name in names
            for severity in severities
        ]
        return [round(sum(column) / len(cells), 2) for column in zip(*cells, strict=True)]

    clean = [round(value, 2) for value in scored(data.validation.images.float() / 255, data.validation.labels)]
    found = {"clean": clean, "corruptions": under((*COMMON15, *EXTRA4), (1, 3, 5)), "c-bar": under(CBAR_CIFAR, (3,))}
    print(json.dumps({"objective": recipe.objective, "training": training, "seed": given.seed, **found}))


def values(words: list[str]) -> dict[str, Any]:
    """Options as a recipe writes them, in YAML."""
    return {name: yaml.safe_load(value) for name, value in (word.split("=", 1) for word in words)}


if __name__ == "__main__":
    main()
