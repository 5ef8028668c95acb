"""Matrices, Fourier transform and distances against SciPy."""

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch.nn import functional as F

from surefoot.imageops import filters
from surefoot.imageops.edges import distance_to
from surefoot.imageops.filters import correlate, good_length


@pytest.mark.parametrize(("border", "theirs"), [("edge", "nearest"), ("mirror", "mirror"), ("reflect", "reflect")])
@pytest.mark.parametrize("side", [1, 2, 5, 30])
def test_borders_as_scipy_has_them(border, theirs, side):
    taps, line = torch.tensor([0.1, 0.2, 0.3, 0.25, 0.15]).double(), torch.rand(side, dtype=torch.float64)
    found = filters.filter_matrix(taps, side, border) @ line
    assert found.numpy() == pytest.approx(ndimage.correlate1d(line.numpy(), taps.numpy(), mode=theirs))


def test_resizing_is_torch_s_bilinear_and_zoom_1_is_nothing():
    images = torch.rand(2, 3, 9, 14)
    found = filters.apply(filters.resize_matrix(9, 4), images, filters.resize_matrix(14, 20))
    assert torch.allclose(found, F.interpolate(images, (4, 20), mode="bilinear", align_corners=False), atol=1e-6)
    assert torch.equal(filters.zoom_matrix(7, 1.0), torch.eye(7).double())


def test_low_rank_sums_to_the_kernel():
    kernel = torch.rand(5, 7, dtype=torch.float64)
    terms = filters.low_rank(kernel)
    assert torch.allclose(sum(torch.outer(column, row) for column, row in terms), kernel)
    assert len(filters.low_rank(torch.ones(3, 3))) == 1


def test_fourier_is_the_direct_sum_with_a_kernel_for_each_image():
    images, kernels = torch.rand(3, 2, 20, 17), torch.rand(3, 1, 4, 5)
    direct = torch.cat([F.conv2d(i[:, None], k[None]).view(1, 2, 17, 13) for i, k in zip(images, kernels, strict=True)])
    assert torch.allclose(correlate(images, kernels), direct, atol=1e-5)
    assert [good_length(n) for n in (7, 31, 32, 49, 254)] == [8, 32, 32, 50, 256]


@pytest.mark.parametrize("shape", [(4, 1, 30, 44), (2, 1, 1, 9), (2, 1, 9, 1)])
def test_distances_are_euclidean_up_to_the_limit(shape):
    marked = torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.03
    marked[0, 0, 0, 0] = True
    for image, found in zip(marked[:, 0], distance_to(marked, 20)[:, 0], strict=True):
        expected = ndimage.distance_transform_edt(~image.numpy()) if image.any() else np.full(image.shape, 20.0)
        assert found.numpy() == pytest.approx(np.minimum(expected, 20), abs=1e-5)
