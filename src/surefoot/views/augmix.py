"""AugMix's images: several chains of simple operations, mixed with each other and with the image (Hendrycks et al. 2020)."""

from __future__ import annotations

import torch

from ..errors import require
from ..seeds import beta, dirichlet, draw
from ..types import Images
from .base import View
from .operations import OPERATIONS, operate

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
