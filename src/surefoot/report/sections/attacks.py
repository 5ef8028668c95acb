"""When somebody means harm: attacks, the security curve with calibration, and signs of masked gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...metrics import find
from ..figures import drawing
from ..plots.base import apart, interval_figure
from ..words import attack_name
from .base import Model, Section

SHOWN = ("accuracy", "ece", "confidence")


def attacks_section(models: Sequence[Model]) -> Section | None:
    """None where nothing was attacked."""
    attacked = [model for model in models if model.audit.get("attacks") or model.audit.get("security_curve")]
    if not attacked:
        return None
    rows = [
        {"model": model.name, "attack": attack_name(name), **result}
        for model in attacked
        for name, result in model.audit.get("attacks", {}).items()
    ]
    lines = [curve_lines(model, len(attacked) > 1) for model in attacked if model.audit.get("security_curve")]
    drawings = []
    if lines:
        said = (
            "What PGD leaves of the accuracy when it may change every pixel by so much, how sure the model is of its "
            "predictions there, and its calibration error under attack. A model that is robust falls late; one that is honest "
            "loses confidence with it."
        )
        figure = interval_figure(apart(lines), "largest change of a pixel (of 255)", "share")
        drawings.append(drawing("security", "Security curve", said, figure))
    masked = [(model.name, line) for model in attacked for line in model.audit.get("masking", ())]
    values = {"rows": rows, "masked": masked, "several": len(models) > 1}
    return Section("attacks", "When somebody means harm", values, tuple(drawings))


def curve_lines(model: Model, several: bool) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """Accuracy, ECE and mean confidence by budget; budgets that belong to a name have no place on the axis."""
    points = [point for point in model.audit["security_curve"] if point["eps"] is not None]
    lines = {}
    for key in SHOWN:
        title = find(key).label
        name = f"{model.name}, {title}" if several else title
        lines[name] = [(255 * point["eps"], as_number(point[key])) for point in points]
    return lines


def as_number(value: Any) -> dict[str, Any]:
    """A number with its interval, which may have none."""
    return value if isinstance(value, dict) else {"value": value}
