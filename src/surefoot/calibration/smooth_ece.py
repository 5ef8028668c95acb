"""Calibration error by a kernel instead of bins, with a width that the data choose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Array = NDArray[np.float64]
CELLS = 512  # of the grid on which the density is held; it only has to be finer than the kernel
HALVINGS = 10  # of the interval that holds the width, before the last step along its chord


def smooth_ece(confidences: ArrayLike, correct: ArrayLike, weights: Array) -> Array:
    """Smooth ECE (Blasiok and Nakkiran 2024) under weights (draws x images): one number for each draw.

    The residuals (right - confidence) are smoothed by a Gaussian kernel that is reflected at 0 and 1; the error is the integral
    of the absolute value; the width is the one that equals the error itself. Reflected smoothing is heat flow on [0, 1], which
    damps the n-th cosine of the residuals by exp(-(pi n width)^2 / 2).
    """
    matrix = residual_matrix(np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=np.float64))
    waves = cosine_sums((matrix @ weights.T).T / weights.sum(1)[:, None])
    low, high = np.zeros(len(weights)), np.ones(len(weights))
    for _ in range(HALVINGS):
        width = (low + high) / 2
        narrow = smoothed_error(waves, width) > width
        low, high = np.where(narrow, width, low), np.where(narrow, high, width)
    below, above = smoothed_error(waves, low) - low, smoothed_error(waves, high) - high
    return low + (high - low) * below / np.maximum(below - above, np.finfo(np.float64).tiny)


def residual_matrix(confidences: Array, correct: Array) -> Any:
    """The residual of every image, shared between the two places of the grid beside its confidence: places x images."""
    place, images = confidences * CELLS, np.arange(len(confidences))
    left = np.minimum(np.floor(place), CELLS - 1).astype(np.int64)
    share, residuals = place - left, correct - confidences
    values, rows = np.concatenate([residuals * (1 - share), residuals * share]), np.concatenate([left, left + 1])
    return sparse.csr_array((values, (rows, np.tile(images, 2))), shape=(CELLS + 1, len(images)))


def cosine_sums(grid: Array) -> Array:
    """Sum over places k of grid_k cos(pi n k / CELLS), for every wave n."""
    half = np.concatenate([grid[:, :1], grid[:, 1:-1] / 2, grid[:, -1:]], 1)
    return np.fft.rfft(np.concatenate([half, half[:, -2:0:-1]], 1)).real


def smoothed_error(waves: Array, width: Array) -> Array:
    """The integral of the absolute value of the smoothed residuals, by the trapezoid rule."""
    damped = waves * np.exp(np.square(math.pi * np.arange(CELLS + 1) * width[:, None]) / -2)
    density = np.abs(np.fft.irfft(damped, 2 * CELLS, norm="forward")[:, : CELLS + 1])
    found: Array = (density.sum(1) - (density[:, 0] + density[:, -1]) / 2) / CELLS
    return found
