"""What may be asked of calibration: its methods, the scores of prediction sets, shares of images; known without torch."""

from __future__ import annotations

from ..registry import Registry

SCORES = ("lac", "aps", "raps")  # of prediction sets
TUNING = 0.2  # share of the images that fix the score, unless told otherwise
CROSS_FIT = "cross-fit"  # each half of the images by a temperature of the other
METHODS = Registry(
    "calibration method",
    [
        ("temperature", "surefoot.calibration.temperature:Temperature", "One number divides all logits; keeps the order"),
        (
            "feature-scaling",
            "surefoot.calibration.temperature:FeatureScaling",
            "One number scales the penultimate features",
        ),
        ("vector", "surefoot.calibration.per_class:ClassScaling", "A factor and an offset for each class"),
        ("bias", "surefoot.calibration.per_class:ClassBias", "An offset for each class"),
        ("isotonic", "surefoot.calibration.per_class:Isotonic", "A rising line through knots for each class against the rest"),
    ],
)
FITS = {  # how each is fitted to predictions
    "temperature": "surefoot.calibration.temperature:fit_temperature",
    "feature-scaling": "surefoot.calibration.temperature:scale_features",
    "vector": "surefoot.calibration.per_class:fit_vector",
    "bias": "surefoot.calibration.per_class:fit_bias",
    "isotonic": "surefoot.calibration.per_class:fit_isotonic",
}
