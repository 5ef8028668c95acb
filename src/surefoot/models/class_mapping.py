"""Which outputs of a model stand for which class of the data, where they are not the same one to one.

Outputs that stand for no class get no probability (masked logits, as timm's --valid-labels); several outputs of one class are
summed. ImageNet's classes are known by WordNet id and by name."""

from __future__ import annotations

import copy
import csv
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError, UnknownName, nearest
from ..files import read_json, read_text
from ..seeds import generator
from ..types import Images, Logits
from .classifier import Classifier
from .last_layer import evaluating

BY_NAME = "names"
IMAGENET = 1000
Mapped = list[list[int]]  # the outputs of each class


class MappedClasses(nn.Module):
    """A model with one logit for each class of the data: log of the summed exponentials of the outputs of that class."""

    def __init__(self, model: nn.Module, outputs: Mapped) -> None:
        super().__init__()
        self.model, self.outputs, self.training = model, outputs, model.training
        self.num_classes = len(outputs)

    def forward(self, images: Images) -> Logits:
        logits: Logits = self.model(images)
        if all(len(own) == 1 for own in self.outputs):
            return logits[:, [own[0] for own in self.outputs]]
        return torch.stack([logits[:, own].logsumexp(1) for own in self.outputs], 1)


def with_classes(
    model: Any,
    class_names: Sequence[str],
    image_size: tuple[int, int],
    channels: int = 3,
    classes: str | Path | Mapping[str, Any] | Sequence[int] | None = None,
    output_names: Sequence[str] = (),
) -> tuple[Any, tuple[str, ...]]:
    """The model with one logit for each class of the data, and a line that says what was done to it.

    `classes` says which outputs belong to which class: "names", a list of outputs in the order of the classes, a mapping from
    class to output (index or name, or several), or a file of it (JSON, or CSV lines `class,output`). Without it, a model with
    as many outputs as there are classes is left alone, and another is mapped by names if it has any; `output_names` are
    those that the caller knows.
    """
    count = outputs_of(model, image_size, channels)
    if classes is None and count == len(class_names):
        return model, ()
    known = tuple(output_names or getattr(model, "class_names", ()))
    by_output = name_table(known if len(known) == count else (), count)
    try:
        mapped = find_outputs(class_names, by_output, count, classes)
    except SurefootError as error:
        if classes is not None:
            raise
        said = f"The model has {count} outputs, and the data have {len(class_names)} classes"
        raise SurefootError(f"{said}: say which is which with classes (--classes). {error}") from error
    check_outputs(mapped, class_names, count)
    how = "as given" if classes is not None and str(classes) != BY_NAME else "by name"
    used = sum(map(len, mapped))
    summed = f", the {used} outputs of which are summed by class" if used > len(mapped) else ""
    masked = f"; the other {count - used} get no probability (masked logits)" if used < count else ""
    line = f"The {len(mapped)} classes of the data are scored on the model's {count} outputs {how}{summed}{masked}."
    return rewired(model, mapped), (line,)


def outputs_of(model: Any, image_size: tuple[int, int], channels: int) -> int:
    """How many outputs a model has."""
    if isinstance(model, Classifier):
        return model.num_classes
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    images = torch.rand(2, channels, *image_size, generator=generator("example")).to(device)
    with evaluating(model), torch.no_grad():
        try:
            scores = model(images)
        except (RuntimeError, AssertionError, TypeError, IndexError) as error:
            shape, reason = (
                f"{channels} x {image_size[0]} x {image_size[1]}",
                (str(error) or type(error).__name__).splitlines()[0],
            )
            raise SurefootError(f"The model cannot be run on images of {shape} ({reason})") from error
    if not isinstance(scores, Tensor) or scores.ndim != 2:
        shown = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise SurefootError(f"The model's output must be images x classes, got {shown}.")
    return int(scores.shape[1])


def find_outputs(class_names: Sequence[str], by_output: Mapping[str, list[int]], count: int, classes: Any) -> Mapped:
    """The outputs of each class, by whatever says so."""
    if classes is None or classes == BY_NAME:
        return [[output_named(name, by_output)] for name in class_names]
    if isinstance(classes, str) and all(part.strip().isdigit() for part in classes.split(",")):
        classes = [int(part) for part in classes.split(",")]
    if isinstance(classes, str | Path):
        classes = read_classes(Path(classes))
    if isinstance(classes, Mapping):
        left = [name for name in class_names if name not in classes]
        if left:
            near = nearest(left[0], map(str, classes))
            hint = f", did you mean '{near}'" if near else ""
            raise SurefootError(
                f"classes has no output for class '{left[0]}'{hint} ({len(left)} of {len(class_names)} lack one)."
            )
        return [as_outputs(classes[name], by_output) for name in class_names]
    given = list(classes)
    if len(given) != len(class_names):
        raise SurefootError(f"classes must give an output for each of {len(class_names)} classes, got {len(given)}.")
    return [as_outputs(each, by_output) for each in given]


def read_classes(path: Path) -> Any:
    """A JSON mapping or list, or lines `class,output`; a class may have several lines."""
    if path.suffix == ".json":
        content = read_json("classes", path)
        if not isinstance(content, dict | list):
            raise SurefootError(f"'{path}' must map classes to outputs, or list outputs.")
        return content
    mapped: dict[str, list[Any]] = {}
    for row in csv.reader(read_text("classes", path).splitlines()):
        if row and len(row) != 2:
            raise SurefootError(f"'{path}' must have lines 'class,output', got '{','.join(row)}'.")
        if row:
            mapped.setdefault(row[0].strip(), []).append(row[1].strip())
    return mapped


def as_outputs(given: Any, by_output: Mapping[str, list[int]]) -> list[int]:
    """One output or several, by index or by name."""
    if isinstance(given, list | tuple):
        return [output for each in given for output in as_outputs(each, by_output)]
    if isinstance(given, int) or (isinstance(given, str) and given.strip().isdigit()):
        return [int(given)]
    return [output_named(str(given), by_output)]


def output_named(name: str, by_output: Mapping[str, list[int]]) -> int:
    """The output of this name; refused where none or several have it."""
    if not by_output:
        raise SurefootError("The model does not name its outputs: give their numbers.")
    found = by_output.get(plain_name(name), [])
    if len(found) > 1:
        raise SurefootError(f"'{name}' may be any of the outputs {', '.join(map(str, found))}: give the number.")
    if not found:
        raise UnknownName("output", name, by_output)
    return found[0]


def name_table(names: tuple[str, ...], count: int) -> dict[str, list[int]]:
    """Outputs by the names that people have for them: the model's own, or ImageNet's for a thousand outputs."""
    every: list[tuple[str, ...]] = [(name, *name.split(",")) for name in names]
    if count == IMAGENET:
        ours = imagenet_names()
        every = [(*own, *more) for own, more in zip(every or [()] * count, ours, strict=True)]
    table: dict[str, list[int]] = {}
    for output, aliases in enumerate(every):
        for alias in dict.fromkeys(map(plain_name, aliases)):
            table.setdefault(alias, []).append(output)
    return table


@cache
def imagenet_names() -> tuple[tuple[str, ...], ...]:
    """WordNet id, whole name and single words of each of ImageNet's classes."""
    from timm.data import ImageNetInfo

    info = ImageNetInfo("imagenet-1k")
    described = [(info.index_to_label_name(index), info.index_to_description(index)) for index in range(IMAGENET)]
    return tuple((wordnet, whole, *whole.split(",")) for wordnet, whole in described)


def plain_name(name: str) -> str:
    return " ".join(name.lower().replace("_", " ").split())


def check_outputs(mapped: Mapped, class_names: Sequence[str], count: int) -> None:
    """Every class has outputs that the model has, and none is shared."""
    seen: dict[int, str] = {}
    for name, own in zip(class_names, mapped, strict=True):
        for output in own:
            if not 0 <= output < count:
                raise SurefootError(f"The output of class '{name}' must be in 0 to {count - 1}, got {output}.")
            if output in seen:
                raise SurefootError(f"Classes '{seen[output]}' and '{name}' have the same output {output}.")
            seen[output] = name
        if not own:
            raise SurefootError(f"Class '{name}' has no output.")


def rewired(model: Any, mapped: Mapped) -> Any:
    """The model with these outputs; a classifier whose outputs are only chosen keeps its features."""
    if not isinstance(model, Classifier) or any(len(own) > 1 for own in mapped):
        return MappedClasses(model, mapped)
    rows = torch.tensor([own[0] for own in mapped])
    chosen = copy.deepcopy(model)
    old = model.head
    head = nn.Linear(old.in_features, len(rows), old.bias is not None, old.weight.device, old.weight.dtype)
    with torch.no_grad():
        head.weight.copy_(old.weight[rows.to(old.weight.device)])
        if old.bias is not None:
            head.bias.copy_(old.bias[rows.to(old.bias.device)])
    chosen.module.set_submodule(chosen.head_name, head)
    chosen.training = model.training
    return chosen
