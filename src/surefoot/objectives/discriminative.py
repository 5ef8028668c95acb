"""The discriminative loss with noisy alignment: compact classes, far from every boundary, for clean and noisy images."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F

from ..errors import SurefootError, UnknownName, require
from ..models.last_layer import head_of
from ..types import Features, Images, Labels, Outputs, Terms, check_labels
from ..views.simple import GaussianNoise
from ..views.table import build_view
from .base import Objective, weighted_sum
from .passes import check_batch_norm, full_precision, in_full, outputs_of, perturbed

# Sums over all processes, with gradient: what a loss needs that is not a mean over images.


class _Sum(torch.autograd.Function):
    """The sum over processes; its gradient is the sum of the gradients that the processes give it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.detach().clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total)
        return total


def summed(value: Tensor) -> Tensor:
    """The sum of `value` over all processes; itself where there is one.

    When every process has the same loss as a function of such sums, its gradient is the number of processes times too large in
    each, and DDP's mean over processes makes it right.
    """
    if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return value
    result: Tensor = _Sum.apply(value)
    return result


# Class centroids of clean features, by batch and with momentum (discriminative-noise section 4.4).


@dataclass(frozen=True)
class ClassMeans:
    """The mean feature of each class of the global batch; classes that are not in it are left out."""

    present: Tensor  # class numbers, ascending
    counts: Tensor  # images of each present class
    means: Tensor  # present classes x dimensions, with gradient

    def index_of(self, labels: Labels) -> Tensor:
        """The row of each label's class."""
        return torch.searchsorted(self.present, labels)


def class_means(features: Features, labels: Labels, num_classes: int) -> ClassMeans:
    """Means over all processes, of the classes that any of them has."""
    sums = summed(features.new_zeros(num_classes, features.shape[1]).index_add(0, labels, features))
    counts = summed(labels.bincount(minlength=num_classes).to(features.dtype))
    present = counts.nonzero().flatten()
    return ClassMeans(present, counts[present], sums[present] / counts[present, None])


def with_momentum(means: ClassMeans, old: Tensor, seen: Tensor, momentum: float) -> Tensor:
    """momentum * old + (1 - momentum) * batch mean for each present class, with gradient through the batch mean only.

    A class that was never seen starts at its batch mean.
    """
    before = old[means.present].detach().to(means.means.dtype)
    moved = momentum * before + (1 - momentum) * means.means
    return torch.where(seen[means.present, None], moved, means.means)


CENTROIDS = ("partial", "momentum", "batch")
REGULARISED = ("as margin", "momentum")
VARIANTS = ("text", "authors")
AUTHORS: dict[str, Any] = {
    "compact_weight": 0.5,  # one mean over clean and noisy features
    "noise_weight": 0.5,
    "momentum": 0.99,
    "regularised": "momentum",
    "clip": True,
    "second_augmentation": True,
}
NO_BOUNDARY = 1e-6  # weights nearer than this are the same


class Discriminative(Objective):
    """L = CE + compact_weight compact + margin_weight margin + regulariser_weight regulariser + noise_weight noisy.

    (discriminative-noise Eq. 7 to 13; `compactness`, `boundary_margin` and `centroid_norm` below are its terms.) Centroids come
    from clean features only: the mean of the batch, one with momentum, or "partial", which takes the one with momentum for
    compactness and noisy alignment and the batch mean for margin and regulariser (section 4.4). They are buffers and are saved.
    Over several processes the terms are those of the global batch. `radius` and `distance` are the paper's delta_v and delta_d;
    it takes distance 3 for MobileNetV3. `view` is used in place of the noise. Sizes come from the model if they are not given.

    The authors' code differs from their text, and each difference is an option: `regularised="momentum"` puts the regulariser
    on the centroids with momentum, whose gradient is 1 - momentum of the batch's; `clip` cuts noisy pixels to [0, 1];
    `second_augmentation` makes the noisy copy from an augmentation of its own, which `fit` puts into `second` (without it the
    copy is of the same picture). `variant="authors"` changes what is left at the text's value to theirs (`AUTHORS`).
    """

    centroid_table: Tensor
    seen: Tensor

    def __init__(
        self,
        num_classes: int | None = None,
        feature_dim: int | None = None,
        radius: float = 0.5,
        distance: float = 5.0,
        compact_weight: float = 1.0,
        margin_weight: float = 1.0,
        regulariser_weight: float = 1e-3,
        noise_weight: float = 1.0,
        noise_std: float = 0.06,
        centroids: str = "partial",
        momentum: float = 0.9,
        view: Any = None,
        batch_norm: str = "apart",
        regularised: str = "as margin",
        clip: bool = False,
        second_augmentation: bool = False,
        variant: str = "text",
    ) -> None:
        super().__init__()
        given: dict[str, Any] = {"compact_weight": compact_weight, "noise_weight": noise_weight, "momentum": momentum}
        given |= {"regularised": regularised, "clip": clip, "second_augmentation": second_augmentation}
        if variant not in VARIANTS:
            raise UnknownName("variant", variant, VARIANTS)
        if regularised not in REGULARISED:
            raise UnknownName("regularised", regularised, REGULARISED)
        if variant == "authors":
            text = inspect.signature(Discriminative).parameters
            given |= {name: theirs for name, theirs in AUTHORS.items() if given[name] == text[name].default}
        compact_weight, noise_weight, momentum, regularised, clip, second_augmentation = given.values()
        self.regularised, self.clip, self.second_augmentation, self.variant = regularised, clip, second_augmentation, variant
        weights = {
            "compact_weight": compact_weight,
            "margin_weight": margin_weight,
            "regulariser_weight": regulariser_weight,
            "noise_weight": noise_weight,
        }
        for name, value in {"radius": radius, "distance": distance, "noise_std": noise_std, **weights}.items():
            require(value >= 0, name, "at least 0", value)
        require(0 <= momentum < 1, "momentum", "at least 0 and below 1", momentum)
        if centroids not in CENTROIDS:
            raise UnknownName("centroids", centroids, CENTROIDS)
        self.num_classes, self.feature_dim = num_classes, feature_dim
        self.radius, self.distance = radius, distance
        self.compact_weight, self.margin_weight, self.regulariser_weight, self.noise_weight = weights.values()
        self.noise_std, self.centroids, self.momentum, self.view = noise_std, centroids, momentum, view
        self.batch_norm = check_batch_norm(batch_norm)
        self.perturb = GaussianNoise(noise_std, clip) if view is None else build_view(view)
        if num_classes is not None and feature_dim is not None:
            self.prepare(num_classes, feature_dim)

    def prepare(self, num_classes: int, feature_dim: int) -> None:
        """Make the table of centroids, once; another size later is an error."""
        for name, size in (("num_classes", num_classes), ("feature_dim", feature_dim)):
            given = getattr(self, name)
            if given is not None and given != size:
                raise SurefootError(f"{name} must be the model's {size}, got {given}.")
            setattr(self, name, size)
        if not hasattr(self, "centroid_table"):
            self.register_buffer("centroid_table", torch.zeros(num_classes, feature_dim))
            self.register_buffer("seen", torch.zeros(num_classes, dtype=torch.bool))

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        head = head_of(model, images)
        self.prepare(head.out_features, head.in_features)
        if self.centroid_table.device != images.device:
            self.to(images.device)
        copied = images if self.second is None or not self.second_augmentation else self.second
        batches = [images, perturbed(self.perturb, copied, generator)] if self.noise_weight > 0 else [images]
        clean, *noisy = outputs_of(model, batches, self.batch_norm)
        labels = check_labels(labels, head.out_features, len(images))
        with full_precision(images):
            return self.terms(head, labels, clean, noisy)

    def terms(self, head: nn.Linear, labels: Labels, clean: Outputs, noisy: list[Outputs]) -> Terms:
        """The loss, from logits and features."""
        clean, *noisy = (Outputs(each.logits, in_full(each.features)) for each in (clean, *noisy))
        batch = class_means(clean.features, labels, head.out_features)
        moving = with_momentum(batch, self.centroid_table, self.seen, self.momentum)
        self.remember(batch, moving)
        near = batch.means if self.centroids == "batch" else moving
        far = moving if self.centroids == "momentum" else batch.means
        terms = {
            "cross_entropy": (1.0, F.cross_entropy(in_full(clean.logits), labels)),
            "compact": (self.compact_weight, compactness(clean.features, labels, near, batch, self.radius)),
            "margin": (self.margin_weight, boundary_margin(far, batch.present, head, self.distance)),
            "regulariser": (self.regulariser_weight, centroid_norm(moving if self.regularised == "momentum" else far)),
        }
        if noisy:
            terms["noisy"] = (self.noise_weight, compactness(noisy[0].features, labels, near, batch, self.radius))
        return weighted_sum(clean.logits, **terms)

    @torch.no_grad()
    def remember(self, batch: ClassMeans, moving: Tensor) -> None:
        """Keep the new centroids, in training only."""
        if self.training:
            self.centroid_table[batch.present] = moving.to(self.centroid_table.dtype)
            self.seen[batch.present] = True


def compactness(features: Features, labels: Labels, centroids: Tensor, batch: ClassMeans, radius: float) -> Tensor:
    """mean over classes of the class mean of max(0, ||m_c - q|| - radius)^2  (Eq. 8, and Eq. 12 for noisy features)."""
    indices = batch.index_of(labels)
    distance = torch.linalg.vector_norm(centroids[indices] - features, dim=1)
    excess = (distance - radius).clamp_min(0).square()
    return summed((excess / batch.counts[indices]).sum() / len(batch.present))


def boundary_margin(centroids: Tensor, classes: Tensor, head: nn.Linear, distance: float) -> Tensor:
    """mean over classes c of max over i != c of max(0, distance - s_ci), s_ci the signed distance of m_c to P_ci  (Eq. 9, 10).

    s_ci = (z_c(m_c) - z_i(m_c)) / ||W_c - W_i||: as Eq. 9, and with a gradient on the boundary too. The first of equals.
    Classes with the same weights, as in a head of zeros, have no boundary between them.
    """
    logits = F.linear(centroids, head.weight.to(centroids.dtype), None if head.bias is None else head.bias.to(centroids.dtype))
    gap = logits.gather(1, classes[:, None]) - logits
    own = F.one_hot(classes, head.out_features).bool()
    norms = row_distances(head.weight[classes], head.weight).to(gap.dtype)
    without = own | (norms < NO_BOUNDARY)
    signed = (gap / norms.masked_fill(without, 1.0)).masked_fill(without, torch.inf)
    return (distance - signed.min(1).values).clamp_min(0).mean()


def row_distances(a: Tensor, b: Tensor) -> Tensor:
    """||a_i - b_j|| from one product, in float64 (where there is one), so that no rows x rows x dimensions tensor is made."""
    wide = torch.float32 if a.device.type == "mps" else torch.float64
    a, b = a.to(wide), b.to(wide)
    square = a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.mT
    distances: Tensor = square.clamp_min(torch.finfo(torch.float32).tiny).sqrt()
    return distances


def centroid_norm(centroids: Tensor) -> Tensor:
    """mean over classes of ||m_c||  (Eq. 11)."""
    norms: Tensor = torch.linalg.vector_norm(centroids, dim=1)
    return norms.mean()
