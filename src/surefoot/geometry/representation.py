"""All that can be said of a representation space from features, labels and the head, with one product by the weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..types import Features, Labels, check_labels
from .batching import slices
from .biases import BiasDependence, tallied
from .centre_comparison import KINDS, CentreCorrelations, as_cosine, cosines, feature_norms
from .centres import class_centres, class_sums
from .collapse import NeuralCollapse, collapse_of
from .cones import ConeIndex, as_cone_index, last_crossing
from .correlation import pearson
from .feature_distribution import FeatureStatistics, summarised
from .heads import check_features, weights_of


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
    head: nn.Linear, features: Features, labels: Labels, batch_size: int = 4096, progress: bool = False
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
    found = torch.tensor([pearson(confidence, angle) for angle in angles], dtype=torch.float64)
    return RepresentationStatistics(
        float(right.double().mean()),
        confidence,
        summarised(norms / weight.shape[1] ** 0.5, angles[-1]),
        CentreCorrelations(KINDS, found),
        as_cone_index(100 * (1 - scale[right]), 100),
        tallied(bias, classes, without, labels),
        collapse_of(weight, features, labels, added(sums), added(counts), batch_size, progress),
    )


def added(of_right_and_wrong: Tensor) -> Tensor:
    """The first half of the rows and the second, added: what is right and what is wrong of each class."""
    first, second = of_right_and_wrong.chunk(2)
    return first + second
