"""RayS (Chen and Gu 2020): the nearest wrong label along a sign vector, from predicted labels alone; L-inf."""

from __future__ import annotations

from itertools import chain, cycle, pairwise

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Images, Labels
from .gradients import warn_if_randomised
from .norms import Ball
from .survivors import Standing, standing

TOLERANCE = 0.02  # of the search for a radius, as a share of eps


def rays(model: nn.Module, images: Images, labels: Labels, eps: float = 8 / 255, queries: int = 1000) -> Images:
    """Adversarial images where one was found in the ball, the clean ones elsewhere; an image leaves as soon as it is broken.

    A direction is a sign for each pixel. Blocks of signs are flipped in turn, half as long in each round; a flip is kept if the
    model is wrong at the smallest radius known, which is then searched anew. No draws, no scores, no gradients. The search ends
    after so many `queries` of an image.
    """
    ball = Ball("linf", eps)
    require(queries >= 1, "queries", "at least 1", queries)
    with standing(model, images, labels) as left, torch.no_grad():
        if left and eps > 0:
            warn_if_randomised(model, "its labels differ from call to call")
            search(model, left, ball, queries)
        return left.found


def search(model: nn.Module, left: Standing, ball: Ball, queries: int) -> None:
    """Directions, radii and queries spent of the images that stand; radius 1 reaches a corner of the pixels' range."""
    rows, images = left.rows, left.images[left.rows]
    directions, radii = torch.ones_like(images).flatten(1), torch.ones(len(rows), dtype=images.dtype, device=images.device)
    spent = torch.zeros(len(rows), dtype=torch.long, device=images.device)

    def wrong_at(chosen: Tensor, ways: Tensor, sizes: Tensor) -> Tensor:
        spent[chosen] += 1
        points = at(images[chosen], ways, sizes)
        return left.wrong(model(points), rows[chosen])

    for begin, end in chain([(0, 0)], cycle(blocks(directions.shape[1]))):  # first as it is
        chosen = (spent < queries).nonzero().flatten()
        if not len(chosen):
            return
        ways = directions[chosen].clone()
        ways[:, begin:end] *= -1
        hit = wrong_at(chosen, ways, radii[chosen])
        chosen, ways = chosen[hit], ways[hit]
        low, high = torch.zeros_like(radii[chosen]), radii[chosen].clone()
        while bool((open_ := (high - low > TOLERANCE * ball.eps) & (spent[chosen] < queries) & (high > ball.eps)).any()):
            middle = torch.where(open_, (low + high) / 2, high)
            inside = torch.ones_like(open_)
            inside[open_] = wrong_at(chosen[open_], ways[open_], middle[open_])
            high, low = torch.where(open_ & inside, middle, high), torch.where(open_ & ~inside, middle, low)
        directions[chosen], radii[chosen] = ways, high
        near = radii[chosen] <= ball.eps
        if bool(near.any()):
            broken = torch.zeros_like(rows, dtype=torch.bool)
            broken[chosen[near]] = True
            left.leave(rows[broken], at(images, directions, radii)[broken])
            rows, images, directions, radii, spent = (part[~broken] for part in (rows, images, directions, radii, spent))
            if not len(rows):
                return


def at(images: Images, directions: Tensor, radii: Tensor) -> Images:
    """The points so far along their directions, inside [0, 1]."""
    return (images + radii[:, None, None, None] * directions.view_as(images)).clamp(0, 1)


def blocks(pixels: int) -> list[tuple[int, int]]:
    """The whole vector, its halves, its quarters, and so on down to single pixels; none is empty."""
    found, parts = list[tuple[int, int]](), 1
    while parts < 2 * pixels:
        edges = [round(pixels * part / parts) for part in range(parts + 1)]
        found += [(a, b) for a, b in pairwise(edges) if b > a]
        parts *= 2
    return found
