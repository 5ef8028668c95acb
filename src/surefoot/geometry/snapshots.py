"""Pictures of a representation space while `sf.fit` trains the model (representation-space Fig. 12)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..errors import require
from ..types import Images, Labels
from .planes import RepresentationPlane, representation_plane


@contextmanager
def plane_snapshots(
    model: nn.Module, images: Images, labels: Labels, every: int = 1, resolution: int | None = None
) -> Iterator[dict[int, RepresentationPlane]]:
    """Inside the block, fill a dictionary from epoch to plane: 0 before training, then after each `every`-th epoch.

    An epoch has ended when the model, after it was trained, is first asked in inference mode, as `sf.fit` does to validate.
    In a loop of your own, call `representation_plane` where you want it.
    """
    require(every >= 1, "every", "at least 1", every)
    planes = {0: representation_plane(model, images, labels, resolution=resolution)}
    state = {"epoch": 0, "trained": 0}

    def watch(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if module.training:
            state["trained"] = 1
        elif state["trained"] and torch.is_inference_mode_enabled():
            state["epoch"], state["trained"] = state["epoch"] + 1, 0
            if state["epoch"] % every == 0:
                with torch.inference_mode(False):
                    planes[state["epoch"]] = representation_plane(model, images, labels, resolution=resolution)

    hook = model.register_forward_pre_hook(watch)
    try:
        yield planes
    finally:
        hook.remove()
