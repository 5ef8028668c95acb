"""What a study file may say: a grid of recipes, what to measure on each, and how to lay out the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import SurefootError, UnknownName, brief, require, shown
from ..measurements.registry import check_measure, validation_only
from ..metrics import NEITHER, did_you_mean, of_column
from ..notebooks import html_table
from ..objectives.methods import OBJECTIVES
from ..schemas import check_keys

AXES = ("data", "model", "fraction", "method")
ALSO = {"objective": "method", "objectives": "method", "methods": "method", "models": "model", "seeds": "seed"}
MOST_SEEDS = 1000  # more are a slip
Section = str | dict[str, Any]


class Layout(BaseModel):
    """Which axes make the rows, which metrics the columns; `across` moves an axis of the rows into the columns."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    columns: tuple[str, ...] = ()
    across: str | None = None
    average: str | None = None  # rows of means over this axis, below the others
    differences: bool = True
    wins: str | None = None  # count wins and ties over configurations by this metric


NUMBERS = ("bars", "curves", "profile", "slopes")  # drawings of columns of the table
POINTS = {  # drawings of what a measurement keeps for its figure
    "scatter": "features",
    "success": "cosine-attacks",
    "reliability": "clean",
    "scaled-reliability": "feature-scaling",
    "displacement": "displacement",
    "bias": "bias",
    "plane": "plane",
    "field": "plane",
    "starts": "plane-start",
    "layers": "layers",
    "accuracy-by-curvature": "curvature-noise",
    "curvature-by-count": "curvature-noise",
    "curvature-spread": "curvature",
    "landscape": "landscape",
}


class Figure(BaseModel):
    """What a figure draws: numbers of `columns`, or the points of the measurements behind its drawings.

    `measure` are their labels where a study has several. `only` are labels on an axis; where the study has none of them at a
    smaller scale, what it has is drawn in their place, and the figure says so. `options` go to the functions that draw.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: str
    draw: tuple[str, ...]
    columns: tuple[str, ...] = ()
    measure: tuple[str, ...] = ()
    only: dict[str, tuple[str, ...]] = {}
    options: dict[str, Any] = {}

    def labels(self, measure: Mapping[str, Mapping[str, Any]], drawing: str) -> list[str]:
        """The labels of the measurements whose points a drawing shows."""
        kinds = {label: str(options.get("measurement", label)) for label, options in measure.items()}
        return [each for each in self.measure or kinds if kinds[each] == POINTS.get(drawing)]


class Study(BaseModel):
    """A study at one scale, checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: str
    paper: str | None = None
    place: str | None = None  # "Table 1"
    note: str | None = None
    methods: dict[str, Section]
    models: dict[str, Section]
    data: dict[str, Section]
    fractions: tuple[float, ...] = (1.0,)
    seeds: int = Field(default=3, ge=1, le=MOST_SEEDS)
    seeds_of: dict[str, Annotated[int, Field(ge=1, le=MOST_SEEDS)]] = {}  # for methods that get another number
    training: dict[str, Any] = {}
    training_of: dict[str, dict[str, Any]] = {}  # for models, data or methods that need another setting
    objective_options: dict[str, dict[str, Any]] = {}  # for every method of an objective that does not say them itself
    augmentation: dict[str, Any] | None = None
    trained: bool = True  # False measures pretrained weights as they are
    baseline: str | None = None
    measure: dict[str, dict[str, Any]]
    select: str | None = None  # the metric that chooses among methods, on validation only
    table: Layout = Layout()
    figures: dict[str, Figure] = {}  # "Figure 4" of the paper, or a name of one's own
    published: tuple[dict[str, Any], ...] = ()  # labels of a cell, and the paper's `87.6` or `[87.6, 0.5]` for metrics
    same_setting: bool = False  # whether the paper's figures may stand beside ours

    def _repr_html_(self) -> str:
        """What a notebook shows: the axes of the grid and what is measured."""
        axes: dict[str, dict[str, Any]] = {
            "methods": self.methods,
            "models": self.models,
            "data": self.data,
            "measures": self.measure,
        }
        rows = [(name, ", ".join(labels)) for name, labels in axes.items()]
        return html_table(self.title, ("", "value"), [*rows, ("seeds", str(self.seeds))])

    differs: str | None = None  # what is not the same all the same, said below figures that stand beside ours


def check_study(name: str, given: Mapping[str, Any]) -> Study:
    """A study from the mapping of a file at one scale; every wrong name is one line that suggests the nearest."""
    check_keys(f"key of study '{name}'", given, Study.model_fields)
    if isinstance(given.get("table"), Mapping):
        check_keys(f"key of the table of study '{name}'", given["table"], Layout.model_fields)
    drawn = given.get("figures")
    for place, figure in drawn.items() if isinstance(drawn, Mapping) else ():
        if isinstance(figure, Mapping):
            check_keys(f"key of figure '{place}' of study '{name}'", figure, Figure.model_fields)
    try:
        study = Study(**given)
    except ValidationError as error:
        first = error.errors()[0]
        where = brief(".".join(str(part) for part in first["loc"]))
        if first["type"] == "missing":
            raise SurefootError(f"Study '{name}': {where} must be given.") from error
        raise SurefootError(f"Study '{name}': {where}: {first['msg'].lower()}, got {shown(first['input'])}.") from error
    for axis in ("methods", "models", "data", "measure"):
        require(len(getattr(study, axis)) > 0, f"{axis} of study '{name}'", "at least one", {})
    require(len(study.fractions) > 0, f"fractions of study '{name}'", "at least one", [])
    checked = {label: check_measure(label, options) for label, options in study.measure.items()}
    known_methods = ("a method of this study", study.methods)
    for kind, names in (("seeds_of", study.seeds_of), ("baseline", [study.baseline] if study.baseline else [])):
        for method in names:
            if method not in study.methods:
                raise UnknownName(f"{kind} ({known_methods[0]})", method, study.methods)
    used = [each if isinstance(each, str) else str(each.get("name")) for each in study.methods.values()]
    check_keys("objective (of objective_options)", study.objective_options, [*OBJECTIVES.names, *used])
    for label in study.training_of:
        known = (*study.models, *study.data, *study.methods)
        if label not in known:
            raise UnknownName("training_of (a model, data or method of this study)", label, known)
    if study.table.across is not None and study.table.across not in AXES:
        raise UnknownName("axis", study.table.across, AXES)
    if study.table.average is not None:
        axes = [axis for axis in AXES if axis not in ("method", study.table.across)]
        if study.table.average not in axes:
            raise UnknownName("average (an axis of the rows)", study.table.average, axes)
    for metric in (*study.table.columns, *[m for m in (study.table.wins, study.select) if m]):
        if metric.partition(".")[0] not in study.measure:
            raise UnknownName("measurement", metric.partition(".")[0], study.measure)
    for kind, chosen in (("select", study.select), ("wins", study.table.wins)):
        if chosen is not None and of_column(chosen).better == NEITHER:
            wrong = f"{kind} of study '{name}' must be a metric that is better up or down, got '{chosen}'."
            raise SurefootError(f"{wrong} {did_you_mean(chosen)}".strip())
    for place, figure in study.figures.items():
        check_figure(f"figure '{place}' of study '{name}'", study, figure)
    if study.select is not None:
        for label, (kind, _) in checked.items():
            if kind not in validation_only():
                raise SurefootError(f"Study '{name}' selects, so it may measure on validation only, and '{label}' does not.")
    for row in study.published:
        for key in [key for key in row if key not in AXES]:
            numbers = row[key] if isinstance(row[key], list) else [row[key]]
            right = len(numbers) in (1, 2) and all(isinstance(number, (int, float)) for number in numbers)
            require(right, f"published.{key} of study '{name}'", "a number, or [mean, deviation]", row[key])
    return study


def check_figure(name: str, study: Study, figure: Figure) -> None:
    """Whether the study measures what a figure draws."""
    require(len(figure.draw) > 0, f"draw of {name}", "at least one drawing", [])
    check_keys(f"axis (of {name})", figure.only, AXES)
    check_keys(f"measurement (of {name})", figure.measure, list(study.measure))
    check_keys(f"measurement (of {name})", [column.partition(".")[0] for column in figure.columns], list(study.measure))
    for drawing in figure.draw:
        if drawing not in (*NUMBERS, *POINTS):
            raise UnknownName(f"drawing (of {name})", drawing, [*NUMBERS, *POINTS])
        if drawing in NUMBERS:
            require(len(figure.columns) > 0, f"columns of {name}", f"at least one for '{drawing}'", [])
        elif not figure.labels(study.measure, drawing):
            raise SurefootError(f"'{drawing}' in {name} needs the measurement '{POINTS[drawing]}', and there is none.")
