"""scikit-learn's 1,797 scanned digits: real images that need no download, for demos and tests."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from ..errors import SurefootError
from .augmentation import Augmentation
from .collection import Arrays, Collection


def load_digits() -> Collection:
    """The 8 x 8 scans enlarged to 32 x 32 RGB."""
    table = torch.from_numpy(np.loadtxt(digits_file(), delimiter=","))
    grey = table[:, :64].float().div(16).view(-1, 1, 8, 8)
    large = F.interpolate(grey, size=(32, 32), mode="bilinear", align_corners=False)
    images = large.mul(255).round().to(torch.uint8).expand(-1, 3, -1, -1).contiguous()
    names = tuple(map(str, range(10)))
    return Collection(Arrays(images), table[:, 64].long(), names, augmentation=Augmentation(crop_padding=0.0625))


def digits_file() -> Path:
    """Where scikit-learn keeps them; to import it for its own loader would take longer than most of what is done with them."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise SurefootError("The digits come with scikit-learn, which is not installed: pip install scikit-learn.")
    return Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
