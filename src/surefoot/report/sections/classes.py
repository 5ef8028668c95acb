"""Which classes it knows least, whether it serves all groups alike, and the mistakes that it was surest of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...metrics import find
from ..figures import Drawing, drawing
from .base import Model, Section, owner
from .corruptions import class_name

CONFUSION = (
    "Share of the images of each class (rows) that got each answer (columns): the diagonal is right, and a dark field beside "
    "it is a habit."
)
SHOWN = 20  # rows shown before the reader opens the rest


@dataclass(frozen=True)
class Column:
    """A heading, and how what stands below it is written: text, count or percent."""

    title: str
    format: str


FIRST = (Column("class", "text"), Column("images", "count"))


def classes_section(models: Sequence[Model]) -> Section | None:
    """The worst classes as a table, and all of them as rows that the script draws on demand."""
    having = [model for model in models if model.audit.get("classes")]
    if not having:
        return None
    columns, rows = one_model(having[0]) if len(having) == 1 else several_models(having)
    data = {"classes": {"columns": [vars(column) for column in columns], "rows": rows}} if len(rows) > SHOWN else {}
    confused = [{"model": model.name, "pairs": confused_pairs(model)} for model in having if wide_confusion(model)]
    values = {"columns": columns, "rows": rows[:SHOWN], "count": len(rows), "models": having, "confused": confused}
    return Section("classes", "Which classes it knows least", values, confusion_drawings(having), data)


def wide_confusion(model: Model) -> bool:
    """Whether there are too many classes for a matrix, and some are confused."""
    points = model.audit["points"].get("confusion") or {}
    return bool(points.get("pairs")) and points.get("matrix") is None


def confused_pairs(model: Model) -> list[dict[str, Any]]:
    """The pairs of classes that are confused most, by name."""
    known = model.audit["subject"].get("classes") or []
    pairs = model.audit["points"]["confusion"]["pairs"]
    return [{"label": class_name(known, a), "answer": class_name(known, b), "images": images} for a, b, images in pairs]


def confusion_drawings(models: Sequence[Model]) -> tuple[Drawing, ...]:
    """What each class was taken for, of every model with few classes."""
    from ..plots.base import confusion_figure

    drawn = []
    for index, model in enumerate(models):
        matrix = (model.audit["points"].get("confusion") or {}).get("matrix")
        if matrix:
            known = model.audit["subject"].get("classes") or []
            figure = confusion_figure(matrix, [class_name(known, number) for number in range(len(matrix))])
            drawn.append(
                drawing(f"confusion-{index}", f"What each class was taken for{owner(model, models)}", CONFUSION, figure)
            )
    return tuple(drawn)


def one_model(model: Model) -> tuple[list[Column], list[list[Any]]]:
    """Worst first: how often a class is recognised, how often a prediction of it is right, what it is taken for."""
    shares = ("recognised", "from", "to", find("precision").label, find("confidence").label)
    columns = [*FIRST, *(Column(name, "percent") for name in shares), Column("most often taken for", "text")]
    rows = []
    for row in worst_first(model):
        accuracy, precision = row["accuracy"] or {}, row["precision"] or {}
        mixed = "" if row["taken_for"] is None else f"{row['taken_for']} ({row['taken_for_images']})"
        numbers = [accuracy.get(key) for key in ("value", "low", "high")]
        rows.append([row["name"], row["images"], *numbers, precision.get("value"), row["confidence"], mixed])
    return columns, rows


def several_models(models: Sequence[Model]) -> tuple[list[Column], list[list[Any]]]:
    """How often each model recognises each class; the class that the first knows least comes first."""
    by_model = [dict(distinguished(model.audit["classes"])) for model in models]
    rows = {key: row for each in by_model for key, row in each.items()}
    order = dict.fromkeys(key for each in by_model for key in sorted(each, key=lambda key: known(each[key])))
    accuracies = ([(each.get(key, {}).get("accuracy") or {}).get("value") for each in by_model] for key in order)
    columns = [*FIRST, *(Column(model.name, "percent") for model in models)]
    return columns, [[key[0], rows[key]["images"], *row] for key, row in zip(order, accuracies, strict=True)]


def distinguished(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """Classes by their name and how often it came before: ImageNet has two cranes."""
    seen = Counter[str]()
    for row in rows:
        yield (row["name"], seen[row["name"]]), row
        seen[row["name"]] += 1


def worst_first(model: Model) -> list[dict[str, Any]]:
    """Classes by accuracy; those without images last."""
    return sorted(model.audit["classes"], key=known)


def known(row: dict[str, Any]) -> float:
    """How often a class is recognised; above 1 where it has no image."""
    return float(row["accuracy"]["value"]) if row["accuracy"] else 2.0


def groups_section(models: Sequence[Model]) -> Section | None:
    """Every group of every model, the worst first; None where nobody named groups."""
    rows = [{"model": model.name, **row} for model in models for row in model.audit.get("groups", ())]
    if not rows:
        return None
    rows.sort(key=lambda row: row["accuracy"]["value"])
    return Section("groups", "Does it serve all groups alike?", {"rows": rows, "several": len(models) > 1})


def mistakes_section(models: Sequence[Model]) -> Section | None:
    """Pictures with what they are and what they were taken for."""
    shown = []
    for model in models:
        known = model.audit["subject"].get("classes") or []
        rows = [
            {**row, "label": class_name(known, row["label"]), "answer": class_name(known, row["answer"])}
            for row in model.audit["points"].get("mistakes") or ()
        ]
        if rows:
            shown.append({"model": model.name, "rows": rows})
    return Section("mistakes", "Its most confident mistakes", {"shown": shown, "several": len(models) > 1}) if shown else None
