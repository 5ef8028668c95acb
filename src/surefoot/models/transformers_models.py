"""Image classifiers of Hugging Face's transformers, from a folder or the hub, with the normalisation of their processor."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from ..data.settings import TRANSFORMERS, cannot_fetch, from_image_processor
from ..errors import SurefootError
from ..types import Images, Logits
from .classifier import Classifier


class LogitsOnly(nn.Module):
    """A model of transformers that takes pictures and gives its logits, not the object that holds them."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Images) -> Logits:
        logits: Logits = self.model(pixel_values=images).logits
        return logits


def load_transformers(
    name: str,
    image_size: tuple[int, int] | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
) -> Classifier:
    """The classifier with its weights, which must be safetensors; no code of the folder or the hub is run."""
    settings = from_image_processor(name)
    from transformers import AutoModelForImageClassification

    where = name.removeprefix(TRANSFORMERS)
    try:
        model = AutoModelForImageClassification.from_pretrained(where, trust_remote_code=False, use_safetensors=True)
    except (OSError, ValueError) as error:
        raise cannot_fetch(name, error) from error
    size = settings.image_size if image_size is None else image_size
    resize_to = None if size == settings.image_size else settings.image_size
    centre, scale = settings.mean if mean is None else mean, settings.std if std is None else std
    try:
        classifier = Classifier(LogitsOnly(model.eval()), centre, scale, size, len(settings.mean), None, resize_to)
    except SurefootError as error:
        raise SurefootError(f"'{name}' cannot be used: {error}") from error
    names = {int(number): str(label) for number, label in (model.config.id2label or {}).items()}
    names_in_order = tuple(names[number] for number in sorted(names))
    shown = f"mean {settings.mean}, std {settings.std}, {settings.image_size[0]} x {settings.image_size[1]} px"
    found = (f"a {type(model).__name__} of transformers; by its image processor {shown}",)
    for attribute, value in (("class_names", names_in_order), ("found", found)):
        setattr(classifier, attribute, value)
    return classifier
