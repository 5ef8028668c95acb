"""The trace of a matrix for each image, with what is known about its error."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Trace:
    """For each image: `values`, and their standard `errors` where they come from draws; `method` says how."""

    values: Tensor
    errors: Tensor | None
    draws: int  # 0 where it is exact
    method: str


def trace_of(found: list[Tensor], method: str) -> Trace:
    """Means and standard errors of draws x images, batch after batch."""
    table = torch.cat(found, 1)
    errors = table.std(0) / len(table) ** 0.5 if len(table) > 1 else torch.full_like(table[0], torch.nan)
    return Trace(table.mean(0), errors, len(table), method)
