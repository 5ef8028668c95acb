"""A picture of one image under every corruption at every severity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import require
from ..files import replacing
from ..types import Images
from .engine import corrupt
from .families import NAMES

if TYPE_CHECKING:
    from PIL.Image import Image

SEVERITIES = (1, 2, 3, 4, 5)
LEAST, GAP, MARGIN = 64, 4, 132  # pixels: a picture's side, between pictures, for the names


def draw_sheet(image: Images, names: tuple[str, ...] = NAMES, *, seed: int = 0, index: int = 0, scale: str = "auto") -> Image:
    """A row for each corruption: its name, the image itself, and severities 1 to 5. `image` is channels x height x width."""
    from PIL import Image, ImageDraw

    require(image.ndim == 3, "image", "channels x height x width", tuple(image.shape))
    require(len(names) > 0, "names", "at least one", 0)
    image = image.float() / 255 if image.dtype == torch.uint8 else image
    draws: dict[str, Any] = {"seed": seed, "indices": torch.tensor([index]), "scale": scale}
    rows = [
        torch.cat([image[None], *(corrupt(image[None], name, severity, **draws) for severity in SEVERITIES)]) for name in names
    ]
    enlarged = [enlarge(row) for row in rows]
    height, width = (side + GAP for side in enlarged[0].shape[2:])
    margin = max(MARGIN, 8 + 6 * max(map(len, names)))
    sheet = Image.new("RGB", (margin + 6 * width, 20 + len(rows) * height), "white")
    pen = ImageDraw.Draw(sheet)
    for column, title in enumerate(["clean", *map(str, SEVERITIES)]):
        pen.text((margin + column * width + 2, 4), title, fill="black")
    for line, (name, row) in enumerate(zip(names, enlarged, strict=True)):
        top = 20 + line * height
        pen.text((4, top + height // 2 - 8), name, fill="black")
        joined = torch.cat(list(F.pad(row, (0, GAP, 0, 0), value=1.0)), 2).mul(255).round().byte()
        pixels = joined.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()
        sheet.paste(Image.fromarray(pixels), (margin, top))
    return sheet


def enlarge(images: Tensor) -> Tensor:
    """Small pictures by a whole factor, so that their pixels can be seen."""
    factor = max(1, LEAST // min(images.shape[2:]))
    return images.repeat_interleave(factor, 2).repeat_interleave(factor, 3)


def write_sheet(path: str | Path, image: Images, names: tuple[str, ...] = NAMES, **draws: Any) -> Path:
    """Draw the sheet into a PNG file; `draws` are seed, index and scale."""
    sheet = draw_sheet(image, names, **draws)
    with replacing(path) as beside:
        sheet.save(beside, "PNG")
    return Path(path)
