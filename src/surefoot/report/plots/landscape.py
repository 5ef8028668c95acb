"""The loss around one image (discriminative-noise Fig. 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def landscape_figure(result: dict[str, Any], image: int = 0) -> go.Figure:
    """The negative loss as a surface, with the image as a black dot, from `plain(loss_landscape(...))`."""
    offsets = result["offsets"]
    heights = [[-value for value in row] for row in result["loss"][image]]
    figure = new_figure("", "")
    # rows of z are y: the gradient's direction
    figure.add_surface(x=offsets, y=offsets, z=heights, colorscale="Viridis", showscale=False)
    middle = len(offsets) // 2
    dot = {"x": [offsets[middle]], "y": [offsets[middle]], "z": [heights[middle][middle]]}
    figure.add_scatter3d(**dot, mode="markers", marker={"color": "black", "size": 5}, name="image")
    titles = {"xaxis": "orthogonal", "yaxis": "gradient", "zaxis": "negative loss"}
    figure.update_layout(scene={axis: {"title": {"text": title}} for axis, title in titles.items()})
    return figure


def landscape_map_figure(result: dict[str, Any]) -> go.Figure:
    """The loss of each image as a map with one scale of colours, for a page that is printed and scrolled by finger.

    From `plain(loss_landscape(...))` with the `names` of the images and whether the answer is `right`.
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
