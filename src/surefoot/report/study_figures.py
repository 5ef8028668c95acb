"""The figures of a study, drawn from plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .figures import Drawing, drawing
from .plots.corruptions import slopes_figure
from .plots.curvature import (
    accuracy_by_curvature_figure,
    curvature_by_count_figure,
    curvature_spread_figure,
    landscape_map_figure,
)
from .plots.features import (
    bias_dependence_figure,
    displacements_figure,
    feature_scatter_figure,
    success_by_bin_figure,
)
from .plots.layers import layer_projection_figure
from .plots.planes import loss_field_figure, plane_figure
from .plots.study import Bar, bars_figure, curves_figure, reliability_figure
from .sections import features as said
from .sections import geometry as said_too
from .sections.geometry import inner_names
from .words import attack_name

if TYPE_CHECKING:
    from plotly import graph_objects as go

Points = dict[str, Any]
Options = Mapping[str, Any]
Named = tuple[str, str, "go.Figure"]  # what varies, a sentence, the figure
RELIABILITY = "Accuracy in bins of confidence: on the diagonal a model is calibrated; the fainter a bar, the fewer images."
SCALED = "The same model before and after one factor on its features, fitted on held-out images."
BARS = "Means over seeds, with their deviation."
CURVES = "A line for each model over the methods."
PROFILE = "Each corruption by method, means over seeds and severities."
SLOPES = "Every configuration of model and data, from the baseline to the last method."
TOGETHER = "How far an attack moves the features of each image, against their size, in each model; crosses are means."
START = "Regions and features of a plane before training and as it goes on: whether regions end as cones around the origin."


def figure_drawings(figure: Mapping[str, Any]) -> list[Drawing]:
    """Every drawing of a figure, as `studies.figures.figure_data` gives it."""
    named: list[Named] = []
    for part in figure["parts"]:
        if "table" in part:
            named += OF_NUMBERS[part["draw"]](part["table"])
        elif part["draw"] in OF_ALL:
            named += OF_ALL[part["draw"]](part["panels"], figure["options"])
        else:
            draw = OF_EACH[part["draw"]]
            named += [
                (panel["name"] + more, words, drawn)
                for panel in part["panels"]
                for more, words, drawn in draw(panel["points"], figure["options"])
            ]
    slug = "".join(letter if letter.isalnum() else "-" for letter in figure["place"].lower())
    drawings = []
    for number, (name, words, drawn) in enumerate(named):
        title = f"{figure['place']}: {name}" if name else figure["place"]
        drawings.append(drawing(f"{slug}-{number}", title, words, drawn))
    return drawings


# Numbers of the table: which axis goes where.


def rows_of(table: Points, index: int, along: str) -> dict[str, dict[str, dict[str, Bar]]]:
    """Panel, then group, then place along an axis to the number of one column; methods are groups unless they are places."""
    panels: dict[str, dict[str, dict[str, Bar]]] = {}
    grouped = "method" if along != "method" else next((axis for axis in ("model", "fraction") if axis in table["axes"]), None)
    for row in table["rows"]:
        cell, key = row["cells"][index], dict(zip(table["axes"], row["key"], strict=True))
        if cell is not None:
            panel = ", ".join(label for axis, label in key.items() if axis not in (along, grouped))
            spread = None if cell["spread"] is None else float(cell["spread"].replace(",", ""))
            group = key[grouped] if grouped else table["columns"][index]["title"]
            panels.setdefault(panel, {}).setdefault(group, {})[key[along]] = (cell["mean"], spread)
    return panels


def bars_of(table: Points) -> list[Named]:
    """Places are models, or data; where only methods vary, they are places, and columns stand beside each other."""
    along = next((axis for axis in ("model", "data", "fraction") if axis in table["axes"]), None)
    titles = [column["title"] for column in table["columns"]]
    if along is None:
        columns = [rows_of(table, index, "method").get("", {}) for index in range(len(titles))]
        groups = {name: row for column in columns for name, row in column.items()}
        return [("", BARS, bars_figure(groups, titles[0] if len(titles) == 1 else ""))] if groups else []
    return [
        (", ".join(filter(None, [panel, title])), BARS, bars_figure(groups, title))
        for index, title in enumerate(titles)
        for panel, groups in rows_of(table, index, along).items()
    ]


def curves_of(table: Points) -> list[Named]:
    """Methods along the axis, a line for each model, a panel for each data set."""
    title = table["columns"][0]["title"]
    return [(panel, CURVES, curves_figure(lines, title)) for panel, lines in rows_of(table, 0, "method").items()]


def profile_of(table: Points) -> list[Named]:
    """Columns along the axis, such as corruptions, a colour for each method."""
    panels: dict[str, dict[str, dict[str, Bar]]] = {}
    for row in table["rows"]:
        key = dict(zip(table["axes"], row["key"], strict=True))
        places = {}
        for column, cell in zip(table["columns"], row["cells"], strict=True):
            if cell is not None:
                places[column["name"].rpartition(".")[2].replace("_", " ")] = (cell["mean"], None)
        panel = ", ".join(label for axis, label in key.items() if axis != "method")
        panels.setdefault(panel, {})[key["method"]] = places
    return [(panel, PROFILE, bars_figure(groups, "accuracy, %")) for panel, groups in panels.items()]


def slopes_of(table: Points) -> list[Named]:
    """From the baseline to the method that comes last, in every configuration of model and data."""
    unit, before, lines = table["columns"][0]["title"], table["baseline"], []
    for panel, lines_of in rows_of(table, 0, "method").items():
        for name, methods in lines_of.items():
            last = next((method for method in reversed(methods) if method != before), None)
            if before in methods and last is not None:
                where = ", ".join(word for word in (panel, name) if word and word != unit) or last
                lines.append((where, before, methods[before][0], last, methods[last][0]))
    return [("", SLOPES, slopes_figure(lines, unit))] if lines else []


OF_NUMBERS: dict[str, Callable[[Points], list[Named]]] = {
    "bars": bars_of,
    "curves": curves_of,
    "profile": profile_of,
    "slopes": slopes_of,
}


# Points of one cell; the first word of each tells the drawings of a cell apart.


def scatter_of(points: Points, options: Options) -> list[Named]:
    shown = points["features"]
    return [("", said.SCATTER, feature_scatter_figure(shown, shown["confidence"]))]


def success_of(points: Points, options: Options) -> list[Named]:
    """The attacks that the figure names, as far as they were measured."""
    shares = points["cosine_attacks"]["attacks"]
    kept = {name: shares[name] for name in options.get("attacks", shares) if name in shares}
    left_out = [attack_name(name) for name in options.get("attacks", ()) if name not in shares]
    named = {attack_name(name): values for name, values in kept.items()}
    words = said.SUCCESS.format({"by": "each attack" if len(named) > 1 else next(iter(named), "no attack")})
    words += f" Not measured at this scale: {', '.join(left_out)}." if left_out else ""
    return [(", attacks", words, success_by_bin_figure({**points["cosine_attacks"], "attacks": named}))] if named else []


def reliability_of(points: Points, options: Options) -> list[Named]:
    return [(", calibration", RELIABILITY, reliability_figure(points["reliability"]))]


def scaled_of(points: Points, options: Options) -> list[Named]:
    both = points["scaled"]
    after = f", S = {both['scale']:.3g}, accuracy {both['accuracy']:.1%}"
    words = f"{SCALED} {RELIABILITY}"
    return [
        (", S = 1", words, reliability_figure(both["before"])),
        (after, words, reliability_figure(both["after"])),
    ]


def bias_of(points: Points, options: Options) -> list[Named]:
    return [(", bias", said.BIAS, bias_dependence_figure(points["bias"]))]


def plane_of(points: Points, options: Options) -> list[Named]:
    """With `path` the ways under attack, with `angles` the red rays of Fig. 6."""
    if "plane" not in points:  # of a model with more than three features
        return []
    own = points["plane"]
    path, angles = own["path"] if options.get("path") else None, own.get("angles") if options.get("angles") else None
    return [("", said.PLANE, plane_figure(own["plane"], path, angles))]


def field_of(points: Points, options: Options) -> list[Named]:
    """The loss of a class; `enlarged` adds the same so many times larger, `path` and `moved` what an attack does."""
    own = points.get("plane", {})
    if not own.get("field"):
        return []
    path, moved = own["field_path"] if options.get("path") else None, own["moved"] if options.get("moved") else None
    words, name = said.FIELD.format(own["field"]), f", loss of class {own['field']['class']}"
    drawn = [(name, words, loss_field_figure(own["field"], path, moved))]
    if factor := options.get("enlarged"):
        drawn.append((f"{name}, enlarged {factor:g} times", words, loss_field_figure(own["field"], path, moved, factor)))
    return drawn


def starts_of(points: Points, options: Options) -> list[Named]:
    return [
        (f", {'before training' if shot['epoch'] == 0 else 'epoch ' + str(shot['epoch'])}", START, plane_figure(shot["plane"]))
        for shot in points["starts"]
    ]


def layers_of(points: Points, options: Options) -> list[Named]:
    """Clean and noisy images by layer, or the rows that the figure names."""
    own = points["layers"]
    shown = {**own, "blocks": inner_names(own["blocks"])}
    words = said_too.CLASSES.format(own)
    return [("", words, layer_projection_figure(shown, options.get("kinds", ("noisy", "clean"))))]


def by_count_of(points: Points, options: Options) -> list[Named]:
    return [("", said_too.COUNTS, curvature_by_count_figure(points["curvature"]["by_count"]))]


OF_EACH: dict[str, Callable[[Points, Options], list[Named]]] = {
    "scatter": scatter_of,
    "success": success_of,
    "reliability": reliability_of,
    "scaled-reliability": scaled_of,
    "bias": bias_of,
    "plane": plane_of,
    "field": field_of,
    "starts": starts_of,
    "layers": layers_of,
    "curvature-by-count": by_count_of,
}


# Points of all cells together, so that models compare; a drawing for each measurement that the figure names.


def together(
    draw: Callable[[dict[str, Any]], go.Figure], key: Sequence[str], words: str, panels: Sequence[Points], options: Options
) -> list[Named]:
    by_label: dict[str, dict[str, Any]] = {}
    for panel in panels:
        points = panel["points"]
        for name in key:
            points = points[name]
        by_label.setdefault(panel["label"], {})[panel["name"].removesuffix(f", {panel['label']}")] = points
    return [(label if len(by_label) > 1 else "", words, draw(own)) for label, own in by_label.items()]


def landscapes_of(panels: Sequence[Points], options: Options) -> list[Named]:
    """A map for each model, all with one scale of colours."""
    maps = {panel["name"]: panel["points"]["landscape"] for panel in panels}
    every = [value for each in maps.values() for image in each["loss"] for row in image for value in row if value is not None]
    ends = (min(every), max(every)) if every else None
    return [(name, said_too.MAPS, landscape_map_figure(each, ends)) for name, each in maps.items()]


OF_ALL: dict[str, Callable[[Sequence[Points], Options], list[Named]]] = {
    "accuracy-by-curvature": partial(together, accuracy_by_curvature_figure, ("curvature", "accuracy"), said_too.ACCURACY),
    "curvature-spread": partial(together, curvature_spread_figure, ("curvature", "spread"), said_too.SPREAD),
    "displacement": partial(together, displacements_figure, ("perturbation",), TOGETHER),
    "landscape": landscapes_of,
}
