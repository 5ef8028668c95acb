"""What an audit costs beside its own passes through the model: processor time of all over that of forward and backward.

A quick audit of a ResNet-20 on 2,000 pictures of 32 px, and the share of each part. Prints the ratio; 1 would be free.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import nn

import surefoot as sf
from surefoot.auditing import audit as auditing
from surefoot.auditing import passes
from surefoot.data.dataset import Dataset, TensorSplit

Spent = defaultdict[str, float]


class Block(nn.Module):
    """Two convolutions and a shortcut (He et al. 2016)."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)])
        self.short = nn.Sequential() if inner == outer else nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        inside = self.norms[0](self.one(images)).relu()
        return (self.norms[1](self.two(inside)) + self.short(images)).relu()


def resnet20() -> nn.Module:
    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in pairwise(widths)]
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


@contextmanager
def counted(spent: Spent, model: nn.Module) -> Iterator[None]:
    """Inside the block, processor time of forward and backward passes, and of each part, goes into `spent`."""
    depth = [0]

    def timed(name: Callable[..., str], function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            depth[0] += 1
            try:
                return function(*args, **kwargs)
            finally:
                depth[0] -= 1
                spent[name(*args)] += time.process_time() - began

        return call

    model.forward = timed(lambda *_: "passes", model.forward)  # type: ignore[method-assign]
    kept = torch.autograd.grad, passes.Worker.do, passes.run_whole, auditing.summaries, auditing.assemble
    torch.autograd.grad = timed(lambda *_: "passes", torch.autograd.grad)
    passes.Worker.do = timed(lambda worker, task, *_: f"pass: {task.label}", passes.Worker.do)  # type: ignore[method-assign]
    auditing.run_whole = timed(lambda *_: "whole model", auditing.run_whole)
    auditing.summaries = timed(lambda *_: "summaries", auditing.summaries)
    auditing.assemble = timed(lambda *_: "scores of clean images", auditing.assemble)
    try:
        yield
    finally:
        torch.autograd.grad, passes.Worker.do = kept[:2]  # type: ignore[method-assign]
        auditing.run_whole, auditing.summaries, auditing.assemble = kept[2:]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--depth", default="quick")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(2)
    draws = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (given.images, 3, 8, 8), generator=draws, dtype=torch.uint8)
    pictures = nn.functional.interpolate(pictures.float(), size=32, mode="bilinear").byte()
    split = TensorSplit(pictures, torch.randint(10, (given.images,), generator=draws), torch.arange(given.images))
    data = Dataset(split, split, split, split, tuple("0123456789"), (32, 32))
    best = None
    for _ in range(given.rounds):
        model, spent = sf.adapt(resnet20().eval(), 0.5, 0.25, 32), defaultdict[str, float](float)
        with counted(spent, model):
            began = time.process_time()
            sf.audit(model, data, depth=given.depth, progress=False)
            whole = time.process_time() - began
        ratio = whole / spent["passes"]
        if best is None or ratio < best[0]:
            best = (ratio, whole, spent)
        print(f"audit {whole:.2f} s of processor time, passes {spent['passes']:.2f} s, ratio {ratio:.3f}", flush=True)
    assert best is not None
    ratio, whole, spent = best
    print(f"best of {given.rounds}: ratio {ratio:.3f}; shares of all processor time, passes included:")
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"  {name:28} {100 * seconds / whole:5.1f} %")
