"""AugMix's operations, and its images: chains of them, mixed with each other and with the image."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import require
from ..imageops.tone import autocontrast, equalize, posterize, solarize
from ..imageops.warp import rotations, shears, translations, warp
from ..seeds import beta, dirichlet, draw
from ..types import Images
from .base import View

# AugMix's nine operations at a level of 0 to 10 (Hendrycks et al. 2020), each image with its own operation and level.


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


# AugMix's images: several chains of simple operations, mixed with each other and with the image (Hendrycks et al. 2020).


LONGEST = 3


class AugMixChains(View):
    """(1 - m) x + m sum_k w_k chain_k(x), with w ~ Dirichlet(alpha), m ~ Beta(alpha, alpha) for each image.

    A chain is 1 to 3 operations (or `depth` of them) at levels from U(0.1, severity).
    """

    def __init__(self, severity: float = 3, width: int = 3, depth: int | None = None, alpha: float = 1.0) -> None:
        require(0.1 <= severity <= 10, "severity", "in [0.1, 10]", severity)
        require(width >= 1, "width", "at least 1", width)
        require(depth is None or depth >= 1, "depth", "at least 1", depth)
        require(alpha > 0, "alpha", "positive", alpha)
        self.severity, self.width, self.depth, self.alpha = severity, width, depth, alpha

    @torch.no_grad()
    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        count, width, longest = len(images), self.width, self.depth or LONGEST
        weights = dirichlet(self.alpha, (count, width), images, generator)
        share = beta(self.alpha, (count, 1, 1, 1), images, generator)
        draws = draw(torch.rand, (count, 3, width, longest), images, generator).unbind(1)
        operation = (draws[0] * len(OPERATIONS)).long()
        level = 0.1 + (self.severity - 0.1) * draws[1]
        level = torch.where(draws[2] < 0.5, -level, level)
        length = 1 + (LONGEST * draw(torch.rand, (count, width), images, generator)).long()
        if self.depth is not None:
            length.fill_(self.depth)
        chains = images.unsqueeze(1).expand(-1, width, *images.shape[1:]).flatten(0, 1).clone()
        length, operation, level = length.flatten(), operation.flatten(0, 1), level.flatten(0, 1)
        for step in range(longest):
            going = (length > step).nonzero().flatten()
            chains[going] = operate(chains[going], operation[going, step], level[going, step])
        mixed = torch.einsum("bw,bwchx->bchx", weights, chains.view(count, width, *images.shape[1:]))
        return torch.lerp(images, mixed, share)
