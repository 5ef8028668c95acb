"""How many pictures go through the model at a time, where nobody says it: by what one takes, and by the free memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data.image_files import available
from ..models.last_layer import evaluating
from ..types import Batch, Images
from .plan import read_plan

MOST = 256
BUDGET = 3 << 29  # bytes: 1.5 GiB for what a batch takes, and not more than a quarter of what is free
PASSES = 2  # forward and backward: what a layer gives is kept until its gradient is known
COPIES = 12  # of a picture: itself, its changed versions and their gradients
UNSEEN = 64  # times a picture, for a model whose layers cannot be seen


def chosen_batch_size(model: nn.Module, sample: Batch, folder: Path | None, given: int | None) -> tuple[int, list[str]]:
    """What was given; else that of the audit to go on with; else the largest power of two for which there is room."""
    if given is not None:
        return given, []
    unfinished = read_plan(folder) if folder is not None and (folder / "work").is_dir() else None
    if unfinished is not None and isinstance(unfinished.about.get("batch_size"), int):
        return int(unfinished.about["batch_size"]), []
    one = bytes_of_one(model, sample.images)
    room = min(BUDGET, available(sample.images.device) // 4)
    size = MOST
    while size > 1 and size * one > room:
        size //= 2
    if size == MOST:
        return size, []
    said = f"one takes about {one / 2**20:.0f} MiB in the model, and {room / 2**30:.1f} GiB are for a batch"
    return size, [f"{size} pictures at a time: {said} (--batch-size sets it)."]


def bytes_of_one(model: nn.Module, images: Images) -> int:
    """About what one picture takes: the outputs of all layers, forward and backward, and copies of its pixels."""
    few = images[:2]
    seen = 0

    def count(_: nn.Module, __: Any, output: Any) -> None:
        nonlocal seen
        seen += sum(
            each.nbytes for each in (output if isinstance(output, list | tuple) else [output]) if isinstance(each, Tensor)
        )

    hooks = [layer.register_forward_hook(count) for layer in model.modules() if not any(True for _ in layer.children())]
    try:
        with evaluating(model), torch.no_grad():
            model(few)
    finally:
        for hook in hooks:
            hook.remove()
    picture = few[0].nbytes
    return max(PASSES * seen // len(few), UNSEEN * picture if seen < picture else 0) + COPIES * picture
