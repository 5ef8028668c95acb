"""Results as plain values, for JSON files and for figures, which know no torch."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from .intervals import Estimate


def plain(value: Any) -> Any:
    """Dataclasses and estimates as dictionaries, arrays and tuples as lists, and None for a number that is not defined."""
    if isinstance(value, Estimate):
        return {"value": plain(float(value)), "low": plain(value.low), "high": plain(value.high)}
    if type(value).__module__ == "torch" and hasattr(value, "detach"):  # a tensor, without importing torch
        return plain(value.detach().cpu().tolist())
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
