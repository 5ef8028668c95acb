"""What was audited, on what, with which versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import torch
from torch import Tensor, nn

from ..calibration.recognition import Recognition
from ..data.dataset import Dataset
from ..errors import require
from ..intervals import Estimate
from ..models.black_box import numbers
from ..models.preflight import FATAL, WARNING, Finding, own_normalisation
from ..version import VERSION


def subject(name: str, data: dict[str, Any], split: str, images: int, seed: int, **more: Any) -> dict[str, Any]:
    """The head of an `audit.json`; `more` is what is known of the data, such as notes and classes."""
    return {
        "name": name,
        "data": data,
        "split": split,
        "images": images,
        **more,
        "seed": seed,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"surefoot": VERSION, "torch": torch.__version__, "python": platform.python_version()},
    }


def input_line(model: nn.Module, data: Dataset) -> str:
    """What the model is given and what its outputs stand for, as found, with the flags that set it."""
    inner: Any = model
    while not isinstance(getattr(inner, "mean", None), Tensor) and isinstance(getattr(inner, "model", None), nn.Module):
        inner = inner.model
    mean, std = own_normalisation(inner, data.channels)
    plain = bool((mean == 0).all() and (std == 1).all())
    normalised = "not normalised" if plain else f"normalised inside the model by mean {numbers(mean)} and std {numbers(std)}"
    colours = {1: "one channel", 3: "red, green, blue"}.get(data.channels, f"{data.channels} channels")
    returns, first = getattr(inner, "returns", None) or "logits", data.class_names[:3]
    order = ", ".join(f"{number} is {name}" for number, name in enumerate(first)) + (" ..." if data.num_classes > 3 else "")
    return (
        f"pixels from 0 to 1, {colours}, {data.image_size[0]} x {data.image_size[1]} px (--image-size), {normalised} "
        f"(--mean, --std); it returns {returns} (--returns), of which {order} (--classes, --class-map)"
    )


def check_provenance(given: Mapping[str, str]) -> None:
    """Before anything is measured: no word that an audit says itself."""
    own = (
        "name",
        "data",
        "split",
        "images",
        "seed",
        "created",
        "versions",
        "depth",
        "notes",
        "classes",
        "weights",
        "answers",
        "model",
        "input",
    )
    taken = next((word for word in given if word in own), None)
    require(taken is None, "provenance", f"without the audit's own {', '.join(own)}", taken)


def source_of(data: Dataset) -> str:
    """The data set that the indices belong to, as text: equal for equal data; empty when it came from Python."""
    kept = {key: value for key, value in data.source.items() if key in ("name", "root", "labels", "class_map")}
    return json.dumps(kept, sort_keys=True, default=str) if kept else ""


def at_chance(accuracy: Estimate, known: Recognition) -> Finding | None:
    """The model is not clearly better than an answer that does not look."""
    if accuracy.low > known.chance:
        return None
    message = (
        f"It is right on {100 * accuracy:.1f} % of the images, and always answering '{known.majority}', or guessing, on "
        f"{100 * known.chance:.1f} %; it answers '{known.commonest_answer}' for {100 * known.commonest_share:.1f} % of them."
    )
    advice = "Check the weights, the order of the classes and the scaling of the pixels before anything else."
    return Finding("chance", message, advice, FATAL if accuracy <= known.chance else WARNING)
