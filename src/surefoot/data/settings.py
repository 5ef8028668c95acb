"""What a model expects of its images, known from its name without building it.

It lives with the data, because resizing, cropping and the choice of interpolation belong to the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import SurefootError, UnknownName

TORCHVISION, HUB = "torchvision/", "hf-hub:"


@dataclass(frozen=True)
class ModelSettings:
    """Image size (height, width), the part of the resized image that is kept, and the normalisation.

    `crop_mode` is "squash" where the sides are resized each for itself.
    """

    image_size: tuple[int, int]
    crop_pct: float
    interpolation: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop_mode: str = "center"


OWN = {"small-resnet": ModelSettings((32, 32), 1.0, "bilinear", (0.5,) * 3, (0.25,) * 3)}


def settings_of(name: str, pretrained: bool | str = False) -> ModelSettings:
    """The settings that the model `name` was made for; `pretrained` may name the weights, since they differ in them."""
    if name in OWN:
        refuse_tag(name, pretrained)
        return OWN[name]
    if name.startswith(TORCHVISION):
        return from_torchvision(name, pretrained)
    from timm.data import resolve_data_config

    config = resolve_data_config(pretrained_cfg=timm_config(name, pretrained))
    height, width = config["input_size"][1:]
    mean, std = (tuple(float(v) for v in config[key]) for key in ("mean", "std"))
    size, mode = (height, width), config["crop_mode"]
    return ModelSettings(size, float(config["crop_pct"]), config["interpolation"], mean, std, mode)


def timm_config(name: str, pretrained: bool | str = False) -> dict[str, Any]:
    """Timm's description of a model and of its default or named weights."""
    import timm
    from timm.models import load_model_config_from_hf

    if name.startswith(HUB):
        refuse_tag(name, pretrained)
        try:
            config: dict[str, Any] = load_model_config_from_hf(name.removeprefix(HUB))[0]
        except (OSError, ValueError) as error:
            raise cannot_fetch(name, error) from error
        return config
    architecture = split_name(name)[0]
    if ":" in name or not timm.is_model(architecture):
        names = model_names()
        raise UnknownName("model", name, [TORCHVISION + name] if TORCHVISION + name in names else names)
    return dict(timm.get_pretrained_cfg(tagged_name(name, pretrained)).to_dict())


def weights_tag(name: str, pretrained: bool | str) -> bool | str:
    """The tag of the weights that `pretrained` means for this model, so that a recipe says which they were.

    True is the library's default of today. What has no tags (ours, a model on the hub) keeps True.
    """
    if not pretrained or name in OWN or name.startswith(HUB):
        return pretrained
    if name.startswith(TORCHVISION):
        return str(torchvision_weights(name, pretrained).name)
    return str(timm_config(name, pretrained).get("tag") or "") or pretrained


def tagged_name(name: str, pretrained: bool | str = False) -> str:
    """The timm name with its weights' tag, from the name or from `pretrained`, which may repeat the name before the tag."""
    from timm.models import get_arch_pretrained_cfgs

    architecture, tag = split_name(name)
    if isinstance(pretrained, str):
        pretrained = pretrained.removeprefix(f"{architecture}.")
        if tag and tag != pretrained:
            raise SurefootError(f"pretrained must be '{tag}' as in the name '{name}', got '{pretrained}'.")
        tag = pretrained
    if not tag:
        return architecture
    tags = [split_name(known)[1] for known in get_arch_pretrained_cfgs(architecture)]
    if tag not in tags:
        raise UnknownName(f"weights of {architecture}", tag, [known for known in tags if known])
    return f"{architecture}.{tag}"


def split_name(name: str) -> tuple[str, str]:
    """A timm name as (architecture, tag of the weights)."""
    architecture, _, tag = name.partition(".")
    return architecture, tag


def torchvision_weights(name: str, pretrained: bool | str = False) -> Any:
    """The member of torchvision's enum for the default or the named weights of `torchvision/NAME`."""
    import torchvision

    bare = name.removeprefix(TORCHVISION)
    if bare not in torchvision.models.list_models(module=torchvision.models):
        raise UnknownName("model", name, model_names())
    known = torchvision.models.get_model_weights(bare)
    if not isinstance(pretrained, str):
        return known.DEFAULT
    if pretrained not in known.__members__:
        raise UnknownName(f"weights of {name}", pretrained, known.__members__)
    return known[pretrained]


def from_torchvision(name: str, pretrained: bool | str) -> ModelSettings:
    """The settings in the transforms of torchvision's weights."""
    crop = torchvision_weights(name, pretrained).transforms()
    kept, resized = crop.crop_size[0], crop.resize_size[0]
    return ModelSettings((kept, kept), kept / resized, crop.interpolation.value, tuple(crop.mean), tuple(crop.std))


def model_names() -> list[str]:
    """Every name that can be given: ours, timm's, torchvision's."""
    import timm
    import torchvision

    others = torchvision.models.list_models(module=torchvision.models)
    return [*OWN, *timm.list_models(), *(TORCHVISION + other for other in others)]


def refuse_tag(name: str, pretrained: bool | str) -> None:
    """A model without a choice of weights takes no tag."""
    if isinstance(pretrained, str):
        raise SurefootError(f"pretrained must be true or false for '{name}', got '{pretrained}'.")


def cannot_fetch(name: str, error: Exception, pretrained: bool | str = False) -> SurefootError:
    """The one line for a download that failed."""
    reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
    weights = f" with its weights '{pretrained}'" if isinstance(pretrained, str) else " with its weights" if pretrained else ""
    return SurefootError(f"'{name}'{weights} could not be fetched: {reason}.")
