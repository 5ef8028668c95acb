"""What any block of a model gives, pooled to one vector an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..attacks.gradients import untouched
from ..errors import SurefootError, UnknownName, require
from ..models.observing import bare, is_compiled
from ..types import Features, Images
from .batching import slices


def pooled(output: Tensor) -> Features:
    """Global average pooling: maps (images x channels x height x width) over their area, tokens (images x tokens x dimensions)
    over the tokens; vectors as they are."""
    if output.ndim == 4:
        return output.mean((2, 3))
    return output.mean(1) if output.ndim == 3 else output


def pooled_square(output: Tensor) -> Features:
    """As `pooled`, for square images: then maps with the channels last (Swin in timm) can be told by their shape."""
    last = output.ndim == 4 and output.shape[1] == output.shape[2] != output.shape[3]
    return output.mean((1, 2)) if last else pooled(output)


def block_features(
    model: nn.Module,
    images: Images,
    blocks: Sequence[str],
    pool: Callable[[Tensor], Features] = pooled,
    batch_size: int = 256,
    progress: bool = False,
) -> dict[str, Features]:
    """The pooled output of each named block, all from one pass (discriminative-noise 7.5).

    Names are those of `model.named_modules()`. A block that gives maps with the channels last (Swin in timm) needs another
    `pool`: `pooled_square`, or one of your own.
    """
    require(len(blocks) > 0, "blocks", "at least one name", list(blocks))
    require(len(images) > 0, "images", "at least one", len(images))
    module = bare(model)
    call = module.forward if is_compiled(module) else module  # compiled code does not see new hooks
    known = dict(module.named_modules())
    for name in blocks:
        if name not in known or not name:
            raise UnknownName("block", name, [block for block in known if block])
    seen: dict[str, Tensor] = {}
    found: dict[str, list[Features]] = {name: [] for name in blocks}

    def keep(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(layer: nn.Module, inputs: Any, output: Any) -> None:
            if not isinstance(output, Tensor):
                raise SurefootError(f"Block '{name}' gives {type(output).__name__}, not a tensor; name one inside it.")
            seen[name] = pool(output)

        return hook

    hooks = [known[name].register_forward_hook(keep(name)) for name in found]
    try:
        with untouched(module), torch.no_grad():
            for part in slices(len(images), batch_size, progress, "layers"):
                seen.clear()
                call(images[part])
                for name, rows in found.items():
                    if name not in seen:
                        raise SurefootError(f"Block '{name}' was not called in the forward pass.")
                    rows.append(seen[name])
    finally:
        for each in hooks:
            each.remove()
    return {name: torch.cat(rows) for name, rows in found.items()}
