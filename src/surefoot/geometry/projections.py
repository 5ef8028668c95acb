"""Features of several layers, clean and noisy, in two dimensions to look at (discriminative-noise Fig. 1, 12, 13)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..corruptions.levels import add_gaussian_noise
from ..errors import require
from ..types import Features, Images, Labels
from .layer_features import block_features, pooled


@dataclass(frozen=True)
class LayerProjection:
    """For each block (in the order of `blocks`) the places of the clean and of the noisy images: blocks x images x 2."""

    blocks: tuple[str, ...]
    level: float
    clean: Tensor
    noisy: Tensor
    labels: Labels


def pca(features: Features) -> Tensor:
    """The two directions of largest variance: images x 2, in float64 on the CPU."""
    values = features.detach().double().cpu()
    values = values - values.mean(0)
    axes = torch.linalg.svd(values, full_matrices=False)[2][:2]
    largest = axes.abs().argmax(1, keepdim=True)
    places = values @ (axes * axes.gather(1, largest).sign()).T  # the sign of an axis is free: its largest entry is positive
    return F.pad(places, (0, 2 - places.shape[1]))


def tsne(features: Features, seed: int = 0, perplexity: float = 30.0) -> Tensor:
    """Two dimensions by t-SNE (van der Maaten and Hinton 2008): images x 2, in float64 on the CPU.

    It keeps neighbours, not distances between clusters or their sizes. It starts from PCA, or at random from features of one
    dimension. The perplexity is at most a third of the images.
    """
    require(len(features) >= 4, "features", "of at least 4 images", len(features))
    from sklearn.manifold import TSNE

    values = features.detach().double().cpu().numpy()
    start = "pca" if values.shape[1] > 1 else "random"
    embedding = TSNE(2, perplexity=min(perplexity, (len(values) - 1) / 3), init=start, random_state=seed)
    return torch.as_tensor(embedding.fit_transform(values)).double()


def layer_projection(
    model: nn.Module,
    images: Images,
    labels: Labels,
    blocks: Sequence[str],
    level: float = 0.06,
    projection: Callable[[Features], Tensor] = tsne,
    seed: int = 0,
    batch_size: int = 256,
    progress: bool = False,
    pool: Callable[[Tensor], Features] = pooled,
) -> LayerProjection:
    """Pooled features of each block for clean images and for the same with Gaussian noise of this level (clipped to [0, 1]).

    Clean and noisy features of a block go through one projection together, so that their places can be compared.
    """
    noisy = add_gaussian_noise(images, level, seed=seed)
    before = block_features(model, images, blocks, pool, batch_size, progress)
    after = block_features(model, noisy, blocks, pool, batch_size, progress)
    both = [projection(torch.cat([before[name], after[name]])) for name in before]
    places = torch.stack(both)
    return LayerProjection(tuple(before), level, places[:, : len(images)], places[:, len(images) :], labels)
