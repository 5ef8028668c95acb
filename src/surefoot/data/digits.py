"""scikit-learn's 1,797 scanned digits: real images that need no download, for demos and tests."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from .augmentation import Augmentation
from .collection import Arrays, Collection


def load_digits() -> Collection:
    """The 8 x 8 scans enlarged to 32 x 32 RGB."""
    from sklearn.datasets import load_digits as load

    raw = load()
    grey = torch.from_numpy(raw.images).float().div(16).unsqueeze(1)
    large = F.interpolate(grey, size=(32, 32), mode="bilinear", align_corners=False)
    images = large.mul(255).round().to(torch.uint8).expand(-1, 3, -1, -1).contiguous()
    labels = torch.from_numpy(raw.target).long()
    names = tuple(str(name) for name in raw.target_names)
    return Collection(Arrays(images), labels, names, augmentation=Augmentation(crop_padding=0.0625))
