import pytest
import torch
from torchvision.transforms.v2 import functional as reference

from surefoot.errors import SurefootError
from surefoot.imageops.tone import adjust_brightness, adjust_contrast, adjust_saturation

PAIRS = [
    (adjust_brightness, reference.adjust_brightness),
    (adjust_contrast, reference.adjust_contrast),
    (adjust_saturation, reference.adjust_saturation),
]
FACTORS = torch.tensor([0.0, 0.3, 1.0, 1.4, 2.0, 5.0])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_against_torchvision_one_image_at_a_time(images, ours, theirs, channels):
    images = images[:, :channels, :, :11]
    found = ours(images, FACTORS)
    assert found.min() >= 0
    assert found.max() <= 1
    for image, factor, changed in zip(images, FACTORS, found, strict=True):
        assert torch.allclose(changed, theirs(image, float(factor)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("ours", [pair[0] for pair in PAIRS])
def test_a_factor_of_one_changes_nothing_and_the_input_is_left_alone(images, ours):
    before = images.clone()
    assert torch.allclose(ours(images, torch.ones(6)), images, rtol=0, atol=1e-7)
    ours(images, FACTORS)
    assert torch.equal(images, before)
    assert ours(images[:0], torch.ones(0)).shape == (0, 3, 16, 16)
    assert ours(images.half(), FACTORS).dtype == torch.float16


def test_limits(images):
    nought = torch.zeros(6)
    assert torch.equal(adjust_brightness(images, nought), torch.zeros_like(images))
    assert adjust_contrast(images, nought).flatten(1).std(1).max() < 1e-6
    assert torch.allclose(adjust_saturation(images, nought).std(1), torch.zeros(6, 16, 16), atol=1e-6)
    assert torch.equal(adjust_saturation(images[:, :1], FACTORS), images[:, :1])


def test_wrong_arguments_are_named(images):
    with pytest.raises(SurefootError, match="factors must be one for each of 6 images"):
        adjust_brightness(images, torch.ones(5))
    with pytest.raises(SurefootError, match="images must be of 1 or 3 channels, got 2"):
        adjust_contrast(images[:, :2], torch.ones(6))
    with pytest.raises(SurefootError, match="images must be float"):
        adjust_brightness(images.to(torch.uint8), torch.ones(6))
