import pytest
import torch
from torchvision.transforms.v2 import functional as reference

from surefoot.data.augmentation import Augmentation, apply
from surefoot.errors import SurefootError
from surefoot.imageops.warp import warp

EVERYTHING = {"crop_padding": 0.25, "flip": True, "colour_jitter": 0.5, "rotation": 30.0, "perspective": 0.4}
SINGLE = [*({name: value} for name, value in EVERYTHING.items()), {"resized_crop": 0.3}]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("shape", [(6, 3, 16, 16), (4, 1, 12, 20), (1, 3, 9, 7), (0, 3, 8, 8)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("options", [*SINGLE, EVERYTHING])
def test_shape_dtype_range_and_seed(options, dtype, shape):
    augmentation = Augmentation(**options)
    images = torch.rand(shape, generator=seeded()).to(dtype)
    before = images.clone()
    found = augmentation(images, seeded(1))
    assert found.shape == images.shape
    assert found.dtype == dtype
    assert torch.equal(images, before)
    assert torch.equal(found, augmentation(images, seeded(1)))
    if len(images) > 1:
        assert found.min() >= 0
        assert found.max() <= 1
        assert not torch.equal(found, augmentation(images, seeded(2)))


@pytest.mark.parametrize("options", SINGLE)
def test_equal_images_are_changed_differently(images, options):
    found = Augmentation(**options)(images[:1].repeat(16, 1, 1, 1), seeded())
    assert len(found.flatten(1).unique(dim=0)) >= (2 if "flip" in options else 12)


def test_nothing_changes_nothing_and_white_stays_in_range(images):
    assert Augmentation()(images) is images
    white = torch.ones(64, 3, 15, 13)
    found = Augmentation(rotation=180, perspective=0.9)(white, seeded())
    assert found.max() <= 1
    assert found.min() >= 0


def test_crops_against_a_plain_loop(images):
    augmentation = Augmentation(crop_padding=0.2, flip=True)
    wide = images.repeat(4, 1, 1, 2)[:, :, :10]
    draws = augmentation.draw(24, 10, 32, seeded(3))
    assert draws.padding == 2
    assert set(draws.top.tolist()) == set(draws.left.tolist()) == {0, 1, 2, 3, 4}
    assert set(draws.flip.tolist()) == {False, True}
    found = augmentation(wide, seeded(3))
    for k in range(24):
        canvas = torch.zeros(3, 14, 36)
        canvas[:, 2:12, 2:34] = wide[k]
        window = canvas[:, int(draws.top[k]) :, int(draws.left[k]) :][:, :10, :32]
        assert torch.equal(found[k], window.flip(2) if draws.flip[k] else window)


def test_jitter_is_torchvisions_in_order(images):
    augmentation = Augmentation(colour_jitter=0.4)
    draws = augmentation.draw(6, 16, 16, seeded())
    found = augmentation(images, seeded())
    for image, changed, (brightness, contrast, saturation) in zip(images, found, draws.factors.tolist(), strict=True):
        expected = reference.adjust_contrast(reference.adjust_brightness(image, brightness), contrast)
        assert torch.allclose(changed, reference.adjust_saturation(expected, saturation), atol=1e-6)


def test_draws_fill_their_ranges():
    draws = Augmentation(**EVERYTHING).draw(4000, 16, 16, seeded())
    low, high = draws.factors.aminmax()
    assert 0.5 <= float(low) < 0.51
    assert 1.49 < float(high) <= 1.5
    assert abs(float(draws.flip.float().mean()) - 0.5) < 0.03
    turns = Augmentation(rotation=30).draw(4000, 16, 16, seeded()).matrices
    degrees = torch.atan2(turns[:, 1, 0], turns[:, 0, 0]).rad2deg()
    assert -30 <= float(degrees.min()) < -29.5
    assert 29.5 < float(degrees.max()) <= 30
    tilts = Augmentation(perspective=0.5).draw(4000, 8, 16, seeded()).matrices
    corner = torch.linalg.inv(tilts) @ torch.tensor([-8.0, -4.0, 1.0], dtype=torch.float64)
    x, y = (corner[:, :2] / corner[:, 2:]).unbind(1)
    assert (float(x.min()), float(x.max())) == pytest.approx((-8, -4), abs=0.02)
    assert (float(y.min()), float(y.max())) == pytest.approx((-4, -2), abs=0.02)


def test_rotation_and_perspective_are_one_warp(images):
    augmentation = Augmentation(rotation=30, perspective=0.3)
    draws = augmentation.draw(6, 16, 16, seeded())
    assert torch.allclose(augmentation(images, seeded()), warp(images, draws.matrices), atol=1e-5)


def test_draws_can_be_sliced(images):
    augmentation = Augmentation(**EVERYTHING)
    draws = augmentation.draw(6, 16, 16, seeded())
    whole = apply(images, draws)
    assert torch.allclose(torch.cat([apply(images[:2], draws[:2]), apply(images[2:], draws[2:])]), whole, atol=1e-6)
    assert Augmentation().draw(6, 16, 16)[:2].top is None


def test_options_make_the_same_again():
    augmentation = Augmentation(**EVERYTHING)
    assert augmentation.options() == {**EVERYTHING, "resized_crop": 0.0, "crop_ratio": 4 / 3}
    assert Augmentation(**augmentation.options()) == augmentation
    assert augmentation != Augmentation()
    assert repr(Augmentation(flip=True)).startswith("Augmentation(crop_padding=0.0, flip=True")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crop_padding": 0.6}, r"crop_padding must be in \[0, 0.5\], got 0.6"),
        ({"crop_padding": -0.1}, "crop_padding must be"),
        ({"flip": 1}, "flip must be true or false, got 1"),
        ({"colour_jitter": 1.5}, "colour_jitter must be in"),
        ({"rotation": 181}, "rotation must be degrees in"),
        ({"perspective": 1.0}, r"perspective must be in \[0, 1\)"),
        ({"rotation": float("nan")}, "rotation must be"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(SurefootError, match=message):
        Augmentation(**options)


def test_wrong_images_are_named(images):
    with pytest.raises(SurefootError, match="images must be floating point"):
        Augmentation(flip=True)((255 * images).to(torch.uint8))
    with pytest.raises(SurefootError, match="images must be batch"):
        Augmentation(flip=True)(images[0])


@pytest.mark.parametrize("size", [(32, 32), (20, 36), (224, 224)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_resized_crops_against_torchvision_on_the_same_box(size, dtype):
    images = torch.rand(12, 3, *size, generator=seeded()).to(dtype)
    augmentation = Augmentation(resized_crop=0.08, flip=True)
    draws = augmentation.draw(12, *size, seeded(4))
    changed, close = apply(images, draws), 5e-5 if dtype == torch.float32 else 1e-12
    for image, box, flip, got in zip(images, draws.boxes.tolist(), draws.flip.tolist(), changed, strict=True):
        wanted = reference.resized_crop(image, *box, list(size), antialias=True)
        torch.testing.assert_close(got, wanted.flip(-1) if flip else wanted, atol=close, rtol=0)


def test_resized_crops_follow_torchvisions_law():
    """Area uniform in [0.08, 1], log of the ratio uniform: each against torchvision's own draws by Kolmogorov and Smirnov."""
    from scipy.stats import ks_2samp
    from torchvision.transforms import RandomResizedCrop

    size, count = (180, 240), 4000
    boxes = Augmentation(resized_crop=0.08).draw(count, *size, seeded(5)).boxes.double()
    image = torch.empty(3, *size)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = [RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(count)]
    others = torch.tensor(theirs, dtype=torch.float64)
    laws = (lambda b: b[:, 2] * b[:, 3], lambda b: b[:, 3] / b[:, 2], lambda b: b[:, 0], lambda b: b[:, 1])
    for law in laws:
        assert ks_2samp(law(boxes).numpy(), law(others).numpy()).pvalue > 0.01
    assert bool((boxes[:, 0] + boxes[:, 2] <= size[0]).all() and (boxes[:, 1] + boxes[:, 3] <= size[1]).all())
    assert bool((boxes >= 0).all() and (boxes[:, 2:] >= 1).all())


def test_a_box_that_never_fits_is_the_largest_in_the_centre():
    """As torchvision does for an image of 10 x 100 px and a whole area: 10 x 13, its ratio the largest allowed."""
    from torchvision.transforms import RandomResizedCrop

    boxes = Augmentation(resized_crop=1).draw(3, 10, 100, seeded()).boxes
    assert boxes.tolist() == [list(RandomResizedCrop.get_params(torch.empty(3, 10, 100), [1.0, 1.0], [3 / 4, 4 / 3]))] * 3


def test_a_resized_crop_may_be_sliced_by_process(images):
    augmentation = Augmentation(resized_crop=0.3)
    draws = augmentation.draw(len(images), *images.shape[2:], seeded(6))
    assert torch.equal(apply(images, draws)[2:4], apply(images[2:4], draws[2:4]))
    with pytest.raises(SurefootError, match="crop_padding and resized_crop are two ways to crop: give one of them"):
        Augmentation(resized_crop=0.3, crop_padding=0.1)
