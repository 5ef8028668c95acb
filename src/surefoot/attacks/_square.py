"""Square (Andriushchenko et al. 2020): random search by squares that needs scores alone, no gradient; L-inf and L2."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor, nn

from ..errors import UnknownName, require
from ..models.classifier import margins_of
from ..types import Images, Labels
from .gradients import is_randomised, warn_if_randomised
from .norms import Ball, Rows, Source, lengths, sources, uniform
from .survivors import Standing, standing

HALVINGS = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)  # queries of 10,000 after which the square's share is halved
BLOCK = 250  # queries that are drawn at a time
NORMS = ("linf", "l2")
MOST_CHANNELS = 4  # of pictures whose squares are remembered: there are 2 ** channels for each place
TINY = 1e-12


def square(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    norm: str = "linf",
    queries: int = 1000,
    p: float = 0.8,
    rescale: bool = True,
    *,
    seed: int = 0,
    indices: Tensor | None = None,
) -> Images:
    """Adversarial images where one was found in the ball, the clean ones elsewhere; an image leaves as soon as it is broken.

    Each query changes a random square, and stays if the margin got smaller. The square's share of the picture begins at `p`
    and is halved as published for 10,000 queries, or for fewer in proportion; without `rescale` at the published numbers, as
    AutoAttack does. Draws belong to the image. A query whose answer is known, since its square changes nothing or was tried at
    the same point before, counts, but the model is not asked, unless it says that it is randomised.
    """
    ball = Ball(norm, eps)
    if norm not in NORMS:
        raise UnknownName("norm", norm, NORMS)
    require(queries >= 1, "queries", "at least 1", queries)
    require(0 < p <= 1, "p", "in (0, 1]", p)
    source = sources("square", len(images), None, seed, indices)
    with standing(model, images, labels) as left, torch.no_grad():
        if left and eps > 0:
            warn_if_randomised(model, "use AutoAttack's version='rand'")
            search(model, left, ball, source, queries, p, rescale)
        return left.found


def share_at(query: int, queries: int, p: float, rescale: bool) -> float:
    """The share of the picture that a square has at a query, counted from 0."""
    place = query * 10000 // queries if rescale else query
    return float(p / 2 ** sum(place > halving for halving in HALVINGS))


def side_of(share: float, height: int, width: int, norm: str) -> int:
    """The side of the square: in L2 odd and at least 3, where the picture is as large."""
    side = max(round(math.sqrt(share * height * width)), 1)
    if norm == "l2":
        side = max(side, 3)
        side += side % 2 == 0
    return min(side, height, width)


def search(
    model: nn.Module, left: Standing, ball: Ball, source: Callable[[Tensor], Source], queries: int, p: float, rescale: bool
) -> None:
    """The first pattern, and then a square for each query, on the images that stand."""
    rows, images = left.rows, left.images[left.rows]
    labels = left.labels[rows]
    channels, height, width = images.shape[1:]
    start, each = (stripes, 2 + channels) if ball.norm == "linf" else (tiles, 5 + channels)
    points = new = start(source(rows), images, ball.eps)
    smallest = torch.full((len(rows),), torch.inf, dtype=images.dtype, device=images.device)
    tried = Tried(images, again=ball.norm != "linf" or is_randomised(model))
    block, sides = images, list[int]()
    for query in range(queries + 1):
        asked: Rows = slice(None)
        if query:
            place = (query - 1) % BLOCK
            if place == 0:
                shares = (share_at(number, queries, p, rescale) for number in range(query - 1, query - 1 + BLOCK))
                sides = [side_of(share, height, width, ball.norm) for share in shares]
                block = uniform(source(rows), (len(rows), BLOCK, each), images, f"queries from {query}")
                block = numbered(block, images, sides) if ball.norm == "linf" else block
            if ball.norm == "linf":
                asked, new = recolour(block[:, place], images, points, ball.eps, sides[place], tried)
            else:
                new = reshape(block[:, place], images, points, ball.eps, sides[place])
        if not len(new):
            continue
        logits = model(new)
        margins, broken = margins_of(logits, labels[asked]).to(smallest), logits.argmax(1) != labels[asked]
        better = margins < smallest[asked]
        points[asked] = torch.where(better[:, None, None, None], new, points[asked])
        smallest[asked] = torch.minimum(smallest[asked], margins)
        tried.forget(asked, better)
        if bool(broken.any()):
            left.leave(rows[asked][broken], new[broken])
            stays = torch.ones_like(rows, dtype=torch.bool)
            stays[asked] = ~broken
            rows, labels, images, points = rows[stays], labels[stays], images[stays], points[stays]
            smallest, block, tried.known = smallest[stays], block[stays], tried.known[stays]
            if not len(rows):
                return


def signs_of(numbers: Tensor) -> Tensor:
    """-1 or 1 from numbers in [0, 1)."""
    return torch.where(numbers < 0.5, -1.0, 1.0).to(numbers)


def corners(numbers: Tensor, images: Images, side: int) -> tuple[Tensor, Tensor]:
    """Where squares begin, from two numbers in [0, 1) for each: any place is as likely."""
    spread = numbers.new_tensor([images.shape[2] - side + 1, images.shape[3] - side + 1])
    top, begin = (numbers * spread).long().unbind(1)
    return top, begin


def inside(top: Tensor, begin: Tensor, images: Images, side: int) -> Tensor:
    """Which pixels are in the square of each image, images x 1 x height x width."""
    down, across = (torch.arange(size, device=images.device) for size in images.shape[2:])
    vertical = (down >= top[:, None]) & (down < top[:, None] + side)
    horizontal = (across >= begin[:, None]) & (across < begin[:, None] + side)
    return (vertical[:, :, None] & horizontal[:, None, :])[:, None]


# L-inf: every pixel is at a bound of the ball, and a square gets one of them for each channel.


def stripes(source: Source, images: Images, eps: float) -> Images:
    """Vertical stripes, one pixel wide."""
    count, channels, _, width = images.shape
    return (images + eps * signs_of(uniform(source, (count, channels, 1, width), images, "stripes"))).clamp_(0, 1)


class Tried:
    """Which squares a model was asked about since an image's point last changed: it would say the same.

    A randomised one is asked `again`. `known` is images x (places x colours), of squares of one side: empty where nothing is
    remembered.
    """

    def __init__(self, images: Images, again: bool) -> None:
        channels, height, width = images.shape[1:]
        self.again, self.side = again, 0
        squares = 0 if again or channels > MOST_CHANNELS else height * width * 2**channels
        self.known = torch.zeros(len(images), squares, dtype=torch.bool, device=images.device)

    def ask(self, squares: Tensor, side: int) -> Tensor:
        """Which of these squares, one for each image, are new; they are known from now on."""
        if not self.known.shape[1]:
            return torch.ones_like(squares, dtype=torch.bool)
        if side != self.side:
            self.known.zero_()
            self.side = side
        new = ~self.known.gather(1, squares[:, None]).squeeze(1)
        self.known.scatter_(1, squares[:, None], True)
        return new

    def forget(self, asked: Rows, moved: Tensor) -> None:
        """Some of the images that were asked about have another point now."""
        if self.known.shape[1] and bool(moved.any()):
            self.known[torch.arange(len(self.known), device=moved.device)[asked][moved]] = False


def numbered(block: Tensor, images: Images, sides: list[int]) -> Tensor:
    """The squares of a block of queries as whole numbers, images x queries: a bit for each channel, above them the place."""
    channels, height, width = images.shape[1:]
    spread = block.new_tensor([(height - side + 1, width - side + 1) for side in sides])
    top, begin = (block[..., :2] * spread).long().unbind(2)
    bits = (block[..., 2:] >= 0.5) * 2 ** torch.arange(channels, device=block.device)
    return (top * width + begin << channels) + bits.sum(2)


@lru_cache(maxsize=64)
def pixels(channels: int, height: int, width: int, side: int) -> Tensor:
    """The pixels of the first square of a flattened picture, channel by channel."""
    steps = torch.arange(side)
    first = torch.arange(channels)[:, None, None] * height * width
    return (first + steps[:, None] * width + steps).flatten()


def recolour(squares: Tensor, images: Images, points: Images, eps: float, side: int, tried: Tried) -> tuple[Rows, Images]:
    """A square at the bound that its bits choose for each channel, and the images that have to be asked about."""
    channels, height, width = images.shape[1:]
    where = (squares >> channels)[:, None] + pixels(channels, height, width, side).to(images.device)
    up = (squares[:, None] >> torch.arange(channels, device=images.device)) & 1
    signs = (2 * up - 1).to(images).repeat_interleave(side * side, 1)
    flat = images.flatten(1).gather(1, where).add_(signs, alpha=eps).clamp_(0, 1)
    if tried.again:
        return slice(None), points.flatten(1).scatter(1, where, flat).view_as(points)
    changes = (flat != points.flatten(1).gather(1, where)).any(1)
    asked = (tried.ask(squares, side) & changes).nonzero().flatten()
    return asked, points[asked].flatten(1).scatter_(1, where[asked], flat[asked]).view(-1, channels, height, width)


# L2: the budget of one square moves to another, where it is added as a pattern of two bumps of opposite sign.


@lru_cache(maxsize=64)
def bumps(side: int) -> Tensor:
    """Two half squares, each highest in its middle, one positive and one negative; of length 1."""

    def bump(height: int, width: int) -> Tensor:
        away = torch.maximum(
            (torch.arange(height) - height // 2).abs()[:, None], (torch.arange(width) - width // 2).abs()[None, :]
        )
        rings = torch.arange(1, max(height // 2, width // 2) + 2, dtype=torch.float64) ** -2.0
        heights = rings.flip(0).cumsum(0).flip(0)[away]  # all rings that reach so far
        normed: Tensor = heights / heights.norm().clamp_min(TINY)
        return normed

    whole = torch.cat([bump(side // 2, side), -bump(side - side // 2, side)])
    normed: Tensor = whole / whole.norm()
    return normed


def turned(pattern: Tensor, numbers: Tensor) -> Tensor:
    """The pattern or its transpose, as the numbers say."""
    return torch.where(numbers < 0.5, pattern, pattern.T)


def tiles(source: Source, images: Images, eps: float) -> Images:
    """The bumps on tiles of a fifth of the picture."""
    count, channels, height, width = images.shape
    side = max(min(height, width) // 5, 1)
    down, across = height // side, width // side
    numbers = uniform(source, (count, channels + 1, down, across), images, "tiles")
    spread = numbers.repeat_interleave(side, 2).repeat_interleave(side, 3)
    tile = bumps(side).to(images)
    pattern = torch.where(spread[:, -1:] < 0.5, tile.repeat(down, across), tile.T.repeat(down, across))
    above, before = (height - down * side) // 2, (width - across * side) // 2
    change = torch.zeros_like(images)
    change[:, :, above : above + down * side, before : before + across * side] = pattern * signs_of(spread[:, :-1])
    return stretched(change, images, eps)


def stretched(change: Tensor, images: Images, eps: float) -> Images:
    """The change at the length of the budget, and then inside [0, 1]."""
    return (images + eps * change / lengths(change).clamp_min(TINY)).clamp_(0, 1)


def reshape(numbers: Tensor, images: Images, points: Images, eps: float, side: int) -> Images:
    """Empty one square, and give what it had, and what was left of the budget, to new bumps on another."""
    channels = images.shape[1]
    change = points - images
    top, begin = corners(numbers[:, :2], images, side)
    here, there = inside(top, begin, images, side), inside(*corners(numbers[:, 2:4], images, side), images, side)

    def length_in(values: Tensor) -> Tensor:
        norms: Tensor = torch.linalg.vector_norm(values, dim=(2, 3), keepdim=True)
        return norms

    unused = (eps**2 - lengths(change) ** 2).clamp_min(0) / channels
    budget = (unused + length_in(change * (here | there)) ** 2).sqrt()
    steps = torch.arange(side, device=images.device)
    place = (
        torch.arange(len(images), device=images.device)[:, None, None, None],
        torch.arange(channels, device=images.device)[None, :, None, None],
        (top[:, None] + steps)[:, None, :, None],
        (begin[:, None] + steps)[:, None, None, :],
    )
    old = change[place]
    pattern = turned(bumps(side).to(images), numbers[:, 4, None, None, None]) * signs_of(numbers[:, 5:])[:, :, None, None]
    new = pattern + old / (length_in(old) + TINY)
    change = change.masked_fill(there, 0)
    change[place] = new / (length_in(new) + TINY) * budget
    return stretched(change, images, eps)
