"""The cost of a training step of each method relative to cross-entropy (macs Table 9), for any objectives and models.

`python benchmarks/step_cost.py --models small-resnet resnet18 --objectives macs augmix "macs:consistency_stride=4"`
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

import surefoot as sf
from _timing import ratios
from surefoot.allocator import keep_large_blocks
from surefoot.objectives.methods import OBJECTIVES, build_objective
from surefoot.schemas import check_options, parse_value
from surefoot.seeds import generator

BASE = "cross-entropy"


def build(text: str) -> torch.nn.Module:
    """`macs` or `macs:consistency_stride=4,batch_norm=together`."""
    name, _, settings = text.partition(":")
    options = {key: parse_value(value) for key, value in (pair.split("=") for pair in settings.split(",") if pair)}
    return build_objective(name, check_options("objective", OBJECTIVES.load(name), options))


def step_of(text: str, model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor):
    """Forward, backward and update with SGD on weights of its own."""
    objective, optimiser = build(text), torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)

    def step() -> None:
        optimiser.zero_grad()
        objective(model, images, labels, generator=generator(0)).total.backward()
        optimiser.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models", nargs="+", default=["small-resnet", "resnet18", "mobilenetv3_small_100", "vit_tiny_patch16_224"]
    )
    parser.add_argument("--objectives", nargs="+", default=[name for name in OBJECTIVES.names if name != BASE])
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--processor", action="store_true", help="processor time of one thread, for a busy machine")
    given = parser.parse_args()
    if given.processor:
        torch.set_num_threads(1)
    clock = time.process_time if given.processor else time.perf_counter
    keep_large_blocks()
    images = torch.rand(given.batch, 3, given.size, given.size, generator=generator("images"))
    labels = torch.arange(given.batch) % 10
    columns = {}
    for name in given.models:
        model = sf.load_model(name, num_classes=10, image_size=given.size, seed=0).train()
        jobs = {text: step_of(text, model, images, labels) for text in (BASE, *given.objectives)}
        columns[name] = ratios(jobs, BASE, given.rounds, clock)
    print(f"step cost relative to {BASE}: batch {given.batch}, {given.size} px, median of {given.rounds} interleaved rounds")
    print(f"  {'':40}" + "".join(f"{name[:18]:>20}" for name in columns) + f"{'mean':>10}")
    for text in (BASE, *given.objectives):
        values = [column[text] for column in columns.values()]
        print(f"  {text:40}" + "".join(f"{value:19.2f}x" for value in values) + f"{statistics.fmean(values):9.2f}x")


if __name__ == "__main__":
    main()
