"""The second set of corruptions: against one image at a time with the same draws, and by their laws."""

import json
import math
from importlib.resources import files

import numpy as np
import plain
import plain_cbar
import pytest
import torch
from pictures import pictures, to_numpy

from surefoot.cli.corrupt import GROUPS
from surefoot.corruptions import CBAR, CBAR_CIFAR, NAMES, corrupt
from surefoot.corruptions.families import CORRUPTIONS, EVERY_FAMILY
from surefoot.corruptions.severities import SCALES, cbar_tables, constants
from surefoot.seeds import ImageDraws

EVERY = EVERY_FAMILY["c-bar"]
SIZES = [(30, 44), (64, 64), *(pytest.param(size, marks=pytest.mark.stress) for size in ((32, 32), (51, 97)))]
NOT_EXACT = {  # the share of values that may be off by more than two levels: float32 may fall on the other side of an edge
    "blue_noise_sample": 0.002,
    "cocentric_sine_waves": 0.01,
    "checkerboard_cutout": 0.002,
    "plasma_noise": 0.002,
    "caustic_refraction": 0.01,
}


def expected(image, name, severity, index, scale):
    """What the plain function makes of one image, with the numbers that were drawn for it."""
    _, height, width = image.shape
    found = constants(name, severity, scale)
    draws = ImageDraws(0, name, torch.tensor([index]))
    side = min(height, width)
    cells = int(found.get("cells", 1))
    shapes = {
        "blue_noise_sample": (1, math.ceil(height * width / 2)),
        "brownish_noise": (3, math.ceil(height * width / 2)),
        "perlin_noise": (3, 256),
        "plasma_noise": (4,),
        "single_frequency_greyscale": (4,),
        "cocentric_sine_waves": (5,),
        "checkerboard_cutout": (2 + 32 * 32,),
        "sparkles": (5, 3),
        "inverse_sparkles": (3,),
        "lines": (2 + 3 * max(int(0.4 * side), int(found["magnitude"] / 10 * side)),),
        "caustic_refraction": (2,),
        "pinch_and_twirl": ((height // (side // cells) + 1) * (width // (side // cells) + 1),),
        "ripple": (4,),
        "transverse_chromatic_abberation": (3,),
    }
    drawn = [draws.uniform(shapes[name])[0].double().numpy()] if name in shapes else []
    if name.endswith("sparkles"):
        drawn.append(draws.normal((5, 200) if name == "sparkles" else (200,), "rays")[0].double().numpy())
    if name == "pinch_and_twirl":
        drawn.append(cells)
    return plain.levels(getattr(plain_cbar, name)(to_numpy(image), found["magnitude"], *drawn) + 1e-6).astype(int)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EVERY)
def test_against_one_image_at_a_time(name, size):
    images = pictures(2, *size)
    scale = "32" if min(size) <= 48 else "64"
    for severity in (1, 4, 5):
        found = (corrupt(images, name, severity) * 255).round()
        for index, image in enumerate(images):
            apart = np.abs(found[index].permute(1, 2, 0).numpy() - expected(image, name, severity, index, scale))
            assert (apart > 2).mean() <= NOT_EXACT.get(name, 0)
            assert apart.mean() < 0.6


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("perlin_noise", "caustic_refraction")])
def test_against_one_image_at_224(name):
    image = pictures(1, 224)
    found = (corrupt(image, name, 5) * 255).round()[0].permute(1, 2, 0).numpy()
    apart = np.abs(found - expected(image[0], name, 5, 0, "224"))
    assert (apart > 2).mean() <= NOT_EXACT.get(name, 0)


def test_sets_are_the_published_ones():
    assert len(CBAR) == len(CBAR_CIFAR) == 10
    assert set(CBAR) & set(CBAR_CIFAR) == {
        *("blue_noise_sample", "brownish_noise", "checkerboard_cutout", "inverse_sparkles", "sparkles")
    }
    assert set(CBAR) | set(CBAR_CIFAR) == set(EVERY)
    assert not set(EVERY) & set(NAMES)
    assert (GROUPS["c-bar"], GROUPS["c-bar-cifar"]) == (CBAR, CBAR_CIFAR)
    assert set(EVERY) <= set(CORRUPTIONS.names)


@pytest.mark.parametrize(
    ("scale", "name", "five"),
    [
        ("32", "blue_noise_sample", [0.7, 1.4, 2.1, 3.5, 4.2]),
        ("32", "sparkles", [0.7, 3.5, 5.6, 6.3, 7.0]),
        ("32", "lines", [0.5, 1.0, 1.5, 2.0, 2.5]),
        ("224", "caustic_refraction", [2.35, 3.2, 4.9, 6.6, 9.15]),
        ("224", "plasma_noise", [4.75, 7.0, 8.5, 9.25, 10.0]),
        ("224", "single_frequency_greyscale", [1.0, 1.5, 2.0, 4.5, 5.0]),
    ],
)
def test_published_magnitudes(scale, name, five):
    assert [constants(name, severity, scale)["magnitude"] for severity in (1, 2, 3, 4, 5)] == five


def test_tables_are_whole_and_64_lies_between():
    tables = json.loads(files("surefoot.corruptions").joinpath("cbar.json").read_text())
    assert tables == cbar_tables()
    share = math.log(64 / 32) / math.log(224 / 32)
    for name in EVERY:
        small, middle, large = (np.array(tables[scale][name]["magnitude"]) for scale in SCALES)
        assert len(small) == 5
        assert np.abs(small + (large - small) * share - middle).max() <= 0.0051
        assert all((np.diff(five) > 0).all() for five in (small, middle, large))


@pytest.mark.parametrize("name", EVERY)
def test_between_severities_lies_between(name):
    """Magnitudes are linear between whole severities, so half way is a mean."""
    low, middle, high = (constants(name, severity, "224")["magnitude"] for severity in (3, 3.5, 4))
    assert middle == pytest.approx((low + high) / 2)


def change(name, severity, side, count=40, level=0.5):
    """Of flat grey images."""
    images = torch.full((count, 3, side, side), round(level * 255) / 255)
    return corrupt(images, name, severity) - images


def slope(field, low, high):
    """Of the logarithm of the mean power against that of the frequency, between two frequencies."""
    power = torch.fft.fft2(field.double()).abs().square().mean((0, 1))
    side = field.shape[-1]
    frequency = torch.fft.fftfreq(side) * side
    radius = torch.hypot(frequency[:, None], frequency)
    inside = (radius >= low) & (radius <= high)
    return np.polyfit(radius[inside].log().numpy(), power[inside].log().numpy(), 1)[0]


@pytest.mark.parametrize("side", [32, pytest.param(64, marks=pytest.mark.stress), 224])
class TestSpectra:
    def test_blue_noise_rises(self, side):
        """The noise itself as f^2; what is cut from it still rises."""
        from surefoot.corruptions.cbar_noise import blue_amplitudes, spectral_noise

        field = spectral_noise(ImageDraws(0, "x", torch.arange(20)), 1, blue_amplitudes(side, side))
        assert slope(field, 2, side / 2) == pytest.approx(2, abs=0.05)
        assert field.std(correction=0).item() == pytest.approx(1, abs=0.01)
        assert slope(change("blue_noise_sample", 5, side, 20, 1.0), 2, side / 2) > 0.2

    def test_brownish_noise_falls(self, side):
        """Amplitudes fall with the frequency squared, so that power falls as f^-4."""
        from surefoot.corruptions.cbar_noise import brownish_amplitudes, spectral_noise

        field = spectral_noise(ImageDraws(0, "x", torch.arange(40)), 3, brownish_amplitudes(side, side))
        assert slope(field, 4, side / 2) == pytest.approx(-4, abs=0.15)
        assert slope(change("brownish_noise", 1, side, 20), 2, 8) < -2.5

    def test_plasma_and_perlin_noise_fall(self, side):
        assert slope(change("plasma_noise", 5, side), 3, side / 2) < -1
        assert slope(change("perlin_noise", 5, side), side / 16, side / 2) < (-0.5 if side > 32 else 0.5)

    def test_one_frequency_only(self, side):
        """Every image's change is one wave, in all channels alike: with a window its power lies about one frequency."""
        found = change("single_frequency_greyscale", 1, side)
        assert torch.equal(found[:, 0], found[:, 2])
        window = torch.hann_window(side, periodic=True)
        power = torch.fft.rfft2(found[:, 0] * window[:, None] * window).abs().square()
        power = torch.cat([power, power[:, :, 1:].flip((1, 2))], 2)
        peaks = power.flatten(1).amax(1)
        near = (power > 1e-3 * peaks[:, None, None]).sum((1, 2))
        assert near.median() <= 50  # a few bins, twice
        amplitude = {32: 0.6, 64: 0.74, 224: 1.0}[side] * 19.6 / 255
        assert found.square().mean().sqrt().item() == pytest.approx(amplitude / 2**0.5, rel=0.05)


@pytest.mark.parametrize(("scale", "side"), [("32", 32), ("64", 64), pytest.param("224", 224, marks=pytest.mark.stress)])
def test_mean_and_deviation_of_the_change(scale, side):
    """What the definitions imply for flat grey images."""
    magnitude = {name: constants(name, 2, scale)["magnitude"] for name in EVERY}
    found = {name: change(name, 2, side) + 0.5 / 255 for name in EVERY}  # pixels are rounded down
    rings = found["cocentric_sine_waves"]
    assert rings.mean().abs() < 0.005
    assert rings.std().item() == pytest.approx(magnitude["cocentric_sine_waves"] * 12.8 / 255 / 12**0.5, rel=0.06)
    brownish = found["brownish_noise"]
    within = brownish.flatten(2).std(2)
    assert within.mean().item() == pytest.approx(magnitude["brownish_noise"] * 6.4 / 255, rel=0.03)
    assert 0.3 < brownish.mean((2, 3)).std() / within.mean() < 1.5  # channels are shifted too
    share = magnitude["plasma_noise"] * 6.4 / 255
    assert found["plasma_noise"].mean().item() == pytest.approx(-0.5 * share, abs=0.15 * share)
    assert found["plasma_noise"].std().item() == pytest.approx(share / 2**0.5, rel=0.1)
    assert 0 < found["perlin_noise"].mean() < magnitude["perlin_noise"] / 20 * 0.5
    white = found["sparkles"]
    assert white.min() >= 0
    assert torch.allclose(white.amax((1, 2, 3)), torch.tensor(0.5), atol=0.03)  # a star's middle is white
    for name in ("caustic_refraction", "single_frequency_greyscale"):
        assert found[name].mean().abs() < 0.03
    assert found["ripple"][:, :, 8:-8, 8:-8].abs().max() < 1 / 255 if side > 32 else True
    fringe = found["transverse_chromatic_abberation"].abs().amax().item()
    assert fringe < 2 / 255  # nothing to fringe


def test_blue_noise_covers_what_its_threshold_says():
    """A nearly normal field lies below the threshold that often; severities are nested."""
    from scipy.stats import norm

    images = torch.ones(20, 3, 224, 224)
    before = torch.zeros_like(images).bool()
    for severity in (1, 2, 3, 4, 5):
        black = corrupt(images, "blue_noise_sample", severity) == 0
        threshold = 0.3 * constants("blue_noise_sample", severity, "224")["magnitude"] - 2.5
        assert black.float().mean().item() == pytest.approx(norm.cdf(threshold), rel=0.03)
        assert bool((black | ~before).all())
        before = black


def test_a_checkerboard_is_one():
    """With every square kept, half of the image is grey in squares that repeat with twice their side."""
    from surefoot.corruptions.cbar_noise import checkerboard_cutout

    images = torch.ones(50, 3, 224, 224)
    numbers = torch.arange(50)
    found = checkerboard_cutout(images, {"magnitude": 10.0}, ImageDraws(0, "checkerboard_cutout", numbers))
    assert found.unique().tolist() == pytest.approx([128 / 255, 1.0])
    assert (found < 1).float().mean().item() == pytest.approx(0.5, abs=0.02)
    uniform = ImageDraws(0, "checkerboard_cutout", numbers).uniform((2,))
    for image, (turn, size) in zip(found[:, 0], uniform.tolist(), strict=True):
        turn, size = turn * 2 * math.pi, (0.1 + 0.15 * size) * 224
        down, right = round(2 * size * math.cos(turn)), round(2 * size * math.sin(turn))
        other = image.roll((-down, -right), (0, 1))
        inner = image[abs(down) : 224 - abs(down), abs(right) : 224 - abs(right)]
        same = (inner == other[abs(down) : 224 - abs(down), abs(right) : 224 - abs(right)]).float()
        if inner.numel() > 1000:
            assert same.mean() > 0.9
    weak, strong = (corrupt(images, "checkerboard_cutout", severity) < 1 for severity in (1, 5))
    assert bool((strong | ~weak).all())
    assert weak.float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert strong.float().mean().item() == pytest.approx(0.3, abs=0.02)


def test_twirls_leave_pixels_between_cells_alone():
    images = pictures(3, 64)
    found = corrupt(images, "pinch_and_twirl", 5)
    y, x = np.mgrid[:64, :64]
    away = np.hypot(y % 21 - 10.5, x % 21 - 10.5)
    still = torch.from_numpy((away > 10.5) | (y >= 63) | (x >= 63))
    assert torch.equal(found[:, :, still], images[:, :, still])
    assert (found != images)[:, :, ~still].float().mean() > 0.5


def test_a_spin_keeps_the_centre_sharp():
    images = pictures(20, 65)
    apart = (corrupt(images, "circular_motion_blur", 5) - images).abs().mean((0, 1))
    assert apart[32, 32] < 0.3 * apart[8:57, 8:57].mean()


def test_a_white_image_stays_white_under_stars():
    images = torch.ones(4, 3, 32, 32)
    assert torch.equal(corrupt(images, "sparkles", 5), images)
    assert torch.equal(corrupt(images, "inverse_sparkles", 5), images)


@pytest.mark.parametrize("name", EVERY)
def test_severities_are_the_same_draws(name):
    """Neighbouring severities are alike, two seeds are less so."""
    images = torch.full((20, 3, 32, 32), 0.4) if name not in CBAR_CIFAR[3:4] + CBAR_CIFAR[6:8] else pictures(20, 32)
    if name in ("transverse_chromatic_abberation", "caustic_refraction"):
        images = pictures(20, 32)
    low, high = (corrupt(images, name, severity) - images for severity in (4, 5))
    other = corrupt(images, name, 5, seed=1) - images
    paired, apart = (torch.corrcoef(torch.stack([high.flatten(), each.flatten()]))[0, 1] for each in (low, other))
    if name == "circular_motion_blur":  # draws nothing
        assert apart > 0.999
    else:
        assert paired > apart + 0.15


@pytest.mark.parametrize("name", EVERY)
def test_grey_images_and_small_ones(name):
    for shape in ((2, 1, 32, 32), (2, 3, 8, 8), (1, 1, 20, 30), (1, 3, 1, 1)):
        found = corrupt(torch.rand(shape, generator=torch.Generator().manual_seed(0)), name, 5)
        assert found.shape == shape
        assert found.isfinite().all()


def test_they_chain():
    images = pictures(3, 32)
    found = corrupt(images, "perlin_noise+sparkles", 3)
    assert (found - corrupt(corrupt(images, "perlin_noise", 3), "sparkles", 3)).abs().max() < 2 / 255
