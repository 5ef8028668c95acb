"""Calibration error by a kernel instead of bins, with a width that the data choose."""

from __future__ import annotations

import math

import torch
from torch import Tensor

CELLS = 512  # of the grid on which the density is held; it only has to be finer than the kernel
HALVINGS = 10  # of the interval that holds the width, before the last step along its chord


def smooth_ece(confidences: Tensor, correct: Tensor, weights: Tensor) -> Tensor:
    """Smooth ECE (Blasiok and Nakkiran 2024) under weights (draws x images): one number for each draw.

    The residuals (right - confidence) are smoothed by a Gaussian kernel that is reflected at 0 and 1; the error is the integral
    of the absolute value; the width is the one that equals the error itself. Reflected smoothing is heat flow on [0, 1], which
    damps the n-th cosine of the residuals by exp(-(pi n width)^2 / 2).
    """
    place = confidences * CELLS
    left = place.floor().clamp_max(CELLS - 1).long()
    share = place - left
    residuals = weights * (correct.double() - confidences) / weights.sum(1, keepdim=True)
    grid = torch.zeros(len(weights), CELLS + 1, dtype=torch.float64)
    grid.index_add_(1, left, residuals * (1 - share)).index_add_(1, left + 1, residuals * share)
    waves = cosine_sums(grid)
    low, high = torch.zeros(len(weights), dtype=torch.float64), torch.ones(len(weights), dtype=torch.float64)
    for _ in range(HALVINGS):
        width = (low + high) / 2
        narrow = smoothed_error(waves, width) > width
        low, high = torch.where(narrow, width, low), torch.where(narrow, high, width)
    below, above = smoothed_error(waves, low) - low, smoothed_error(waves, high) - high
    return low + (high - low) * below / (below - above).clamp_min(torch.finfo(torch.float64).tiny)


def cosine_sums(grid: Tensor) -> Tensor:
    """Sum over places k of grid_k cos(pi n k / CELLS), for every wave n."""
    half = torch.cat([grid[:, :1], grid[:, 1:-1] / 2, grid[:, -1:]], 1)
    sums: Tensor = torch.fft.rfft(torch.cat([half, half[:, 1:-1].flip(1)], 1)).real
    return sums


def smoothed_error(waves: Tensor, width: Tensor) -> Tensor:
    """The integral of the absolute value of the smoothed residuals, by the trapezoid rule."""
    numbers = torch.arange(CELLS + 1, dtype=torch.float64)
    damped = waves * torch.exp(-(math.pi * numbers * width.unsqueeze(1)).square() / 2)
    density = torch.fft.irfft(damped, 2 * CELLS, norm="forward")[:, : CELLS + 1]
    return torch.trapezoid(density.abs(), dx=1 / CELLS, dim=1)
