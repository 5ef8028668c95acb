"""From the pixels that somebody's object gives to uint8: their range, the order of channels, and a normalisation to undo."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..errors import SurefootError, require
from .image_files import to_rgb, to_tensor

if TYPE_CHECKING:
    from PIL.Image import Image

CHANNEL_ORDERS = ("first", "last")
COUNTS = (1, 3)  # of channels
ITEM_IMAGES = ("image", "images", "img", "pixel_values", "pixels", "x")
ITEM_LABELS = ("label", "labels", "target", "targets", "class", "y", "fine_label")
SLACK = 2e-3  # of the pixel range: what a normalisation and its undoing may round
EXACT = 1e-3  # of a level of 255: below, nothing is lost by 8 bits


def named(item: Collection[Any], words: Sequence[str], what: str) -> str:
    """The key of a dictionary that holds the images or the labels."""
    found = [word for word in words if word in item]
    if not found:
        known = ", ".join(map(str, item))
        raise SurefootError(f"The data have no {what} called {', '.join(words[:-1])} or {words[-1]}, but {known}.")
    return found[0]


def is_pictures(one: Any) -> bool:
    return one.ndim == 2 or (one.ndim == 3 and (one.shape[0] in COUNTS or one.shape[-1] in COUNTS))


@dataclass(frozen=True)
class Pixels:
    """How values become levels of 255: (value * std + mean) * factor; `last` says where channels stand.

    `found` is what was found out, for the page. It is judged on a sample, and every other image must agree.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    factor: float
    last: bool
    found: tuple[str, ...]

    @classmethod
    def of(
        cls,
        sample: Sequence[Any],
        normalised: tuple[Any, Any] | None,
        channel_order: str | None,
        by_transform: bool = False,
    ) -> Pixels:
        """The rule for images like these: Pillow's, arrays or tensors."""
        if all(hasattr(image, "convert") for image in sample):
            return cls((0.0,), (1.0,), 1.0, True, ("pictures of Pillow, read as RGB",))
        values = [torch.as_tensor(np.asarray(image)) if not isinstance(image, Tensor) else image for image in sample]
        require(all(is_pictures(each) for each in values), "images", "channels x height x width", tuple(values[0].shape))
        last, order = channels_last(values[0].shape, channel_order)
        numbers = [each.double() for each in values]
        low, high = min(float(each.min()) for each in numbers), max(float(each.max()) for each in numbers)
        if not all(each.is_floating_point() for each in values):
            if low < 0 or high > 255:
                raise SurefootError(f"Pixels that are whole numbers must be 0 to 255, got {low:g} to {high:g}.")
            return cls((0.0,), (1.0,), 1.0, last, (f"pixels are whole numbers from 0 to 255, channels {order}",))
        said = f"pixels are floats from {low:.3g} to {high:.3g}, channels {order}"
        if normalised is not None:
            mean, std = (tuple(float(v) for v in np.atleast_1d(np.asarray(each, float))) for each in normalised)
            by = "the transform's normalisation" if by_transform else "the normalisation that was given"
            shown = f"mean {', '.join(f'{v:g}' for v in mean)}, std {', '.join(f'{v:g}' for v in std)}"
            rule = cls(mean, std, 255.0, last, (f"{said}; {by} was undone ({shown})",))
        elif low >= 0 and high <= 1:
            rule = cls((0.0,), (1.0,), 255.0, last, (said,))
        elif low >= 0 and high <= 255 and all(bool((each == each.round()).all()) for each in numbers):
            rule = cls((0.0,), (1.0,), 1.0, last, (f"{said}; they are divided by 255",))
        else:
            raise SurefootError(
                f"Pixels reach from {low:.3g} to {high:.3g}, as after a normalisation: leave it out (the model has its own "
                "inside), or say which it was, normalised=(mean, std)."
            )
        rounded = max(float((levels - levels.round()).abs().max()) for levels in map(rule.levels, values))
        lost = f"they are rounded to 8 bits, by at most {rounded / 255:.2g}" if rounded > EXACT else None
        return cls(rule.mean, rule.std, rule.factor, last, (*rule.found, *([lost] if lost else [])))

    def levels(self, image: Tensor) -> Tensor:
        """Levels of 255 as floats, channels first; of one image or of many."""
        single = image.ndim == 2
        pixels = image.unsqueeze(0) if single else image.movedim(-1, -3) if self.last else image
        shape = (-1, 1, 1)
        values = pixels.double()
        return (
            values * torch.tensor(self.std).double().view(shape) + torch.tensor(self.mean).double().view(shape)
        ) * self.factor

    def one(self, image: Any, index: int) -> Tensor:
        """uint8, channels x height x width."""
        if hasattr(image, "convert"):
            return to_tensor(to_rgb(image))
        pixels = image if isinstance(image, Tensor) else torch.as_tensor(np.asarray(image))
        return checked(self.levels(pixels), f"Image {index}")

    def many(self, images: Tensor) -> Tensor:
        """The same for count x channels x height x width, or count x height x width."""
        grey = images.ndim == 3
        blocks = [self.block(part.unsqueeze(1) if grey else part, grey) for part in images.split(1024)]
        return torch.cat(blocks)

    def block(self, images: Tensor, grey: bool) -> Tensor:
        rule = Pixels(self.mean, self.std, self.factor, False, ()) if grey else self
        return checked(rule.levels(images), "An image")

    def picture(self, image: Any, index: int) -> Image:
        """The image as Pillow's, for resizing."""
        from PIL import Image

        if hasattr(image, "convert"):
            return to_rgb(image)
        pixels = self.one(image, index).permute(1, 2, 0).numpy()
        return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def channels_last(shape: Sequence[int], channel_order: str | None) -> tuple[bool, str]:
    """Whether channels stand at the end of an image of this shape, and in words; refused where both may be."""
    if len(shape) == 2:
        return False, "one"
    first, last = shape[0] in COUNTS, shape[-1] in COUNTS
    if channel_order is not None:
        require(last if channel_order == "last" else first, "channel_order", "where 1 or 3 channels are", channel_order)
        return channel_order == "last", f"{channel_order}, as given"
    if first and last:
        raise SurefootError(f"Channels may stand first or last in {tuple(shape)}: say channel_order='first' or 'last'.")
    return last, "last" if last else "first"


def checked(levels: Tensor, what: str) -> Tensor:
    low, high = (float(v) for v in levels.aminmax())
    if not (low >= -255 * SLACK and high <= 255 * (1 + SLACK)):
        shown = f"{low / 255:.3g} to {high / 255:.3g}"
        raise SurefootError(f"{what} has pixels from {shown} instead of 0 to 1, unlike those that were looked at first.")
    return levels.round().clamp(0, 255).to(torch.uint8)
