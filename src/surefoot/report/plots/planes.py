"""Representation spaces of two or three dimensions (representation-space Fig. 1, 2, 4 to 6, 9 to 13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from ...errors import require
from .base import coordinates, new_figure, palette, transposed

if TYPE_CHECKING:
    from plotly import graph_objects as go

SURE = 0.99  # the confidence that Fig. 6 draws as a black line
MARKS = (
    ("means", "class means", "triangle-up"),
    ("centres", "minimum-loss points", "x"),
    ("weights", "weight vectors", "square"),
)


def plane_figure(result: dict[str, Any], path: dict[str, Any] | None = None, angles: dict[str, Any] | None = None) -> go.Figure:
    """Decision regions, confidence contours, features, means, centres and weights, from `plain(representation_plane(...))`.

    `path` is `plain(attack_path(...))` and `angles` `plain(confidence_angles(...))` of the same features. Weights and centres
    that would lie outside the figure, or in a heap at the origin, are scaled, since their direction is what counts: their name,
    in the legend and in the table, then has the factor. Centres of classes whose loss has no minimum say so. Three dimensions
    show the regions of the first two classes only, as Fig. 10 does, and no contours.
    """
    figure = new_figure("feature 1", "feature 2", legend={"orientation": "h", "y": 1.12})
    colours = palette(len(result["weights"]))
    extent = result["axis"][-1]
    flat = len(result["weights"][0]) == 2
    scatter = figure.add_scatter if flat else figure.add_scatter3d
    if flat:
        add_regions(figure, result, colours)
    else:
        add_solids(figure, result, colours)
    shade = [colours[label] for label in result["labels"]]
    scatter(**coordinates(result["features"]), mode="markers", marker={"color": shade, "size": 5}, name="features")
    for key, name, symbol in MARKS:
        factor = 1.0 if key == "means" else drawn_factor(result[key], extent)
        symbol = symbol if flat else "diamond" if symbol == "triangle-up" else symbol
        for numbers, note in groups(result, key):
            points = [[None if value is None else factor * value for value in result[key][number]] for number in numbers]
            mine = [colours[number] for number in numbers]
            marker = {"symbol": symbol, "size": 10, "color": mine, "line": {"color": "black", "width": 1}}
            remarks = ", ".join(filter(None, [note, f"drawn x {factor:.3g}" if factor != 1 else ""]))
            scatter(**coordinates(points), mode="markers", marker=marker, name=f"{name} ({remarks})" if remarks else name)
    for number in range(len(path["labels"]) if path else 0):
        way = [step[number] for step in path["features"]] if path else []
        scatter(**coordinates(way), mode="lines+markers", line={"color": "black"}, name="attack", showlegend=number == 0)
    for low, high in angles["places"] if angles else []:
        ends = [result["features"][end] for end in (low, high) if end >= 0]
        if ends:
            ray = {"color": "red", "width": 1}
            way = [ends[0], [0.0, 0.0], ends[-1]]
            scatter(**coordinates(way), mode="lines+markers", line=ray, marker={"symbol": "star", "size": 9}, showlegend=False)
    if flat:
        figure.update_layout(xaxis={"range": [-extent, extent]}, yaxis={"range": [-extent, extent], "scaleanchor": "x"})
    return figure


def add_regions(figure: go.Figure, result: dict[str, Any], colours: Sequence[str]) -> None:
    """The class of each point of the grid, and lines of equal confidence."""
    steps = len(colours)
    scale = [[edge / steps, colour] for k, colour in enumerate(colours) for edge in (k, k + 1)]
    axis = result["axis"]
    regions = {"z": transposed(result["classes"]), "colorscale": scale, "zmin": -0.5, "zmax": steps - 0.5}
    figure.add_heatmap(x=axis, y=axis, **regions, opacity=0.35, showscale=False, hoverinfo="skip")
    grid = {"x": axis, "y": axis, "z": transposed(result["confidence"]), "showscale": False}
    lines = {"start": 0.1, "end": 0.9, "size": 0.1, "coloring": "lines"}
    figure.add_contour(**grid, contours=lines, colorscale="Greys", name="confidence")
    last = {"start": SURE, "end": SURE, "size": 1, "coloring": "lines"}
    black = {"colorscale": [[0, "black"], [1, "black"]], "name": f"confidence {SURE}", "hoverinfo": "skip"}
    figure.add_contour(**grid, contours=last, **black)


def add_solids(figure: go.Figure, result: dict[str, Any], colours: Sequence[str], shown: int = 2) -> None:
    """The regions of the first classes in three dimensions, as surfaces that one sees through."""
    axis, classes = result["axis"][::2], result["classes"]  # every other point, which keeps the page small
    x, y, z = zip(*product(axis, axis, axis), strict=True)
    for number in range(shown):
        inside = [float(label == number) for plane in classes[::2] for row in plane[::2] for label in row[::2]]
        solid = {"isomin": 0.5, "isomax": 1, "surface_count": 1, "opacity": 0.25, "showscale": False, "hoverinfo": "skip"}
        colour = [[0, colours[number]], [1, colours[number]]]
        figure.add_isosurface(x=x, y=y, z=z, value=inside, colorscale=colour, name=f"region of class {number}", **solid)


def drawn_factor(points: Sequence[Sequence[float]], extent: float) -> float:
    """1 where points can be drawn as they are; otherwise what brings their furthest coordinate to 0.9 of the extent."""
    largest = max((abs(value) for point in points for value in point), default=0) or 1.0
    return 1.0 if 0.25 * extent <= largest <= extent else 0.9 * extent / largest


def groups(result: dict[str, Any], key: str) -> list[tuple[list[int], str]]:
    """Classes that are drawn under one name: centres apart by whether they are a minimum, if the result tells."""
    classes = list(range(len(result[key])))
    if key != "centres" or "converged" not in result:  # audits of before do not tell
        return [(classes, "")]
    notes = [
        centre_note(finite, converged, result["centre_steps"])
        for finite, converged in zip(result["finite"], result["converged"], strict=True)
    ]
    return [([number for number in classes if notes[number] == note], note) for note in dict.fromkeys(notes)]


def centre_note(finite: bool, converged: bool, steps: int) -> str:
    if not finite:
        return f"no minimum: after {steps} steps"
    return "converged" if converged else "not converged"


def loss_field_figure(
    result: dict[str, Any],
    path: dict[str, Any] | None = None,
    moved: dict[str, Any] | None = None,
    enlarged: float = 1.0,
) -> go.Figure:
    """Loss of a class as colour, gradients as arrows of one length, the minimum-loss point, the region of the class.

    From `plain(loss_field(...))`; `path` is `plain(attack_path(...))`, and so is `moved`, of which only the ends are drawn,
    clean features as circles and perturbed ones as triangles (Fig. 5). `enlarged` shows the middle only, so many times larger.
    """
    require(len(result["centre"]) == 2, "result", "of two dimensions", len(result["centre"]))
    axis, extent = result["axis"], result["axis"][-1]
    figure = new_figure("feature 1", "feature 2")
    bar = {"title": {"text": "loss"}}
    figure.add_heatmap(x=axis, y=axis, z=transposed(result["loss"]), colorscale="Viridis", colorbar=bar)
    own = [[int(label == result["label"]) for label in row] for row in result["classes"]]
    border = {"start": 0.5, "end": 0.5, "size": 1, "coloring": "lines"}
    white = [[0, "white"], [1, "white"]]
    figure.add_contour(x=axis, y=axis, z=transposed(own), contours=border, colorscale=white, showscale=False, hoverinfo="skip")
    length = 1.2 * extent / math.sqrt(len(result["places"]))
    for (x, y), (along, up) in zip(result["places"], result["gradients"], strict=True):
        size = math.hypot(along, up)
        if size > 0:
            tip = {"x": x + length * along / size, "y": y + length * up / size}
            figure.add_annotation(
                **tip, ax=x, ay=y, axref="x", ayref="y", text="", showarrow=True, arrowhead=2, arrowcolor="#ddd"
            )
    centre = {"symbol": "x", "size": 13, "color": "white", "line": {"color": "black", "width": 1}}
    name = "minimum-loss point"
    if "converged" in result:  # audits of before do not tell
        name += f" ({centre_note(result['finite'], result['converged'], result['centre_steps'])})"
    figure.add_scatter(**coordinates([result["centre"]]), mode="markers", marker=centre, name=name)
    for number in range(len(path["labels"]) if path else 0):
        way = [step[number] for step in path["features"]] if path else []
        line = {"color": "orange"}
        figure.add_scatter(**coordinates(way), mode="lines+markers", line=line, name="attack", showlegend=number == 0)
    ends = (("clean", "circle", moved["features"][0]), ("perturbed", "triangle-up", moved["features"][-1])) if moved else ()
    for name, symbol, points in ends:
        marker = {"symbol": symbol, "size": 8, "color": "orange", "line": {"color": "black", "width": 1}}
        figure.add_scatter(**coordinates(points), mode="markers", marker=marker, name=name)
    extent /= enlarged
    figure.update_layout(xaxis={"range": [-extent, extent]}, yaxis={"range": [-extent, extent], "scaleanchor": "x"})
    return figure
