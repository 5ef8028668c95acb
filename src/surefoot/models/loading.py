"""One function from a name to a classifier: ours, or any of timm's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..data.dataset import Dataset
from ..errors import SurefootError, UnknownName
from ..registry import Registry
from ..seeds import global_seed
from .checkpoints import load_weights, read_weights
from .classifier import Classifier

MODELS = Registry(
    "model",
    [("small-resnet", "surefoot.models.small_resnet:SmallResNet", "Small residual net for 32 px, fast on a CPU")],
)


def load_model(
    name: str,
    *,
    data: Dataset | None = None,
    num_classes: int | None = None,
    image_size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    pretrained: bool = False,
    checkpoint: str | None = None,
    seed: int | None = None,
) -> Classifier:
    """Build a classifier; sizes that are not given come from the data, and else from the model's own settings.

    Without a seed, one is drawn from torch's global generator and recorded in `source`.
    """
    seed = int(torch.randint(2**31, ())) if seed is None else seed
    source = {"name": name, "num_classes": num_classes, "image_size": image_size, "channels": channels}
    source |= {"pretrained": pretrained, "checkpoint": checkpoint, "seed": seed}
    if data is not None:
        num_classes = num_classes or data.num_classes
        image_size = image_size or data.image_size
        channels = channels or data.channels
    channels = channels or 3
    with global_seed(seed, "init"):
        if name in MODELS:
            if num_classes is None:
                raise SurefootError(f"num_classes must be given for '{name}' when there is no data.")
            if pretrained:
                raise SurefootError(f"'{name}' has no pretrained weights.")
            module, mean, std, size = small(name, num_classes, channels)
        else:
            module, mean, std, size = from_timm(name, num_classes, channels, pretrained)
    model = Classifier(module, mean, std, image_size or size, channels, source)
    if checkpoint is not None:
        weights = read_weights(Path(checkpoint))
        own = set(model.state_dict())
        load_weights(model if set(weights) & own else module, weights, f"Checkpoint '{checkpoint}'")
    return model


def small(name: str, num_classes: int, channels: int) -> tuple[nn.Module, Any, Any, Any]:
    """One of our own nets, with its normalisation and size."""
    from .small_resnet import MEAN, STD

    return MODELS.load(name)(num_classes, channels), MEAN, STD, (32, 32)


def from_timm(name: str, num_classes: int | None, channels: int, pretrained: bool) -> tuple[nn.Module, Any, Any, Any]:
    """One of timm's models, with its normalisation and size."""
    import timm

    if not timm.is_model(name):
        raise UnknownName("model", name, MODELS.names + timm.list_models())
    sizes = {} if num_classes is None else {"num_classes": num_classes}
    module = timm.create_model(name, pretrained=pretrained, in_chans=channels, **sizes)
    config = timm.data.resolve_model_data_config(module)
    mean, std = list(config["mean"]), list(config["std"])
    if len(mean) != channels:
        mean, std = sum(mean) / len(mean), sum(std) / len(std)
    return module, mean, std, tuple(config["input_size"][1:])
