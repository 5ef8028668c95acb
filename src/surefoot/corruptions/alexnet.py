"""Errors of AlexNet, which make those of other models on ImageNet comparable over corruptions."""

from __future__ import annotations

from collections.abc import Sequence

from .severities import scale_for

ALEXNET = {  # top-1 errors that ImageNet-C's authors divide by (Hendrycks and Dietterich 2019)
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}


def is_fair(num_classes: int, image_size: tuple[int, int], severities: Sequence[float]) -> bool:
    """Whether AlexNet's errors are a fair measure: a thousand classes, constants of ImageNet-C, all five severities."""
    return num_classes == 1000 and scale_for(*image_size) == "224" and list(severities) == [1, 2, 3, 4, 5]
