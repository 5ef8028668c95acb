"""What happened in each epoch, on the screen and for the file."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from ..types import Terms

Epoch = dict[str, float]


class History:
    """Averages the parts of the loss over an epoch without making the device wait, and shows progress."""

    def __init__(self, epochs: int, steps: int, progress: bool) -> None:
        self.epochs: list[Epoch] = []
        self._sums: dict[str, Tensor] = {}
        self._images = 0
        columns = (TextColumn("training"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), disable=not progress)
        self._task = self._bar.add_task("first epoch", total=epochs * steps)

    def __enter__(self) -> History:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def add(self, terms: Terms, images: int) -> None:
        """Count one step."""
        for name, value in {"loss": terms.total.detach(), **terms.parts}.items():
            part = value.double() * images
            self._sums[name] = self._sums[name] + part if name in self._sums else part
        self._images += images
        self._bar.advance(self._task)

    def end_epoch(self, validation: Epoch, images_per_second: float) -> None:
        """Close an epoch and start the next."""
        parts = {name: float(total) / self._images for name, total in self._sums.items()}
        record = {
            "epoch": len(self.epochs) + 1,
            **parts,
            **validation,
            "images_per_second": round(images_per_second, 1),
        }
        self.epochs.append(record)
        self._sums, self._images = {}, 0
        accuracy, rate = validation["validation_accuracy"], images_per_second
        line = f"epoch {record['epoch']}  loss {parts['loss']:.3f}  validation {accuracy:.1%}  {rate:.0f} images/s"
        self._bar.update(self._task, description=line)
