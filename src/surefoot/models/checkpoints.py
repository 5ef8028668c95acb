"""Weights are data: safetensors, or a pickle that holds nothing but tensors, in the shapes in which people save them."""

from __future__ import annotations

import argparse
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import NotFound, SurefootError
from ..files import read_tensors
from .builders import outline_of
from .classifier import Classifier

# Guess what a checkpoint is of, for the one line that says that it is not of this model.


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


logger = logging.getLogger("surefoot")

Weights = dict[str, Tensor]
AVERAGED = ("state_dict_ema", "model_ema")  # better than what they average, so they are preferred
CONTAINERS = (*AVERAGED, "state_dict", "model_state_dict", "model_state", "model", "net")
PREFIXES = ("module.", "model.", "_orig_mod.", "net.", "backbone.")  # of DDP, Lightning, torch.compile, people's own
# counters, tables and second heads that say nothing about the predictions, and that not every version writes
AUXILIARY = {"num_batches_tracked", "relative_position_index", "attn_mask", "n_averaged", "total_ops", "total_params"}
AUXILIARY |= {"AuxLogits", "aux1", "aux2"}
SHOWN = 2  # how many names of each kind an error lists


def load_checkpoint(model: Classifier, path: str | Path) -> None:
    """Put the weights in a file into a classifier or its module, whichever they belong to."""
    load_foreign(model, read_weights(path), f"Checkpoint '{path}'")


def load_bare(module: nn.Module, path: str | Path) -> None:
    """Put the weights in a file into a module of one's own; their names may carry prefixes."""
    wanted = module.state_dict()
    reading = min(all_readings(read_weights(path)), key=lambda names: distance(names, wanted))
    wrong = [key for key in differences(reading, wanted) if not is_auxiliary(key)]
    if wrong:
        raise SurefootError(misfit(f"Checkpoint '{path}'", wrong, reading, wanted))
    module.load_state_dict({key: reading.get(key, value) for key, value in wanted.items()})


def read_weights(path: str | Path) -> Weights:
    """The named tensors of a checkpoint file, with their names as they stand there."""
    path = Path(path)
    if not path.is_file():
        raise NotFound("checkpoint", path)
    with open(path, "rb") as file:
        start = file.read(9)
    if path.suffix == ".safetensors" or (len(start) == 9 and start[8:] == b"{" and start[7] == 0):
        return read_tensors("checkpoint", path)
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals([argparse.Namespace]):
            warnings.simplefilter("ignore")  # of pickle protocols that torch seldom sees
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's reader fails in any way on bytes that are no checkpoint
        raise SurefootError(f"Checkpoint '{path}' is refused: it is not plain tensors ({reason_of(error)}).") from error
    weights = find_weights(content, str(path))
    if not weights:
        raise SurefootError(f"Checkpoint '{path}' must hold a state dict: names to tensors.")
    return weights


def reason_of(error: Exception) -> str:
    """What torch found wrong with a file, without its advice to trust it."""
    match = re.search(r"GLOBAL (\S+)", str(error))
    if match:
        return f"it would run {match[1]}; save the model's state_dict() instead"
    first = next(iter(str(error).splitlines()), "").rstrip(".")
    by_torch = type(error) is RuntimeError and first  # by torch itself, in words
    return first if by_torch else "it is broken, or no checkpoint"


class OtherClasses(SurefootError):
    """A checkpoint that fits but for its number of classes."""

    def __init__(self, message: str, classes: int) -> None:
        super().__init__(message)
        self.classes = classes


def find_weights(content: Any, where: str) -> Weights:
    """The tensors in what a training script saved: the content itself or what it holds under a usual name."""
    if not isinstance(content, Mapping):
        return {}
    names = [name for name in CONTAINERS if isinstance(content.get(name), Mapping) and content[name]]
    if not names:
        return {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if names[0] in AVERAGED and len(names) > 1:
        logger.info("Checkpoint '%s' holds %s; the averaged weights '%s' are used.", where, " and ".join(names), names[0])
    return find_weights(content[names[0]], where)


def load_foreign(model: Classifier, weights: Weights, name: str) -> None:
    """Put weights from elsewhere into a classifier: their names may carry prefixes, and may be the bare module's.

    `module.` begins the names of our own classifiers and of DistributedDataParallel's, so nothing is guessed from it: every
    reading is compared with the names and shapes that are wanted, and the nearest one is taken.
    """
    targets: tuple[nn.Module, ...] = (model.module, model)
    readings = list(all_readings(weights))
    pairs = [(reading, target, target.state_dict()) for reading in readings for target in targets]
    reading, target, wanted = min(pairs, key=lambda pair: distance(pair[0], pair[2]))
    wrong = [key for key in differences(reading, wanted) if not is_auxiliary(key)]
    if wrong and (classes := other_classes(wrong, reading, wanted, model.num_classes)):
        hint = "; a class map (--class-map) may name classes that the data lack" if classes > model.num_classes else ""
        raise OtherClasses(
            f"{name} does not fit the model: it is for {classes} classes, not {model.num_classes}{hint}.", classes
        )
    if wrong:
        near = nearest_architecture([{key: tuple(value.shape) for key, value in names.items()} for names in readings])
        raise SurefootError(misfit(name, wrong, reading, wanted) + (f" It is nearest to {near}." if near else ""))
    used = {id(value) for value in reading.values()}
    left_out = [key for key, value in weights.items() if id(value) not in used and not is_auxiliary(key)]
    if left_out:
        logger.info("%s: %d tensors beside the model are left out, such as %s.", name, len(left_out), left_out[0])
    target.load_state_dict({key: reading.get(key, value) for key, value in wanted.items()})


def distance(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> tuple[int, int]:
    """How far a reading is from what is wanted: the less agrees the farther, and of equals the more that differs."""
    agreeing = sum(key in weights and weights[key].shape == value.shape for key, value in wanted.items())
    return -agreeing, len(differences(weights, wanted)) if agreeing else 0


def all_readings(weights: Weights) -> Iterator[Weights]:
    """The weights with their names as they are, and with every prefix that some of them have taken away, again and again."""
    seen: list[set[str]] = []
    waiting = [weights]
    while waiting:
        reading = waiting.pop(0)
        if set(reading) in seen:
            continue
        seen.append(set(reading))
        yield reading
        if any("._orig_mod." in key for key in reading):
            waiting.append({key.replace("._orig_mod.", "."): value for key, value in reading.items()})
        for prefix in PREFIXES:
            stripped = {key.removeprefix(prefix): value for key, value in reading.items() if key.startswith(prefix)}
            if stripped:
                waiting.append(stripped)


def is_auxiliary(key: str) -> bool:
    """Whether a tensor of this name may be absent or left over."""
    return not AUXILIARY.isdisjoint(key.split("."))


def differences(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> list[str]:
    """The names that are missing, left over, or of another shape."""
    either = [key for key in wanted if key not in weights] + [key for key in weights if key not in wanted]
    shapes = [key for key in wanted if key in weights and wanted[key].shape != weights[key].shape]
    return either + shapes


def other_classes(wrong: list[str], weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor], classes: int) -> int | None:
    """The number of classes of weights that differ in it alone, else None."""
    if not all(key in weights and key in wanted for key in wrong):
        return None
    shapes = [(weights[key].shape, wanted[key].shape) for key in wrong]
    if not all(theirs[1:] == ours[1:] and ours[:1] == (classes,) for theirs, ours in shapes):
        return None
    return int(shapes[0][0][0])


def misfit(name: str, wrong: list[str], weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> str:
    """One line about weights that do not fit: how many, and the first few."""
    missing = [f"{key} is missing" for key in wrong if key not in weights]
    extra = [f"{key} is not in the model" for key in wrong if key not in wanted]
    both = [key for key in wrong if key in weights and key in wanted]
    shapes = [f"{key} is {tuple(weights[key].shape)}, not {tuple(wanted[key].shape)}" for key in both]
    listed = "; ".join(missing[:SHOWN] + extra[:SHOWN] + shapes[:SHOWN])
    return f"{name} does not fit the model: {len(wrong)} of its tensors differ ({listed})."


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], name: str) -> None:
    """Put weights of our own into a module; every name and shape must fit."""
    own = module.state_dict()
    wrong = differences(weights, own)
    if wrong:
        raise SurefootError(misfit(name, wrong, weights, own))
    module.load_state_dict(dict(weights))
