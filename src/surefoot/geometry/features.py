"""Penultimate features: their size and direction, how attacks move them, and all statistics of a representation space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..attacks._pgd import fgsm
from ..attacks.gradients import input_gradient, untouched
from ..attacks.norms import Ball
from ..errors import require
from ..models.last_layer import head_of, observed
from ..types import Features, Images, Labels, Outputs, check_images, check_labels
from .centres import KINDS, CentreCorrelations, NeuralCollapse, class_centres, class_sums, collapse_of
from .cones import BiasDependence, ConeIndex, as_cone_index, bias_dependence_of, last_crossing
from .evaluation import losses, slices
from .heads import as_cosine, check_features, cosines, feature_norms, mean_and_deviation, pearson, root_mean_square, weights_of

Attack = Callable[..., Images]  # of model, images, labels; and indices where it draws


def observed_features(model: nn.Module, images: Images, batch_size: int = 256, progress: bool = False) -> Outputs:
    """What enters the model's last linear layer and what leaves it, in evaluation mode."""
    require(len(images) > 0, "images", "at least one", len(images))
    head = head_of(model, images)
    logits, features = [], []
    with untouched(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "features"):
            outputs = observed(model, head, images[part])
            logits.append(outputs.logits)
            features.append(outputs.features)
    return Outputs(torch.cat(logits), torch.cat(features))


@dataclass(frozen=True)
class FeatureStatistics:
    """RMS of each feature and its cosine to the class centre, with mean and deviation (representation-space Tab. 2).

    The deviation is that of the images at hand (divided by their number). A class without a centre gives NaN, left out of both.
    """

    rms: Tensor
    cosine: Tensor
    rms_mean: float
    rms_std: float
    cosine_mean: float
    cosine_std: float


@dataclass(frozen=True)
class SuccessByBin:
    """A histogram of a value with the attack's success in each bin (representation-space Fig. 3, middle row).

    `values` is the success rate among the images of the bin that were right before; NaN where there is none.
    """

    edges: Tensor
    counts: Tensor
    values: Tensor


def feature_statistics(features: Features, centres: Tensor, labels: Labels, batch_size: int = 1024) -> FeatureStatistics:
    """RMS of each feature and its cosine to the centre of its class (representation-space 4.1).

    `labels` are the classes whose centre counts: the papers' correlations take the predicted ones.
    """
    check_features(features, centres.shape[1])
    labels = check_labels(labels, len(centres), len(features))
    return feature_statistics_of(root_mean_square(features, batch_size), cosines(features, centres, labels, batch_size))


def feature_statistics_of(rms: Tensor, cosine: Tensor) -> FeatureStatistics:
    """With the means and deviations."""
    return FeatureStatistics(rms, cosine, *mean_and_deviation(rms), *mean_and_deviation(cosine))


def success_by_bin(values: Tensor, broken: Tensor, correct: Tensor, bins: int = 20) -> SuccessByBin:
    """Attack success in equal bins of a value such as the cosine to the centre, counted among the images right before.

    `broken` says which images the attack turned from right to wrong (`AttackResult.broken`), `correct` which were right before.
    """
    require(bins >= 1, "bins", "at least 1", bins)
    require(values.ndim == 1 and len(values) > 0, "values", "one for each of some images", tuple(values.shape))
    for name, mask in (("broken", broken), ("correct", correct)):
        require(mask.shape == values.shape and mask.dtype == torch.bool, name, "True or False for each image", mask.dtype)
    require(not bool((broken & ~correct).any()), "broken", "only images that were right before", int((broken & ~correct).sum()))
    known = values.isfinite()
    require(bool(known.any()), "values", "finite for at least one image", "none")
    values, broken, correct = values[known].double(), broken[known], correct[known]
    low, high = (float(v) for v in values.aminmax())
    edges = torch.linspace(low, high, bins + 1, dtype=torch.float64, device=values.device)
    bin_of = torch.bucketize(values, edges[1:-1].contiguous(), right=True)

    def count(mask: Tensor) -> Tensor:
        return torch.bincount(bin_of[mask], minlength=bins)

    return SuccessByBin(edges, torch.bincount(bin_of, minlength=bins), count(broken) / count(correct))


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
    model: nn.Module,
    images: Images,
    labels: Labels,
    attack: Attack = fgsm,
    batch_size: int = 256,
    progress: bool = False,
    *,
    indices: Tensor | None = None,
) -> FeatureDisplacement:
    """RMS of features and of their change under `attack`, FGSM 8/255 unless another is given.

    An attack that draws by image takes `indices`, and is given those of its images where they are given here.
    """
    require(len(images) > 0, "images", "at least one", len(images))
    clean, moved = [], []
    for part in slices(len(images), batch_size, progress, "attack"):
        before = observed_features(model, images[part], batch_size).features
        known = {} if indices is None else {"indices": indices[part]}
        attacked = attack(model, images[part], labels[part], **known)
        after = observed_features(model, attacked, batch_size).features
        clean.append(root_mean_square(before))
        moved.append(root_mean_square(after - before))
    sizes, changes = torch.cat(clean), torch.cat(moved)
    means = mean_and_deviation(changes)[0], mean_and_deviation(sizes)[0]
    return FeatureDisplacement(changes, sizes, *means, pearson(sizes, changes))


@dataclass(frozen=True)
class AttackPath:
    """Where the features are before the attack and after each of its steps.

    `features` is (steps + 1) x images x dimensions, `predicted` (steps + 1) x images.
    """

    features: Tensor
    predicted: Tensor
    labels: Labels


def attack_path(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    steps: int = 7,
    step_size: float | None = 2 / 255,
    batch_size: int = 256,
    progress: bool = False,
) -> AttackPath:
    """The path of PGD (L-inf) from the clean images; with `steps=1, step_size=eps` it is FGSM's.

    Without a random start, so that the path begins at the clean feature as in Fig. 13. `step_size=None` is 2.5 eps / steps.
    """
    check_images(images)
    require(steps >= 1, "steps", "at least 1", steps)
    require(len(images) > 0, "images", "at least one", len(images))
    ball, size = Ball("linf", eps), 2.5 * eps / steps if step_size is None else step_size
    head = head_of(model, images)
    labels = check_labels(labels, head.out_features, len(images))
    features, predicted = [], []
    with untouched(model):
        for part in slices(len(images), batch_size, progress, "attack"):
            points = images[part].detach()
            anchors = ball.anchors(points)
            seen = []
            for step in range(steps + 1):
                with torch.no_grad():
                    seen.append(observed(model, head, points))
                if step < steps:
                    gradient, _, _ = input_gradient(model, points, losses(labels[part]))
                    points = ball.step(points, gradient, size, anchors)
            features.append(torch.stack([outputs.features for outputs in seen]))
            predicted.append(torch.stack([outputs.logits.argmax(1) for outputs in seen]))
    return AttackPath(torch.cat(features, 1), torch.cat(predicted, 1), labels)


@dataclass(frozen=True)
class RepresentationStatistics:
    """What the single functions give, for the same features.

    `statistics` are to the minimum-loss point of the predicted class, `cones` of the features that are classified correctly.
    """

    accuracy: float
    confidence: Tensor
    statistics: FeatureStatistics
    correlations: CentreCorrelations
    cones: ConeIndex
    bias: BiasDependence
    collapse: NeuralCollapse


def representation_statistics(
    head: nn.Linear, features: Features, labels: Labels, batch_size: int = 1024, progress: bool = False
) -> RepresentationStatistics:
    """Tab. 1, 2, 5 and 6 of representation-space and the neural-collapse measures; memory for a batch of logits at a time."""
    weight, bias = weights_of(head)
    check_features(features, weight.shape[1])
    labels = check_labels(labels, len(weight), len(features))
    classes, without = torch.empty_like(labels), torch.empty_like(labels)
    confidence = torch.empty(len(features), dtype=weight.dtype, device=features.device)
    scale, along = torch.empty_like(confidence), torch.empty_like(confidence)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "features"):
            products = features[part].to(weight.dtype) @ weight.T
            without[part] = products.argmax(1)
            logits = products + bias
            best, classes[part] = logits.max(1)
            confidence[part] = (best - logits.logsumexp(1)).exp()
            along[part] = products.gather(1, classes[part, None])[:, 0]
            scale[part] = last_crossing(products, bias, classes[part])
    right = classes == labels
    sums, counts = class_sums(features, torch.where(right, labels, labels + len(weight)), 2 * len(weight), batch_size)
    means = (sums[: len(weight)] / counts[: len(weight), None]).to(weight.dtype)
    norms = feature_norms(features, batch_size)
    tiny = torch.finfo(norms.dtype).tiny
    to_weight = as_cosine(along / torch.linalg.vector_norm(weight, dim=1).clamp_min(tiny)[classes], norms)
    angles = [cosines(features, means, classes, batch_size), to_weight]
    angles.append(cosines(features, class_centres(head), classes, batch_size))
    correlations = torch.tensor([pearson(confidence, angle) for angle in angles], dtype=torch.float64)
    return RepresentationStatistics(
        float(right.double().mean()),
        confidence,
        feature_statistics_of(norms / weight.shape[1] ** 0.5, angles[-1]),
        CentreCorrelations(KINDS, correlations),
        as_cone_index(100 * (1 - scale[right]), 100),
        bias_dependence_of(bias, classes, without, labels),
        collapse_of(weight, features, labels, added(sums), added(counts), batch_size, progress),
    )


def added(of_right_and_wrong: Tensor) -> Tensor:
    """The first half of the rows and the second, added: what is right and what is wrong of each class."""
    first, second = of_right_and_wrong.chunk(2)
    return first + second
