"""Refuse in one line what would not fit into memory, before hours are lost to a process that the system kills."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import SurefootError

COPIES = 2  # the images, and what is made of them: noisy, attacked or joined ones


def check_room(images: int, one: Tensor) -> None:
    """Whether so many images like `one` can be held together where it lies."""
    free = available(one.device)
    needed = COPIES * images * one.nbytes
    if needed > free:
        size, fits = " x ".join(map(str, one.shape)), free // (COPIES * one.nbytes)
        raise SurefootError(
            f"{images:,} images of {size} need {needed / 2**30:.1f} GiB at once, and {free / 2**30:.1f} are free: "
            f"take at most {fits:,} of them (--max-images, max_images=)."
        )


def available(device: torch.device) -> int:
    """Free bytes of the device, or of the machine."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    import psutil

    return int(psutil.virtual_memory().available)
