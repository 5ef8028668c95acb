"""scikit-learn's 1,797 scanned digits: real images that need no download, for demos and tests."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from .dataset import Dataset, TensorSplit
from .splitting import stratified_split

SHARES = {"train": 0.5, "calibration": 0.1, "validation": 0.1, "test": 0.3}


def load_digits(seed: int) -> Dataset:
    """The 8 x 8 scans enlarged to 32 x 32 RGB, half of them for training."""
    from sklearn.datasets import load_digits as load

    raw = load()
    grey = torch.from_numpy(raw.images).float().div(16).unsqueeze(1)
    large = F.interpolate(grey, size=(32, 32), mode="bilinear", align_corners=False)
    images = large.mul(255).round().to(torch.uint8).expand(-1, 3, -1, -1).contiguous()
    labels = torch.from_numpy(raw.target).long()
    splits: dict[str, Any] = {
        name: TensorSplit(images[chosen], labels[chosen], chosen)
        for name, chosen in stratified_split(labels, SHARES, seed).items()
    }
    return Dataset(**splits, class_names=tuple(str(n) for n in raw.target_names))
