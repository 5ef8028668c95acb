"""How good the estimates of an audit's time are: what was expected over what was taken, for each part, on a quiet machine.

`--run DIR` is a trained net with its data. `small` is a ResNet-20 on 32 px, `large` is tf_efficientnet_lite0 at 224 px, with
weights at random, which cost what others do but under attack.
"""

import argparse
import time
from collections import defaultdict
from typing import Any

import timm
import torch

import surefoot as sf
from audit import resnet20
from surefoot.auditing import audit as auditing
from surefoot.auditing import passes
from surefoot.auditing.budget import expected
from surefoot.data.dataset import Dataset, TensorSplit

NETS = {"small": (resnet20, 32, 10), "large": (lambda: timm.create_model("tf_efficientnet_lite0"), 224, 1000)}


def timed(name: Any, function: Any, spent: dict[str, float]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[name(*args)] += time.perf_counter() - began

    return call


def trained(folder: str, images: int) -> tuple[torch.nn.Module, Dataset]:
    run = sf.load_run(folder)
    return run.predictor, sf.load_data(**{**run.recipe.data, "max_images": images})


def at_random(net: str, images: int) -> tuple[torch.nn.Module, Dataset]:
    build, size, classes = NETS[net]
    torch.manual_seed(0)
    pictures = torch.randint(0, 256, (images, 3, size, size), dtype=torch.uint8)
    labels = torch.arange(images) % classes
    test = TensorSplit(pictures, labels, torch.arange(images))
    none = TensorSplit(pictures[:0], labels[:0], torch.arange(0))
    return sf.adapt(build().eval(), 0, 1, size), Dataset(none, none, none, test, tuple(map(str, range(classes))), (size, size))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=NETS, default="small")
    parser.add_argument("--run", help="Folder of a run")
    parser.add_argument("--depth", default="quick")
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--time", type=float, help="Seconds that the audit may take")
    given = parser.parse_args()
    model, data = trained(given.run, given.images) if given.run else at_random(given.net, given.images)
    spent: dict[str, float] = defaultdict(float)
    said: dict[str, float] = {}

    def announced(worker: Any, store: Any, *_: Any) -> None:
        said.update(expected(worker.measurements, worker.context, store.plan.seconds))

    auditing.announce = announced
    passes.Worker.do = timed(lambda worker, task, *_: task.label, passes.Worker.do, spent)  # type: ignore[method-assign]
    kinds: Any = passes.Measurement.__subclasses__() + [
        kind for each in passes.Measurement.__subclasses__() for kind in each.__subclasses__()
    ]
    for kind in kinds:
        kind.run = timed(lambda measurement, *_: f"run of {type(measurement).__name__.lower()}", kind.run, spent)
    auditing.summaries = timed(lambda *_: "summaries", auditing.summaries, spent)
    auditing.assemble = timed(lambda *_: "scores of clean images", auditing.assemble, spent)
    auditing.check_first = timed(lambda *_: "preflight", auditing.check_first, spent)
    began = time.perf_counter()
    sf.audit(model, data, depth=given.depth, progress=False, time_budget=given.time)
    whole = time.perf_counter() - began
    for label in dict.fromkeys([*said, *spent]):
        if said.get(label, 0) + spent.get(label, 0) > 0.01 * whole:
            print(f"{label:24} expected {said.get(label, 0):8.2f} s, taken {spent.get(label, 0):8.2f} s")
    print(f"all: expected {sum(said.values()):.1f} s, taken {whole:.1f} s, ratio {sum(said.values()) / whole:.2f}")
