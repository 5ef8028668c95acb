"""What the numbers of a table were measured on, in words: its title is the paper's, the scale may be smaller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..data.loading import load_data
from ..measurements.corruptions import GENERATED
from ..measurements.registry import default_options
from ..schemas import defaults_of
from ..training.arguments import NOT_DATA_OPTIONS
from .cells import PLACE, Cell, changed, strip
from .origins import KIND, origin_words
from .results import Results
from .schema import Study


def in_brackets(study: Study, column: str) -> bool:
    """Whether the paper's figure may stand beside ours: the study says so, all training images were trained on, and corrupted
    pictures are the published ones.
    """
    label = column.partition(".")[0]
    options = study.measure.get(label) or {}
    if options.get("measurement", label) == KIND and options.get("origin", GENERATED).startswith(GENERATED):
        return False
    return study.same_setting and (not study.trained or trains_on_all(study))


def trains_on_all(study: Study) -> bool:
    """Whether no data set of the study has training images held out."""
    sections = [section if isinstance(section, Mapping) else {} for section in study.data.values()]
    return all((section.get("calibration"), section.get("validation")) == (0, 0) for section in sections)


def setting_of(cells: Sequence[Cell], results: Results) -> tuple[str, ...]:
    """Data, model and epochs where all cells share them, what was measured otherwise than by default, and mixed threads.

    Then what decides whether numbers compare: resolution, images, weights, where corrupted pictures come from, precision.
    """
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
    records = [results.read(cell.name) for cell in cells]
    lines.append(details_of(cells, records))
    threads = {record.get("training", {}).get("threads") for record in records} - {None}
    if len(threads) > 1:
        counts = " and ".join(map(str, sorted(threads)))
        lines.append(f"Trained with {counts} threads: of one seed, these are different runs.")
    return tuple(lines)


def details_of(cells: Sequence[Cell], records: Sequence[Mapping[str, Any]]) -> str:
    """One line; what cells differ in is listed, and what earlier versions did not record is left out."""
    pairs = list(zip(cells, records, strict=True))
    words = {
        "Resolution": [resolution_words(record) for _, record in pairs],
        "Images": [image_words(cell, record) for cell, record in pairs],
        "Weights": [weight_words(cell) for cell in cells],
        "Corrupted pictures": [origin_words(cell.measure) for cell in cells],
        "Precision": [precision_words(cell, record) for cell, record in pairs],
    }
    told = {name: [each for each in dict.fromkeys(values) if each] for name, values in words.items()}
    return " ".join(f"{name}: {'; '.join(values)}." for name, values in told.items() if values)


def resolution_words(record: Mapping[str, Any]) -> str:
    setting = record.get("setting") or {}
    if not setting:
        return ""
    own, inside = (setting.get(key) and " x ".join(map(str, setting[key])) for key in ("image_size", "resize_to"))
    return f"{own} px" + (f", enlarged to {inside} px in the model" if inside else "")


def image_words(cell: Cell, record: Mapping[str, Any]) -> str:
    """How many were trained on, held out and tested."""
    counts = (record.get("setting") or {}).get("images") or {}
    tested = f"{counts['test']:,} tested" if counts else ""
    if not cell.trained:
        return tested
    trained = counts.get("train") or (record.get("training") or {}).get("images")
    kept = f"{counts['calibration']:,} and {counts['validation']:,} held out for calibration and validation" if counts else ""
    return ", ".join(word for word in (f"{trained:,} trained on" if trained else "", kept, tested) if word)


def weight_words(cell: Cell) -> str:
    model = cell.recipe.model or {}
    tag, checkpoint = model.get("pretrained"), model.get("checkpoint")
    if checkpoint:
        return "from a checkpoint"
    if not tag:
        return "drawn at random"
    return f"{str(model['name']).partition('.')[0]} {tag}" if isinstance(tag, str) else f"{model['name']} as published"


def precision_words(cell: Cell, record: Mapping[str, Any]) -> str:
    """As it was chosen on the machine, where the recipe leaves it open."""
    said = (record.get("setting") or {}).get("precision") or cell.recipe.training["precision"]
    return "float32" if not cell.trained else "" if said == "auto" else str(said)


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
