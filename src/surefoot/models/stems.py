"""Small images need a small stem: ImageNet's first layers would leave of 32 x 32 pixels a single one.

A family is known by its structure, so that timm's and torchvision's nets of one family are treated alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

SMALL = 64  # the shorter side, in pixels, up to which a stem is changed
TINY = 32
GRID = 8  # the number of patches along a side that a vision transformer should have
WINDOW = 4


def fitting_arguments(outline: nn.Module, size: tuple[int, int]) -> dict[str, Any]:
    """Timm's arguments that fit a vision transformer or a Swin to small images; none for other families."""
    projection = getattr(getattr(outline, "patch_embed", None), "proj", None)
    if not isinstance(projection, nn.Conv2d) or projection.kernel_size != projection.stride:
        return {}
    if hasattr(outline, "layers") and any(hasattr(layer, "window_size") for layer in outline.modules()):
        return {"img_size": size, "patch_size": patch_stride(size), "window_size": WINDOW}
    if hasattr(outline, "blocks"):
        patch = tuple(patch_of(side) for side in size)
        return {"img_size": size, "patch_size": patch if patch[0] != patch[1] else patch[0]}
    return {}


def patch_of(side: int) -> int:
    """The divisor of `side` whose number of patches has the ratio nearest to one with `GRID`."""
    divisors = [d for d in range(1, side + 1) if side % d == 0]
    return min(divisors, key=lambda d: abs(math.log(side / d / GRID)))


def patch_stride(size: tuple[int, int]) -> int:
    """The stride that replaces the 4 of a patch stem: 8 in all up to 32 px, 16 up to 64 px."""
    return 1 if min(size) <= TINY else 2


def shrink_stem(module: nn.Module, size: tuple[int, int]) -> bool:
    """Change the stem of a net in place to one for small images; False if its family is not known."""
    return any(shrink(module, size) for shrink in FAMILIES)


def shrink_resnet(module: nn.Module, size: tuple[int, int]) -> bool:
    """ResNets of all kinds: a 3 x 3 convolution without stride, and no pooling (He et al. 2016, section 4.2)."""
    if not all(hasattr(module, name) for name in ("conv1", "maxpool", "layer1", "layer4")):
        return False
    drop_strides(module.get_submodule("conv1").modules())
    module.maxpool = nn.Identity()
    return True


def shrink_densenet(module: nn.Module, size: tuple[int, int]) -> bool:
    """DenseNets: the same as ResNets (Huang et al. 2017, section 3)."""
    features = getattr(module, "features", None)
    if not hasattr(features, "conv0") or not hasattr(features, "pool0") or not isinstance(features, nn.Sequential):
        return False
    drop_strides(layer for name, layer in features.named_children() if name.startswith("conv"))
    features.pool0 = nn.Identity()
    return True


def shrink_inception(module: nn.Module, size: tuple[int, int]) -> bool:
    """Inception-v3: padded 3 x 3 convolutions without stride, no pooling up to 32 px and one above."""
    if not hasattr(module, "Conv2d_1a_3x3") or not hasattr(module, "Mixed_5b"):
        return False
    for name in ("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "Conv2d_4a_3x3"):
        for layer in convolutions(getattr(module, name)):
            layer.stride, layer.padding = (1, 1), (1, 1)
    first, second = ("Pool1", "Pool2") if hasattr(module, "Pool1") else ("maxpool1", "maxpool2")
    setattr(module, first, nn.Identity())
    if min(size) <= TINY:
        setattr(module, second, nn.Identity())
    return True


def shrink_patches(module: nn.Module, size: tuple[int, int]) -> bool:
    """ConvNeXt, and torchvision's Swin, whose attention takes any size: smaller patches.

    Timm's own `patch_size=2` makes ConvNeXt halve once more before its first stage, so its stem is changed here.
    """
    features = getattr(module, "features", None)
    timm_stem = getattr(module, "stem", None) if hasattr(module, "stages") else None
    stem = features[0] if isinstance(features, nn.Sequential) else timm_stem
    patches = stem[0] if isinstance(stem, nn.Sequential) else None
    if not isinstance(patches, nn.Conv2d) or patches.kernel_size != (4, 4) or patches.stride != (4, 4):
        return False
    stride = patch_stride(size)
    change_kernel(patches, stride, stride, 0)
    return True


def shrink_mobile(module: nn.Module, size: tuple[int, int]) -> bool:
    """EfficientNet, MobileNet and RegNet: the first two strides become one."""
    features = getattr(module, "features", None)
    stem: Any
    stages: Any
    if isinstance(getattr(module, "conv_stem", None), nn.Module) and hasattr(module, "blocks"):
        stem, stages = module.conv_stem, module.blocks
    elif hasattr(module, "stem") and hasattr(module, "s1"):
        stem, stages = module.stem, [module.s1]
    elif hasattr(module, "stem") and hasattr(module, "trunk_output"):
        stem, stages = module.stem, module.trunk_output
    elif isinstance(features, nn.Sequential) and isinstance(features[0], nn.Sequential):
        stem, stages = features[0], list(features)[1:]
    else:
        return False
    first = convolutions(stem)
    blocks = [block for stage in stages for block in (stage if isinstance(stage, nn.Sequential) else [stage])]
    second = next((layers for layers in map(strided, blocks) if layers), [])
    if len(strided(stem)) != 1 or not second:
        return False
    for layer in [*first, *second]:
        layer.stride = (1, 1)
    return True


FAMILIES: tuple[Callable[[nn.Module, tuple[int, int]], bool], ...] = (
    shrink_resnet,
    shrink_densenet,
    shrink_inception,
    shrink_patches,
    shrink_mobile,
)


def convolutions(module: nn.Module) -> list[nn.Conv2d]:
    """The convolutions in a module, in the order in which they were made."""
    return [layer for layer in module.modules() if isinstance(layer, nn.Conv2d)]


def strided(module: nn.Module) -> list[nn.Conv2d]:
    """The convolutions in a module that make the image smaller."""
    return [layer for layer in convolutions(module) if max(layer.stride) > 1]


def drop_strides(layers: Iterable[nn.Module]) -> None:
    """No stride, and no kernel larger than 3 x 3."""
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            if max(layer.kernel_size) > 3:
                change_kernel(layer, 3, 1, 1)
            layer.stride = (1, 1)


def change_kernel(layer: nn.Conv2d, kernel: int, stride: int, padding: int) -> None:
    """Give a convolution another kernel, drawn anew with the variance that He et al. 2015 (eq. 14) ask for."""
    weight = layer.weight.new_empty(*layer.weight.shape[:2], kernel, kernel)
    layer.weight = nn.Parameter(nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu"))
    layer.kernel_size, layer.stride, layer.padding = (kernel, kernel), (stride, stride), (padding, padding)
