"""How well two classes that a small net never saw are told from those that it knows, beside pictures from far away.

`python scripts/near_foreign.py` trains on scikit-learn's digits without 8 and 9, and writes a table of AUROC with intervals.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import torch

import surefoot as sf
from surefoot.auditing.depths import Depth
from surefoot.data.dataset import Dataset, TensorSplit

FAR = ("photographs", "noise-uniform")


def without(data: Dataset, held: Sequence[int]) -> tuple[Dataset, TensorSplit]:
    """The data of the other classes, numbered anew, and the test pictures of those that are held out."""
    kept = [label for label in range(data.num_classes) if label not in held]
    number = torch.full((data.num_classes,), -1)
    number[kept] = torch.arange(len(kept))

    def part(split: TensorSplit, *, known: bool) -> TensorSplit:
        rows = ((number[split.labels] >= 0) == known).nonzero().flatten()
        labels = number[split.labels[rows]].clamp_min(0)
        return replace(split, images=split.images[rows], labels=labels, indices=split.indices[rows])

    splits = {name: part(data.split(name), known=True) for name in ("train", "validation", "calibration", "test")}
    names = tuple(data.class_names[label] for label in kept)
    return replace(data, **splits, class_names=names), part(data.test, known=False)


def audited(data: Dataset, held: Sequence[int], epochs: int, images: int) -> dict[str, dict[str, object]]:
    """The foreign sets of an audit, each with its scores; what is held out is near."""
    known, near = without(data, held)
    model = sf.load_model("small-resnet", data=known, seed=0)
    run = sf.fit(model, sf.objectives.CrossEntropy(), known, epochs=epochs, batch_size=64, seed=0, progress=False)
    foreign = {"near:held out": near, **{name: name for name in FAR}}
    depth = Depth("quick", {"foreign": {"max_images": images, "train_images": 2000}})
    return sf.audit(run.predictor, known, depth=depth, foreign=foreign, progress=False).foreign["sets"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--held", type=int, nargs="+", default=[8, 9], help="classes that are held out")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--images", type=int, default=300)
    given = parser.parse_args()
    sets = audited(sf.load_data("digits", image_size=16, seed=0), given.held, given.epochs, given.images)
    print("| score | " + " | ".join(f"{name} ({'near' if each['near'] else 'far'})" for name, each in sets.items()) + " |")
    print("|---|" + "---|" * len(sets))
    for score in sf.ood.NAMES:
        cells = []
        for each in sets.values():
            found = each["scores"][score]["auroc"]
            best = "**" if each["best"] == score else ""
            cells.append(f"{best}{100 * found:.1f}{best} [{100 * found.low:.1f}, {100 * found.high:.1f}]")
        print(f"| `{score}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
