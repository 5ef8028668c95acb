"""Guess what a checkpoint is of, for the one line that says that it is not of this model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from .building import outline_of

Shapes = Mapping[str, tuple[int, ...]]

# common models by a part of a name that all of their tensors' lists have, so that only these are built
CANDIDATES = {
    "layer1.": (
        *(
            "resnet18",
            "resnet34",
            "resnet26",
            "resnet50",
            "resnet101",
            "resnet152",
            "resnet50d",
            "resnet18d",
            "resnext50_32x4d",
        ),
        *("wide_resnet50_2", "seresnet50", "resnet10t"),
    ),
    "conv_stem.": (
        *("efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "tf_efficientnet_lite0"),
        *("efficientnetv2_rw_s", "mobilenetv2_100", "mobilenetv3_small_100", "mobilenetv3_large_100", "mnasnet_100"),
    ),
    "patch_embed.": (
        *("vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224", "vit_base_patch32_224"),
        *("vit_large_patch16_224", "swin_tiny_patch4_window7_224", "swin_small_patch4_window7_224"),
        "swin_base_patch4_window7_224",
    ),
    "stages.": ("convnext_tiny", "convnext_small", "convnext_base", "convnextv2_tiny"),
    "s1.": ("regnety_004", "regnety_016"),
    "features.": (
        *("densenet121", "densenet169", "vgg16", "vgg16_bn", "torchvision/mobilenet_v2", "torchvision/mobilenet_v3_small"),
        *("torchvision/efficientnet_b0", "torchvision/convnext_tiny", "torchvision/swin_t", "torchvision/alexnet"),
    ),
    "Mixed_5b.": ("inception_v3",),
    "encoder.layers.": ("torchvision/vit_b_16", "torchvision/vit_b_32"),
}
NEAR = 0.5  # the part of all tensors that must agree


def nearest_architecture(readings: Sequence[Shapes]) -> str | None:
    """The common model that shares the most names and shapes with one of these readings, in words; None if none is near."""
    keys = {key for shapes in readings for key in shapes}
    names = [name for part, group in CANDIDATES.items() if any(key.startswith(part) for key in keys) for name in group]
    scores = {name: max(agreement(shapes, name) for shapes in readings) for name in names}
    best = max(scores, key=lambda name: scores[name], default=None)
    if best is None or scores[best] < NEAR:
        return None
    return f"'{best}' with its ImageNet stem ({scores[best]:.0%} of the tensors agree)"


def agreement(shapes: Shapes, name: str) -> float:
    """The tensors that agree with those of a model, as a part of all that either has."""
    ours, theirs = set(shapes.items()), shapes_of(name)
    return len(ours & theirs) / len(ours | theirs)


@cache
def shapes_of(name: str) -> frozenset[tuple[str, tuple[int, ...]]]:
    """The names and shapes of a model's tensors."""
    return frozenset((key, tuple(value.shape)) for key, value in outline_of(name).state_dict().items())
