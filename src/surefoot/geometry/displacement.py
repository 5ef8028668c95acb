"""How far an attack moves a feature, against how large the feature is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..attacks._fgsm import fgsm
from ..errors import require
from ..types import Images, Labels
from .batching import slices
from .correlation import pearson
from .feature_distribution import mean_and_deviation, root_mean_square
from .feature_passes import observed_features

Attack = Callable[[nn.Module, Images, Labels], Images]


@dataclass(frozen=True)
class FeatureDisplacement:
    """RMS of each feature and of its change under attack (`values`), and Pearson r of the two (representation-space Fig. 7).

    The paper's figure shows the means of several models: `feature_rms_mean` and `mean`.
    """

    values: Tensor
    feature_rms: Tensor
    mean: float
    feature_rms_mean: float
    correlation: float


def feature_displacement(
    model: nn.Module, images: Images, labels: Labels, attack: Attack = fgsm, batch_size: int = 256, progress: bool = False
) -> FeatureDisplacement:
    """RMS of features and of their change under `attack`, FGSM 8/255 unless another is given."""
    require(len(images) > 0, "images", "at least one", len(images))
    clean, moved = [], []
    for part in slices(len(images), batch_size, progress, "attack"):
        before = observed_features(model, images[part], batch_size).features
        after = observed_features(model, attack(model, images[part], labels[part]), batch_size).features
        clean.append(root_mean_square(before))
        moved.append(root_mean_square(after - before))
    sizes, changes = torch.cat(clean), torch.cat(moved)
    means = mean_and_deviation(changes)[0], mean_and_deviation(sizes)[0]
    return FeatureDisplacement(changes, sizes, *means, pearson(sizes, changes))
