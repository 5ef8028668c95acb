"""The one face of every model: pixels in [0, 1] in, logits and features out, normalisation inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import SurefootError, require
from ..seeds import generator
from ..types import Batch, Features, Images, Labels, Logits, Outputs, Predictions, check_labels
from .last_layer import evaluating, find_head, observed

# The gap between the right class and the best of the others, from logits.


def logit_margins(logits: Logits, labels: Labels) -> Tensor:
    """gamma(x) = f_y(x) - max over j != y of f_j(x)  (macs Eq. 3); of equal rivals the first, which alone gets a gradient."""
    return margins_of(logits, check_labels(labels, logits.shape[1], len(logits)))


def margins_of(logits: Logits, labels: Labels) -> Tensor:
    """The same for labels that were checked before."""
    labels = labels.unsqueeze(1)
    others = logits.scatter(1, labels, -torch.inf).max(1).values
    return logits.gather(1, labels).squeeze(1) - others


class Classifier(nn.Module):
    """A module that ends in one linear layer, with its normalisation.

    `source` is how to build the same model again (None for a module that came from elsewhere). `resize_to` is the size
    (height, width) to which images are brought before they are normalised, for a module that takes only its own size.

    >>> import torch
    >>> import surefoot as sf
    >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 5))
    >>> model = sf.Classifier(net, mean=0.5, std=0.25, image_size=8)
    >>> model.head_name, model(torch.rand(2, 3, 8, 8)).shape
    ('1', torch.Size([2, 5]))
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        module: nn.Module,
        mean: float | Sequence[float],
        std: float | Sequence[float],
        image_size: int | tuple[int, int],
        channels: int = 3,
        source: dict[str, Any] | None = None,
        resize_to: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.module, self.training = module, module.training
        self.image_size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
        self.channels = channels
        self.source = source
        self.resize_to = resize_to
        self.register_buffer("mean", per_channel("mean", mean, channels))
        self.register_buffer("std", per_channel("std", std, channels))
        require(bool((self.std > 0).all()), "std", "positive", std)
        example = next((p for p in module.parameters() if p.is_floating_point()), self.mean)
        # not zeros, from which two heads of one net may give the same
        images = torch.rand(2, channels, *(resize_to or self.image_size), generator=generator("example"))
        self.head_name = find_head(module, images.to(example.device, example.dtype))

    @property
    def head(self) -> nn.Linear:
        """The final linear layer."""
        head = self.module.get_submodule(self.head_name)
        assert isinstance(head, nn.Linear)
        return head

    @property
    def num_classes(self) -> int:
        return self.head.out_features

    @property
    def feature_dim(self) -> int:
        return self.head.in_features

    def forward(self, images: Images) -> Logits:
        if self.resize_to is not None:
            images = F.interpolate(images, self.resize_to, mode="bilinear", align_corners=False)
        logits: Logits = self.module((images - self.mean) / self.std)
        return logits

    def outputs(self, images: Images) -> Outputs:
        """Logits and features from one pass."""
        return observed(self, self.head, images)

    def features(self, images: Images) -> Features:
        """What enters the final linear layer."""
        return self.outputs(images).features


def per_channel(argument: str, value: float | Sequence[float], channels: int) -> Tensor:
    """One number for each channel, shaped to broadcast over a batch of images."""
    values = [float(value)] * channels if isinstance(value, (int, float)) else [float(v) for v in value]
    require(len(values) == channels, argument, f"one number or {channels}", value)
    return torch.tensor(values).view(1, channels, 1, 1)


# One pass of a model over a split.


def answers(model: nn.Module, images: Images) -> Logits:
    """The model's logits of some images; whatever else it does is an error in one line that names it."""
    kind = type(model).__name__
    try:
        logits = model(images)
    except SurefootError:
        raise
    except (Exception, SystemExit) as error:  # somebody else's code
        if isinstance(error, MemoryError) or "memory" in str(error):
            raise
        reason = (str(error).splitlines() or [""])[0]
        what = "called exit" if isinstance(error, SystemExit) else f"failed ({type(error).__name__}: {reason})"
        raise SurefootError(f"The model, {kind}, {what} on {len(images)} images of {tuple(images.shape[1:])}.") from error
    given = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    fits = isinstance(logits, Tensor) and logits.ndim == 2 and len(logits) == len(images)
    require(fits, f"The output of {kind}", f"images x classes for {len(images)} images", given)
    require(logits.is_floating_point(), f"The output of {kind}", "floating point", logits.dtype)
    checked: Logits = logits
    return checked


def predict(model: nn.Module, batches: Iterable[Batch], device: torch.device | str = "cpu") -> Predictions:
    """Logits for every batch, in evaluation mode, gathered on the CPU."""
    logits, labels, indices = [], [], []
    with evaluating(model), torch.inference_mode():
        for batch in batches:
            logits.append(answers(model, batch.images.to(device)).float().cpu())
            labels.append(batch.labels.cpu())
            indices.append(batch.indices)
    if not logits:
        raise SurefootError("The split has no images.")
    return Predictions.from_logits(torch.cat(logits), torch.cat(labels), indices=torch.cat(indices))


def transformed(batches: Iterable[Batch], change: Callable[[Batch], torch.Tensor]) -> Iterator[Batch]:
    """The same batches with their images changed."""
    for batch in batches:
        yield Batch(change(batch), batch.labels, batch.indices)


def pick_device(device: str = "auto") -> torch.device:
    """The device to compute on: an accelerator when there is one and none is named."""
    if device != "auto":
        require(device.partition(":")[0] != "meta", "device", "one that computes", device)
        try:
            return torch.empty(0, device=device).device
        except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch raises each of them, by backend
            reason = str(error).splitlines()[0]
            raise SurefootError(f"device must be one that this machine has, got '{device}' ({reason})") from error
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    return torch.device("cpu")
