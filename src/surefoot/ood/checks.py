"""The usual mistakes with foreign pictures, found before anything is scored; a set that is the known data is refused."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import torch
from torch import Tensor

from ..data.arguments import SPLITS
from ..data.dataset import Dataset, TensorSplit
from ..data.image_files import read_image
from ..errors import SurefootError
from ..models.preflight import Finding
from .foreign import ForeignSet, are_jpeg

SAMPLE = 256  # foreign pictures that are looked at
SAME = 0.5  # of them among the known ones is the known data
SHOWN = 5


def check_foreign(sets: Mapping[str, ForeignSet], data: Dataset, split: str) -> list[Finding]:
    """A finding for each mistake; refuses a set whose pictures are those of the split."""
    known = data.split(split)
    files = getattr(known, "files", None)
    size = read_size(files) if files else data.image_size
    jpeg = are_jpeg(files)
    findings = []
    for name, each in sets.items():
        if each.made:
            continue
        shared = shared_pictures(each, data)
        if shared >= SAME:
            raise SurefootError(
                f"Foreign set '{name}' holds the known pictures: {100 * shared:.0f} % of it are in the data set itself."
            )
        if shared:
            findings.append(
                Finding(
                    "foreign-overlap",
                    f"{100 * shared:.0f} % of the foreign pictures of '{name}' are in the data set itself.",
                    "Take them out: to a detector they are known.",
                )
            )
        if each.size is not None and size is not None and each.size != size:
            findings.append(
                Finding(
                    "foreign-size",
                    f"Foreign pictures of '{name}' are {across(each.size)}, the known ones {across(size)}.",
                    "They are resized, and a detector may see that instead of the content; use pictures of the same size.",
                )
            )
        if each.jpeg is not None and jpeg is not None and each.jpeg != jpeg:
            kinds = ("JPEG", "not compressed so") if each.jpeg else ("not JPEG", "JPEG")
            findings.append(
                Finding(
                    "foreign-compression",
                    f"Foreign pictures of '{name}' are {kinds[0]}, the known ones {kinds[1]}.",
                    "A detector may see the compression instead of the content; store both alike.",
                )
            )
        both = sorted({one.lower() for one in each.class_names} & {one.lower() for one in data.class_names})
        if both:
            shown = ", ".join(both[:SHOWN]) + (", ..." if len(both) > SHOWN else "")
            findings.append(
                Finding(
                    "foreign-classes",
                    f"Foreign set '{name}' and the known data have {len(both)} classes of the same name: {shown}.",
                    "Pictures of a known class are not foreign: take those classes out of the set.",
                )
            )
    return findings


def shared_pictures(foreign: ForeignSet, data: Dataset) -> float:
    """The share of some foreign pictures that are in a split of the known data, by file or, in memory, by pixels."""
    splits = [data.split(name) for name in SPLITS]
    theirs = getattr(foreign.split, "files", None)
    ours = {path.resolve() for known in splits for path in getattr(known, "files", None) or ()}
    if ours and theirs:
        return sum(path.resolve() in ours for path in theirs) / len(theirs)
    batch = next(foreign.batches(SAMPLE, SAMPLE, data.channels, "cpu"))
    pixels = hashes(batch.images.mul(255).round().to(torch.uint8))
    everything = {each for known in splits if isinstance(known, TensorSplit) for each in hashes(known.images)}
    return sum(each in everything for each in pixels) / len(pixels)


def hashes(images: Tensor) -> list[bytes]:
    return [blake2b(image.tobytes(), digest_size=8).digest() for image in images.contiguous().numpy()]


def read_size(files: object) -> tuple[int, int] | None:
    """The size of the first known picture, before it was made as the model wants it."""
    first = next(iter(files), None)  # type: ignore[call-overload]
    if first is None:
        return None
    image = read_image(first)
    return image.height, image.width


def across(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"
