"""What a measurement is: conditions that images are put under, numbers for each image, and how they sum up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from ..errors import SurefootError
from ..plain import plain

if TYPE_CHECKING:
    from torch import Tensor

    from ..data.dataset import Split
    from ..types import Batch, Images, Logits
    from .context import Context

CLEAN = "clean"
SHIFT = "shift-"  # before the name of a further test set
STANDARD = {  # the columns that every condition has, with their types
    "label": "int32",
    "predicted": "int32",
    "correct": "bool",
    "confidence": "float32",
    "nll": "float32",
    "brier": "float32",
    "rank": "int32",
    "margin": "float32",
    "logit_norm": "float32",
    "largest_logit": "float32",
    "scaled_confidence": "float32",
    "covered": "bool",
    "set_size": "int32",
    "answered": "bool",
}
Rows = dict[str, np.ndarray]  # one number of each kind for each image, in the order of their index


class Condition(ABC):
    """What happens to a picture before the model sees it; it draws by (seed, condition, image index) alone."""

    spares_wrong: ClassVar[bool] = False  # whether a picture that is classified wrongly as it is costs nothing

    @property
    def passes(self) -> float:
        """Through the model, about, for each image: to know beforehand how long it takes."""
        return 1

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def logits(self, context: Context, batch: Batch) -> Logits:
        """What the model says of the pictures under this condition; `batch` is a chunk of the split."""

    def check(self, context: Context) -> None:  # noqa: B027  # most conditions can always be met
        """Raise where the condition cannot be met, before anything is measured."""


class Beside(Condition):
    """Pictures of another set than the audited one, all of them, as they are."""

    split: Split

    @abstractmethod
    def partners(self, context: Context) -> Tensor:
        """For each picture the row of the audited one that it is a pair of, -1 where it is of none."""

    @abstractmethod
    def image_names(self, context: Context, batch: Batch, partners: Tensor) -> list[str]:
        """The id of each picture of a batch: that of its partner where it has one."""

    def logits(self, context: Context, batch: Batch) -> Logits:
        return context.forward(batch.images, self.name)


class Change(Condition):
    """A condition that changes the pictures, whatever the model."""

    @abstractmethod
    def images(self, context: Context, batch: Batch) -> Images:
        """The pictures under this condition."""

    def logits(self, context: Context, batch: Batch) -> Logits:
        return context.forward(self.images(context, batch), self.name)


@dataclass(frozen=True)
class Summary:
    """What a measurement found: its numbers, what its figure draws, and what to know about them.

    `values` is what stands in `audit.json`; a number is a float, an `Estimate`, or a mapping of them. `row` is what a study's
    table has, where that is something else.
    """

    values: Any
    figures: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    row: Mapping[str, float] | None = None


class Table(Protocol):
    """The rows of an audit: arrays of one number for each image, in the order of their `index` in the data set."""

    def rows(self, condition: str, max_images: int | None = None) -> Rows:
        """The columns under a condition, of a subset."""
        ...

    def clean(self, max_images: int | None = None) -> Rows:
        """The images as they are, of a subset: the columns of every condition, and what measurements added."""
        ...

    def seen(self, label: str) -> list[Any]:
        """What `see` gave for each chunk."""
        ...


class Measurement(ABC):
    """One subject: options are the arguments of its constructor, and `max_images` says how many images it wants.

    `conditions` names what its images are put under, and every condition has the columns of `STANDARD`. `columns` gives more
    numbers for each image as it is, under the names in `adds`. What looks at the model as a whole, or at some images together,
    is `run`. `summarise` makes numbers of it all.
    """

    part: ClassVar[str] = "measurements"  # of `audit.json`: where its numbers stand
    adds: ClassVar[tuple[str, ...]] = ()
    alike: ClassVar[tuple[str, ...]] = ()  # of these, what another measurement would give the same number for
    sees: ClassVar[bool] = False  # whether it has a look at images while they are in memory
    scattered: ClassVar[bool] = False  # whether its images are no subset as `max_images` chooses one
    passes: float = 1  # through the model for each image and condition, about: to know how long it takes
    max_images: int | None = None

    def rows(self, context: Context) -> Tensor:
        """Where its images stand in the split."""
        rows: Tensor = context.rows(self.max_images)
        return rows

    def outputs_of(self, context: Context) -> Tensor:
        """The rows of images whose features `run` will ask the context for."""
        return context.rows(self.max_images)[:0]

    def pictures_of(self, context: Context) -> Tensor:
        """The rows of images that `run` will ask the context for."""
        return context.rows(self.max_images)[:0]

    def conditions(self, context: Context) -> Sequence[Condition]:
        return ()

    def passes_of_run(self, context: Context) -> float:
        """Through the model, for each of its images, that `run` makes: to know beforehand how long it takes."""
        return 0

    def take(self, images: int) -> None:
        """So many images and not more, where there is no time for all."""
        self.max_images = images

    def tensors(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        """What must be kept of single images until the audit is whole."""
        return {}

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        return {}

    def see(self, context: Context, batch: Batch) -> Any:
        """Plain values from some of its images, as they pass by; `summarise` gets those of all chunks."""
        return None

    def run(self, context: Context) -> Any:
        """Plain values (numbers, lists, estimates), kept until the audit is whole."""
        return None

    @abstractmethod
    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        """`result` is what `run` returned."""

    def numbers(self, summary: Summary) -> dict[str, float]:
        """The numbers as a row of a study's table has them: flat, without intervals."""
        return dict(flat(summary.values if summary.row is None else summary.row))


class Whole(Measurement):
    """Of the model as a whole, or of some images together: `run` gives all there is, by the names of `Summary`'s fields."""

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        return Summary(result["values"], result.get("figures", {}), tuple(result.get("notes", ())), result.get("row"))


class Own(Measurement):
    """A function of the user's own that takes the context and gives numbers."""

    def __init__(self, function: Any, options: Mapping[str, Any]) -> None:
        self.function, self.options = function, dict(options)

    def run(self, context: Context) -> Any:
        result = self.function(context, **self.options)
        if isinstance(result, Mapping):
            values = {str(name): value if isinstance(value, float) else plain(value) for name, value in result.items()}
            if all(isinstance(value, int | float | None) for value in values.values()):
                return values
        name = getattr(self.function, "__name__", "of one's own")
        raise SurefootError(f"Measurement '{name}' must give a dictionary of numbers, got {result!r}.")

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        return Summary(result)


def flat(values: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a mapping by its path."""
    for name, value in values.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping):
            yield from flat(value, here)
        elif value is not None:
            yield here, float(value)
