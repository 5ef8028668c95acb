"""Resize and crop, as the model wants it; corruptions and attacks come after."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from ..errors import SurefootError, require
from .arguments import check_resizing, check_size
from .image_files import to_tensor
from .settings import ModelSettings

if TYPE_CHECKING:
    from PIL.Image import Image

Size = tuple[int, int]
CROP_MODES = ("center", "squash")
TINY = 64  # images of one size up to this side are left as they are


@dataclass(frozen=True)
class Preprocessing:
    """Resize to cover image_size / crop_pct ("squash": to it, each side for itself), then cut the centre, as timm does."""

    image_size: Size
    crop_pct: float = 1.0
    interpolation: str = "bilinear"
    crop_mode: str = "center"

    def __post_init__(self) -> None:
        require(min(self.image_size) >= 1, "image_size", "positive", self.image_size)
        check_resizing(self.crop_pct, self.interpolation)
        if self.crop_mode not in CROP_MODES:  # timm's "border", which six of its weights have
            raise SurefootError(f"The model wants its images in crop mode '{self.crop_mode}', which is not supported.")

    def __call__(self, image: Image) -> Tensor:
        """A picture as uint8, channels x height x width."""
        from torchvision.transforms import InterpolationMode
        from torchvision.transforms import functional as F

        height, width = self.image_size
        cover = [math.floor(side / self.crop_pct) for side in self.image_size]
        if self.crop_mode == "squash":
            scaled = cover
        elif height == width:
            scaled = _short_side(image.height, image.width, cover[0])
        else:
            ratio = max(cover[0] / image.height, cover[1] / image.width)
            scaled = [max(height, round(image.height * ratio)), max(width, round(image.width * ratio))]
        if [image.height, image.width] != scaled:
            image = F.resize(image, scaled, InterpolationMode(self.interpolation))
        if scaled != [height, width]:
            image = F.center_crop(image, [height, width])
        return to_tensor(image)


def _short_side(height: int, width: int, side: int) -> list[int]:
    """The shorter side becomes `side`, the longer one follows, rounded down as torchvision does."""
    return [side, int(side * width / height)] if height <= width else [int(side * height / width), side]


def choose_preprocessing(
    native: Size | None,
    image_size: int | Size | None,
    crop_pct: float | None,
    interpolation: str | None,
    settings: ModelSettings | None,
    certain: bool = True,
) -> Preprocessing | None:
    """What to do with images whose common size is `native` (None if they differ); None leaves them alone.

    Without `certain`, only some were looked at for their size, and a requested one is made of all.

    What the user says wins. Else images of one size of at most 64 px stay as they are (models get a stem that fits), and others
    follow the model's own settings.
    """
    size: tuple[int, int] | None = (image_size, image_size) if isinstance(image_size, int) else image_size
    check_size(image_size)
    check_resizing(crop_pct, interpolation)
    said = crop_pct is not None or interpolation is not None
    if size is None and native is not None and not said and (settings is None or min(native) <= TINY):
        return None
    base = settings if settings is not None and (native is None or min(native) > TINY) else None
    size = (size[0], size[1]) if size is not None else base.image_size if base else native
    if size is None:
        raise SurefootError("image_size must be given (or a model whose size to use): the images differ in size.")
    crop = crop_pct if crop_pct is not None else base.crop_pct if base else 1.0
    mode = interpolation or (base.interpolation if base else "bilinear")
    if native == size and crop == 1.0 and (certain or image_size is None):
        return None
    return Preprocessing(size, crop, mode, base.crop_mode if base else "center")
