"""When the picture gets worse: the heat map with its pictures, families, severities, noise and occlusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...metrics import find
from ..figures import Drawing, drawing
from ..plots.base import apart, interval_figure
from ..plots.corruptions import family_figure, severity_figure
from ..verdict import clean_beside
from ..words import Audit, spoken
from .base import Model, Section

MEASURES = {name: find(name).label for name in ("accuracy", "ece", "nll", "rms")}
Number = dict[str, Any]
# the same as corruptions.families, which needs torch
FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
EVERY_FAMILY: dict[str, tuple[str, ...]] = {
    **FAMILIES,
    "c-bar": (
        *("blue_noise_sample", "brownish_noise", "caustic_refraction", "checkerboard_cutout", "cocentric_sine_waves"),
        *("inverse_sparkles", "perlin_noise", "plasma_noise", "single_frequency_greyscale", "sparkles"),
        *("circular_motion_blur", "lines", "pinch_and_twirl", "ripple", "transverse_chromatic_abberation"),
    ),
}
OTHER = "other"


def corruptions_section(models: Sequence[Model]) -> Section | None:
    """None where no model was shown a corrupted picture."""
    having = [model for model in models if model.audit.get("corruptions")]
    if not having:
        return None
    heat = [heat_map(model) for model in having]
    values = {
        "models": having,
        "heat": heat,
        "measures": MEASURES,
        "alexnet": any(model.audit["corruptions"].get("alexnet_mce") for model in having),
        "occlusions": [model for model in having if model.audit.get("occlusions")],
    }
    album: dict[str, int] = {}  # pictures that several models were shown are on the page once
    shown = [examples(model, album) for model in having]
    data = {"measures": MEASURES, "heat": heat, "examples": shown, "pictures": list(album)}
    return Section("corruptions", "When the picture gets worse", values, tuple(curves(having)), data)


def heat_map(model: Model) -> dict[str, Any]:
    """Rows by family and corruption, columns by severity, and in each cell the four measures with their intervals."""
    cells = model.audit["corruptions"]["cells"]
    severities = sorted({cell["severity"] for cell in cells})
    names = list(dict.fromkeys(cell["name"] for cell in cells))
    by_condition = {(cell["name"], cell["severity"]): cell for cell in cells}
    rows = [
        {
            "name": name,
            "title": spoken(name),
            "family": family_of(name),
            "cells": [
                {key: triple(by_condition[name, severity][key]) for key in MEASURES}
                if (name, severity) in by_condition
                else None
                for severity in severities
            ],
        }
        for name in by_family(names)
    ]
    scores = model.audit["calibration"]
    clean = {key: triple(scores[key]) for key in MEASURES if key in scores}
    clean["accuracy"][0] = clean_beside(model.audit)
    return {"name": model.name, "severities": severities, "rows": rows, "clean": clean}


def family_of(name: str) -> str:
    """The family by which the page groups a corruption."""
    return next((family for family, members in EVERY_FAMILY.items() if name in members), OTHER)


def triple(number: Number) -> list[float | None]:
    return [number["value"], number["low"], number["high"]]


def by_family(names: Sequence[str]) -> list[str]:
    """Members of a family beside each other, in the order of the families."""
    order = [*EVERY_FAMILY, OTHER]
    return sorted(names, key=lambda name: order.index(family_of(name)))


def examples(model: Model, album: dict[str, int]) -> dict[str, Any]:
    """Places of pictures in the album and the names of the classes, for the panel that a cell opens."""
    content = model.audit["points"].get("examples") or {"labels": [], "clean": [], "cells": {}}
    numbers = {*content["labels"], *(prediction[0] for cell in content["cells"].values() for prediction in cell["answers"])}
    classes = model.audit["subject"].get("classes") or []
    names = {number: class_name(classes, number) for number in sorted(numbers)}

    def placed(pictures: Sequence[str]) -> list[int]:
        return [album.setdefault(picture, len(album)) for picture in pictures]

    cells = {key: {"pictures": placed(cell["pictures"]), "answers": cell["answers"]} for key, cell in content["cells"].items()}
    return {"labels": content["labels"], "clean": placed(content["clean"]), "cells": cells, "classes": names}


def class_name(classes: Sequence[str], number: int) -> str:
    return str(classes[number]) if number < len(classes) else str(number)


def curves(models: Sequence[Model]) -> list[Drawing]:
    """Families, severities and noise."""
    drawings = [
        drawing(
            "families",
            "By family",
            "Mean accuracy on each family of corruptions, with 95 % intervals.",
            family_figure({model.name: model.audit["corruptions"]["families"] for model in models}),
        ),
        drawing(
            "severities",
            "By severity",
            "Mean accuracy as the damage grows from none (0) to severe (5). The steeper a line falls, the worse.",
            severity_figure(severity_lines(models)),
        ),
    ]
    noisy = [noise_lines(model, len(models) > 1) for model in models if model.audit.get("noise")]
    if noisy:
        said = "Accuracy under noise of growing strength, in units of 1/255 of the pixel range, with 95 % intervals."
        figure = interval_figure(apart(noisy), "noise level (of 255)", "accuracy")
        drawings.append(drawing("noise", "By strength of noise", said, figure))
    return drawings


def severity_lines(models: Sequence[Model]) -> dict[str, list[tuple[int, float]]]:
    """One model: a line for each family. Several: the mean of all corruptions for each."""
    if len(models) > 1:
        return {model.name: means(model.audit, None) for model in models}
    families = list(models[0].audit["corruptions"]["families"])
    return {family: means(models[0].audit, family) for family in families} | {"all": means(models[0].audit, None)}


def means(audit: Audit, family: str | None) -> list[tuple[int, float]]:
    """(Severity, mean accuracy) over the corruptions of a family or over all, after that of the same images at 0."""
    row = [(0, clean_beside(audit))]
    cells = [cell for cell in audit["corruptions"]["cells"] if family in (None, family_of(cell["name"]))]
    for severity in sorted({cell["severity"] for cell in cells}):
        values = [cell["accuracy"]["value"] for cell in cells if cell["severity"] == severity]
        row.append((severity, sum(values) / len(values)))
    return row


def noise_lines(model: Model, several: bool) -> dict[str, list[tuple[float, Number]]]:
    """Accuracy by level for each kind of noise; level 0 is the same images as they are."""
    everything = model.audit["calibration"]["accuracy"]  # audits of older versions know no other
    lines: dict[str, list[tuple[float, Number]]] = {}
    for row in model.audit["noise"]:
        name = f"{model.name}, {row['kind']}" if several else row["kind"]
        lines.setdefault(name, [(0.0, row.get("clean_accuracy") or everything)]).append((255 * row["level"], row["accuracy"]))
    return lines
