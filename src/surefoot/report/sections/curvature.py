"""Figures of curvature: flat images withstand noise (discriminative-noise Fig. 8 to 10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..figures import Drawing, drawing
from .base import Model

SHARES = tuple(k / 10 for k in range(1, 11))
DRAWS = 10
LOWEST = 0.9  # of the images, in the box plot


def curvature_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Accuracy by curvature, curvature by right answers, and the spread of several models."""
    from ..plots.accuracy_by_curvature import accuracy_by_curvature_figure
    from ..plots.curvature_by_count import curvature_by_count_figure
    from ..plots.curvature_spread import curvature_spread_figure

    held = {model.name: each for model in models if (each := curvature_of(model))}
    counted = {name: each for name, each in held.items() if each.get("correct_of_draws")}
    found: list[Drawing] = []
    if counted:
        said = (
            "Accuracy under noise on the images where the loss bends least: a line that falls says that flat images are safer."
        )
        figure = accuracy_by_curvature_figure({name: accuracy_by_curvature(each) for name, each in counted.items()})
        found.append(drawing("accuracy-by-curvature", "Accuracy under noise, by curvature", said, figure))
    for place, (name, each) in enumerate(counted.items()):
        whose = f": {name}" if len(models) > 1 else ""
        said = (
            "Mean curvature of images by how often they were right in ten noisy draws; it falls to the right where what bends "
            "more is wrong more often."
        )
        figure = curvature_by_count_figure(curvature_by_count(each))
        found.append(drawing(f"curvature-by-count-{place}", f"Curvature by right answers{whose}", said, figure))
    if held:
        said = (
            "How curvature is spread over the nine tenths of the images with the lowest: the box holds the middle half of them."
        )
        figure = curvature_spread_figure(curvature_spread(held))
        found.append(drawing("curvature-spread", "Spread of curvature", said, figure))
    return found


def curvature_of(model: Model) -> dict[str, Any]:
    return (model.audit["points"].get("geometry") or {}).get("curvature") or {}


def accuracy_by_curvature(found: dict[str, Any]) -> dict[str, Any]:
    """Mean share of right draws over the ceil(p n) images of lowest curvature (Fig. 8)."""
    pairs = sorted(zip(found["values"], found["correct_of_draws"], strict=True), key=lambda pair: pair[0])
    counts = [math.ceil(round(share * len(pairs), 9)) for share in SHARES]
    values = [sum(right for _, right in pairs[:count]) / (DRAWS * count) for count in counts]
    return {"shares": list(SHARES), "values": values}


def curvature_by_count(found: dict[str, Any]) -> dict[str, Any]:
    """Mean curvature by the number of right draws, and Pearson's r over the groups that have images (Fig. 9)."""
    groups: list[list[float]] = [[] for _ in range(DRAWS + 1)]
    for value, right in zip(found["values"], found["correct_of_draws"], strict=True):
        groups[right].append(value)
    means = [sum(group) / len(group) if group else None for group in groups]
    held = [(float(k), mean) for k, mean in enumerate(means) if mean is not None]
    return {"draws": DRAWS, "values": means, "counts": [len(group) for group in groups], "correlation": pearson(held)}


def pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's r; None where either side does not vary, or of two points, which always lie on a line."""
    count = len(pairs)
    if count < 3:
        return None
    x, y = (sum(pair[side] for pair in pairs) / count for side in (0, 1))
    both = sum((a - x) * (b - y) for a, b in pairs)
    spread = math.sqrt(sum((a - x) ** 2 for a, _ in pairs) * sum((b - y) ** 2 for _, b in pairs))
    return both / spread if spread else None


def curvature_spread(held: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Minimum, quartiles and maximum of the lowest curvatures (Fig. 10)."""
    rows = []
    for found in held.values():
        lowest = sorted(found["values"])[: math.ceil(round(LOWEST * len(found["values"]), 9))]
        rows.append([quantile(lowest, quarter / 4) for quarter in range(5)])
    return {"names": list(held), "share": LOWEST, "values": rows}


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between the two nearest values."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
