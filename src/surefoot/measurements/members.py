"""What the members of an ensemble say apart, for each picture: three columns, and how well each spots mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..calibration.bootstrap import mean_estimate
from ..calibration.calibrators import Calibrated
from ..errors import SurefootError
from ..models.ensembles import UNCERTAINTIES, Several, uncertainties
from ..models.last_layer import evaluating
from ..ood._separation import separation
from ..types import Batch, Images
from .base import Measurement, Summary, Table

if TYPE_CHECKING:
    from .context import Context


def several_in(model: nn.Module) -> Several | None:
    """The ensemble that a model is, or that a calibrator stands behind."""
    inner = model.model if isinstance(model, Calibrated) else model
    return inner if isinstance(inner, Several) else None


def uncertainties_of(several: Several, images: Images, batch_size: int) -> dict[str, Tensor]:
    """Batch by batch, in evaluation mode, on the CPU."""
    with evaluating(several), torch.inference_mode():
        parts = [uncertainties(several.member_logits(part)) for part in images.split(batch_size)]
    return {name: torch.cat([part[name] for part in parts]).cpu() for name in UNCERTAINTIES}


class Members(Measurement):
    """Mutual information, variation ratio and disagreement of the members of an ensemble."""

    adds = UNCERTAINTIES

    def __init__(self, max_images: int | None = None) -> None:
        self.max_images = max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        several = several_in(context.model)
        if several is None:
            raise SurefootError("The model has no members: it is no ensemble.")
        return uncertainties_of(several, batch.images.to(context.device), context.batch_size)

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        right = rows["correct"].astype(bool)
        values: dict[str, Any] = {}
        for name in UNCERTAINTIES:
            values[name] = mean_estimate(rows[name], context.seed, context.intervals, ids=rows["index"])
            if right.any() and not right.all():
                found = separation(rows[name][right], rows[name][~right], context.seed, context.intervals)
                values[f"{name}_auroc"] = found.auroc
        return Summary(values)
