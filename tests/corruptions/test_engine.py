import math

import numpy as np
import pytest
import torch
from pictures import pictures

from surefoot.corruptions import COMMON15, EXTRA4, FAMILIES, NAMES, corrupt
from surefoot.corruptions.families import EVERY_FAMILY, is_fair
from surefoot.errors import SurefootError, UnknownName

NOT_MONOTONE = {  # tables in which a constant falls, or changes its sense, as severity grows
    "glass_blur": ("32", "64", "224"),  # sigma against rounds
    "frost": ("32", "64", "224"),  # less of the image, and more of the frost
    "elastic_transform": ("32", "64", "224"),  # a weaker affine map, a stronger displacement
    "saturate": ("32", "64", "224"),  # first less colour, then more
    "spatter": ("32",),  # first water, then mud
}


def smooth_images(count=4, side=32):
    """Images with structure: random waves."""
    y, x = torch.meshgrid(torch.linspace(0, 6, side), torch.linspace(0, 6, side), indexing="ij")
    phase = torch.rand(count, 3, 1, 1, generator=torch.Generator().manual_seed(0)) * 6
    return (torch.sin(x + phase) * torch.cos(y - phase) + 1) / 2


@pytest.mark.parametrize("name", [*NAMES, *EVERY_FAMILY["c-bar"]])
class TestEveryCorruption:
    @pytest.mark.parametrize("shape", [(2, 3, 32, 32), (1, 1, 20, 30), (2, 3, 64, 64)])
    def test_shape_range_and_levels(self, name, shape):
        images = torch.rand(shape)
        found = corrupt(images, name, 3)
        assert found.shape == images.shape
        assert found.dtype == images.dtype
        assert found.min() >= 0
        assert found.max() <= 1
        assert torch.allclose(found * 255, (found * 255).round(), atol=1e-4)

    def test_bytes_in_bytes_out(self, name):
        images = (smooth_images() * 255).byte()
        found = corrupt(images, name, 2)
        assert found.dtype == torch.uint8
        assert torch.equal(found, (corrupt(images.float() / 255, name, 2) * 255).round().byte())

    def test_an_image_does_not_depend_on_its_batch(self, name):
        images = smooth_images(6)
        whole = corrupt(images, name, 4, seed=3)
        order = torch.tensor([5, 2, 0])
        assert torch.equal(corrupt(images[order], name, 4, seed=3, indices=order), whole[order])
        assert torch.equal(corrupt(images[2:3], name, 4, seed=3, indices=torch.tensor([2])), whole[2:3])

    @pytest.mark.parametrize(
        ("scale", "count", "side"), [("32", 60, 32), pytest.param("64", 30, 64, marks=pytest.mark.stress), ("224", 4, 224)]
    )
    def test_severity_is_monotone(self, name, scale, count, side):
        """The mean squared change grows with severity, wherever the published constants do."""
        images = pictures(count, side)
        change = [float((corrupt(images, name, s) - images).square().mean()) for s in (1, 2, 3, 4, 5)]
        assert min(change) > 0
        if scale not in NOT_MONOTONE.get(name, ()):
            assert change == sorted(change)

    def test_severities_in_between(self, name):
        """Near a whole severity the change is near; half way it lies between its neighbours (saturate passes through none)."""
        images = pictures(30, 32)
        whole, near = corrupt(images, name, 2), corrupt(images, name, 2.001)
        assert (whole - near).abs().mean() < 0.002
        change = [float((corrupt(images, name, s) - images).square().mean()) for s in (4, 4.5, 5)]
        assert min(change[0], change[2]) * 0.99 <= change[1] <= max(change[0], change[2]) * 1.01

    def test_the_input_is_left_alone(self, name):
        images = smooth_images()
        kept = images.clone()
        corrupt(images.transpose(2, 3), name, 5)
        assert torch.equal(images, kept)

    def test_empty_batch(self, name):
        assert corrupt(torch.zeros(0, 3, 32, 32), name, 1).shape == (0, 3, 32, 32)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda x: x + 1, r"images must be in \[0, 1\]"),
            (lambda x: x * torch.nan, "got nan"),
            (lambda x: x[0], "batch x channels"),
        ],
    )
    def test_bad_images(self, name, change, message):
        with pytest.raises(SurefootError, match=message):
            corrupt(change(smooth_images()), name, 1)


def floor_8_bits(x):
    return np.floor(np.clip(x, 0, 1) * 255) / 255


@pytest.mark.parametrize(("side", "factors"), [(32, [0.75, 0.5, 0.4, 0.3, 0.15]), (64, [0.4, 0.3, 0.2, 0.1, 0.05])])
def test_contrast_against_numpy(side, factors):
    images = smooth_images(2, side)
    for severity, factor in enumerate(factors, 1):
        x = images.double().numpy()
        means = x.mean(axis=(2, 3), keepdims=True)
        expected = floor_8_bits((x - means) * factor + means)
        assert np.abs(corrupt(images, "contrast", severity).numpy() - expected).max() <= 1.001 / 255


def test_gaussian_noise_has_its_std_and_severities_are_paired():
    images = torch.full((64, 3, 32, 32), 0.5)
    for severity, std in enumerate([0.04, 0.06, 0.08, 0.09, 0.10], 1):
        change = corrupt(images, "gaussian_noise", severity) - 0.5
        assert change.std().item() == pytest.approx(std, rel=0.01)
    weak, strong = (corrupt(images, "gaussian_noise", s) - 0.5 for s in (1, 5))
    assert torch.allclose(weak * 2.5, strong, atol=4 / 255)
    neighbours = (weak[..., 1:] * weak[..., :-1]).mean() / weak.square().mean()
    assert abs(neighbours) < 0.01
    assert not torch.equal(weak[0], weak[1])


def test_the_seed_decides():
    images = smooth_images()
    a, b, c = (corrupt(images, "gaussian_noise", 3, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_gaussian_blur_keeps_the_mean_and_has_its_width():
    dot = torch.zeros(1, 1, 33, 33)
    dot[0, 0, 16, 16] = 1
    found = corrupt(dot.double(), "gaussian_blur", 5, scale="32")
    centre, beside = found[0, 0, 16, 16].item(), found[0, 0, 16, 17].item()
    assert beside / centre == pytest.approx(math.exp(-0.5), abs=0.03)


def test_the_scale_follows_the_image_unless_it_is_named():
    images = smooth_images(1, 224)
    assert torch.equal(corrupt(images, "contrast", 1), corrupt(images, "contrast", 1, scale="224"))
    assert not torch.equal(corrupt(images, "contrast", 1), corrupt(images, "contrast", 1, scale="32"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gausian_noise", 1), r"Unknown corruption 'gausian_noise'\. Did you mean 'gaussian_noise'\?"),
        (("contrast", 0), "severity must be from 1 to 5, got 0"),
        (("contrast", 6), "severity must be from 1 to 5, got 6"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(SurefootError, match=message):
        corrupt(smooth_images(), *arguments)


def test_bad_scale_and_indices():
    with pytest.raises(UnknownName, match="Unknown scale '33'"):
        corrupt(smooth_images(), "contrast", 1, scale="33")
    with pytest.raises(SurefootError, match="indices must be one for each of 4 images, got 2"):
        corrupt(smooth_images(), "contrast", 1, indices=torch.tensor([0, 1]))


def test_names_and_families():
    assert set(COMMON15) | set(EXTRA4) == set(NAMES)
    assert sorted(name for family in FAMILIES.values() for name in family) == sorted(NAMES)


def test_images_in_a_graph_and_functions_without_constants():
    images = torch.full((1, 3, 8, 8), 0.5, requires_grad=True)
    assert not corrupt(images, "jpeg_compression", 1).requires_grad
    with pytest.raises(SurefootError, match=r"corruption 'torch:abs' must be a function of \(images, severity, draws\)"):
        corrupt(torch.rand(1, 3, 8, 8), "torch:abs", 1)


def test_a_picture_of_one_pixel():
    assert corrupt(torch.full((1, 3, 1, 1), 0.5), "frost", 3).isfinite().all()


def test_alexnets_errors_are_for_imagenets_constants():
    assert is_fair(1000, (224, 224), [1, 2, 3, 4, 5])
    assert not is_fair(1000, (128, 128), [1, 2, 3, 4, 5])
