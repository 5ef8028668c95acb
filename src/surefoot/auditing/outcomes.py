"""What became of every image under every corruption and attack, kept so that two models can be compared image by image."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types import Predictions
from .attacking import attacks_of
from .corrupting import corruption_name
from .records import Workbook
from .setting import Setting


def outcomes(setting: Setting, book: Workbook, clean: Predictions, rows: Tensor | None) -> dict[str, Tensor]:
    """`corruptions.correct` (cells x images, in the order of `corruptions.cells`) and `corruptions.indices`; for each attack
    `attacks.NAME.broken`, `.correct` and `.indices`; and the bootstrap draws of the means over all corruptions, `draws.*`.
    """
    found: dict[str, Tensor] = {}
    names = [corruption_name(name, severity) for name in setting.depth.corruptions for severity in setting.depth.severities]
    records = [book.wait(name) for name in names]
    found["corruptions.correct"] = torch.stack([record.tensors["correct"] for record in records])
    assert clean.indices is not None
    found["corruptions.indices"] = clean.indices if rows is None else clean.indices[rows]
    for score in ("accuracy", "ece", "nll"):
        found[f"draws.{score}"] = torch.stack([record.tensors[f"draws.{score}"] for record in records]).mean(0)
    for name in attacks_of(setting):
        tensors = book.wait(f"attacks/{name}").tensors
        found |= {f"attacks.{name}.{part}": tensors[part] for part in ("broken", "correct", "indices")}
    return found
