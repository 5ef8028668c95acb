"""Our own recipe, searched on validation images: one trial is one training at CPU scale (docs/results, "A recipe of our own").

    python scripts/recipe_search.py CIFAR_FOLDER cross-entropy
    python scripts/recipe_search.py CIFAR_FOLDER surefoot --objective smoothing=0.05 --training ema_decay=0.998
    python scripts/recipe_search.py CIFAR_FOLDER surefoot --objective 'view=[augmix, contrast]' --training ema_decay=0.998

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
from surefoot.objectives.methods import build_objective
from surefoot.seeds import global_seed

TRAINING = {
    "epochs": 20,
    "batch_size": 128,
    "optimiser": "sgd",
    "learning_rate": 0.1,
    "weight_decay": 5e-4,
    "schedule": "cosine",
    "warmup_epochs": 1,
    "keep": "last",
    "precision": "float32",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("name")
    parser.add_argument("--objective", nargs="*", default=[], metavar="OPTION=VALUE")
    parser.add_argument("--training", nargs="*", default=[], metavar="OPTION=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = sf.load_data(given.folder, fraction=0.25)
    with global_seed(given.seed, "model"):
        model = sf.load_model("small-resnet", num_classes=data.num_classes, image_size=32)
    objective = build_objective(given.name, values(given.objective))
    options = TRAINING | values(given.training)
    model = sf.fit(model, objective, data, seed=given.seed, progress=False, **options).model.eval()
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
    print(json.dumps({"objective": objective.options(), "training": values(given.training), **found}))


def values(words: list[str]) -> dict[str, Any]:
    """Options as a recipe writes them, in YAML."""
    return {name: yaml.safe_load(value) for name, value in (word.split("=", 1) for word in words)}


if __name__ == "__main__":
    main()
