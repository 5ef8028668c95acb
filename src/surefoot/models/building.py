"""From a name to a bare module: ours, timm's or torchvision's, as its authors made it."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from ..data.settings import TORCHVISION, cannot_fetch, tagged_name, timm_config, torchvision_weights
from ..errors import SurefootError
from ..registry import Registry

MODELS = Registry(
    "model",
    [("small-resnet", "surefoot.models.small_resnet:SmallResNet", "Small residual net for 32 px, fast on a CPU")],
)
TWO_HEADED = ("inception_v3", "googlenet")  # torchvision's give a second output in training unless told not to


def build_module(
    name: str, num_classes: int | None, channels: int, pretrained: bool | str = False, **arguments: Any
) -> nn.Module:
    """The module called `name`; `arguments` are timm's own, such as `img_size`.

    A pretrained module of torchvision keeps its own number of classes.
    """
    if name in MODELS:
        if num_classes is None:
            raise SurefootError(f"num_classes must be given for '{name}' when there is no data.")
        if pretrained:
            raise SurefootError(f"'{name}' has no pretrained weights.")
        module: nn.Module = MODELS.load(name)(num_classes, channels)
        return module
    build = build_torchvision if name.startswith(TORCHVISION) else build_timm
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries about their own insides
        try:
            return build(name, num_classes, channels, pretrained, **arguments)
        except OSError as error:
            raise cannot_fetch(name, error, pretrained) from error


def build_timm(name: str, num_classes: int | None, channels: int, pretrained: bool | str, **arguments: Any) -> nn.Module:
    """One of timm's models, or one in timm's format on the Hugging Face hub."""
    import timm

    config = timm_config(name, pretrained)
    if pretrained and not any(config.get(place) for place in ("url", "file", "hf_hub_id", "state_dict")):
        raise SurefootError(f"'{name}' has no pretrained weights.")
    if ":" not in name:
        name = tagged_name(name, pretrained)
    if num_classes is not None:
        arguments["num_classes"] = num_classes
    module: nn.Module = timm.create_model(name, pretrained=bool(pretrained), in_chans=channels, **arguments)
    return module


def build_torchvision(name: str, num_classes: int | None, channels: int, pretrained: bool | str, **arguments: Any) -> nn.Module:
    """One of torchvision's models, with its first convolution made anew for other than three channels."""
    import torchvision
    from timm.models import adapt_input_conv

    bare = name.removeprefix(TORCHVISION)
    weights = torchvision_weights(name, pretrained) if pretrained else None
    if bare in TWO_HEADED:
        arguments["aux_logits"] = False
    if weights is None:
        arguments |= {"init_weights": True} if bare in TWO_HEADED else {}
        arguments |= {} if num_classes is None else {"num_classes": num_classes}
    module: Any = torchvision.models.get_model(bare, weights=weights, **arguments)
    first = next(layer for layer in module.modules() if isinstance(layer, nn.Conv2d))
    if first.in_channels != channels:
        if weights is None:
            shape = (first.out_channels, channels, *first.kernel_size)
            weight = torch.randn(shape) * first.weight.detach().std()
        else:
            weight = adapt_input_conv(channels, first.weight.detach())
        first.in_channels, first.weight = channels, nn.Parameter(weight)
        if hasattr(module, "transform_input"):
            module.transform_input = False  # it is written for three channels
    built: nn.Module = module
    return built


def outline_of(name: str) -> nn.Module:
    """The module without its weights, to look at its structure."""
    with torch.device("meta"):
        return build_module(name, None, 3)


def has_fixed_size(name: str) -> bool:
    """Whether timm must be told the image size when it builds the model."""
    if name in MODELS or name.startswith(TORCHVISION):
        return False
    return bool(timm_config(name).get("fixed_input_size"))
