"""Checks before an audit that save people from auditing the wrong thing; each finding says what to do.

They run the model on a few hundred test images and leave it as it was: its mode, its gradients and the random state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..seeds import global_seed
from ..types import Images, Labels, Logits, check_labels
from .classifier import per_channel
from .last_layer import evaluating

BATCH = 64
CHANGED_INPUT, PROBABILITIES = "changed-input", "probabilities"
SMALL = 64  # px, the longer side up to which a stem is judged
STATISTICS = {
    "ImageNet's mean and std (0.485, 0.456, 0.406 and 0.229, 0.224, 0.225)": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "mean 0.5 and std 0.5": ((0.5,), (0.5,)),
}
USUAL = {  # what nets are trained with; mean 0 and std 1 are pixels as they are
    **STATISTICS,
    "CIFAR-10's mean and std": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "CLIP's mean and std": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "MNIST's mean and std": ((0.1307,), (0.3081,)),
    "mean 0 and std 1": ((0.0,), (1.0,)),
}
FATAL, WARNING, NOTE = SEVERITIES = ("fatal", "warning", "note")
CLEARLY = 0.10  # of accuracy
FIRST = 64  # images on which every candidate is tried
STANDARD_ERRORS = 3.0
EXCHANGED = 0.05  # accuracy that another order of the classes must gain to be said
ALIKE = 4  # times as many images must gain by it as lose: classes that are only alike are taken for each other both ways
MOST_SHOWN = 100  # classes whose outputs are written out


@dataclass(frozen=True)
class Finding:
    """Something about the model or its data that would spoil an audit, and what to do about it.

    `severity` is fatal where no number can be believed, warning where some are doubtful, note where it is good to know.
    """

    name: str
    message: str
    advice: str
    severity: str = WARNING


@dataclass(frozen=True)
class Convolution:
    """One call of a convolution: its layer and the sizes before and after."""

    layer: nn.Conv2d
    size_in: tuple[int, int]
    size_out: tuple[int, int]


@dataclass(frozen=True)
class OtherInputs:
    """Inputs that a model may want instead of pixels: pixels * scale + shift, in words, and what to do if it does."""

    scale: Tensor
    shift: Tensor
    how: str
    advice: str


def preflight(
    model: nn.Module,
    images: Images,
    labels: Labels,
    *,
    num_classes: int,
    native_size: tuple[int, int] | None = None,
    mapped: bool = False,
) -> list[Finding]:
    """What is wrong with auditing this model on these images; nothing, if all is well.

    `images` should be pixels in [0, 1], and `native_size` is the height and width that the model was made for. Class order is
    judged from two images a class upwards; `mapped` says that its outputs were given to classes by the caller.
    """
    require(images.ndim == 4 and len(images) > 0, "images", "a batch of at least one image", tuple(images.shape))
    require(images.is_floating_point(), "images", "floating point in [0, 1]", images.dtype)
    labels = check_labels(labels.cpu(), num_classes, len(images))
    findings: list[Finding | None] = [training_mode(model), pixel_range(images), image_size(images, native_size)]
    in_range = findings[1] is None
    with evaluating(model), torch.no_grad(), global_seed(0, "preflight"):
        with watched(model) as convolutions:
            logits_of(model, images[:2])
        findings.append(imagenet_stem(images, convolutions))
        logits = logits_of(model, images)
        findings += [
            class_count(logits, num_classes),
            probabilities(logits),
            changed_input(model, images),
            at_random(model, images),
        ]
        if in_range:
            best, wrong_inputs = normalisation(model, images, labels, logits)
            findings += [constant(images, logits), wrong_inputs, class_order(best, labels, num_classes, mapped)]
    return [finding for finding in findings if finding is not None]


def logits_of(model: nn.Module, images: Images) -> Logits:
    """The model's output for the images, in batches, on the CPU."""
    device = next((p.device for p in model.parameters()), images.device)
    try:
        parts = [model(batch.to(device, copy=True)) for batch in images.split(BATCH)]  # it may change what it is given
    except (Exception, SystemExit) as error:  # somebody else's code
        shape, reason = " x ".join(map(str, images.shape[1:])), (str(error) or type(error).__name__).splitlines()[0]
        reason = "it calls exit" if isinstance(error, SystemExit) else reason
        raise SurefootError(f"The model, {type(model).__name__}, cannot be run on images of {shape} ({reason})") from error
    for part, batch in zip(parts, images.split(BATCH), strict=True):
        shown = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
        require(isinstance(part, Tensor) and part.ndim == 2, "The model's output", "images x classes", shown)
        require(len(part) == len(batch), "The model's output", f"one row for each of {len(batch)} images", shown)
        require(part.is_floating_point(), "The model's output", "floating point", part.dtype)
    return torch.cat([part.float().cpu() for part in parts])


def training_mode(model: nn.Module) -> Finding | None:
    """The model was handed over in training mode."""
    kinds = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)
    count = sum(isinstance(layer, kinds) and layer.training for layer in model.modules())
    if not count:
        return None
    message = f"The model is in training mode, where its {count} layers of batch normalisation and dropout behave otherwise."
    return Finding(
        "training-mode", message, "It is evaluated in evaluation mode; call model.eval() if that is what you meant.", NOTE
    )


def pixel_range(images: Images) -> Finding | None:
    """Pixels lie outside [0, 1]."""
    low, high = (float(v) for v in images.aminmax())
    if low >= 0 and high <= 1:
        return None
    message = f"Pixels reach from {low:.3g} to {high:.3g}, not from 0 to 1; what the model makes of them was not judged."
    if low >= 0 and high <= 255:
        return Finding("pixel-range", message, "Divide the images by 255.", FATAL)
    advice = "Give pixels in [0, 1] and leave normalisation to the model: adapt(module, mean, std, ...)."
    return Finding("pixel-range", message, advice, FATAL)


def image_size(images: Images, native_size: tuple[int, int] | None) -> Finding | None:
    """The images have another size than those the model was made for."""
    size = (images.shape[2], images.shape[3])
    if native_size is None or size == tuple(native_size):
        return None
    message = (
        f"Images are {across(size)} px, but the model was made for {across(native_size)} px: the resize differs from its own."
    )
    return Finding("image-size", message, "Resize and crop the images as the model's own settings say.")


@contextmanager
def watched(model: nn.Module) -> Iterator[list[Convolution]]:
    """Every call of a convolution inside the block, in order."""
    calls: list[Convolution] = []

    def record(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        assert isinstance(layer, nn.Conv2d)
        if inputs:
            before, after = inputs[0].shape, output.shape
            calls.append(Convolution(layer, (before[-2], before[-1]), (after[-2], after[-1])))

    hooks = [layer.register_forward_hook(record) for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def imagenet_stem(images: Images, convolutions: list[Convolution]) -> Finding | None:
    """The images are small and the model throws their detail away at once, as nets for large images do."""
    size = (images.shape[2], images.shape[3])
    if max(size) > SMALL or not convolutions:
        return None
    first = convolutions[0].layer
    kernel, stride, side = max(first.kernel_size), max(first.stride), min(size)
    reasons = []
    if stride >= 2 and kernel >= 7 and kernel > stride:
        reasons.append(f"the first convolution is {kernel} x {kernel} with stride {stride}")
    elif stride > side / 4:
        reasons.append(f"the first convolution cuts patches of {stride} px, more than a quarter of the side")
    if any(vanishes(convolution) for convolution in convolutions):
        reasons.append("the last feature map is 1 x 1")
    if not reasons:
        return None
    advice = (
        "Use a model with a stem for small images (3 x 3, stride 1, no pooling), or resize the images to the model's own size."
    )
    return Finding("imagenet-stem", f"Images are {across(size)} px and {' and '.join(reasons)}.", advice)


def vanishes(convolution: Convolution) -> bool:
    """A strided convolution left one pixel, or one that looks at neighbours had none; pooled 1 x 1 layers do not count."""
    spatial = max(convolution.layer.kernel_size) > 1
    shrunk = convolution.size_out == (1, 1) and max(convolution.layer.stride) > 1 and convolution.size_in != (1, 1)
    return shrunk or (spatial and convolution.size_in == (1, 1))


def class_count(logits: Logits, num_classes: int) -> Finding | None:
    """The model knows another number of classes than the data."""
    return other_count(logits.shape[1], num_classes)


def other_count(columns: int, num_classes: int) -> Finding | None:
    """A model of so many logits on data of so many classes."""
    if columns == num_classes:
        return None
    message = f"The model gives {columns} logits, but the data have {num_classes} classes."
    advice = "Say which logit belongs to which class with class_map (--class-map), or load a model with as many classes."
    return Finding("class-count", message, advice, FATAL)


def probabilities(logits: Logits) -> Finding | None:
    """The outputs look like probabilities."""
    sums = logits.sum(1)
    if not (bool(((logits >= 0) & (logits <= 1)).all()) and bool(((sums - 1).abs() < 1e-3).all())):
        return None
    low, high = (float(v) for v in sums.aminmax())
    message = f"The outputs of all {len(logits)} images lie in [0, 1] and sum to 1 ({low:.4f} to {high:.4f}): probabilities."
    return Finding(PROBABILITIES, message, "They are scored as such; say so with --returns probabilities.", NOTE)


def changed_input(model: nn.Module, images: Images) -> Finding | None:
    """The model writes into the images that it is given."""
    device = next((p.device for p in model.parameters()), images.device)
    few = images[:BATCH].to(device, copy=True)
    model(few)
    if torch.equal(few, images[:BATCH].to(device)):
        return None
    changed = float((few - images[:BATCH].to(device)).abs().max())
    message = f"The model changes the images that it is given, by up to {changed:.2g}: whoever uses them after it sees others."
    return Finding(CHANGED_INPUT, message, "It is given a copy here; remove in-place operations on its input.")


def at_random(model: nn.Module, images: Images) -> Finding | None:
    """The same images do not give the same output."""
    first, second = (logits_of(model, images[:BATCH]) for _ in range(2))
    spread = float((first - second).abs().max())
    if not spread > 1e-3 * max(1.0, float(first.abs().max())):  # some devices add in any order
        return None
    message = f"The same {len(first)} images give other outputs when given again (logits differ by up to {spread:.2g})."
    return Finding("random", message, "Every number is that of one draw, and attacks find less than they could.")


def constant(images: Images, logits: Logits) -> Finding | None:
    """The model gives the same output for all images, though the images differ."""
    if bool((images == images[:1]).all()):
        return None
    spread = float((logits - logits[:1]).abs().max())
    if not spread <= 1e-6 * max(1.0, float(logits.abs().max())):
        return None
    message = f"The model gives the same output for all {len(logits)} images (logits differ by {spread:.1g} at most)."
    return Finding("constant", message, "Check that the weights were loaded and that the images reach the model.", FATAL)


def normalisation(model: nn.Module, images: Images, labels: Labels, logits: Logits) -> tuple[Logits, Finding | None]:
    """The logits under the inputs that clearly suit the model best, and a finding if those are not the pixels themselves.

    Every candidate is tried on a few images, and on all of them the commonest that is about as good as the best.
    """
    right = (logits.argmax(1) == labels).double()
    if float(right.mean()) > 1 - CLEARLY:
        return logits, None  # there is no room for a gain

    def of(other: OtherInputs, images: Images) -> Logits:
        return logits_of(model, images * other.scale.to(images) + other.shift.to(images))

    candidates = other_inputs(images.shape[1], *own_normalisation(model, images.shape[1]))
    hits = [float((of(other, images[:FIRST]).argmax(1) == labels[:FIRST]).double().mean()) for other in candidates]
    if max(hits) <= float(right[:FIRST].mean()):
        return logits, None
    other = next(each for each, share in zip(candidates, hits, strict=True) if share >= max(hits) - CLEARLY)
    other_logits = of(other, images)
    now = (other_logits.argmax(1) == labels).double()
    gain = float((now - right).mean())
    clear = gain >= CLEARLY and gain > STANDARD_ERRORS * standard_error(now - right)
    if not (clear and far_above_chance(now, labels)):
        return logits, None
    message = f"Accuracy on {len(now)} images is {percent(right)} with pixels and {percent(now)} {other.how}."
    return other_logits, Finding("normalisation", message, other.advice, FATAL)


def own_normalisation(model: nn.Module, channels: int) -> tuple[Tensor, Tensor]:
    """The mean and std of a model that says them; 0 and 1 of any other."""
    mean, std = getattr(model, "mean", None), getattr(model, "std", None)
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        return mean.detach().cpu(), std.detach().cpu()
    return per_channel("mean", 0.0, channels), per_channel("std", 1.0, channels)


def other_inputs(channels: int, own_mean: Tensor | float = 0.0, own_std: Tensor | float = 1.0) -> list[OtherInputs]:
    """Another normalisation in place of the model's own, one that is undone, and pixels from 0 to 255."""
    candidates = []
    for name, (means, stds) in USUAL.items():
        mean, std = for_channels(means, channels), for_channels(stds, channels)
        numbers = [",".join(f"{value:.4g}" for value in values) for values in (means, stds)]
        advice = f"Pass --mean {numbers[0]} --std {numbers[1]}, or in Python adapt(module, mean, std, ...)."
        scale = own_std / std
        if not (torch.allclose(mean, torch.as_tensor(own_mean)) and torch.allclose(std, torch.as_tensor(own_std))):
            candidates.append(OtherInputs(scale, own_mean - scale * mean, f"when they are normalised with {name}", advice))
    for name, (means, stds) in STATISTICS.items():
        advice = "Normalisation happens twice: keep the model's own and pass --mean 0 --std 1."
        undone = for_channels(stds, channels), for_channels(means, channels)
        candidates.append(OtherInputs(*undone, f"when a normalisation with {name} is undone", advice))
    advice = f"The model wants pixels from 0 to 255: pass --mean 0 --std {1 / 255:.6f}, or adapt(module, 0, 1 / 255, ...)."
    scale = torch.as_tensor(255 * own_std)
    candidates.append(OtherInputs(scale, torch.as_tensor(own_mean), "when they are multiplied by 255", advice))
    return candidates


def for_channels(values: tuple[float, ...], channels: int) -> Tensor:
    """Statistics of a data set for so many channels: their mean where the numbers differ."""
    return per_channel("statistics", values if len(values) == channels else sum(values) / len(values), channels)


def unknown_classes(ours: Sequence[str] | None, theirs: Sequence[str]) -> Finding | None:
    """The model was trained for classes of which the data have none."""
    if not ours or set(ours) & set(theirs):
        return None
    said = f"The model was trained for {', '.join(ours[:3])} ..., and the data have {', '.join(theirs[:3])} ..."
    message = f"{said}: no class in common."
    advice = "Audit it on data of its own classes, or say which class is which with --class-map."
    return Finding("class-names", message, advice, FATAL)


def class_order(logits: Logits, labels: Labels, num_classes: int, mapped: bool = False) -> Finding | None:
    """The model is more often right under another numbering, found on one half and measured on the other.

    Fatal where that at least doubles its accuracy; a warning where some classes seem to be exchanged.
    """
    if len(labels) < 2 * num_classes:  # no class would be in both halves
        return None
    predicted = logits.argmax(1)
    right = (predicted == labels).double()
    half = torch.empty(len(labels), dtype=torch.bool)
    half[labels.argsort(stable=True)] = torch.arange(len(labels)) % 2 == 0  # both halves have every class
    renumbered = torch.zeros(len(labels), dtype=torch.float64)
    for fitted in (half, ~half):
        order = best_order(predicted[fitted], labels[fitted], num_classes, logits.shape[1])
        renumbered[~fitted] = (order[labels[~fitted]] == predicted[~fitted]).double()
    accuracy, better = float(right.mean()), float(renumbered.mean())
    gained, lost = int((renumbered > right).sum()), int((renumbered < right).sum())  # of the classes that move
    exchanged = better - accuracy >= EXCHANGED and gained >= ALIKE * lost
    if not (accuracy <= better / 2 or exchanged) or not far_above_chance(renumbered, labels):
        return None
    order = best_order(predicted, labels, num_classes, logits.shape[1])
    moved = [f"{k} as {int(order[k])}" for k in range(num_classes) if int(order[k]) not in (k, -1)]
    message = (
        f"Accuracy is {percent(right)} and would be {percent(renumbered)} with the classes in another order "
        f"(found on one half of {len(labels)} images, measured on the other): the model predicts class {', '.join(moved[:3])}"
        f"{' and so on' if len(moved) > 3 else ''}."
    )
    outputs = ",".join(str(int(output)) for output in order)
    numbers = f" {outputs}" if num_classes <= MOST_SHOWN and "-" not in outputs and not mapped else ""
    advice = f"Say which output stands for which class (--classes{numbers}); columns of predictions go into that order."
    return Finding("class-order", message, advice, FATAL if accuracy <= better / 2 else WARNING)


def best_order(predicted: Tensor, labels: Labels, num_classes: int, columns: int) -> Tensor:
    """The logit of each class under the one-to-one numbering that is right most often; -1 for a class without one."""
    from scipy.optimize import linear_sum_assignment

    confusion = (labels * columns + predicted).bincount(minlength=num_classes * columns).view(num_classes, columns)
    rows, chosen = linear_sum_assignment(confusion.numpy(), maximize=True)
    order = torch.full((num_classes,), -1)
    order[torch.from_numpy(rows)] = torch.from_numpy(chosen)
    return order


def far_above_chance(right: Tensor, labels: Labels) -> bool:
    """More right, beyond the sample's noise, than the commonest class gives and three tenths of the rest.

    Of 180 nets with random weights on 300 digits the best reached 39 % with its classes renumbered; this asks for 46 %.
    """
    chance = float(labels.bincount().max()) / len(labels)
    return float(right.mean()) > chance + 0.3 * (1 - chance) + STANDARD_ERRORS * standard_error(right)


def standard_error(values: Tensor) -> float:
    """Of the mean of these values."""
    return float(values.std(unbiased=False)) / math.sqrt(len(values))


def percent(right: Tensor) -> str:
    return f"{100 * float(right.mean()):.1f} %"


def across(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"
