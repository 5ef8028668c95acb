"""The confidence threshold from which a wanted risk can be promised: below it, ask a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ..calibration.arguments import TUNING
from ..calibration.bootstrap import resampled_sums, share_estimate
from ..calibration.disjoint import halves, ids_in, uniform_by_image
from ..calibration.risk import Outcomes, confidences_by_block, tested, why_not
from ..types import Estimate, Predictions

RISKS = (0.01, 0.02, 0.05)
CONFIDENCE = 0.95
NONE = 1.1  # the threshold where none can be promised


@dataclass(frozen=True)
class Threshold:
    """The confidence from which the model answers itself; two thresholds where each half chose for the other.

    Each holds its wanted risk with probability `confidence`, for images like those of its choice; above 1 is none, and `notes`
    say why. `coverage` and `risk` are what was found on the other images. `deploy` is the one threshold to use, chosen on
    all the images that choose; None where none can be promised.
    """

    wanted_risk: float
    thresholds: tuple[float, ...]
    coverage: Estimate
    risk: Estimate
    confidence: float = CONFIDENCE
    notes: tuple[str, ...] = ()
    deploy: float | None = None


def thresholds(
    predictions: Predictions, risks: Sequence[float], seed: int, held_out: Predictions | None = None
) -> tuple[Threshold, ...]:
    """For each wanted risk, a threshold chosen on images that it is not judged on.

    Those are `held_out`, or, without them, each half of the images chooses for the other.
    """
    confidences, wrong = confidences_by_block(predictions.logits), ~predictions.correct.cpu()
    folds = halves(predictions, seed) if len(predictions) > 1 else torch.zeros(len(predictions), dtype=torch.long)
    if held_out is None:
        outcomes = Outcomes(confidences.numpy(), wrong.numpy())
        ids = ids_in(predictions)
        sources = [(outcomes[chosen], ids[chosen]) for chosen in ((folds != fold).numpy() for fold in (0, 1))]
    else:
        sources = [(Outcomes.of(held_out), ids_in(held_out))]
    parts = [parted(outcomes, ids, seed) for outcomes, ids in sources]
    every = parts[0] if held_out is not None else parted(outcomes, ids, seed)
    rows = []
    for risk in risks:
        fits = [promised(first, rest, risk) for first, rest in parts]
        bounds = [NONE if bound is None else bound for bound, _ in fits]
        own = torch.tensor(bounds, dtype=torch.float64)[folds if held_out is None else torch.zeros_like(folds)]
        notes = tuple(dict.fromkeys(note for _, note in fits if note))
        row = judged(risk, bounds, confidences >= own, wrong, seed, notes)
        rows.append(replace(row, deploy=promised(*every, risk)[0]))
    return tuple(rows)


def parted(outcomes: Outcomes, ids: NDArray[Any], seed: int) -> tuple[Outcomes, Outcomes]:
    """The images that fix the sequence of thresholds, a fifth, and those that test it."""
    order = uniform_by_image(ids, seed, "tuning").argsort(kind="stable")
    first = max(round(TUNING * len(order)), 1)
    return outcomes[order[:first]], outcomes[order[first:]]


def promised(first: Outcomes, rest: Outcomes, risk: float) -> tuple[float | None, str]:
    """The threshold that can be promised, or why none can."""
    if not (len(first) and len(rest)):
        return None, why_not(risk, CONFIDENCE, 0, 0, len(rest))
    result = tested(first, rest, risk, CONFIDENCE)
    return result["threshold"], result["note"]


def judged(
    risk: float, chosen: Sequence[float], kept: Tensor, wrong: Tensor, seed: int, notes: tuple[str, ...] = ()
) -> Threshold:
    """Coverage and risk of the images that are kept, with intervals."""
    sums = torch.from_numpy(resampled_sums(torch.stack([kept.double(), (kept & wrong).double()], 1), seed))
    accepted, mistakes = int(kept.sum()), int((kept & wrong).sum())
    rate = mistakes / accepted if accepted else float("nan")
    return Threshold(
        wanted_risk=risk,
        thresholds=tuple(chosen),
        coverage=share_estimate(accepted / len(kept), sums[:, 0] / len(kept), len(kept)),
        risk=share_estimate(rate, sums[:, 1] / sums[:, 0].where(sums[:, 0] > 0, torch.nan), accepted),
        notes=notes,
    )
