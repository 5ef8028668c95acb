"""Bootstrap draws of an audit's means, kept on disk, so that two models can be compared draw by draw.

Draws depend on the seed and the number of images alone (`calibration.bootstrap.resamples`). Two audits of the same images with
the same seed have drawn the same images each time, so the differences of their draws are those of a paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from ..files import read_tensors
from .attacking import attack_draws, attacks_of
from .cells import SCALED, SCORES
from .corrupting import corruption_name
from .records import Record, Workbook
from .result import DATA, DRAWS
from .setting import Setting


def paired_draws(setting: Setting, book: Workbook) -> dict[str, Tensor]:
    """Draws by the path of their number in `audit.json`; `corruptions.NAME.accuracy` is the mean over severities."""
    found: dict[str, Tensor] = {}
    everything: list[Record] = []
    for name in setting.depth.corruptions:
        own = [record for severity in setting.depth.severities if (record := book.read(corruption_name(name, severity)))]
        if own:
            found[f"corruptions.{name}.accuracy"] = mean_draws(own, "accuracy")
            everything += own
    if everything:
        scores = [score for score in (*SCORES, SCALED) if f"draws.{score}" in everything[0].tensors]
        found |= {f"corruptions.mean_{score}": mean_draws(everything, score) for score in scores}
    for name in attacks_of(setting):
        record = book.read(f"attacks/{name}")
        if record is not None:
            draws = attack_draws(record.tensors["broken"], record.tensors["correct"], setting.seed)
            found |= {f"attacks.{name}.{rate}": values for rate, values in draws.items()}
    return found


def mean_draws(records: Iterable[Record], score: str) -> Tensor:
    """The mean of a score over conditions, in every draw."""
    return torch.stack([record.tensors[f"draws.{score}"] for record in records]).double().mean(0)


def load_draws(folder: str | Path) -> dict[str, Tensor]:
    """The draws of an audit; none where it kept none."""
    path = Path(folder) / DATA / DRAWS
    return {name: values.double() for name, values in read_tensors("draws", path).items()} if path.is_file() else {}
