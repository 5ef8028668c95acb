"""What a part of the page is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..figures import Drawing, drawing
from ..plots.base import COLOURS
from ..words import Audit

if TYPE_CHECKING:
    from plotly import graph_objects as go


@dataclass(frozen=True)
class Model:
    """One of the models on the page, with the name and the colour that it has everywhere."""

    name: str
    colour: str
    audit: Audit


@dataclass(frozen=True)
class Section:
    """A part of the page: `name` is its anchor and template, `values` what the template reads, `data` what the script does."""

    name: str
    title: str
    values: dict[str, Any] = field(default_factory=dict)
    drawings: tuple[Drawing, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)


def models_of(audits: Sequence[Audit]) -> list[Model]:
    """Names and colours; a name that comes again gets a number."""
    seen: dict[str, int] = {}
    models = []
    for index, audit in enumerate(audits):
        name = str(audit["subject"]["name"])
        seen[name] = seen.get(name, 0) + 1
        shown = name if seen[name] == 1 else f"{name} ({seen[name]})"
        models.append(Model(shown, COLOURS[index % len(COLOURS)], audit))
    return models


def geometry_of(model: Model) -> dict[str, Any]:
    """What the figures of geometry draw; nothing for an audit without it."""
    return model.audit["points"].get("geometry") or {}


def owner(model: Model, models: Sequence[Model]) -> str:
    """Whose figure it is, at the end of a title, where there are several."""
    return f": {model.name}" if len(models) > 1 else ""


@dataclass(frozen=True)
class Kind:
    """A figure for every model that has its points; the sentence may take values of them: {0[level]:g}.

    `part` takes from the points what is drawn, or None where a model does not have that.
    """

    points: str
    name: str
    title: str
    said: str
    draw: Callable[[Any], go.Figure]
    part: Callable[[Any], Any] = lambda points: points


def drawings_of(models: Sequence[Model], kinds: Sequence[Kind]) -> list[Drawing]:
    """Model by model, the kinds in their order."""
    drawings = []
    for index, model in enumerate(models):
        for kind in kinds:
            content = geometry_of(model).get(kind.points)
            if content and (points := kind.part(content)):
                title = kind.title + owner(model, models)
                drawings.append(drawing(f"{kind.name}-{index}", title, kind.said.format(points), kind.draw(points)))
    return drawings
