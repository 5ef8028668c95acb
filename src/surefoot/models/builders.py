"""From a name to a bare module: ours, timm's or torchvision's, as its authors made it."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.settings import TORCHVISION, cannot_fetch, tagged_name, timm_config, torchvision_weights
from ..errors import SurefootError
from ..registry import Registry
from .classifier import Classifier

# A small residual network for 32 px images that trains about 1,000 images a second on two cores, and a smaller one still.


class Block(nn.Module):
    """Two 3 x 3 convolutions around a shortcut (He et al. 2016)."""

    def __init__(self, width_in: int, width_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width_out)
        self.conv2 = nn.Conv2d(width_out, width_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width_in != width_out:
            conv = nn.Conv2d(width_in, width_out, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(width_out))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class SmallResNet(nn.Module):
    """Four stages of one block; channels last, which the CPU's convolutions prefer."""

    widths: tuple[int, ...] = (16, 32, 64, 128)
    stride = 1  # of the first convolution

    def __init__(self, num_classes: int, channels: int = 3) -> None:
        super().__init__()
        widths = self.widths
        self.conv = nn.Conv2d(channels, widths[0], 3, self.stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        pairs = zip((widths[0], *widths), widths, strict=False)
        self.blocks = nn.Sequential(*(Block(a, b, 1 if k == 0 else 2) for k, (a, b) in enumerate(pairs)))
        self.fc = nn.Linear(widths[-1], num_classes)
        self.to(memory_format=torch.channels_last)

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(images.contiguous(memory_format=torch.channels_last))))
        logits: Tensor = self.fc(self.blocks(x).mean((2, 3)))
        return logits


class TinyResNet(SmallResNet):
    """Three narrow stages at half the resolution: for tutorials and tests, where a second counts."""

    widths = (8, 16, 32)
    stride = 2


# The last layer of a classifier, changed to the number of classes, the feature space and the bias that are requested.


def change_head(
    model: Classifier, num_classes: int | None, feature_dim: int | None, bias: bool, rectified: bool = True
) -> None:
    """Change the head in place; what fits already is kept.

    With `feature_dim`, a linear layer comes before the head, which maps the pooled vector to the feature space; the head reads
    that as it is. Before it comes a ReLU (Discriminative noise, appendix H) unless `rectified` is False (representation-space,
    appendix H): it would silence half of what a net that ends in a layer norm gives.
    """
    old = model.head
    classes = num_classes or old.out_features
    if feature_dim is not None:
        space = nn.Linear(old.in_features, feature_dim)
        head = nn.Linear(feature_dim, classes, bias)
        layers = [nn.ReLU(), space, head] if rectified else [space, head]
        model.module.set_submodule(model.head_name, nn.Sequential(*layers))
        model.head_name += f".{len(layers) - 1}"
    elif classes != old.out_features:
        model.module.set_submodule(model.head_name, nn.Linear(old.in_features, classes, bias))
    elif not bias:
        old.register_parameter("bias", None)


MODELS = Registry(
    "model",
    [
        ("small-resnet", "surefoot.models.builders:SmallResNet", "Small residual net for 32 px, fast on a CPU"),
        ("tiny-resnet", "surefoot.models.builders:TinyResNet", "A tenth of its cost, for tutorials and tests"),
    ],
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
    if pretrained and not any(config.get(key) for key in ("url", "file", "hf_hub_id", "state_dict")):
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
