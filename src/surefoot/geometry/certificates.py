"""Certified radii within which a smoothed classifier predicts the same class (Cohen, Rosenfeld and Kolter 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import require
from ..models.last_layer import evaluating
from ..seeds import derive
from ..types import Images, Labels, check_labels, finite_logits
from .arguments import check_certifying
from .evaluation import prepared_batch, slices

BLOCK = 32  # draws at a time for one image, whatever the batch size, so that batches do not change the noise
ABSTAINED = -1
Block = tuple[Tensor, Tensor, Tensor]  # whose copy it is, whether it chooses (0) or bounds (1), and the noisy images


@dataclass(frozen=True)
class Certificates:
    """For each image: `values` is the certified radius (pixel units, L2), 0 where the procedure abstained.

    `predictions` are of the smoothed classifier, -1 for abstained; `lower_bounds` of the probability of that class. Each
    certificate is wrong with probability at most `alpha`. `largest_radius` is what all `n` draws in agreement would give.
    """

    values: Tensor
    predictions: Tensor
    labels: Tensor
    lower_bounds: Tensor
    counts: Tensor
    std: float
    n0: int
    n: int
    alpha: float
    largest_radius: float

    @property
    def correct(self) -> Tensor:
        """Where the smoothed classifier does not abstain, and is right."""
        return self.predictions == self.labels

    def accuracy(self, radius: float) -> float:
        """The certified accuracy: the share of images that are right with a certificate of at least this radius."""
        return float((self.correct & (self.values >= radius)).double().mean())


def certify(
    model: nn.Module,
    images: Images,
    labels: Labels,
    std: float,
    *,
    n0: int = 100,
    n: int = 1000,
    alpha: float = 0.001,
    seed: int = 0,
    indices: Tensor | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> Certificates:
    """Certified radii of g(x) = argmax_c P(f(x + e) = c), e ~ N(0, std^2 I), by randomised smoothing.

    `n0` draws choose the class, `n` others bound its probability from below by the exact binomial bound at level `alpha`; the
    radius is std * Phi^-1(that bound), and where the bound is not above 1/2 the procedure abstains. The paper takes
    n = 100,000. The certificate is for g, not for the model itself. Noise is drawn by (seed, index of the image, block of
    draws) and not clipped.
    """
    check_certifying(std, n0, n, alpha)
    images, labels = prepared_batch(model, images, labels)
    indices = torch.arange(len(images)) if indices is None else indices
    require(indices.shape == labels.shape, "indices", f"one for each of {len(images)} images", tuple(indices.shape))
    with evaluating(model), torch.no_grad():
        classes = model(images[:1]).shape[1]
        labels = check_labels(labels, classes, len(images)).cpu()
        counts = torch.zeros(len(images), 2, classes, dtype=torch.long)
        copies = noisy_copies(images, indices.tolist(), std, n0, n, seed, progress)
        for owners, phases, points in gathered(copies, batch_size):
            predicted = torch.cat([finite_logits(model(part)).argmax(1) for part in points.split(batch_size)]).cpu()
            counts.index_put_((owners, phases, predicted), torch.ones_like(predicted), accumulate=True)
    chosen = counts[:, 0].argmax(1)
    hits = counts[:, 1].gather(1, chosen.unsqueeze(1)).squeeze(1)
    lower = lower_bound(hits, n, alpha)
    radii = std * torch.special.ndtri(lower).clamp_min(0)
    sure = lower > 0.5
    top = std * float(torch.special.ndtri(lower_bound(torch.tensor([n]), n, alpha)).clamp_min(0))
    predictions = torch.where(sure, chosen, ABSTAINED)
    return Certificates(torch.where(sure, radii, 0.0), predictions, labels, lower, hits, std, n0, n, alpha, top)


def lower_bound(hits: Tensor, n: int, alpha: float) -> Tensor:
    """The one-sided lower bound of Clopper and Pearson for a share of `hits` out of n: exact, in float64."""
    from scipy.stats import beta

    counts = np.asarray(hits.cpu())
    bounds = np.where(counts > 0, beta.ppf(alpha, np.maximum(counts, 1), n - counts + 1), 0.0)
    return torch.from_numpy(bounds)


def noisy_copies(
    images: Images, indices: Sequence[int], std: float, n0: int, n: int, seed: int, progress: bool
) -> Iterator[Block]:
    """Noisy copies of one image after another, in blocks."""
    source = torch.Generator()
    for part in slices(len(images), 1, progress, "certificates"):
        image = images[part]
        for start in range(0, n0 + n, BLOCK):
            size = min(BLOCK, n0 + n - start)
            key = derive(seed, "smoothing", indices[part.start], start)
            noise = torch.empty(size, *image.shape[1:], dtype=image.dtype).normal_(generator=source.manual_seed(key))
            phases = (torch.arange(start, start + size) >= n0).long()
            yield torch.full((size,), part.start), phases, image + std * noise.to(image.device)


def gathered(blocks: Iterator[Block], batch_size: int) -> Iterator[Block]:
    """Blocks joined to about `batch_size` images."""
    require(batch_size >= 1, "batch_size", "at least 1", batch_size)
    waiting: list[Block] = []
    size = 0
    for block in blocks:
        if waiting and size + len(block[0]) > batch_size:
            yield joined(waiting)
            waiting, size = [], 0
        waiting.append(block)
        size += len(block[0])
    if waiting:
        yield joined(waiting)


def joined(blocks: list[Block]) -> Block:
    """Several blocks as one."""
    owners, phases, points = zip(*blocks, strict=True)
    return torch.cat(owners), torch.cat(phases), torch.cat(points)
