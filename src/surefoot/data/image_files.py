"""From a file to pixels, whatever the file (greyscale, palette, CMYK, 16 bits), and whether they fit into memory."""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..errors import SurefootError
from ..limits import check_limit, limit

if TYPE_CHECKING:
    from PIL.Image import Image


PIXELS = "SUREFOOT_MAX_PIXELS"
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".webp", ".tif", ".tiff", ".gif"})
SIXTEEN_BITS = frozenset({"I", "I;16", "I;16B", "I;16L", "I;16N"})


class BadImage(SurefootError):
    """A file that cannot be read as a picture."""

    def __init__(self, name: str | Path, reason: str) -> None:
        self.name, self.reason = str(name), reason
        super().__init__(f"Cannot read image '{name}': {reason}; remove it, or pass skip_bad_images (--skip-bad-images).")

    def __reduce__(self) -> tuple[type[BadImage], tuple[str, str]]:
        return (BadImage, (self.name, self.reason))


def read_image(file: str | Path | io.BytesIO, name: str | Path | None = None) -> Image:
    """An image file as RGB; `name` stands for it in an error."""
    from PIL import Image, UnidentifiedImageError

    try:
        check_file(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit follows
            if limit(PIXELS) > (Image.MAX_IMAGE_PIXELS or math.inf):
                Image.MAX_IMAGE_PIXELS = limit(PIXELS)  # the user has raised ours, and Pillow's would stay in its way
            opened = Image.open(file)
        with opened:
            check_limit(PIXELS, "its header claims pixels:", opened.width * opened.height)
            return to_rgb(opened)
    except Image.DecompressionBombError as error:
        raise BadImage(name or str(file), f"{str(error).split(',')[0]}: raise {PIXELS} if it is no mistake") from error
    except (OSError, UnidentifiedImageError, SyntaxError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadImage(name or str(file), reason.replace(f" '{file}'", "")) from error


def check_file(file: str | Path | io.BytesIO) -> None:
    """Refuse what is no file: a named pipe would be waited for without end."""
    if not isinstance(file, io.BytesIO) and Path(file).exists() and not Path(file).is_file():
        raise ValueError("it is no file")


def to_rgb(image: Image) -> Image:
    """The image in 8-bit RGB: 16 bits are scaled down (Pillow would cut them off), transparency is dropped.

    Pillow's mode decides, never the values, so that images of one set are read alike: `I;16` and its kin, and `I`, which
    Pillow gives for 16-bit PGM and TIFF files, hold 0 to 65,535 and are divided by 256, be they as dark as they may.
    """
    from PIL import Image

    if image.mode in SIXTEEN_BITS:
        levels = np.asarray(image).astype(np.int64)
        if levels.min() < 0 or levels.max() > 65535:
            raise ValueError(f"its levels are {levels.min()} to {levels.max()}, and 16 bits hold 0 to 65535")
        image = Image.fromarray((levels >> 8).astype(np.uint8))
    elif image.mode == "F":
        raise ValueError("floating-point images are not supported")
    return image.convert("RGB")


def to_tensor(image: Image) -> Tensor:
    """uint8, channels x height x width."""
    pixels = torch.from_numpy(np.array(image))
    return pixels.unsqueeze(0) if pixels.ndim == 2 else pixels.permute(2, 0, 1).contiguous()


# Refuse in one line what would not fit into memory, before hours are lost to a process that the system kills.


COPIES = 2  # the images, and what is made of them: noisy, attacked or joined ones


def check_room(images: int, one: Tensor) -> None:
    """Whether so many images like `one` can be held together where it lies."""
    free = available(one.device)
    needed = COPIES * images * one.nbytes
    if needed > free:
        size, fits = " x ".join(map(str, one.shape)), free // (COPIES * one.nbytes)
        raise SurefootError(
            f"{images:,} images of {size} need {needed / 2**30:.1f} GiB at once, and {free / 2**30:.1f} are free: "
            f"take at most {fits:,} of them (--max-images, max_images=)."
        )


def available(device: torch.device) -> int:
    """Free bytes of the device, or of the machine."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    import psutil

    return int(psutil.virtual_memory().available)
