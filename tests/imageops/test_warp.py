import math

import pytest
import torch

from surefoot.errors import SurefootError
from surefoot.imageops.warp import perspectives, rotations, warp


def plain_warp(image, matrix):
    """One channel, pixel by pixel."""
    height, width = image.shape
    m = matrix.tolist()
    out = torch.zeros_like(image)
    for row in range(height):
        for column in range(width):
            u, v = column - (width - 1) / 2, row - (height - 1) / 2
            x, y, depth = (m[k][0] * u + m[k][1] * v + m[k][2] for k in range(3))
            if depth <= 0:
                continue
            x, y = x / depth + (width - 1) / 2, y / depth + (height - 1) / 2
            for i in (math.floor(y), math.floor(y) + 1):
                for j in (math.floor(x), math.floor(x) + 1):
                    if 0 <= i < height and 0 <= j < width:
                        out[row, column] += (1 - abs(y - i)) * (1 - abs(x - j)) * image[i, j]
    return out


def shift(right, down):
    """The matrix that moves the content by so many pixels."""
    return torch.tensor([[[1.0, 0, -right], [0, 1, -down], [0, 0, 1]]], dtype=torch.float64)


def test_identity(images):
    assert torch.allclose(warp(images, torch.eye(3).repeat(6, 1, 1)), images, rtol=0, atol=1e-6)
    odd = torch.rand(1, 2, 33, 47, dtype=torch.float64)
    assert torch.allclose(warp(odd, torch.eye(3)[None]), odd, rtol=0, atol=1e-12)
    assert torch.allclose(warp(odd.float(), torch.eye(3)[None]), odd.float(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("side", [8, 9])
def test_quarter_turns_are_torchs(side):
    images = torch.rand(4, 3, side, side, dtype=torch.float64)
    found = warp(images, rotations(torch.tensor([0.0, 90, 180, 270], dtype=torch.float64)))
    for turns in range(4):
        assert torch.allclose(found[turns], images[turns].rot90(turns, (1, 2)), rtol=0, atol=1e-6)


def test_a_rotation_keeps_lengths_in_an_image_that_is_not_square():
    images = torch.rand(1, 1, 5, 9, dtype=torch.float64)
    found = warp(images, rotations(torch.tensor([90.0], dtype=torch.float64)))[0, 0]
    middle = images[0, 0, :, 2:7]  # the square that stays inside
    assert torch.allclose(found[:, 2:7], middle.rot90(1, (0, 1)), rtol=0, atol=1e-6)
    assert float(found[:, :2].abs().max()) < 1e-6
    assert float(found[:, 7:].abs().max()) < 1e-6


def test_a_whole_translation_is_a_shift():
    images = torch.rand(1, 2, 6, 7, dtype=torch.float64)
    found = warp(images, shift(1, -2))
    expected = torch.zeros_like(images)
    expected[:, :, :4, 1:] = images[:, :, 2:, :6]
    assert torch.allclose(found, expected, rtol=0, atol=1e-6)


def test_homographies_against_a_plain_loop():
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(8, 1, 7, 10, dtype=torch.float64, generator=draw)
    matrices = torch.eye(3, dtype=torch.float64) + 0.2 * torch.randn(8, 3, 3, dtype=torch.float64, generator=draw)
    matrices[:, 2, :2] /= 4
    matrices[0, 2] = torch.tensor([0.5, 0.1, 1])  # a horizon within the image
    found = warp(images, matrices)
    for k in range(8):
        assert torch.allclose(found[k, 0], plain_warp(images[k, 0], matrices[k]), rtol=0, atol=1e-10), k
    assert torch.allclose(warp(images.float(), matrices), found.float(), rtol=0, atol=1e-5)
    assert (found[0] == 0).any()


def test_the_corners_of_the_content_move_inwards():
    inwards = torch.rand(5, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    matrices = perspectives(inwards, 8, 12)
    corners = [(-6, -4), (6, -4), (6, 4), (-6, 4)]
    for k in range(5):
        for (x, y), (right, down) in zip(corners, inwards[k].tolist(), strict=True):
            moved = torch.tensor([x - math.copysign(right, x), y - math.copysign(down, y), 1], dtype=torch.float64)
            back = matrices[k] @ moved
            assert (back[:2] / back[2]).tolist() == pytest.approx([x, y])


def test_no_displacement_is_the_identity_and_an_equal_one_halves_the_image():
    still = perspectives(torch.zeros(2, 4, 2, dtype=torch.float64), 5, 9)
    assert torch.allclose(still, torch.eye(3, dtype=torch.float64).expand(2, 3, 3), atol=1e-12)
    half = perspectives(torch.tensor([2.0, 1.0], dtype=torch.float64).expand(1, 4, 2), 4, 8)
    assert torch.allclose(half[0], torch.diag(torch.tensor([2.0, 2.0, 1.0], dtype=torch.float64)), atol=1e-12)


def test_a_product_is_the_left_warp_and_then_the_right_one():
    images = torch.rand(1, 1, 9, 9, dtype=torch.float64)
    turn = rotations(torch.tensor([90.0], dtype=torch.float64))
    twice = warp(warp(images, turn), shift(2, 0))
    assert torch.allclose(warp(images, turn @ shift(2, 0)), twice, rtol=0, atol=1e-6)


def test_half_precision_no_images_and_gradient(images):
    turn = rotations(torch.full((6,), 30.0))
    half = warp(images.bfloat16(), turn)
    assert half.dtype == torch.bfloat16
    assert torch.allclose(half.float(), warp(images, turn), atol=0.02)
    assert warp(images[:0], turn[:0]).shape == (0, 3, 16, 16)
    assert perspectives(torch.zeros(0, 4, 2), 4, 4).shape == (0, 3, 3)
    leaf = images.clone().requires_grad_()
    warp(leaf, turn).sum().backward()
    assert leaf.grad.abs().sum() > 0


def test_wrong_arguments_are_named(images):
    with pytest.raises(SurefootError, match="matrices must be 6 x 3 x 3"):
        warp(images, torch.eye(3)[None])
    with pytest.raises(SurefootError, match="images must be float"):
        warp(images.to(torch.uint8), torch.eye(3).repeat(6, 1, 1))
    with pytest.raises(SurefootError, match="inwards must be batch x 4 x 2"):
        perspectives(torch.zeros(2, 8), 4, 4)
    with pytest.raises(SurefootError, match="degrees must be"):
        rotations(torch.tensor(3.0))
