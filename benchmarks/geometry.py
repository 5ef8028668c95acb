"""What the geometry measurements cost.

Eq. 21 with 20 draws: at most 1.1x of 21 forward-backward passes without gradients of the weights.
"""

import argparse
import time

import torch
from torch.nn import functional as F

import surefoot as sf
from _timing import ratios
from surefoot.allocator import keep_large_blocks
from surefoot.seeds import generator

DRAWS = 20


def plain_passes(model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> None:
    """As many gradients at the pixels as Eq. 21 needs, and nothing else."""
    for _ in range(DRAWS + 1):
        points = images.clone().requires_grad_()
        torch.autograd.grad(F.cross_entropy(model(points), labels, reduction="sum"), points)


def curvature_cost(
    name: str = "small-resnet", size: int = 32, batch: int = 64, rounds: int = 5, cpu_time: bool = False
) -> float:
    """The median ratio of Eq. 21 to its passes, measured in turns; by CPU time where others use the machine."""
    model = sf.load_model(name, num_classes=10, image_size=size, seed=0).eval()
    for weight in model.parameters():
        weight.requires_grad_(False)
    images = torch.rand(batch, 3, size, size, generator=generator(0))
    labels = torch.randint(10, (batch,), generator=generator(1))
    jobs = {
        "passes": lambda: plain_passes(model, images, labels),
        "eq. 21": lambda: sf.geometry.input_curvature(model, images, labels, DRAWS, generator=generator(2)),
    }
    clock = time.process_time if cpu_time else time.perf_counter
    found = ratios(jobs, "passes", rounds, clock)["eq. 21"]
    print(
        f"{name}, {batch} images of {size} px: Eq. 21 with K = {DRAWS} costs {found:.3f}x of {DRAWS + 1} passes (at most 1.1)"
    )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["small-resnet"])
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine")
    chosen = parser.parse_args()
    keep_large_blocks()
    for name in chosen.models:
        curvature_cost(name, chosen.size, chosen.batch, chosen.rounds, chosen.cpu_time)
