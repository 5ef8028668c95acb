"""One function from a name to a classifier: ours, timm's, torchvision's, transformers', on the hub, or in a file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import nn

from ..data.settings import FOLDER, ModelSettings, folder_name, is_foreign, is_transformers, settings_of, weights_tag
from ..errors import SurefootError, require
from ..seeds import global_seed
from .arguments import check_stem
from .black_box import BlackBox
from .builders import MODELS, build_module, change_head, has_fixed_size, outline_of
from .checkpoints import load_checkpoint
from .classifier import Classifier, per_channel
from .remote import Asked, is_remote_model
from .stems import SMALL, fitting_arguments, shrink_stem

__all__ = ["MODELS", "load_model"]

logger = logging.getLogger("surefoot")


class Sized(Protocol):
    """What a model must know of its data."""

    @property
    def num_classes(self) -> int: ...
    @property
    def image_size(self) -> tuple[int, int]: ...
    @property
    def channels(self) -> int: ...


class DoesNotFit(SurefootError):
    """The module, with the stem it has, cannot take images of this size."""


def load_model(
    name: str,
    *,
    data: Sized | None = None,
    num_classes: int | None = None,
    image_size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    pretrained: bool | str = False,
    checkpoint: str | None = None,
    feature_dim: int | None = None,
    rectified: bool = True,
    bias: bool = True,
    stem: str = "auto",
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    seed: int | None = None,
    returns: str | None = None,
    timeout: float = 60.0,
    retries: int = 2,
    sends: str = "npy",
) -> Classifier:
    """Build a classifier; what is not given comes from the data, and else from the model's own settings.

    `name` is ours, one of timm's (`resnet50`, `resnet50.a1_in1k`), `torchvision/NAME` or `hf-hub:OWNER/NAME`.
    `pretrained` may be the tag of the weights (`tv_in1k`, `IMAGENET1K_V2`); `source` names it, also where it is the default.
    `stem="auto"` fits the first layers to images of 64 px and below, but keeps those of pretrained weights and enlarges the
    images instead; `"imagenet"` leaves the model alone; `"enlarge"` brings images to the model's own size inside it.
    `feature_dim` puts a feature space of that many dimensions before the head, and a ReLU before that if `rectified`.
    A folder in the format of timm or transformers, `transformers/OWNER/NAME` on the hub, a file (ONNX, TorchScript, `.pt2`),
    `cmd:COMMAND` and an address are models too; the last three kinds give logits alone, without features (and ONNX, a command
    and an address without gradients). `returns` says whether a model of these gives logits or probabilities where it does not
    say so itself; `timeout` in seconds, `retries` and `sends` ("npy", "png") are for commands and addresses.
    Without a seed, one is drawn from torch's global generator and recorded in `source`.

    >>> import surefoot as sf
    >>> model = sf.load_model("tiny-resnet", data=sf.load_data("digits"), seed=0)
    >>> model.num_classes, model.image_size, model.channels
    (10, (32, 32), 3)
    """
    seed = int(torch.randint(2**31, ())) if seed is None else seed
    given: dict[str, Any] = {"name": name, "num_classes": num_classes, "image_size": image_size, "channels": channels}
    given |= {"pretrained": pretrained, "checkpoint": None if checkpoint is None else str(checkpoint)}
    given |= {
        "feature_dim": feature_dim,
        "rectified": rectified,
        "bias": bias,
        "stem": stem,
        "mean": mean,
        "std": std,
        "seed": seed,
    }
    if is_foreign(name):
        refuse_options(name, pretrained=pretrained, checkpoint=checkpoint, feature_dim=feature_dim)
        asked: dict[str, Any] = {"returns": returns, "timeout": timeout, "retries": retries, "sends": sends}
        asked |= {"image_size": image_size, "channels": channels, "mean": mean, "std": std}
        return cast(Classifier, load_foreign(name, data, **asked))  # with its logits, if nothing else
    if returns is not None:
        raise SurefootError(f"returns is for models that are files, commands or addresses, and '{name}' gives logits.")
    name, folder = folder_name(name), folder_name(name).startswith(FOLDER)
    pretrained = given["pretrained"] = True if folder and checkpoint is None else pretrained
    given["name"] = name
    source = {key: plain(value) for key, value in given.items()}
    check_stem(stem)
    if data is not None:
        if num_classes is None and data.num_classes < 2:
            raise SurefootError("The data have one class, and a classifier needs at least two (one folder for each).")
        num_classes = data.num_classes if num_classes is None else num_classes
        image_size = data.image_size if image_size is None else image_size
        channels = data.channels if channels is None else channels
    settings = settings_of(name, pretrained)
    pretrained = source["pretrained"] = weights_tag(name, pretrained)
    size = pair(settings.image_size if image_size is None else image_size)
    channels = 3 if channels is None else channels
    require(num_classes is None or num_classes >= 2, "num_classes", "at least 2", num_classes)
    require(channels >= 1, "channels", "at least 1", channels)
    require(feature_dim is None or feature_dim >= 1, "feature_dim", "at least 1", feature_dim)
    require(rectified or feature_dim is not None, "rectified", "True without feature_dim", rectified)
    if stem == "auto" and pretrained and is_small(size, settings):
        stem = source["stem"] = "enlarge"  # so that the same model can be built again without its weights
    centre = spread(settings.mean, channels) if mean is None else mean
    scale = spread(settings.std, channels) if std is None else std

    def build(**arguments: Any) -> nn.Module:
        return build_module(name, num_classes, channels, pretrained, **arguments)

    def wrap(module: nn.Module, resize_to: tuple[int, int] | None = None) -> Classifier:
        return Classifier(module, centre, scale, size, channels, source, resize_to)

    with global_seed(seed, "init"):
        model = fitted(name, size, settings, stem, build, wrap)
        change_head(model, num_classes, feature_dim, bias, rectified)
    if checkpoint is not None:
        load_checkpoint(model, checkpoint)
        keep_given(model, mean, std)
    return model


def load_foreign(name: str, data: Sized | None, **options: Any) -> nn.Module:
    """A model that is not built here: transformers' own, a file, a command or an address."""
    from .model_files import load_file
    from .transformers_models import load_transformers

    size = options.pop("image_size") or (None if data is None else data.image_size)
    channels = options.pop("channels") or (None if data is None else data.channels)
    mean, std, returns = (options.pop(key) for key in ("mean", "std", "returns"))
    if is_transformers(name):
        return load_transformers(name, None if size is None else pair(size), mean, std)
    if not is_remote_model(name):
        size = None if size is None else pair(size)
        return load_file(name, image_size=size, channels=channels, mean=mean, std=std, returns=returns)
    if size is None:
        raise SurefootError(f"image_size must be given, or data: '{name}' does not say it.")
    run, channels = Asked(name, **options), 3 if channels is None else channels
    run(np.zeros((1, *pair(size), channels), np.float32))  # which says what it returns
    if returns not in (None, run.returns):
        raise SurefootError(f"returns is '{returns}', and '{name}' answers with {run.returns}.")
    found = [f"asked by JSON, {run.sends}, {run.timeout:g} s for an answer, {run.retries} more attempts"]
    about: dict[str, Any] = {"channels": channels, "returns": run.returns, "layout": "last", "identity": name}
    return BlackBox(run, 0.0 if mean is None else mean, 1.0 if std is None else std, pair(size), found=found, **about)


def refuse_options(name: str, **options: Any) -> None:
    """What only models that are built here have."""
    for option, value in options.items():
        if value:
            raise SurefootError(f"{option} is for models that are built here, and '{name}' comes with its own weights.")


def fitted(
    name: str,
    size: tuple[int, int],
    settings: ModelSettings,
    stem: str,
    build: Callable[..., nn.Module],
    wrap: Callable[..., Classifier],
) -> Classifier:
    """The classifier for images of this size, by the rule that `stem` names."""
    shown = f"{size[0]} x {size[1]} images"
    if stem != "enlarge":
        try:
            return attempt(name, shown, lambda: with_stem(name, size, settings, stem, build, wrap))
        except DoesNotFit as error:
            if size == settings.image_size:
                raise
            if stem == "imagenet":
                raise DoesNotFit(f"{error} stem='enlarge' would bring them to its own size.") from error
            logger.warning("%s They are resized to %d x %d inside it.", error, *settings.image_size)
    elif size != settings.image_size:
        logger.info("'%s' keeps its stem; %s are resized to %d x %d inside it.", name, shown, *settings.image_size)
    resize_to = None if size == settings.image_size else settings.image_size
    return attempt(name, shown, lambda: wrap(build(), resize_to))


def with_stem(
    name: str,
    size: tuple[int, int],
    settings: ModelSettings,
    stem: str,
    build: Callable[..., nn.Module],
    wrap: Callable[[nn.Module], Classifier],
) -> Classifier:
    """The model with a stem for this size, or with its own where that is requested or no other is known."""
    if name in MODELS or size == settings.image_size:
        return wrap(build())
    fixed = has_fixed_size(name)
    if stem == "imagenet" or not is_small(size, settings):
        return wrap(build(img_size=size) if fixed else build())
    if fixed:
        arguments = fitting_arguments(outline_of(name), size)
        if not arguments:
            raise DoesNotFit(f"'{name}' has no known stem for images of {size[0]} x {size[1]}.")
        return wrap(build(**arguments))
    module = build()
    changed = shrink_stem(module, size)
    model = wrap(module)
    if not changed:
        logger.warning("No stem for small images is known for '%s'; it keeps its ImageNet stem.", name)
    return model


def attempt(name: str, shown: str, make: Callable[[], Classifier]) -> Classifier:
    """Build and run the model once; what goes wrong is one line that names the model."""
    try:
        return make()
    except DoesNotFit:
        raise
    except SurefootError as error:
        if name in str(error):
            raise
        raise SurefootError(f"'{name}' cannot be used: {error}") from error
    except (RuntimeError, AssertionError, ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise DoesNotFit(f"'{name}' cannot take {shown} ({reason}).") from error


def is_small(size: tuple[int, int], settings: ModelSettings) -> bool:
    """Whether images of this size ask for a smaller stem than the model's own."""
    return min(size) <= SMALL and min(size) < min(settings.image_size)


def spread(values: tuple[float, ...], channels: int) -> float | tuple[float, ...]:
    """A model's own normalisation, averaged when the images have another number of channels."""
    return values if len(values) == channels else sum(values) / len(values)


def keep_given(model: Classifier, mean: float | Sequence[float] | None, std: float | Sequence[float] | None) -> None:
    """A normalisation that the caller gave wins over the one in a checkpoint."""
    for name, value in (("mean", mean), ("std", std)):
        if value is not None:
            getattr(model, name).copy_(per_channel(name, value, model.channels))


def pair(size: int | Sequence[int]) -> tuple[int, int]:
    """A size as (height, width)."""
    sides = (size, size) if isinstance(size, int) else tuple(size)
    require(len(sides) == 2 and min(sides) >= 1, "image_size", "one side or (height, width)", size)
    return sides[0], sides[1]


def plain(value: Any) -> Any:
    """A value as a recipe holds it: tuples as lists."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
