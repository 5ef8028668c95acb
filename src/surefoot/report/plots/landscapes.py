"""How far the loss can change around an image, and maps of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import diagonal, escape, new_figure, scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go


def landscape_map_figure(result: dict[str, Any]) -> go.Figure:
    """The loss of each image as a map with one scale of colours (discriminative-noise Fig. 11).

    From `plain(loss_landscape(...))` with the `names` of the images and whether the prediction is `right`.
    """
    offsets, count = result["offsets"], len(result["loss"])
    figure = new_figure("", "", showlegend=False)
    every = [value for image in result["loss"] for row in image for value in row if value is not None]
    ends = {"zmin": min(every), "zmax": max(every)}
    for number, (heights, name, right) in enumerate(zip(result["loss"], result["names"], result["right"], strict=True)):
        axis = str(number + 1) if number else ""
        place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        shown = {"colorscale": "Viridis", "showscale": number == count - 1, "colorbar": {"title": {"text": "loss"}}}
        # rows of z are y: the gradient's direction
        figure.add_heatmap(x=offsets, y=offsets, z=heights, name=escape(name), **ends, **shown, **place)
        dot = {"color": "white", "size": 8, "line": {"color": "black", "width": 1}}
        figure.add_scatter(x=[0], y=[0], mode="markers", marker=dot, hoverinfo="skip", **place)
        title = f"{escape(name)},<br>{'right' if right else 'wrong'}"
        across = {
            "domain": [number / count, (number + 0.88) / count],
            "anchor": f"y{axis}",
            "title": {"text": title},
            "nticks": 4,
        }
        along = {"anchor": f"x{axis}", "showticklabels": number == 0, "title": {"text": "" if number else "along the gradient"}}
        figure.update_layout({f"xaxis{axis}": across, f"yaxis{axis}": along})
    return figure


def loss_change_figure(result: dict[str, Any]) -> go.Figure:
    """The linear part of magnma Eq. 11 against all of it: how much of the bound is curvature."""
    linear = [result["distance"] * slope for slope in result["gradient_norms"]]
    figure = scatter(linear, result["values"], "distance x gradient norm", f"Eq. 11 at distance {result['distance']:g}")
    diagonal(figure, linear)
    return figure
