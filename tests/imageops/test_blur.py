import math

import numpy as np
import pytest
import torch

from surefoot.imageops.filters import gaussian_blur, gaussian_kernel


def plain_blur(image, sigma):
    """Gaussian blur of one channel, pixel by pixel, edges repeated."""
    radius = int(4 * sigma + 0.5)
    height, width = image.shape
    out = np.zeros_like(image)
    weights = {
        (i, j): math.exp(-(i * i + j * j) / (2 * sigma**2))
        for i in range(-radius, radius + 1)
        for j in range(-radius, radius + 1)
    }
    total = sum(weights.values())
    for y in range(height):
        for x in range(width):
            for (i, j), weight in weights.items():
                out[y, x] += weight / total * image[min(max(y + i, 0), height - 1), min(max(x + j, 0), width - 1)]
    return out


@pytest.mark.parametrize("sigma", [0.4, 1.0, 2.5])
def test_against_a_plain_loop(sigma):
    images = torch.rand(2, 3, 7, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = gaussian_blur(images, sigma)
    for image, blurred in zip(images.flatten(0, 1), found.flatten(0, 1), strict=True):
        assert np.allclose(blurred.numpy(), plain_blur(image.numpy(), sigma), atol=1e-12)


def test_a_flat_image_stays_flat_and_a_tiny_sigma_changes_nothing(images):
    assert torch.allclose(gaussian_blur(torch.full_like(images, 0.3), 2.0), torch.full_like(images, 0.3))
    assert torch.equal(gaussian_blur(images, 0.1), images)


def test_kernel_sums_to_one():
    assert gaussian_kernel(1.3).sum().item() == pytest.approx(1)
    assert len(gaussian_kernel(1.0)) == 9
