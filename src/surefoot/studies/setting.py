"""What the numbers of a table were measured on, in words: its title is the paper's, the scale may be smaller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..data.loading import load_data
from ..measurements.registry import default_options
from ..schemas import defaults_of
from ..training.recipes import NOT_DATA_OPTIONS
from .cells import PLACE, Cell, changed, strip
from .results import Results


def setting_of(cells: Sequence[Cell], results: Results) -> tuple[str, ...]:
    """Data, model and epochs where all cells share them, what was measured otherwise than by default, and mixed threads."""
    first = cells[0]
    words = [data_words(first)] if shared(cell.labels["data"] for cell in cells) else []
    words += [f"model {first.labels['model']}"] if shared(cell.labels["model"] for cell in cells) else []
    epochs = first.recipe.training["epochs"]
    if not first.trained:
        words.append("weights as they are")
    elif shared(cell.recipe.training["epochs"] for cell in cells):
        words.append(f"{epochs} epoch{'s' * (epochs != 1)}")
    lines = [f"Setting: {', '.join(words)}."] if words else []
    by_label = {label: changed(options, default_options(name)) for label, (name, options) in first.measure.items()}
    measured = [f"{label} with {in_words(options)}" for label, options in by_label.items() if options]
    lines += [f"Measured: {'; '.join(measured)}."] if measured else []
    threads = {results.read(cell.name).get("training", {}).get("threads") for cell in cells} - {None}
    if len(threads) > 1:
        counts = " and ".join(map(str, sorted(threads)))
        lines.append(f"Trained with {counts} threads: of one seed, these are different runs.")
    return tuple(lines)


def data_words(cell: Cell) -> str:
    options = changed(strip(cell.recipe.data or {}, ("name", *PLACE)), defaults_of(load_data, NOT_DATA_OPTIONS))
    return f"data {cell.labels['data']}" + (f" ({in_words(options)})" if options else "")


def in_words(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in options.items())


def shown(value: Any) -> str:
    """A value without brackets and quotation marks; of a mapping, its names."""
    if isinstance(value, list | tuple | dict):
        return " ".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def shared(values: Iterable[Any]) -> bool:
    return len(set(values)) == 1
