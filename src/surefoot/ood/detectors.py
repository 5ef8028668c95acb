"""From a name and known pictures to a detector of foreign ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError, UnknownName, require
from ..types import Features, Labels, Logits, check_scores
from . import feature_scores, logit_scores
from .feature_scores import ROWS, Head, Score
from .known import BANK, Known

OF_LOGITS: dict[str, Callable[[Logits], Tensor]] = {
    "msp": logit_scores.msp,
    "max-logit": logit_scores.max_logit,
    "energy": logit_scores.energy,
    "entropy": logit_scores.entropy,
    "gen": logit_scores.gen,
}
OF_FEATURES: dict[str, Callable[[Known, Head], Score]] = {
    "react": feature_scores.react,
    "scale": feature_scores.scale,
    "mahalanobis": feature_scores.mahalanobis,
    "relative-mahalanobis": feature_scores.relative_mahalanobis,
    "knn": feature_scores.knn,
    "vim": feature_scores.vim,
    "neco": feature_scores.neco,
}
NAMES = (*OF_LOGITS, *OF_FEATURES)
OF_HEAD = ("react", "scale", "vim")


@dataclass(frozen=True)
class Detector:
    """Scores pictures by how foreign they look; `features` are looked at by the scores of `OF_FEATURES` only."""

    name: str
    function: Score
    classes: int | None = None
    dimensions: int | None = None

    def score(self, *, logits: Logits | None = None, features: Features | None = None) -> Tensor:
        """One number for each picture, higher for what looks foreign."""
        if logits is None:
            raise SurefootError(f"'{self.name}' needs logits to score pictures.")
        check_scores("logits", logits)
        if self.classes is not None:
            require(
                logits.shape[1] == self.classes, "logits", f"of {self.classes} classes as those of the fit", logits.shape[1]
            )
        if self.name in OF_LOGITS:
            return torch.cat([self.function(part.float(), part) for part in logits.split(ROWS)])
        if features is None:
            raise SurefootError(f"'{self.name}' needs features to score pictures.")
        shape = (len(logits), self.dimensions)
        require(
            tuple(features.shape) == shape, "features", f"{shape[0]} x {shape[1]} as those of the fit", tuple(features.shape)
        )
        parts = zip(logits.split(ROWS), features.split(ROWS), strict=True)
        return torch.cat([self.function(one.float(), two.float()) for one, two in parts])


def fit(
    name: str,
    *,
    logits: Logits | None = None,
    features: Features | None = None,
    labels: Labels | None = None,
    head: nn.Linear | tuple[Tensor, Tensor | None] | None = None,
    bank: int = BANK,
) -> Detector:
    """A detector by name; the scores of logits alone need nothing, the others the known pictures' logits, features, labels.

    `head` is the last linear layer, or its weight and bias. At most `bank` features are kept for scores that look at single
    ones: `knn`, and the constants of `react` and `vim`.
    """
    check_name(name)
    if name in OF_LOGITS:
        if logits is not None:
            check_scores("logits", logits)
        return fit_known(name, None, None)
    if logits is None or features is None or labels is None:
        missing = "logits" if logits is None else "features" if features is None else "labels"
        raise SurefootError(f"'{name}' needs {missing} of known pictures.")
    return fit_known(name, Known.of(logits, features, labels, bank), None if head is None else head_in(head))


def fit_known(name: str, known: Known | None, head: Head | None) -> Detector:
    """The same from statistics of known features."""
    check_name(name)
    if name in OF_LOGITS:
        function = OF_LOGITS[name]
        return Detector(name, lambda logits, _: function(logits))
    if known is None:
        raise SurefootError(f"'{name}' needs features of known pictures.")
    require(known.images >= 2, "features", "of at least two known pictures", known.images)
    if head is None and name in OF_HEAD:
        raise SurefootError(f"'{name}' needs the last linear layer: give head.")
    if head is not None:
        sizes = (known.classes, known.dimensions)
        require(tuple(head[0].shape) == sizes, "head", f"{sizes[0]} x {sizes[1]}", tuple(head[0].shape))
    empty: Any = (torch.empty(0), torch.empty(0))
    return Detector(name, OF_FEATURES[name](known, head or empty), known.classes, known.dimensions)


def head_in(head: nn.Linear | Sequence[Any]) -> Head:
    """Weight and bias on the CPU; a layer without a bias has one of zeros."""
    weight, bias = (head.weight, head.bias) if isinstance(head, nn.Linear) else head
    weight = torch.as_tensor(weight).detach().float().cpu()
    return weight, torch.zeros(len(weight)) if bias is None else torch.as_tensor(bias).detach().float().cpu()


def check_name(name: str) -> None:
    if name not in NAMES:
        raise UnknownName("score of foreign pictures", name, NAMES)
