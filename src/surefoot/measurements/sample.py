"""What measurements of a whole need of single images, kept while the pictures pass by, so that none is read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import SurefootError
from ..types import Batch, Outputs
from .base import Measurement, Summary, Table
from .space import chunk_features

if TYPE_CHECKING:
    from .context import Context


class Sample(Measurement):
    """Features of the images that others ask for by `outputs_of`, pixels of those by `pictures_of`."""

    part = "figures"
    sees = True
    scattered = True

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self.measurements = list(measurements)

    def wanted_rows(self, context: Context, what: str) -> Tensor:
        def find() -> Tensor:
            rows = [torch.zeros(0, dtype=torch.long)]
            for each in self.measurements:
                try:
                    rows.append(getattr(each, what)(context))
                except SurefootError:  # it says why when it is run
                    continue
            wanted: Tensor = torch.cat(rows).unique()
            return wanted

        return context.once(("sample", what), find)

    def rows(self, context: Context) -> Tensor:
        rows: Tensor = torch.cat([self.wanted_rows(context, "outputs_of"), self.wanted_rows(context, "pictures_of")]).unique()
        return rows

    def tensors(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        wanted = {what: context.indices[self.wanted_rows(context, what)] for what in ("outputs_of", "pictures_of")}
        tensors: dict[str, Tensor] = {}
        few = batch[torch.isin(batch.indices, wanted["pictures_of"]).nonzero().flatten()]
        if len(few):
            tensors |= {"images.index": few.indices, "images": few.images.cpu(), "images.label": few.labels.cpu()}
        own = batch[torch.isin(batch.indices, wanted["outputs_of"]).nonzero().flatten()]
        if len(own):
            try:
                outputs = chunk_features(context, own)
            except SurefootError:  # each measurement that wants them says so itself
                return tensors
            tensors |= {"outputs.index": own.indices, "outputs.label": own.labels.cpu()}
            tensors |= {"features": outputs.features.cpu(), "logits": outputs.logits.cpu()}
        return tensors

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        return Summary(None)


@dataclass(frozen=True)
class Kept:
    """What a sample kept of all chunks, in the order of the index."""

    tensors: dict[str, Tensor]

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Tensor]]) -> Kept:
        whole: dict[str, Tensor] = {}
        for kind, names in (("images", ("images", "images.label")), ("outputs", ("features", "logits", "outputs.label"))):
            having = [part for part in parts if f"{kind}.index" in part]
            if having:
                index = torch.cat([part[f"{kind}.index"] for part in having])
                order = index.argsort()
                whole[f"{kind}.index"] = index[order]
                whole |= {name: torch.cat([part[name] for part in having])[order] for name in names}
        return cls(whole)

    def where(self, kind: str, indices: Tensor) -> Tensor | None:
        """Where these images stand among those that were kept; None if one is not there."""
        known = self.tensors.get(f"{kind}.index")
        if known is None or not bool(torch.isin(indices, known).all()):
            return None
        return torch.searchsorted(known, indices)

    def images(self, indices: Tensor) -> Batch | None:
        where = self.where("images", indices)
        return None if where is None else Batch(self.tensors["images"][where], self.tensors["images.label"][where], indices)

    def outputs(self, indices: Tensor) -> tuple[Outputs, Tensor] | None:
        where = self.where("outputs", indices)
        if where is None:
            return None
        outputs = Outputs(self.tensors["logits"][where], self.tensors["features"][where])
        return outputs, self.tensors["outputs.label"][where]
