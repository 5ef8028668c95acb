"""Convolution with large kernels, or with another kernel for each image, by the fast Fourier transform."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types import Images


def correlate(padded: Images, kernels: Tensor) -> Images:
    """out[y, x] = sum of kernel[i, j] * padded[y + i, x + j], where the kernel lies inside the padded images.

    `kernels` is 1 or batch x 1 x height x width.
    """
    size = tuple(good_length(side) for side in padded.shape[2:])
    height, width = (side - k + 1 for side, k in zip(padded.shape[2:], kernels.shape[2:], strict=True))
    spectrum = torch.fft.rfft2(padded, s=size)
    spectrum *= torch.fft.rfft2(kernels.to(padded), s=size).conj()
    whole: Images = torch.fft.irfft2(spectrum, s=size)
    return whole[..., :height, :width]


def good_length(side: int) -> int:
    """The next even number whose prime factors are 2, 3 and 5: transforms of such lengths are quick."""
    length = side + side % 2
    while True:
        rest = length
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
        length += 2
