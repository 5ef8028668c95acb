"""The eight corruptions without randomness against one image at a time, at every severity and published size.

Every value is within one level of 255; no pixel is left out.
"""

import numpy as np
import plain
import pytest
from pictures import pictures, to_numpy

from surefoot.corruptions import corrupt
from surefoot.corruptions.severities import constants

DETERMINISTIC = (
    *("contrast", "brightness", "saturate", "pixelate"),
    *("jpeg_compression", "gaussian_blur", "defocus_blur", "zoom_blur"),
)
SIZES = {"32": (6, 32), "64": (3, 64), "224": (1, 224)}


@pytest.mark.parametrize(
    ("scale", "severity"),
    [
        pytest.param(scale, severity, marks=() if scale == "32" or severity in (1, 5) else pytest.mark.stress)
        for scale in SIZES
        for severity in (1, 2, 3, 4, 5)
    ],
)
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_within_one_level(name, scale, severity):
    images = pictures(*SIZES[scale], seed=severity)
    found = (corrupt(images, name, severity) * 255).round()
    settings = constants(name, severity, scale)
    for image, ours in zip(images, found, strict=True):
        expected = plain.levels(getattr(plain, name)(to_numpy(image), settings, None)).astype(int)
        assert np.abs(ours.permute(1, 2, 0).numpy() - expected).max() <= 1


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_most_values_agree_exactly(name):
    images = pictures(4, 32)
    found = (corrupt(images, name, 3) * 255).round()
    settings = constants(name, 3, "32")
    same = [
        (ours.permute(1, 2, 0).numpy() == plain.levels(getattr(plain, name)(to_numpy(image), settings, None))).mean()
        for image, ours in zip(images, found, strict=True)
    ]
    assert np.mean(same) > 0.93  # halves and whole levels fall either way in float32


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_images_that_are_not_square(name):
    images = pictures(2, 40, 56)
    found = (corrupt(images, name, 4) * 255).round()
    settings = constants(name, 4, "32")
    for image, ours in zip(images, found, strict=True):
        expected = plain.levels(getattr(plain, name)(to_numpy(image), settings, None)).astype(int)
        assert np.abs(ours.permute(1, 2, 0).numpy() - expected).max() <= 1
