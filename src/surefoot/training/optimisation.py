"""The optimiser and the course of its learning rate: timm's, by our names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..errors import SurefootError, require
from .arguments import check_values


def build_optimiser(
    module: nn.Module,
    optimiser: str,
    learning_rate: float,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
    decay_norms_and_biases: bool,
) -> torch.optim.Optimizer:
    """SGD, Adam or AdamW over everything that learns; norms and biases may be left out of weight decay."""
    from timm.optim import create_optimizer_v2

    rates = {"learning_rate": learning_rate, "momentum": momentum, "weight_decay": weight_decay}
    check_values({"optimiser": optimiser, **rates})
    name, options = optimiser, {}
    if optimiser == "sgd":
        require(not nesterov or momentum > 0, "momentum", "positive for nesterov", momentum)
        name, options = ("sgd" if nesterov else "momentum"), {"momentum": momentum}  # timm's "sgd" is Nesterov's
    leave_out = not decay_norms_and_biases
    built: torch.optim.Optimizer = create_optimizer_v2(
        module, opt=name, lr=learning_rate, weight_decay=weight_decay, filter_bias_and_bn=leave_out, **options
    )
    return built


def build_schedule(
    optimiser: torch.optim.Optimizer,
    schedule: str,
    epochs: int,
    steps: int,
    warmup_epochs: int,
    decay_epochs: int | Sequence[int],
    decay_rate: float,
) -> Any:
    """timm's scheduler; `step_update(n)` sets the rate after n updates, so it has no state to store.

    The first `warmup_epochs` rise linearly. "cosine" then falls to 0 at the last update; "step" multiplies by `decay_rate` at
    each of `decay_epochs` (a number: every so many epochs); "constant" stays.
    """
    from timm.scheduler import CosineLRScheduler, MultiStepLRScheduler

    check_values({"schedule": schedule, "decay_rate": decay_rate})
    require(0 <= warmup_epochs <= epochs, "warmup_epochs", f"from 0 to epochs = {epochs}", warmup_epochs)
    warmup = warmup_epochs * steps
    rate = optimiser.param_groups[0]["lr"]
    options: dict[str, Any] = {"warmup_t": warmup, "warmup_lr_init": rate / max(warmup, 1), "t_in_epochs": False}
    falling = epochs * steps - warmup
    if schedule == "cosine" and falling > 1:  # a single update has the full rate, of which timm would warn
        return CosineLRScheduler(optimiser, falling, warmup_prefix=True, **options)
    milestones = decay_milestones(epochs, decay_epochs) if schedule == "step" else []
    drops = [epoch * steps + 1 for epoch in milestones]  # timm compares with the update after this one
    return MultiStepLRScheduler(optimiser, drops, decay_rate, warmup_prefix=False, **options)


def decay_milestones(epochs: int, decay_epochs: int | Sequence[int]) -> list[int]:
    """The epochs after which the rate falls."""
    if isinstance(decay_epochs, int):
        require(decay_epochs >= 1, "decay_epochs", "at least 1", decay_epochs)
        return list(range(decay_epochs, epochs, decay_epochs))
    if not decay_epochs or list(decay_epochs) != sorted(set(decay_epochs)) or decay_epochs[0] < 1:
        raise SurefootError(f"decay_epochs must be rising numbers from 1, got {list(decay_epochs)}.")
    return list(decay_epochs)
