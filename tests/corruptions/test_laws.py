"""The random corruptions against one image at a time, by their law: they draw other numbers, so statistics must agree.

For every image: mean and power of the change, how both it and its square follow brightness, how far neighbouring pixels differ,
in the change and in the result, across and down, and the power of the change in three bands of frequency. The paired
differences over images must be zero within 4.5 standard errors (6 for few images), and a wrong constant must not pass.
"""

import itertools

import numpy as np
import plain
import pytest
import torch
from pictures import pictures, to_numpy

from surefoot.corruptions import corrupt
from surefoot.corruptions.digital import to_levels
from surefoot.corruptions.families import CORRUPTIONS
from surefoot.corruptions.severities import constants
from surefoot.seeds import ImageDraws

RANDOM = {  # and a constant with a factor that must be noticed
    "gaussian_noise": ("std", 1.05),
    "shot_noise": ("photons", 1.1),
    "impulse_noise": ("fraction", 1.15),
    "speckle_noise": ("std", 1.05),
    "glass_blur": ("delta", 1.5),
    "motion_blur": ("sigma", 1.25),
    "fog": ("amount", 1.1),
    "snow": ("threshold", 1.15),
    "spatter": ("threshold", 1.03),
    "elastic_transform": ("alpha", 1.4),
}
COUNT, SIDE = 100, 32
SIZES = {"32": (32, 100, (1, 2, 3, 4, 5)), "64": (64, 40, (1, 3, 5)), "224": (224, 8, (2, 4))}  # side, images, severities
SOON = {"32": (1, 3, 5), "64": (3,), "224": (4,)}  # the others in the stress suite
BANDS = (0.02, 0.1, 0.25, 0.5)  # cycles for a pixel


def statistics(images, changed):
    """images x 11 numbers, roughness being the mean square of the difference of neighbours."""
    change = changed - images
    centred = change - change.mean((1, 2, 3), keepdims=True)
    brightness = images - images.mean((1, 2, 3), keepdims=True)
    power = (centred**2).mean((1, 2, 3)) + 1e-6
    depends = ((centred**2 - power[:, None, None, None]) * brightness).mean((1, 2, 3)) / power
    rough = [np.log((np.diff(field, axis=axis) ** 2).mean((1, 2, 3)) + 1e-6) for field in (change, changed) for axis in (1, 2)]
    follows = (centred * brightness).mean((1, 2, 3)) / power
    return np.stack([change.mean((1, 2, 3)), np.log(power), depends, follows, *rough, *spectrum(change)], 1)


def spectrum(change):
    """Logarithms of the power of the change in the bands."""
    power = (np.abs(np.fft.fft2(change, axes=(1, 2))) ** 2).mean(3) / change[0, ..., 0].size ** 2
    frequency = np.hypot(np.fft.fftfreq(change.shape[1])[:, None], np.fft.fftfreq(change.shape[2]))
    bands = [(frequency >= low) & (frequency < high) for low, high in itertools.pairwise(BANDS)]
    return [np.log(power[:, band].sum(1) + 1e-6) for band in bands]


def disagreement(images, ours, theirs):
    """The largest paired difference of a statistic in standard errors."""
    x = images.permute(0, 2, 3, 1).double().numpy()
    difference = statistics(x, ours.permute(0, 2, 3, 1).double().numpy()) - statistics(x, theirs)
    error = difference.std(0) / np.sqrt(len(x)) + 1e-4
    return (np.abs(difference.mean(0)) / error).max()


def one_by_one(images, name, settings):
    generator = np.random.default_rng(0)
    return np.stack([plain.levels(getattr(plain, name)(to_numpy(image), settings, generator)) / 255 for image in images])


@pytest.mark.parametrize(
    ("name", "scale", "severity"),
    [
        pytest.param(name, scale, severity, marks=() if severity in SOON[scale] else pytest.mark.stress)
        for name in RANDOM
        for scale, (_, _, several) in SIZES.items()
        for severity in several
    ],
)
def test_statistics_of_the_change_agree(name, scale, severity):
    side, count, _ = SIZES[scale]
    images = pictures(count, side, seed=severity)
    theirs = one_by_one(images, name, constants(name, severity, scale))
    assert disagreement(images, corrupt(images, name, severity), theirs) < (4.5 if count > 20 else 6)


@pytest.mark.parametrize("name", RANDOM)
def test_a_wrong_constant_is_noticed(name):
    constant, factor = RANDOM[name]
    scale, severity = ("224", 3) if name in ("glass_blur", "elastic_transform") else ("32", 3)
    images = pictures(COUNT, SIDE)
    right = constants(name, severity, scale)
    wrong = {**right, constant: right[constant] * factor}
    found = CORRUPTIONS.load(name)(images, wrong, ImageDraws(0, name, torch.arange(COUNT)))
    assert disagreement(images, to_levels(found) / 255, one_by_one(images, name, right)) > 4.5


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_fog_is_as_rough_as_its_decay(severity):
    """On flat images only the haze is left; another decay is noticed."""
    images = torch.full((COUNT, 3, SIDE, SIDE), 128 / 255)
    right = constants("fog", severity, "32")
    found = corrupt(images, "fog", severity)
    assert disagreement(images, found, one_by_one(images, "fog", right)) < 4.5
    assert disagreement(images, found, one_by_one(images, "fog", {**right, "decay": right["decay"] / 1.5})) > 4.5


def test_poisson_counts_are_the_quantiles():
    """Against the distribution function itself, at rates below and above where the method changes."""
    from scipy.stats import norm
    from scipy.stats import poisson as law

    from surefoot.corruptions.noise import poisson

    chance = (np.arange(20000) + 0.5) / 20000
    normals = torch.from_numpy(norm.ppf(chance)).float()
    for rate in (0.01, 0.5, 3.9, 4.0, 7.5, 30.0, 500.0):
        found, expected = poisson(torch.full_like(normals, rate), normals).numpy(), law.ppf(chance, rate)
        assert np.abs(found - expected).max() <= 1
        assert (found != expected).mean() < 0.003
    assert poisson(torch.zeros(3), torch.randn(3)).tolist() == [0, 0, 0]


def test_glass_blur_follows_the_copying_order():
    """The pointer chase against the loop, pixel by pixel, with the same offsets."""
    from surefoot.corruptions.blur import copied_from

    for delta, height, width in ((1, 9, 12), (2, 14, 11), (4, 20, 20), (3, 5, 5)):
        generator = torch.Generator().manual_seed(delta)
        dy, dx = torch.randint(-delta, delta, (2, 6, height, width), generator=generator)
        found = copied_from(dy, dx, delta)
        for number in range(6):
            expected = np.arange(height * width).reshape(height, width)
            for h in range(height - delta, delta, -1):
                for w in range(width - delta, delta, -1):
                    expected[h, w] = expected[h + dy[number, h, w], w + dx[number, h, w]]
            assert found[number].tolist() == expected.ravel().tolist()


def test_motion_blur_of_a_point_is_half_a_gaussian_along_a_line():
    dot = torch.zeros(1, 1, 41, 41)
    dot[..., 20, 20] = 1
    from surefoot.corruptions.blur import along

    found = along(dot, 0.0, torch.zeros(1), radius=6, sigma=2)[0, 0]
    expected = np.exp(-(np.arange(9) ** 2) / 8)
    expected /= np.exp(-(np.arange(13) ** 2) / 8).sum()
    assert found[20, 12:21].flip(0).numpy() == pytest.approx(expected, abs=1e-6)
    assert found.sum().item() == pytest.approx(1, abs=1e-5)
    assert found[20, 21:].abs().max() < 1e-6


@pytest.mark.parametrize(("side", "sigma"), [(24, 0.7), (40, 1.0), (70, 2.0)])
def test_rims_are_those_of_canny_pixel_by_pixel(side, sigma):
    """Weak edges that hang on strong ones included, of which there are some."""
    from surefoot.imageops.edges import canny

    draws = np.random.default_rng(side)
    layers = np.stack([plain.gaussian(draws.normal(0.65, 0.3, (side, side)), sigma) for _ in range(6)])
    drops = np.floor(np.clip(np.where(layers < 0.69, 0.6 * layers, layers), 0, 1) * 255)  # weak slopes beside steep ones
    found = canny(torch.from_numpy(drops)[:, None], 50, 150)[:, 0].numpy()
    assert np.array_equal(found, np.stack([plain.canny(layer, 50, 150) for layer in drops]))
    assert (found & ~canny(torch.from_numpy(drops)[:, None], 150, 150)[:, 0].numpy()).any()


def test_flakes_of_snow_are_whole_levels():
    """Without their fall, on black, what is added is the layer and the layer turned: each in 8 bits."""
    settings = {**constants("snow", 5, "32"), "radius": 0, "keep": 1}
    flakes = CORRUPTIONS.load("snow")(torch.zeros(4, 3, 32, 32), settings, ImageDraws(0, "snow", torch.arange(4))) * 255
    assert flakes.max() > 100
    assert torch.allclose(flakes, flakes.round(), atol=1e-3)
