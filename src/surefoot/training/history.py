"""What happened in each epoch: on the screen, for the file, and for a tracker."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import torch
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from torch import Tensor

from ..progress import progress_bar
from ..types import Terms

Epoch = dict[str, float]


class History:
    """Averages the parts of the loss over an epoch without making the device wait, and shows progress."""

    def __init__(self, epochs: int, steps: int, progress: bool, before: list[Epoch], accelerator: Any) -> None:
        self.epochs: list[Epoch] = list(before)
        self._accelerator = accelerator
        self._sums: dict[str, Tensor] = {}
        self._images = 0
        self._total, self._log = epochs, progress
        columns = (BarColumn(bar_width=16), TimeRemainingColumn(compact=True), TextColumn("{task.description}"))
        self._bar = progress_bar(*columns, show=progress, keep=True)
        self._task = self._bar.add_task("first epoch", total=epochs * steps, completed=len(before) * steps)

    def __enter__(self) -> History:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def add(self, terms: Terms, images: int) -> None:
        """Count one step."""
        for name, value in {"loss": terms.total.detach(), **terms.parts}.items():
            part = (value if value.device.type == "mps" else value.double()) * images  # mps has no float64
            self._sums[name] = self._sums[name] + part if name in self._sums else part
        self._images += images
        self._bar.advance(self._task)

    def end_epoch(self, found: Epoch, images_per_second: float) -> None:
        """Close an epoch: means over all processes, a line on the screen, a record for file and tracker."""
        means = torch.stack([total / self._images for total in self._sums.values()])
        if self._accelerator.num_processes > 1:
            means = self._accelerator.reduce(means, "mean")
        parts = dict(zip(self._sums, means.tolist(), strict=True))
        record = {"epoch": len(self.epochs) + 1, **parts, **found, "images_per_second": round(images_per_second, 1)}
        self.epochs.append(record)
        self._sums, self._images = {}, 0
        if self._accelerator.trackers:
            self._accelerator.log(record, step=record["epoch"])
        shown = "  ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in parts.items() if name != "loss")
        judged = f"validation {found['validation_accuracy']:.1%}, ECE {found['validation_ece']:.1%}"
        line = f"epoch {record['epoch']}/{self._total}  {judged}  {images_per_second:.0f} images/s  {shown}"
        self._bar.update(self._task, description=line)
        if self._log and self._bar.disable:  # a log file: a line for each epoch, as it ends
            print(line, file=sys.stderr, flush=True)
