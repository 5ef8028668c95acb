"""All that can be said of a representation space from features, labels and the head, with one product by the weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..types import Features, Labels, check_labels
from .batching import slices
from .biases import BiasDependence, tallied
from .centre_comparison import KINDS, CentreCorrelations, cosines
from .centres import class_centres, class_means
from .collapse import NeuralCollapse, neural_collapse
from .cones import ConeIndex, as_cone_index, last_crossing
from .correlation import pearson
from .feature_distribution import FeatureStatistics, root_mean_square, summarised
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
    scale = torch.empty_like(confidence)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "features"):
            products = features[part].to(weight.dtype) @ weight.T
            without[part] = products.argmax(1)
            logits = products + bias
            best, classes[part] = logits.max(1)
            confidence[part] = (best - logits.logsumexp(1)).exp()
            scale[part] = last_crossing(products, bias, classes[part])
    right = classes == labels
    points = (class_means(features, labels, classes, len(weight), batch_size), weight, class_centres(head))
    angles = [cosines(features, centres, classes, batch_size) for centres in points]
    found = torch.tensor([pearson(confidence, angle) for angle in angles], dtype=torch.float64)
    return RepresentationStatistics(
        float(right.double().mean()),
        confidence,
        summarised(root_mean_square(features, batch_size), angles[-1]),
        CentreCorrelations(KINDS, found),
        as_cone_index(100 * (1 - scale[right]), 100),
        tallied(bias, classes, without, labels),
        neural_collapse(head, features, labels, batch_size, progress),
    )
