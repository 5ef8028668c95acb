"""Speed of the corruptions in ms for an image, beside torch-uncertainty or a loop over single images.

Both sides run in turn in one process (severity 3, two threads). Where torch-uncertainty is installed, which takes single images
and has no spatter, it is the other side; otherwise a loop of plain NumPy, SciPy and Pillow, which the tests compare with. With
`--copies`, all 95 copies of 10,000 images of 32 px are made in memory, and the time and the peak of memory are printed.
"""

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
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
SIZES = {32: (512, 16, 7), 224: (16, 4, 5)}  # side: images for ours, images for the loop, rounds


def one_by_one(name: str, side: int, images: torch.Tensor) -> None:
    """The loop over single images, with frost from a photograph of noise."""
    settings, generator = constants(name, SEVERITY, str(side)), np.random.default_rng(0)
    extra = ([np.random.default_rng(1).random((256, 256, 3))],) if name == "frost" else ()
    for image in images:
        plain.levels(getattr(plain, name)(to_numpy(image), settings, generator, *extra))


PEER = {  # torch-uncertainty's classes
    "gaussian_noise": "GaussianNoise",
    "shot_noise": "ShotNoise",
    "impulse_noise": "ImpulseNoise",
    "speckle_noise": "SpeckleNoise",
    "gaussian_blur": "GaussianBlur",
    "defocus_blur": "DefocusBlur",
    "glass_blur": "GlassBlur",
    "motion_blur": "MotionBlur",
    "zoom_blur": "ZoomBlur",
    "snow": "Snow",
    "frost": "Frost",
    "fog": "Fog",
    "brightness": "Brightness",
    "contrast": "Contrast",
    "saturate": "Saturation",
    "pixelate": "Pixelate",
    "jpeg_compression": "JPEGCompression",
    "elastic_transform": "Elastic",
}


def peer(name: str) -> Callable[[torch.Tensor], object] | None:
    """torch-uncertainty's transform, if it is installed, has it and can be built here (frost downloads its photographs)."""
    if find_spec("torch_uncertainty") is None or name not in PEER or name == "frost":
        return None
    transforms = import_module("torch_uncertainty.transforms.corruption")
    transform: Callable[[torch.Tensor], object] = getattr(transforms, PEER[name])(SEVERITY)
    return transform


def compare(side: int) -> None:
    """A line for each corruption."""
    many, few, rounds = SIZES[side]
    images = pictures(many, side)
    print(f"{side} px, severity {SEVERITY}, ms for an image")
    found = []
    for name in NAMES:
        theirs = peer(name)
        jobs = {"ours": lambda name=name: corrupt(images, name, SEVERITY)}
        if theirs is None:
            jobs["loop"] = lambda name=name: one_by_one(name, side, images[:few])
        else:
            jobs["peer"] = lambda theirs=theirs: [theirs(image) for image in images[:few]]
        seconds = interleaved(jobs, rounds=rounds)
        (other,) = seconds.keys() - {"ours"}
        ours, beside = 1000 * seconds["ours"] / many, 1000 * seconds[other] / few
        found.append((ours, beside))
        print(f"  {name:20} ours {ours:9.4f}   {other} {beside:9.3f}   ratio {beside / ours:8.1f}", flush=True)
    ratio = statistics.median(beside / ours for ours, beside in found)
    print(
        f"  {'sum':20} ours {sum(o for o, _ in found):9.4f}   other {sum(b for _, b in found):8.3f}   median ratio {ratio:.1f}"
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
