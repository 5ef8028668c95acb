"""What a model expects of its images, known from its name without building it.

It lives with the data, because resizing, cropping and the choice of interpolation belong to the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import SurefootError, UnknownName
from ..files import read_json

TORCHVISION, HUB, FOLDER, TRANSFORMERS = "torchvision/", "hf-hub:", "local-dir:", "transformers/"
MODEL_FILES = (".onnx", ".pt", ".pth", ".pt2", ".ts", ".torchscript", ".safetensors")  # suffixes of what is read as a model


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


OWN = dict.fromkeys(("small-resnet", "tiny-resnet"), ModelSettings((32, 32), 1.0, "bilinear", (0.5,) * 3, (0.25,) * 3))


def settings_of(name: str, pretrained: bool | str = False) -> ModelSettings:
    """The settings that the model `name` was made for; `pretrained` may name the weights, since they differ in them."""
    if name in OWN:
        refuse_tag(name, pretrained)
        return OWN[name]
    if name.startswith(TORCHVISION):
        return from_torchvision(name, pretrained)
    if is_transformers(name):
        return from_image_processor(name)
    name = folder_name(name)
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
    from timm.models._hub import load_model_config_from_path

    name = folder_name(name)
    if name.startswith((HUB, FOLDER)):
        refuse_tag(name, pretrained)
        read = load_model_config_from_hf if name.startswith(HUB) else load_model_config_from_path
        try:
            config: dict[str, Any] = read(name.removeprefix(HUB).removeprefix(FOLDER))[0]
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
    if not pretrained or name in OWN or name.startswith((HUB, FOLDER)) or is_foreign(name):
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


def config_of(name: str) -> dict[str, Any]:
    """The `config.json` of a folder with a model in it; empty where there is none."""
    path = Path(name) / "config.json"
    if not path.is_file() or (not set(name) & set("/\\") and is_timm_name(name)):  # a folder of that name hides no model
        return {}
    content = read_json("model folder", path)
    return content if isinstance(content, dict) else {}


def is_timm_name(name: str) -> bool:
    import timm

    return bool(timm.is_model(split_name(name)[0]))


def folder_name(name: str) -> str:
    """A folder in timm's format by the name that timm has for it."""
    return FOLDER + name if ":" not in name and "architecture" in config_of(name) else name


def is_transformers(name: str) -> bool:
    """Whether a name is that of an image classifier of `transformers`: on the hub, or in a folder."""
    return name.startswith(TRANSFORMERS) or ("model_type" in config_of(name) and "architecture" not in config_of(name))


def is_foreign(name: str) -> bool:
    """Whether a name is no architecture that is built here, but a folder, a file, a command or an address."""
    return is_transformers(name) or name.lower().endswith(MODEL_FILES) or name.startswith(("cmd:", "http://", "https://"))


def from_image_processor(name: str) -> ModelSettings:
    """The settings of the image processor that is kept with a classifier of `transformers`."""
    if find_spec("transformers") is None:
        raise SurefootError(f"'{name}' needs transformers: pip install 'surefoot[transformers]'.")
    from transformers import AutoImageProcessor

    try:
        processor = AutoImageProcessor.from_pretrained(name.removeprefix(TRANSFORMERS), trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise cannot_fetch(name, error) from error
    given = processor.to_dict()
    if given.get("do_rescale", True) and abs(float(given.get("rescale_factor", 1 / 255)) * 255 - 1) > 1e-6:
        raise SurefootError(f"The image processor of '{name}' rescales by {given['rescale_factor']}, and 1/255 is supported.")
    size, crop = dict(given.get("size") or {}), given.get("crop_size") if given.get("do_center_crop") else None
    mean, std = (given["image_mean"], given["image_std"]) if given.get("do_normalize", True) else ((0.0,) * 3, (1.0,) * 3)
    mode = RESAMPLE.get(int(given.get("resample", 2)))
    if mode is None:
        raise SurefootError(f"The image processor of '{name}' resizes by {given['resample']}, which is not supported.")
    kept = (int(crop["height"]), int(crop["width"])) if isinstance(crop, dict) and crop.get("height") else None
    short = size.get("shortest_edge")
    if not size.get("height") and short is None:
        raise SurefootError(f"The image processor of '{name}' has a size that is not supported: {size}.")
    resized = (int(size["height"]), int(size["width"])) if size.get("height") else (int(short or 0), int(short or 0))
    own = kept or resized
    share = float(given.get("crop_pct") or own[0] / resized[0])
    style = "center" if short is not None else "squash"
    return ModelSettings((own[0], own[1]), share, mode, tuple(map(float, mean)), tuple(map(float, std)), style)


RESAMPLE = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}  # Pillow's numbers


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


def is_model_file(name: str) -> bool:
    """Whether a name is that of a file with a model in it."""
    return name.lower().endswith(MODEL_FILES)
