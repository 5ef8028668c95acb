"""What the measurements of an audit found, put together: the scores, the parts of the page and its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..attacks.cache import fingerprint
from ..calibration.bins import reliability
from ..calibration.calibrators import Calibrated
from ..calibration.recognition import recognition
from ..calibration.scoring import scores
from ..measurements.base import Measurement, Rows, Summary
from ..measurements.context import Context
from ..measurements.features import features_figure
from ..measurements.groups import class_results, confusion, group_results
from ..measurements.pictures import feature_scale_grid, temperature_grid
from ..measurements.predictions import logit_geometry, logit_points
from ..measurements.promises import replayed
from ..measurements.temperatures import scaled
from ..measurements.thresholds import thresholds
from ..models.last_layer import NoHead, head_of
from ..models.preflight import Finding
from .passes import AuditTable
from .result import Audit, Geometry
from .subjects import at_chance, input_line, subject

PARTS = ("corruptions", "noise", "occlusions", "attacks", "security_curve", "masking", "foreign")


def assemble(
    context: Context,
    table: AuditTable,
    measurements: Mapping[str, Measurement],
    results: Mapping[str, Summary],
    notes: Sequence[str],
    findings: tuple[Finding, ...],
    name: str,
    depth: str,
    risks: Sequence[float],
    groups: Sequence[str] | None,
    provenance: Mapping[str, Any],
) -> Audit:
    """The audit, from what its measurements found."""
    data, seed, clean, source = context.data, context.seed, context.clean, context.temperatures
    parts, own, measured, about_data = dict[str, Any](), dict[str, Any](), dict[str, Any](), list[str]()
    figures, drawn, remarks = sliders(context), {"logits": logit_points(table.everything)}, list(notes)
    for label, summary in results.items():
        part = measurements[label].part
        if part in PARTS:
            parts[part] = together(parts[part], summary.values) if part in parts else summary.values
            about_data += summary.notes
            figures |= summary.figures if part == "foreign" else {}
        elif part == "geometry":
            measured |= {f"{label}.{key}" if key in measured else key: value for key, value in summary.values.items()}
            drawn |= {f"{label}.{key}" if key in drawn else key: figure for key, figure in summary.figures.items()}
            remarks += summary.notes
        elif part == "figures":
            figures |= summary.figures
        else:
            own[label] = summary.values
            remarks += [f"{label}: {note}" for note in summary.notes]
    images = [each.max_images for each in measurements.values() if each.part == "geometry"]
    if images:
        measured = {
            "images": len(context.rows(max(images, key=lambda count: math.inf if count is None else count))),
            **measured,
        }
    if "feature_rms" in table.everything:
        drawn["features"] = features_figure(*features_under_attack(table, results.get("attacks"), measurements))
    worse = parts.get("corruptions")
    more = {"depth": depth, "notes": [*data.notes, *about_data], "classes": list(data.class_names), **provenance}
    more |= {"weights": fingerprint(context.model), "input": input_line(context.model, data)}
    clean_scores, known = scores(clean, seed=seed), recognition(clean, data.class_names, seed=seed)
    at_first = [finding for finding in (at_chance(clean_scores.accuracy, known),) if finding is not None]
    return Audit(
        subject=subject(name, data.source, context.split, len(context.images), seed, **more),
        calibration=clean_scores,
        recognition=known,
        temperature=None
        if source is None
        else scaled(clean, source, seed, *((None, None) if worse is None else (worse.mean_ece, worse.mean_scaled_ece))),
        thresholds=thresholds(clean, risks, seed, context.held_out),
        preflight=(*at_first, *findings),
        geometry=Geometry(**logit_geometry(table.everything, seed), measured=measured, notes=tuple(remarks)),
        classes=class_results(clean, data.class_names),
        groups=() if groups is None else group_results(clean, list(groups), seed),
        reliability=reliability(clean),
        predictions=clean,
        figures={**figures, "confusion": confusion(clean), "geometry": drawn},
        promises=replayed(context, table, judged_conditions(context, measurements)),
        measurements=own,
        **parts,
    )


def together(one: Any, two: Any) -> Any:
    """What two measurements say of one part: lists or mappings by name."""
    return {**one, **two} if isinstance(one, Mapping) else (*one, *two)


def judged_conditions(context: Context, measurements: Mapping[str, Measurement]) -> list[str]:
    """The conditions under which promises are replayed: of further draws of the same noise only the first."""
    names = [condition.name for each in measurements.values() for condition in each.conditions(context)]
    return [name for name in dict.fromkeys(names) if "#" not in name]


def features_under_attack(
    table: AuditTable, attacks: Summary | None, measurements: Mapping[str, Measurement]
) -> tuple[Rows, dict[str, Rows]]:
    """The images whose features were measured, and the same under every attack."""
    clean = table.clean(measurements["features"].max_images)
    return clean, {} if attacks is None else {name: table.rows(name) for name in attacks.values}


def sliders(context: Context) -> dict[str, Any]:
    """The reliability diagram at every temperature and feature scale that the page can slide to."""
    clean, source = context.clean, context.temperatures
    fitted = () if source is None else tuple(fit.temperature for fit in source.fits)
    bias = None if isinstance(context.model, Calibrated) else bias_of(context)
    return {"temperatures": temperature_grid(clean, fitted), "feature_scales": feature_scale_grid(clean, bias)}


def bias_of(context: Context) -> torch.Tensor | None:
    """What the final layer adds to its features, for a model that ends in a linear layer."""
    channels, (height, width) = context.data.channels, context.data.image_size
    few = torch.zeros(2, channels, height, width, device=context.device)
    try:
        return head_of(context.model, few).bias
    except NoHead:
        return None
