"""The confidence threshold that holds a wanted risk: below it, ask a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..calibration.bootstrap import resampled_sums, share_estimate
from ..seeds import generator
from ..types import Estimate, Predictions

RISKS = (0.01, 0.02, 0.05)


@dataclass(frozen=True)
class Threshold:
    """The confidence from which the model decides alone; two thresholds where each half chose for the other."""

    wanted_risk: float
    thresholds: tuple[float, ...]
    coverage: Estimate
    risk: Estimate


def thresholds(
    predictions: Predictions, risks: Sequence[float], seed: int, held_out: Predictions | None = None
) -> tuple[Threshold, ...]:
    """For each wanted risk, a threshold chosen on images that it is not judged on.

    Those are `held_out`, or, without them, each half of the images chooses for the other.
    """
    confidences, wrong = predictions.confidences.double(), ~predictions.correct
    halves = torch.randperm(len(predictions), generator=generator(seed, "halves")) % 2
    rows = []
    for risk in risks:
        if held_out is None:
            chosen = [lowest(confidences[halves != half], wrong[halves != half], risk) for half in (0, 1)]
            bound = torch.tensor(chosen, dtype=torch.float64)[halves]
        else:
            chosen = [lowest(held_out.confidences.double(), ~held_out.correct, risk)]
            bound = torch.full_like(confidences, chosen[0])
        kept = confidences >= bound
        rows.append(judged(risk, chosen, kept, wrong, seed))
    return tuple(rows)


def lowest(confidences: Tensor, wrong: Tensor, risk: float) -> float:
    """The lowest threshold above which the share of mistakes is at most `risk`; above 1 where none is."""
    order = confidences.argsort(descending=True)
    sorted_confidences = confidences[order]
    rates = wrong[order].double().cumsum(0) / torch.arange(1, len(order) + 1)
    last = torch.ones(len(order), dtype=torch.bool)
    last[:-1] = sorted_confidences[:-1] != sorted_confidences[1:]  # images of equal confidence are kept or left together
    good = ((rates <= risk) & last).nonzero().flatten()
    return float(sorted_confidences[good[-1]]) if len(good) else 1.1


def judged(risk: float, chosen: Sequence[float], kept: Tensor, wrong: Tensor, seed: int) -> Threshold:
    """Coverage and risk of the images that are kept, with intervals."""
    sums = torch.from_numpy(resampled_sums(torch.stack([kept.double(), (kept & wrong).double()], 1), seed))
    accepted, mistakes = int(kept.sum()), int((kept & wrong).sum())
    rate = mistakes / accepted if accepted else float("nan")
    return Threshold(
        wanted_risk=risk,
        thresholds=tuple(chosen),
        coverage=share_estimate(accepted / len(kept), sums[:, 0] / len(kept), len(kept)),
        risk=share_estimate(rate, sums[:, 1] / sums[:, 0].where(sums[:, 0] > 0, torch.nan), accepted),
    )
