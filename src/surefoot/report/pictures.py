"""Figures as files: a page, or one picture with all panels of a figure, drawn by plotly's kaleido."""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import SurefootError, UnknownName
from ..files import replacing, write_text
from .figures import Drawing
from .plots.base import escape
from .study_figures import figure_drawings
from .study_page import render_study

FORMATS = (".html", ".svg", ".png")
WIDTH, HEIGHT = 480, 450  # of a panel, in pixels
ACROSS = 4  # panels in a row at most
LETTERS = 62  # of a title in a panel at most


def check_picture(path: Path) -> None:
    """Refuse a format that cannot be written, before the work for it is done."""
    if path.suffix not in FORMATS:
        raise UnknownName("format of a figure (the end of its file's name)", path.suffix, FORMATS)
    if path.suffix != ".html":
        try:
            import kaleido  # noqa: F401
        except ImportError as error:
            raise SurefootError(
                "A picture needs kaleido, and a page (.html) does not: pip install 'surefoot[pictures]'."
            ) from error


def write_figures(path: str | Path, figures: Sequence[dict[str, Any]], title: str, command: str = "") -> Path:
    """Write figures, as `studies.figures.figure_data` gives them, in the format that the name of the file ends with."""
    path = Path(path)
    check_picture(path)
    if path.suffix == ".html":
        only: dict[str, Any] = {"title": title, "command": command, "columns": [], "rows": [], "axes": [], "baseline": None}
        write_text(path, render_study({**only, "figures": figures}))
        return path
    drawings = [each for figure in figures for each in figure_drawings(figure)]
    if not drawings:
        raise SurefootError(f"'{title}' has nothing to draw yet.")
    panels, across = pictures(drawings, path.suffix[1:]), columns_of(len(drawings))
    with replacing(path) as beside:
        beside.write_bytes(sheet_svg(panels, across) if path.suffix == ".svg" else sheet_png(panels, across))
    return path


def columns_of(count: int) -> int:
    """Panels in a row: rows of equal length where that can be."""
    if count <= ACROSS:
        return count
    return next((across for across in (ACROSS, ACROSS - 1) if count % across == 0), ACROSS)


def pictures(drawings: Sequence[Drawing], format: str) -> list[bytes]:
    """A picture of each drawing, by one browser."""
    from plotly import graph_objects as go
    from plotly import io as plotly_io

    shown = []
    for each in drawings:
        figure = go.Figure(each.figure)
        above = {"text": escape(shortened(each.title)), "font": {"size": 13}, "y": 0.99, "yanchor": "top"}
        legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"size": 9}}
        white = {"paper_bgcolor": "white", "plot_bgcolor": "white", "template": "plotly_white"}
        margin = {"l": 60, "r": 30, "t": 120, "b": 60}
        figure.update_layout(title=above, legend=legend, margin=margin, width=WIDTH, height=HEIGHT, **white)
        shown.append(figure)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.{format}" for number in range(len(shown))]
        plotly_io.write_images(shown, files, format=format, width=WIDTH, height=HEIGHT)
        return [file.read_bytes() for file in files]


def shortened(title: str) -> str:
    return title if len(title) <= LETTERS else f"{title[: LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def sheet_svg(panels: Sequence[bytes], across: int) -> bytes:
    """Panels side by side in one file; each keeps the names of its parts, which plotly makes different."""
    width, height = across * WIDTH, math.ceil(len(panels) / across) * HEIGHT
    places = ((HEIGHT * (number // across), WIDTH * (number % across)) for number in range(len(panels)))
    inside = [
        f'<g transform="translate({left} {top})">{panel.decode("utf-8")}</g>'
        for panel, (top, left) in zip(panels, places, strict=True)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join([head, *inside, "</svg>\n"]).encode()


def sheet_png(panels: Sequence[bytes], across: int) -> bytes:
    """Panels side by side in one picture of few colours, which is small."""
    from PIL import Image

    sheet = Image.new("RGB", (across * WIDTH, math.ceil(len(panels) / across) * HEIGHT), "white")
    for number, panel in enumerate(panels):
        sheet.paste(Image.open(io.BytesIO(panel)).convert("RGB"), (WIDTH * (number % across), HEIGHT * (number // across)))
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()
