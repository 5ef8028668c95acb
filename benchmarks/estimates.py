"""How good the estimates of an audit's time are: what was expected over what was taken, in processor time, for each part.

`small` is a ResNet-20 on 32 px, `large` is tf_efficientnet_lite0 at 224 px, with weights at random, which cost what others do.
"""

import argparse
import time
import types
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
        began = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent[name(*args)] += time.process_time() - began

    return call


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=NETS, default="small")
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--time", type=float, help="Seconds that the audit may take")
    given = parser.parse_args()
    build, size, classes = NETS[given.net]
    torch.manual_seed(0)
    pictures = torch.randint(0, 256, (given.images, 3, size, size), dtype=torch.uint8)
    labels = torch.arange(given.images) % classes
    test = TensorSplit(pictures, labels, torch.arange(given.images))
    none = TensorSplit(pictures[:0], labels[:0], torch.arange(0))
    data = Dataset(none, none, none, test, tuple(map(str, range(classes))), (size, size))
    spent: dict[str, float] = defaultdict(float)
    said: dict[str, float] = {}

    def announced(worker: Any, store: Any, *_: Any) -> None:
        said.update(expected(worker.measurements, worker.context, store.plan.seconds))

    auditing.time = types.SimpleNamespace(perf_counter=time.process_time, sleep=time.sleep)  # type: ignore[attr-defined]
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
    began = time.process_time()
    sf.audit(sf.adapt(build().eval(), 0, 1, size), data, progress=False, time_budget=given.time)
    whole = time.process_time() - began
    for label in dict.fromkeys([*said, *spent]):
        if said.get(label, 0) + spent.get(label, 0) > 0.01 * whole:
            print(f"{label:24} expected {said.get(label, 0):8.2f} s, taken {spent.get(label, 0):8.2f} s")
    print(f"all: expected {sum(said.values()):.1f} s, taken {whole:.1f} s, ratio {sum(said.values()) / whole:.2f}")
