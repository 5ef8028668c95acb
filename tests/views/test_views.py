"""Every view against torchvision, Pillow or the codec, its law, and one contract for all."""

import io
import re

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torchvision.transforms import functional as tv

from surefoot import views
from surefoot.errors import SurefootError
from surefoot.imageops.filters import small_blur
from surefoot.imageops.jpeg import jpeg
from surefoot.imageops.tone import autocontrast, equalize, posterize, solarize
from surefoot.imageops.warp import rotations, shears, translations, warp
from surefoot.seeds import generator, sharded
from surefoot.views.augmix import OPERATIONS, operate
from surefoot.views.table import VIEWS, build_view, describe_view

NEEDS = {"one-of": {"views": ["noise", "blur"]}, "chain": {"views": ["blur", "noise"]}}


def photographs(count=12, size=32):
    """Smooth colourful images with 8-bit levels, dark, bright, flat and full-range ones among them."""
    small = torch.rand(count, 3, 5, 5, generator=generator("photograph"))
    smooth = torch.nn.functional.interpolate(small, (size, size), mode="bicubic", align_corners=False).clamp(0, 1)
    smooth[1:2] = 0.3 + 0.2 * smooth[1:2]
    smooth[2:3] = 0.5
    smooth[3:4, 0] = 0.0
    return (smooth * 255).round() / 255


def pillow(function, images):
    """A function of one Pillow image over a batch."""
    out = []
    for image in (images * 255).round().to(torch.uint8):
        out.append(np.asarray(function(Image.fromarray(image.permute(1, 2, 0).numpy()))))
    return torch.from_numpy(np.stack(out)).permute(0, 3, 1, 2).float() / 255


def through_file(image, quality):
    """What the JPEG codec makes of an image, chroma at half size."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality, subsampling=2)
    return Image.open(file)


class TestTones:
    def test_autocontrast(self):
        images = photographs()
        assert (autocontrast(images) - pillow(ImageOps.autocontrast, images)).abs().max() <= 1.001 / 255

    @pytest.mark.parametrize("size", [8, 32, 50])
    def test_equalize_is_pillows_to_the_level(self, size):
        images = photographs(size=size)
        assert torch.allclose(equalize(images), pillow(ImageOps.equalize, images), atol=1e-6)

    def test_posterize_and_solarize_are_pillows_to_the_level(self):
        images = photographs(8)
        bits = torch.tensor([1, 2, 3, 4, 5, 6, 7, 8])
        thresholds = torch.tensor([0, 1, 64, 100, 128, 200, 255, 256])
        posterized, solarized = posterize(images, bits), solarize(images, thresholds / 255)
        for i in range(8):
            one = images[i : i + 1]
            assert torch.allclose(posterized[i : i + 1], pillow(lambda x, i=i: ImageOps.posterize(x, int(bits[i])), one))
            expected = pillow(lambda x, i=i: ImageOps.solarize(x, int(thresholds[i])), one)
            assert torch.allclose(solarized[i : i + 1], expected, atol=1e-6)


def test_contrast_is_torchvisions_and_one_leaves_the_image_alone():
    images = photographs(6)
    for factor in (0.0, 0.3, 1.7):
        ours = views.Contrast(factor)(images)
        assert torch.allclose(ours, torch.stack([tv.adjust_contrast(image, factor) for image in images]), atol=1e-6)
    assert torch.allclose(views.Contrast(1)(images), images, atol=1e-6)
    with pytest.raises(SurefootError, match="factor must be a number"):
        views.Contrast((0.5, 0.2))


def test_blur_is_torchvisions_with_a_sigma_for_each_image():
    images = torch.rand(5, 3, 9, 12, generator=generator(0))
    sigma = torch.tensor([0.1, 0.4, 1.0, 1.5, 2.0])
    for size in (1, 3, 5):
        ours = small_blur(images, sigma, size)
        for i in range(5):
            assert torch.allclose(ours[i], tv.gaussian_blur(images[i], [size, size], [sigma[i].item()] * 2), atol=1e-6)
    with pytest.raises(SurefootError, match="images must be larger than 2 pixels"):
        small_blur(images[:, :, :2], sigma, 5)


def test_blur_draws_its_sigma_for_each_image():
    point = torch.zeros(3000, 1, 5, 5)
    point[:, :, 2, 2] = 1
    centre = views.GaussianBlur((0.1, 2.0))(point, generator(0))[:, 0, 2, 2].double()
    side = torch.exp(-0.5 / torch.linspace(0.1, 2.0, 100_001, dtype=torch.float64) ** 2)
    expected = (1 / (1 + 2 * side)) ** 2  # the centre tap of a 3 x 3 kernel
    assert centre.mean().item() == pytest.approx(expected.mean().item(), rel=0.03)
    assert centre.std().item() == pytest.approx(expected.std().item(), rel=0.05)


@pytest.mark.parametrize("size", [(32, 32), (40, 56), (17, 23)])
@pytest.mark.parametrize("quality", [10, 50, 75, 95])
def test_jpeg_is_the_codecs_but_for_rounding(size, quality):
    images = photographs(6, 64)[:, :, : size[0], : size[1]]
    images = (images + 0.05 * torch.rand(images.shape, generator=generator(1))).clamp(0, 1)
    codec = pillow(lambda image: through_file(image, quality), images)
    gap = (jpeg(images, torch.full((6,), float(quality))) - codec).abs() * 255
    assert gap.mean() < 0.9  # levels; the codec's integer transforms round differently
    assert gap.mean() < 0.3 * (codec - images).abs().mean() * 255
    wrong = (jpeg(images, torch.full((6,), quality - 5.0)) - codec).abs() * 255
    assert wrong.mean() > 1.5 * gap.mean()


def test_jpeg_of_grey_and_with_its_own_quality():
    grey = photographs(4)[:, :1]
    mixed = jpeg(grey, torch.tensor([5.0, 30.0, 60.0, 100.0]))
    for i, quality in enumerate((5, 30, 60, 100)):
        levels = Image.fromarray((grey[i, 0] * 255).round().to(torch.uint8).numpy())
        codec = torch.from_numpy(np.array(through_file(levels, quality))).float() / 255
        assert (mixed[i, 0] - codec).abs().max() * 255 <= 2
    errors = (mixed - grey).abs().flatten(1).mean(1)
    assert errors[3] < errors[0]


def test_shears_and_translations_are_torchvisions():
    images = photographs(3, 33)
    moved = warp(images, translations(torch.tensor([2.0, -3.0, 0.0]), torch.tensor([1.0, 0.0, -4.0])))
    for i, shift in enumerate([(2, 1), (-3, 0), (0, -4)]):
        assert torch.allclose(moved[i], tv.affine(images[i], 0.0, list(shift), 1.0, [0.0, 0.0]), atol=1e-5)
    sheared = warp(images, shears(torch.tensor([0.3, 0.0, -0.2]), torch.tensor([0.0, 0.25, 0.0])))
    for i, (x, y) in enumerate([(0.3, 0.0), (0.0, 0.25), (-0.2, 0.0)]):
        data = (1, x, -16.5 * x, y, 1, -16.5 * y)  # Pillow's coordinates start at the corner of the image, ours at its centre
        how = (Image.Transform.AFFINE, data, Image.Resampling.BILINEAR)
        expected = pillow(lambda image, how=how: image.transform(image.size, *how), images[i : i + 1])
        inner = slice(6, -6)
        assert (sheared[i, :, inner, inner] - expected[0, :, inner, inner]).abs().max() < 2.5 / 255


class TestOperations:
    """AugMix's nine, at its levels, against Pillow."""

    @pytest.mark.parametrize("level", [0.5, 2.9, 7.0, 10.0])
    def test_levels(self, level):
        images = photographs(9, 30)
        numbers, levels = torch.arange(9), torch.full((9,), level)
        out = operate(images, numbers, levels)
        angle, cut, bits, side = int(3 * level), 256 - int(25.6 * level), max(1, 4 - int(0.4 * level)), int(level * 30 / 30)
        expected = {
            "autocontrast": ImageOps.autocontrast,
            "equalize": ImageOps.equalize,
            "posterize": lambda x: ImageOps.posterize(x, bits),
            "solarize": lambda x: ImageOps.solarize(x, cut),
            "rotate": lambda x: x.rotate(angle, resample=Image.Resampling.BILINEAR),
            "translate_x": lambda x: x.transform(x.size, Image.Transform.AFFINE, (1, 0, -side, 0, 1, 0)),
            "translate_y": lambda x: x.transform(x.size, Image.Transform.AFFINE, (1, 0, 0, 0, 1, -side)),
        }
        for i, name in enumerate(OPERATIONS):
            if name in expected:
                gap = (out[i] - pillow(expected[name], images[i : i + 1])[0]).abs()
                assert (gap[:, 8:-8, 8:-8] if name == "rotate" else gap).max() <= 2.5 / 255, name
            else:
                amount = torch.tensor([0.03 * level])
                zero = torch.zeros(1)
                matrix = shears(amount, zero) if name == "shear_x" else shears(zero, amount)
                assert torch.allclose(out[i], warp(images[i : i + 1], matrix)[0], atol=1e-6)

    def test_the_sign_is_a_direction(self):
        images = photographs(1, 30)
        numbers = torch.tensor([OPERATIONS.index("rotate")])
        turned = [operate(images, numbers, torch.tensor([level])) for level in (5.0, -5.0)]
        assert torch.allclose(turned[0], warp(images, rotations(torch.tensor([15.0]))), atol=1e-6)
        assert torch.allclose(turned[1], warp(images, rotations(torch.tensor([-15.0]))), atol=1e-6)


class TestAugMix:
    def test_one_chain_of_one_operation_is_a_mix_with_that_operation(self):
        """With width 1 and depth 1, each image is (1 - m) x + m op(x) for one of the nine operations."""
        images = photographs(2)[1:].expand(300, 3, 32, 32)
        view = views.AugMixChains(severity=3, width=1, depth=1)
        change = (view(images, generator(0)) - images).flatten(1)
        assert (change.abs().amax(1) > 1e-4).float().mean() > 0.5
        contrast = (autocontrast(images[:1]) - images[:1]).flatten(1)
        along = torch.cosine_similarity(change, contrast)
        assert (along > 0.9999).float().mean().item() == pytest.approx(1 / 9, abs=0.06)

    def test_weights_sum_to_one(self):
        flat = torch.full((50, 3, 8, 8), 1.0)  # only geometry and solarize move a white image: never above white
        out = views.AugMixChains()(flat, generator(0))
        assert out.max() <= 1 + 1e-6
        assert out.min() >= -1e-6

    def test_width_and_depth_change_the_picture(self):
        images = photographs(200)
        size = [(views.AugMixChains(severity=s)(images, generator(0)) - images).abs().mean().item() for s in (0.1, 1, 3, 10)]
        assert size == sorted(size)
        assert views.AugMixChains(depth=4)(images[:4], generator(0)).shape == (4, 3, 32, 32)


@pytest.mark.parametrize("name", VIEWS.names)
class TestEveryView:
    @pytest.fixture
    def view(self, name):
        return build_view({"name": name, **NEEDS.get(name, {})})

    def test_shape_dtype_and_seed(self, name, view):
        some = photographs()
        for images in (some, some[:, :1], photographs(4, 48)[:, :, :, :20], some[:1], some[:0]):
            before = images.clone()
            for dtype in (torch.float32, torch.float64):
                out = view(images.to(dtype), generator(0))
                assert out.shape == images.shape
                assert out.dtype == dtype
                assert torch.isfinite(out).all()
                assert torch.equal(out, view(images.to(dtype), generator(0)))
            assert torch.equal(images, before)

    def test_turned_memory(self, name, view):
        images = photographs()
        turned = images.to(memory_format=torch.channels_last)
        assert torch.allclose(view(images, generator(0)), view(turned, generator(0)), atol=1e-5)

    def test_a_share_of_a_batch_is_that_part_of_the_whole(self, name, view):
        images = photographs(8)
        whole = view(images, generator(3))
        for rank in range(2):
            with sharded(rank, 2):
                part = view(images[4 * rank : 4 * rank + 4], generator(3))
            assert torch.allclose(part, whole[4 * rank : 4 * rank + 4], atol=1e-6)

    def test_a_recipe_makes_it_again(self, name, view):
        images = photographs()
        again = build_view(describe_view(view))
        assert torch.equal(again(images, generator(1)), view(images, generator(1)))


class TestNames:
    def test_chains_and_lists(self):
        images = photographs()
        draws = generator(0)
        expected = views.GaussianNoise(0.1)(views.GaussianBlur()(images, draws), draws)
        mixed = [{"name": "blur"}, views.GaussianNoise(0.1)]
        for given in ("blur+noise", ["blur", "noise"], mixed, views.Chain(["blur", "noise"])):
            assert torch.equal(build_view(given)(images, generator(0)), expected)

    def test_one_of(self):
        images = torch.full((3000, 1, 4, 4), 0.5)
        view = views.OneOf([lambda x, generator=None: x + 1, lambda x, generator=None: x + 2])
        out = view(images, generator(0)).flatten(1)
        assert set(out[:, 0].tolist()) == {1.5, 2.5}
        assert (out == out[:, :1]).all()
        assert (out[:, 0] == 1.5).float().mean().item() == pytest.approx(0.5, abs=0.04)

    def test_a_view_from_python_is_only_named(self):
        described = describe_view(lambda x, generator=None: x)
        assert described.startswith("python:")
        with pytest.raises(SurefootError, match="came from Python and is not part of the recipe"):
            build_view(described)(photographs())
        assert describe_view(build_view(described)) == described

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ("nois", "Unknown view 'nois'. Did you mean 'noise'?"),
            ({"name": "noise", "sdt": 1}, "Unknown option of view 'noise' 'sdt'. Did you mean 'std'?"),
            ({"std": 1}, "view must have a name"),
            ([], "views must be at least one, got 0"),
            ({"name": "jpeg", "quality": 200}, "quality must be a number or (low, high) in [1, 100], got 200"),
            ({"name": "blur", "size": 4}, "size must be odd and positive, got 4"),
            ({"name": "rotate-translate", "degrees": -1}, "degrees must be in [0, 180], got -1"),
        ],
    )
    def test_bad_names(self, given, message):
        with pytest.raises(SurefootError, match=re.escape(message)):
            build_view(given)
