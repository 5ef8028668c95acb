"""AugMix's nine operations at a level of 0 to 10 (Hendrycks et al. 2020), each image with its own operation and level."""

from __future__ import annotations

from torch import Tensor

from ..imageops.tone import autocontrast, equalize, posterize, solarize
from ..imageops.warp import rotations, shears, translations, warp
from ..types import Images

TONES = ("autocontrast", "equalize", "posterize", "solarize")
SHAPES = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
OPERATIONS = (*TONES, *SHAPES)


def operate(images: Images, operation: Tensor, level: Tensor) -> Images:
    """Change each image by the operation of that number in OPERATIONS; the sign of a level is a direction.

    The images of one operation are done together, and all changes of shape in one warp.
    """
    out = images.clone()
    for number, name in enumerate(TONES):
        where = (operation == number).nonzero().flatten()
        if len(where):
            out[where] = tone(images[where], name, level[where].abs())
    where = (operation >= len(TONES)).nonzero().flatten()
    if len(where):
        height, width = images.shape[2:]
        out[where] = warp(images[where], shapes(operation[where], level[where], height, width))
    return out


def tone(images: Images, name: str, level: Tensor) -> Images:
    """Level L keeps max(1, 4 - floor(0.4 L)) bits, and inverts from 256 - floor(25.6 L) of 255 upwards."""
    if name == "autocontrast":
        return autocontrast(images)
    if name == "equalize":
        return equalize(images)
    if name == "posterize":
        return posterize(images, (4 - (0.4 * level + 1e-6).floor()).clamp_min(1))
    return solarize(images, (256 - (25.6 * level + 1e-6).floor()) / 255)


def shapes(operation: Tensor, level: Tensor, height: int, width: int) -> Tensor:
    """Matrices: level L turns by floor(3 L) degrees, shears by 0.03 L, or moves by floor(L / 30 of the side) pixels.

    Shears are about the centre of the image; the authors' are about its corner, which moves the content by up to 0.015 L of the
    side besides.
    """
    sign, size = level.sign(), level.abs()
    chosen = {name: (operation == OPERATIONS.index(name)).to(level.dtype) for name in SHAPES}
    turn = rotations(chosen["rotate"] * sign * (3 * size + 1e-6).floor())
    shear = shears(chosen["shear_x"] * 0.03 * level, chosen["shear_y"] * 0.03 * level)
    steps = {side: sign * (size * side / 30 + 1e-6).floor() for side in (height, width)}
    move = translations(chosen["translate_x"] * steps[width], chosen["translate_y"] * steps[height])
    return turn @ shear @ move  # each image has one operation: the other two are the identity
