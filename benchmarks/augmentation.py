"""Speed of batched augmentation, in images a second, beside a loop of torchvision's transforms over single images.

The first table is why `shift_and_flip` is a gather: the same crop by other means.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms import v2

from _timing import interleaved, show
from surefoot.allocator import keep_large_blocks
from surefoot.data.augmentation import Augmentation
from surefoot.imageops.warp import shift_and_flip

keep_large_blocks()
torch.set_num_threads(2)
COUNT, CHANNELS, SIDE, PADDING = 512, 3, 32, 4
images = torch.rand(COUNT, CHANNELS, SIDE, SIDE)
top, left = torch.randint(2 * PADDING + 1, (2, COUNT))
flip = torch.rand(COUNT) < 0.5


def indexing(images: Tensor) -> Tensor:
    """Crop and flip by advanced indexing."""
    rows = top[:, None] + torch.arange(SIDE)
    columns = torch.arange(SIDE)
    columns = torch.where(flip[:, None], SIDE - 1 - columns, columns) + left[:, None]
    which, channel = torch.arange(COUNT)[:, None, None, None], torch.arange(CHANNELS)[:, None, None]
    return F.pad(images, (PADDING,) * 4)[which, channel, rows[:, None, :, None], columns[:, None, None, :]]


def windows(images: Tensor) -> Tensor:
    """Crop by choosing among strided windows, then flip."""
    every = F.pad(images, (PADDING,) * 4).unfold(2, SIDE, 1).unfold(3, SIDE, 1)
    cut = every[torch.arange(COUNT), :, top, left]
    return torch.where(flip[:, None, None, None], cut.flip(3), cut)


def two_gathers(images: Tensor) -> Tensor:
    """Gather rows, then columns."""
    rows = (top[:, None] + torch.arange(SIDE))[:, None, :, None].expand(-1, CHANNELS, -1, SIDE + 2 * PADDING)
    columns = torch.arange(SIDE)
    columns = torch.where(flip[:, None], SIDE - 1 - columns, columns) + left[:, None]
    tall = F.pad(images, (PADDING,) * 4).gather(2, rows)
    return tall.gather(3, columns[:, None, None, :].expand(-1, CHANNELS, SIDE, -1))


def gather(images: Tensor) -> Tensor:
    """The one in use."""
    return shift_and_flip(images, top, left, flip, PADDING)


def one_by_one(transform: Callable[[Tensor], Tensor]) -> Callable[[], Tensor]:
    """A per-image loop, as a data loader's worker runs it."""
    return lambda: torch.stack([transform(image) for image in images])


for kind, batch in {"float32": images, "uint8": (images * 255).to(torch.uint8)}.items():
    ways = [gather, two_gathers, windows, indexing]
    found = interleaved({way.__name__: lambda way=way, batch=batch: way(batch) for way in ways}, rounds=15)
    show(f"crop and flip of {COUNT} images, {kind}: gather gives {COUNT / found['gather']:,.0f} images/s", found, "gather")

kinds: dict[str, tuple[Augmentation, Callable[[Tensor], Tensor]]] = {
    "crop": (Augmentation(crop_padding=0.125), v2.RandomCrop(SIDE, padding=PADDING)),
    "flip": (Augmentation(flip=True), v2.RandomHorizontalFlip()),
    "crop and flip": (
        Augmentation(crop_padding=0.125, flip=True),
        v2.Compose([v2.RandomCrop(SIDE, padding=PADDING), v2.RandomHorizontalFlip()]),
    ),
    "colour jitter": (Augmentation(colour_jitter=0.4), v2.ColorJitter(0.4, 0.4, 0.4)),
    "rotation": (Augmentation(rotation=15), v2.RandomRotation(15, v2.InterpolationMode.BILINEAR)),
    "perspective": (Augmentation(perspective=0.3), v2.RandomPerspective(0.3, p=1)),
    "rotation and perspective": (
        Augmentation(rotation=15, perspective=0.3),
        v2.Compose([v2.RandomRotation(15, v2.InterpolationMode.BILINEAR), v2.RandomPerspective(0.3, p=1)]),
    ),
}
print(f"{COUNT} images of {CHANNELS} x {SIDE} x {SIDE}, float32, 2 threads")
for name, (augmentation, transform) in kinds.items():
    jobs = {"ours": lambda a=augmentation: a(images), "loop": one_by_one(transform)}
    found = interleaved(jobs, rounds=5)
    ours, loop = COUNT / found["ours"], COUNT / found["loop"]
    print(f"  {name:26} {ours:10,.0f} images/s   torchvision loop {loop:8,.0f} images/s   ratio {ours / loop:6.1f}")
