"""Figures of the representation space: features, class centres, cones, biases, collapse, attacks on them, the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figures import Drawing
from ..words import attack_name
from .base import Kind, Model, drawings_of

SCATTER = (
    "Each point is an image: how large its features are, how well they point at the centre of their class, and in "
    "colour how sure the model is. Where colour follows height alone, confidence is a matter of direction."
)
SUCCESS = (
    "How many images point how well at their class centre, and how many of the right ones {0[by]} breaks in each "
    "bin. The usual result: what points elsewhere is broken first."
)
MOVED = "How far the attack moves the features of each image, against their size; the cross is the mean."
PLANE = (
    "The whole representation space of a model with two or three features: regions of classes, lines of equal "
    "confidence, and the ways that PGD drives some images; red rays enclose high confidence."
)
FIELD = (
    "The loss of class {0[class]} over a space of two features: arrows point uphill, the cross is its lowest point (if it has "
    "one), the white line the border of its region, the orange one the way that PGD drives an image."
)
CONES = (
    "Features are shrunk towards the origin in {0[steps]} steps: at which step the predicted class changes first. Where all "
    "are full cones, the class depends on the direction of features alone."
)
BIAS = "The bias of each class in the last layer, and which share of its right predictions changes without it."
CENTRES = (
    "How well the cosine to each kind of class centre tells the confidence: the kind with the largest r is the centre that the "
    "model acts by."
)
STABLE = (
    "Class centres found with other learning rates, steps and schedules: cosines near 1 say that they point the same way, so "
    "that numbers about centres do not hang on how they were sought."
)
COLLAPSE = "How far features and weights are from single points, equally long and equally far apart: 0 is complete collapse."
WIDTHS = (
    "How wide each class is (dispersion) and how near its nearest image comes to a boundary (margin): narrow classes far from "
    "it are good, and a signed margin below 0 has an image on the wrong side."
)


def feature_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Up to eleven figures for each model that has the points."""
    from ..plots.features import (
        bias_dependence_figure,
        centre_correlation_figure,
        centre_stability_figure,
        class_shapes_figure,
        cone_index_figure,
        feature_displacement_figure,
        feature_scatter_figure,
        neural_collapse_figure,
        success_by_bin_figure,
    )
    from ..plots.planes import loss_field_figure, plane_figure

    kinds = (
        Kind(
            "features",
            "features",
            "Size, direction and confidence",
            SCATTER,
            lambda p: feature_scatter_figure(p, p["confidence"]),
        ),
        Kind("features", "success", "Direction and attack success", SUCCESS, success_by_bin_figure, success_of),
        Kind(
            "perturbation",
            "displacement",
            "How far an attack moves features",
            MOVED,
            feature_displacement_figure,
            lambda p: p if "feature_rms_mean" in p else None,  # audits of before have other points
        ),
        Kind(
            "plane",
            "plane",
            "The plane of features",
            PLANE,
            lambda p: plane_figure(p["plane"], p["path"], p.get("angles")),
        ),
        Kind(
            "plane",
            "field",
            "The loss over the plane",
            FIELD,
            lambda p: loss_field_figure(p, p["path"]),
            lambda p: {**p["field"], "path": p["field_path"]} if p.get("field") else None,
        ),
        Kind("cones", "cones", "Cones around the origin", CONES, cone_index_figure),
        Kind("bias", "bias", "Predictions that rest on the bias", BIAS, bias_dependence_figure),
        Kind("centre_correlations", "kinds", "Kinds of class centres", CENTRES, centre_correlation_figure),
        Kind("centre_stability", "centres", "Centres over optimiser settings", STABLE, centre_stability_figure),
        Kind("neural_collapse", "collapse", "Distance from neural collapse", COLLAPSE, neural_collapse_figure),
        Kind("class_shapes", "shapes", "Width and margin of classes", WIDTHS, lambda p: class_shapes_figure(p, p["names"])),
    )
    return drawings_of(models, kinds)


def success_of(features: dict[str, Any]) -> dict[str, Any] | None:
    """The bins of an audit that attacked, and the names of the attacks; audits of before have one."""
    success = features.get("success")
    if not success:
        return None
    shares = success.get("attacks") or {features["broken_by"]: success["values"]}
    named = {attack_name(name): values for name, values in shares.items()}
    return {**success, "attacks": named, "by": "each attack" if len(named) > 1 else next(iter(named))}
