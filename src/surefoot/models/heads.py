"""The last layer of a classifier, changed to the number of classes, the feature space and the bias that are asked for."""

from __future__ import annotations

from torch import nn

from .classifier import Classifier


def change_head(model: Classifier, num_classes: int | None, feature_dim: int | None, bias: bool) -> None:
    """Change the head in place; what fits already is kept.

    With `feature_dim`, a ReLU and a linear layer come before the head: the pooled vector, rectified, is mapped to the feature
    space, and the head reads that as it is (Discriminative noise, appendix H).
    """
    old = model.head
    classes = num_classes or old.out_features
    if feature_dim is not None:
        space = nn.Linear(old.in_features, feature_dim)
        head = nn.Linear(feature_dim, classes, bias)
        model.module.set_submodule(model.head_name, nn.Sequential(nn.ReLU(), space, head))
        model.head_name += ".2"
    elif classes != old.out_features:
        model.module.set_submodule(model.head_name, nn.Linear(old.in_features, classes, bias))
    elif not bias:
        old.register_parameter("bias", None)
