"""Figures of margins: how far images are from another class, and what a little noise does to that."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing
from .base import Kind, Model, drawings_of

LOGITS = (
    "How the margin (right logit minus the best other), the norm of the logits and the largest logit are spread over images: "
    "margins below 0 are wrong, and large logits make confident predictions, right or wrong."
)
RATIO = (
    "Each point is an image: its margin against how far noise moves its logits. Far above the line an image bears more noise "
    "than most, below 0 it is wrong already."
)
MOVED = (
    "Each point is an image: how far noise of {0[std]:g} moves its logits and its probabilities. Points on the right that stay "
    "low are moved but predicted alike."
)
RADII = "How far away another class is from each image, by two estimates: larger is safer, and nothing is certified."
STABILITY = (
    "Each point is an image: how often noise leaves its features within a distance of {0[distance]:g}, and how much the loss "
    "changes where they leave. Right and low is stable."
)
DISTANCES = "How far the features of each image are from the nearest boundary of its class: left of the line is wrong."
SLOPES = (
    "Each point is an image: how steeply its lead over another class falls, and how far away that class is if the slope "
    "stays as it is; up and left is safer, and nothing is certified."
)


def margin_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Up to seven figures for each model that has the points."""
    from ..plots.margins import (
        hyperplane_distance_figure,
        local_lipschitz_figure,
        logit_statistics_figure,
        margin_ratio_figure,
        noise_stability_figure,
        radius_estimates_figure,
        sensitivity_figure,
    )

    kinds = (
        Kind("logits", "logits", "Margin and size of the logits", LOGITS, logit_statistics_figure),
        Kind(
            "sensitivity",
            "margin-ratio",
            "Margin and sensitivity",
            RATIO,
            lambda p: margin_ratio_figure({**p, "sensitivities": p["values"]}),
        ),
        Kind("sensitivity", "sensitivity", "What noise moves", MOVED, sensitivity_figure),
        Kind("radii", "radii", "Estimated radius", RADII, radius_estimates_figure),
        Kind("stability", "stability", "Stability of features and loss", STABILITY, noise_stability_figure),
        Kind("hyperplanes", "hyperplanes", "Distance to the boundary", DISTANCES, hyperplane_distance_figure),
        Kind("slopes", "slopes", "Slope and distance to another class", SLOPES, local_lipschitz_figure),
    )
    return drawings_of(models, kinds)
