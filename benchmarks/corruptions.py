"""Speed of the corruptions in ms for an image, beside a loop of plain NumPy, SciPy and Pillow over single images.

Both sides run in turn in one process (severity 3, two threads). The loop is the one that the tests compare with. With
`--copies`, all 95 copies of 10,000 images of 32 px are made in memory, and the time and the peak of memory are printed.
"""

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

from _timing import interleaved
from surefoot.allocator import keep_large_blocks
from surefoot.corruptions import NAMES, corrupt
from surefoot.corruptions.severities import constants

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "corruptions"))
import plain
from pictures import pictures, to_numpy

keep_large_blocks()
torch.set_num_threads(2)
SEVERITY = 3
SIZES = {32: (512, 16, 7), 224: (16, 1, 3)}  # side: images for ours, images for the loop, rounds


def one_by_one(name: str, side: int, images: torch.Tensor) -> None:
    """The loop over single images, with frost from a photograph of noise."""
    settings, generator = constants(name, SEVERITY, str(side)), np.random.default_rng(0)
    extra = ([np.random.default_rng(1).random((256, 256, 3))],) if name == "frost" else ()
    for image in images:
        plain.levels(getattr(plain, name)(to_numpy(image), settings, generator, *extra))


def compare(side: int) -> None:
    """A line for each corruption."""
    many, few, rounds = SIZES[side]
    images = pictures(many, side)
    print(f"{side} px, severity {SEVERITY}, ms for an image")
    found = []
    for name in NAMES:
        jobs = {
            "ours": lambda name=name: corrupt(images, name, SEVERITY),
            "loop": lambda name=name: one_by_one(name, side, images[:few]),
        }
        seconds = interleaved(jobs, rounds=rounds)
        ours, loop = 1000 * seconds["ours"] / many, 1000 * seconds["loop"] / few
        found.append((ours, loop))
        print(f"  {name:20} ours {ours:9.4f}   loop {loop:9.3f}   ratio {loop / ours:8.1f}", flush=True)
    ratio = statistics.median(loop / ours for ours, loop in found)
    print(
        f"  {'sum':20} ours {sum(o for o, _ in found):9.4f}   loop {sum(b for _, b in found):9.3f}   median ratio {ratio:.1f}"
    )


def copies(count: int) -> None:
    """Every corruption at every severity of `count` images of 32 px, one copy in memory at a time."""
    images = (pictures(count, 32) * 255).byte()
    began = time.perf_counter()
    for name in NAMES:
        for severity in (1, 2, 3, 4, 5):
            corrupt(images, name, severity)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{5 * len(NAMES)} copies of {count:,} images of 32 px: {seconds:.1f} s, peak {peak:.2f} GiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=0, metavar="IMAGES", help="make all 95 copies of so many images instead")
    wanted = parser.parse_args().copies
    if wanted:
        copies(wanted)
    else:
        for side in SIZES:
            compare(side)
