"""What layers make of the classes, clean and noisy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .base import COLOURS, coordinates, escape, new_figure, palette

if TYPE_CHECKING:
    from plotly import graph_objects as go

LONGEST = 12  # letters of a name
LARGEST = 0.6931471805599453  # log 2, the most that the divergence can be


def layer_projection_figure(result: dict[str, Any], kinds: Sequence[str] = ("noisy", "clean")) -> go.Figure:
    """A column for each block, clean images above and noisy ones below (discriminative-noise Fig. 1, 12, 13).

    With `names` of the classes, hovering says them. `kinds` are the rows, from below.
    """
    columns = len(result["blocks"])
    colours = palette(max(result["labels"]) + 1)
    shade = [colours[label] for label in result["labels"]]
    known = result.get("names") or [str(label) for label in range(len(colours))]
    text = [escape(known[label]) for label in result["labels"]]
    figure = new_figure("", "", showlegend=False)
    for number, block in enumerate(result["blocks"]):
        for row, kind in enumerate(kinds):
            axis = str(row * columns + number + 1) if row or number else ""
            points: dict[str, Any] = {
                "mode": "markers",
                "marker": {"color": shade, "size": 4},
                "name": f"{escape(block)}, {kind}",
            }
            points |= {"text": text, "hovertemplate": "%{text}<extra></extra>"}
            figure.add_scattergl(**coordinates(result[kind][number]), **points, xaxis=f"x{axis}", yaxis=f"y{axis}")
            bare = {"showticklabels": False, "zeroline": False}
            across = {"domain": [number / columns + 0.01, (number + 1) / columns - 0.01], "anchor": f"y{axis}", **bare}
            along = {"domain": [(row + 0.04) / len(kinds), (row + 0.96) / len(kinds)], "anchor": f"x{axis}", **bare}
            across["title"] = {"text": "" if row else shortened(escape(block))}
            along["title"] = {"text": "" if number else kind}
            figure.update_layout({f"xaxis{axis}": across, f"yaxis{axis}": along})
    return figure


def shortened(name: str) -> str:
    """The end of a name that is too long for its column."""
    return name if len(name) <= LONGEST else f"\N{HORIZONTAL ELLIPSIS}{name[-LONGEST:]}"


def separation_by_layer_figure(result: dict[str, Any]) -> go.Figure:
    """Mean over pairs of classes, each pair, the bound and log 2, by layer (discriminative-noise Thm 6.3).

    `values` is blocks x pairs, `pairs` are names of classes, `bound` and `tau` are those of `ClassSeparation`.
    """
    figure = new_figure("layer", "Jensen-Shannon divergence, nats", yaxis={"rangemode": "tozero"})
    blocks = [escape(name) for name in result["blocks"]]
    means = [sum(row) / len(row) for row in result["values"]]
    figure.add_scatter(x=blocks, y=means, mode="lines+markers", name="mean of the pairs", line={"color": COLOURS[0]})
    names = [escape(f"{first} and {second}") for first, second in result["pairs"]]
    figure.add_scatter(
        x=[block for block in blocks for _ in names],
        y=[value for row in result["values"] for value in row],
        text=names * len(blocks),
        mode="markers",
        name="a pair of classes",
        marker={"color": COLOURS[1], "size": 5, "opacity": 0.6},
        hovertemplate="%{text}: %{y:.3g}<extra></extra>",
    )
    figure.add_hline(y=result["bound"], line={"color": COLOURS[2]}, annotation_text=f"bound, tau {result['tau']:.3g}")
    figure.add_hline(y=LARGEST, line={"color": "#888", "dash": "dash"}, annotation_text="log 2")
    return figure
