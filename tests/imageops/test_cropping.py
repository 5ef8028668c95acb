import pytest
import torch

from surefoot.errors import SurefootError
from surefoot.imageops.warp import shift_and_flip


def plain_crop(image, top, left, flip, padding):
    """One window, pixel by pixel."""
    channels, height, width = image.shape
    out = torch.zeros_like(image)
    for c in range(channels):
        for y in range(height):
            for x in range(width):
                row, column = top + y - padding, left + (width - 1 - x if flip else x) - padding
                if 0 <= row < height and 0 <= column < width:
                    out[c, y, x] = image[c, row, column]
    return out


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float16])
@pytest.mark.parametrize("shape", [(5, 3, 6, 6), (5, 1, 4, 7), (1, 3, 7, 4)])
def test_against_a_plain_loop(shape, dtype):
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(1, 256, shape, generator=draw).to(dtype)
    top, left = torch.randint(5, (2, shape[0]), generator=draw)
    flip = torch.rand(shape[0], generator=draw) < 0.5
    found = shift_and_flip(images, top, left, flip, 2)
    assert found.dtype == dtype
    for k in range(shape[0]):
        assert torch.equal(found[k], plain_crop(images[k], int(top[k]), int(left[k]), bool(flip[k]), 2)), k


def test_the_middle_is_the_image_and_the_flip_is_torchs(images):
    middle = torch.full((6,), 3)
    no, yes = torch.zeros(6, dtype=torch.bool), torch.ones(6, dtype=torch.bool)
    assert torch.equal(shift_and_flip(images, middle, middle, no, 3), images)
    assert torch.equal(shift_and_flip(images, middle, middle, yes, 3), images.flip(3))
    assert torch.equal(shift_and_flip(images, middle - 3, middle - 3, yes, 0), images.flip(3))


def test_no_images_and_images_that_are_not_contiguous(images):
    none = torch.zeros(0, dtype=torch.long)
    assert shift_and_flip(images[:0], none, none, none.bool(), 2).shape == (0, 3, 16, 16)
    top, flip = torch.arange(6) % 3, torch.arange(6) % 2 == 0
    expected = shift_and_flip(images, top, top, flip, 1)
    turned = images.to(memory_format=torch.channels_last)
    assert torch.equal(shift_and_flip(turned, top, top, flip, 1), expected)
    assert torch.equal(shift_and_flip(images.mT.contiguous().mT, top, top, flip, 1), expected)


def test_gradient_reaches_only_the_pixels_that_are_seen():
    images = torch.rand(1, 1, 3, 3, requires_grad=True)
    shift_and_flip(images, torch.tensor([2]), torch.tensor([1]), torch.tensor([False]), 1).sum().backward()
    assert images.grad[0, 0].tolist() == [[0, 0, 0], [1, 1, 1], [1, 1, 1]]


def test_wrong_arguments_are_named(images):
    top, flip = torch.zeros(6, dtype=torch.long), torch.zeros(6, dtype=torch.bool)
    with pytest.raises(SurefootError, match=r"left must be in \[0, 2\], got \(3, 3\)"):
        shift_and_flip(images, top, top + 3, flip, 1)
    with pytest.raises(SurefootError, match="top must be one for each of 6 images"):
        shift_and_flip(images, top[:5], top, flip, 1)
    with pytest.raises(SurefootError, match="flip must be 6 truth values"):
        shift_and_flip(images, top, top, top, 1)
    with pytest.raises(SurefootError, match="images must be batch"):
        shift_and_flip(images[0], top, top, flip, 1)
    with pytest.raises(SurefootError, match="padding must be at least 0"):
        shift_and_flip(images, top, top, flip, -1)
