"""How well a score tells foreign pictures from known ones, with intervals, and what both cost together.

Known and foreign pictures are drawn again apart; two scores have the same draws, so that their difference is paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..calibration.bootstrap import DRAWS, copies, draw_spans, estimate, resampled_sums, share_estimate, states
from ..calibration.ranking import Order, Ranking
from ..errors import require
from ..intervals import Estimate
from ..keys import derive

Array = NDArray[np.float64]
ACCEPTED = 0.95  # of the known pictures
MIXTURES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # shares of foreign pictures


@dataclass(frozen=True)
class Separation:
    """Of foreign from known pictures: 0.5 is chance for AUROC, the share of its positives for AUPR.

    `fpr95` is the share of foreign pictures that pass where 95 % of the known ones do. `samples` are draws of AUROC.
    """

    auroc: Estimate
    aupr_foreign: Estimate
    aupr_known: Estimate
    fpr95: Estimate
    samples: Array

    def minus(self, other: Separation) -> Estimate:
        """The difference of AUROC, paired by the draws."""
        return estimate(float(self.auroc) - float(other.auroc), self.samples - other.samples)


def separation(known: ArrayLike, foreign: ArrayLike, seed: int = 0, intervals: int = DRAWS) -> Separation:
    """From the scores of known and of foreign pictures, higher for what looks foreign.

    Examples:
        >>> import torch
        >>> import surefoot as sf
        >>> known, foreign = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.8, 0.9])
        >>> float(sf.ood.separation(known, foreign).auroc)
        1.0
    """
    first, second = (np.asarray(given, dtype=np.float64) for given in (known, foreign))
    for name, given in (("known", first), ("foreign", second)):
        require(given.ndim == 1 and len(given) > 0, name, "scores of at least one picture", given.shape)
        require(bool(np.isfinite(given).all()), name, "finite", "NaN or infinity")
    order = Order.of(-np.concatenate([first, second]), np.arange(len(first) + len(second)) < len(first))
    once = measures(order.ranking(np.ones((1, len(first) + len(second)))))
    drawn = [measures(order.ranking(weights)) for weights in paired_draws(len(first), len(second), seed, intervals)]
    samples = np.concatenate([np.zeros((len(once), 0)), *drawn], axis=1)
    names = ("auroc", "aupr_foreign", "aupr_known", "fpr95")
    numbers = {name: estimate(float(once[row, 0]), samples[row]) for row, name in enumerate(names)}
    numbers["fpr95"] = share_estimate(float(once[3, 0]), samples[3], len(second))
    return Separation(**numbers, samples=samples[0])


def paired_draws(known: int, foreign: int, seed: int, draws: int) -> Iterator[Array]:
    """How often each known and each foreign picture is drawn, some draws at a time: draws x pictures."""
    own, theirs = states(known, seed), states(foreign, derive(seed, "foreign"))
    for first, last in draw_spans(known + foreign, draws):
        yield np.concatenate([copies(own, first, last), copies(theirs, first, last)]).T


def measures(ranking: Ranking) -> Array:
    """AUROC, AUPR with foreign and with known pictures as the positives, and FPR at 95 %: 4 x draws; NaN without either."""
    total, foreign = ranking.weights, ranking.errors  # from the most foreign on
    known = total - foreign
    all_known, all_foreign = (np.where(ends > 0, ends, np.nan) for ends in (known[:, -1:], foreign[:, -1:]))
    precision = foreign[:, 1:] / np.maximum(total[:, 1:], 1)
    aupr_foreign = (np.diff(foreign) * precision).sum(1) / all_foreign[:, 0]
    left, left_known = total[:, -1:] - total[:, :-1], all_known - known[:, :-1]
    aupr_known = (np.diff(known) * left_known / np.maximum(left, 1)).sum(1) / all_known[:, 0]
    # the strictest bound that 95 % of the known pictures pass: the most of the foreign end that may be cut off
    passes = left_known >= ACCEPTED * all_known - 1e-9
    at = passes.shape[1] - 1 - passes[:, ::-1].argmax(1)
    fpr = (all_foreign[:, 0] - foreign[np.arange(len(foreign)), at]) / all_foreign[:, 0]
    return np.stack([ranking.auroc, aupr_foreign, aupr_known, fpr])


# One ledger: answering wrongly, and answering a foreign picture.


def joint_risk(wrong: Array, answered: Array, foreign_answered: Array, mixture: float) -> Array:
    """The share of answers that are wrong or of a foreign picture, `mixture` of all pictures being foreign.

    ((1 - a) P(wrong and answered) + a P(answered | foreign)) / ((1 - a) P(answered) + a P(answered | foreign)): the risk of
    selective classification with foreign pictures (SCOD; Xia and Bouganis 2022, "Augmenting softmax information for selective
    classification with out-of-distribution data"). NaN where nothing is answered.
    """
    bad = (1 - mixture) * wrong + mixture * foreign_answered
    every = (1 - mixture) * answered + mixture * foreign_answered
    return np.asarray(bad / np.where(every > 0, every, np.nan))


@dataclass(frozen=True)
class Ledger:
    """Which known pictures are wrong, and which known and foreign ones are answered."""

    wrong: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    foreign_answered: NDArray[np.bool_]

    def risks(self, mixtures: Sequence[float] = MIXTURES, seed: int = 0, intervals: int = DRAWS) -> dict[str, Estimate]:
        """The joint risk by the share of foreign pictures."""
        columns = np.stack([self.wrong & self.answered, self.answered], 1).astype(np.float64)
        drawn = resampled_sums(columns, seed, intervals) / len(columns)
        theirs = self.foreign_answered[:, None].astype(np.float64)
        passed = resampled_sums(theirs, derive(seed, "foreign"), intervals)[:, 0] / len(theirs)
        shares = columns.mean(0)
        return {
            f"{mixture:g}": estimate(
                float(joint_risk(shares[0], shares[1], theirs.mean(), mixture)),
                joint_risk(drawn[:, 0], drawn[:, 1], passed, mixture),
            )
            for mixture in mixtures
        }


def least_foreign(scores: Array, foreign: Array, share: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which known pictures are answered, `share` of them, the least foreign first, and which foreign ones pass with them."""
    count = round(share * len(scores))
    if not count:
        return np.zeros(len(scores), dtype=bool), np.zeros(len(foreign), dtype=bool)
    bound = np.partition(scores, count - 1)[count - 1]
    return scores <= bound, foreign <= bound


def best_of(found: Mapping[str, Separation]) -> str:
    """The score with the largest AUROC; the first of equals."""
    return max(found, key=lambda name: float(found[name].auroc))
