"""An audit as a table: for pandas, and for the eye in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..metrics import ENDS, find, path_label
from ..notebooks import ESTIMATES, estimate_row, html_table

if TYPE_CHECKING:
    from pandas import DataFrame


Words = tuple[str, ...]


def numbers_of(value: Any) -> Iterator[tuple[str, float, float | None, float | None]]:
    """Every number of an audit: its path (with names, not indices, where a list has them), value, low and high."""
    for words, number, low, high in leaves(value):
        if number is not None:
            yield ".".join(words), number, low, high


def leaves(value: Any, words: Words = ()) -> Iterator[tuple[Words, float | None, float | None, float | None]]:
    """Every number by the words of its path, of which one may hold dots; None is the value of what is not defined."""
    if isinstance(value, dict):
        if value.keys() == {"value", "low", "high"}:
            yield words, value["value"], value["low"], value["high"]
            return
        for name, item in value.items():
            yield from leaves(item, (*words, str(name)))
    elif isinstance(value, list):
        for label, item in zip(labels_of(value), value, strict=True):
            yield from leaves(item, (*words, label))
    elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield words, value, None, None


def labels_of(items: list[Any]) -> list[str]:
    """How the items of a list are called in a path; those of the same name are numbered, as ImageNet's two cranes."""
    labels = [label_of(item, index) for index, item in enumerate(items)]
    counts, seen = Counter(labels), Counter[str]()
    for index, label in enumerate(labels):
        if counts[label] > 1:
            seen[label] += 1
            labels[index] = f"{label} ({seen[label]})"
    return labels


def label_of(item: Any, index: int) -> str:
    """How an item of a list is called in a path: gaussian_noise.3, or its index."""
    if not isinstance(item, dict):
        return str(index)
    kind = item.get("name") or item.get("kind") or item.get("attack")
    step = next((item[key] for key in ("severity", "level", "eps", "wanted_risk") if item.get(key) is not None), None)
    words = [str(part) for part in (kind, step) if part is not None]
    return ".".join(words) if words else str(index)


def as_dataframe(audit: dict[str, Any]) -> DataFrame:
    """Columns name, value, low, high."""
    from pandas import DataFrame

    parts = {name: part for name, part in audit.items() if name not in ("schema", "subject")}
    return DataFrame(list(numbers_of(parts)), columns=["name", "value", "low", "high"])


def as_html(audit: dict[str, Any]) -> str:
    """The first numbers of an audit with their intervals."""
    rows = [(find(name).label, audit["calibration"][name]) for name in ("accuracy", "ece", "nll")]
    if audit.get("corruptions"):
        rows.append((path_label("corruptions.mean_accuracy"), audit["corruptions"]["mean_accuracy"]))
    attacks = audit.get("attacks", {}).items()
    rows += [(path_label(f"attacks.{name}.success_rate"), estimate["success_rate"]) for name, estimate in attacks]
    shown = (estimate_row(name, *(estimate[end] for end in ENDS)) for name, estimate in rows)
    return html_table(audit["subject"]["name"], ESTIMATES, shown)
