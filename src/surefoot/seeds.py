"""Randomness is derived from named keys, so a resumed or distributed run draws the same numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from .errors import require
from .keys import Key as Key
from .keys import derive as derive

THREADED = 1 << 15  # numbers for an image; for fewer, threads cost more than they gain


def generator(*keys: Key, device: torch.device | str = "cpu") -> torch.Generator:
    """A fresh generator for these keys."""
    return torch.Generator(device=device).manual_seed(derive(*keys))


def default_generator(device: torch.device) -> torch.Generator:
    """torch's own generator of a device, where one must be named."""
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "mps":
        return torch.mps._get_default_mps_generator()
    module = getattr(torch, device.type)
    own: torch.Generator = module.default_generators[module.current_device() if device.index is None else device.index]
    return own


def reseed(device: torch.device, *keys: Key) -> None:
    """Seed torch's global generators of the CPU and of one device.

    Not `torch.manual_seed`, which, where CUDA is built in but not used, stores a stack trace for every call.
    """
    torch.default_generator.manual_seed(derive(*keys))
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(derive(*keys))


def reseed_all(*keys: Key) -> None:
    """Seed torch's global generators of every device that is there; of the CPU alone without a stack trace, as above."""
    if torch.accelerator.is_available():
        torch.manual_seed(derive(*keys))
    else:
        torch.default_generator.manual_seed(derive(*keys))


_SHARD: ContextVar[tuple[int, int]] = ContextVar("shard", default=(0, 1))


@contextmanager
def sharded(rank: int, processes: int) -> Iterator[None]:
    """Inside the block, `draw` makes numbers for the batches of all processes and gives this process its own."""
    token = _SHARD.set((rank, processes))
    try:
        yield
    finally:
        _SHARD.reset(token)


_ROWS: ContextVar[tuple[Tensor, int] | None] = ContextVar("rows", default=None)


@contextmanager
def drawn_for(rows: Tensor, count: int) -> Iterator[None]:
    """Inside the block, images are these rows of a batch of `count`: `draw` makes the numbers of all and gives theirs."""
    outer = _ROWS.get()
    token = _ROWS.set((rows, count) if outer is None else (outer[0][rows], outer[1]))
    try:
        yield
    finally:
        _ROWS.reset(token)


def draw(sample: Callable[..., Tensor], shape: Sequence[int], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """`sample` (torch.randn, torch.rand) of a shape whose first dimension is the batch, on the device and dtype of `like`.

    Drawn where the generator lives, so that a device does not change the numbers. `sharded` and `drawn_for` say whose they are.
    """
    rank, processes = _SHARD.get()
    device = like.device if generator is None else generator.device
    dtype = like.dtype if like.is_floating_point() else torch.float32
    rows, count = _ROWS.get() or (None, shape[0])
    require(rows is None or shape[0] == len(rows), "shape", f"{0 if rows is None else len(rows)} images first", tuple(shape))
    whole = sample((count * processes, *shape[1:]), generator=generator, device=device, dtype=dtype)
    own = whole[rank * count : (rank + 1) * count]
    return (own if rows is None else own[rows.to(device)]).to(like.device)


def log_gamma(alpha: float, shape: Sequence[int], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Logarithms of draws from Gamma(alpha, 1), batch first, in float64.

    Gamma(alpha) is Gamma(alpha + 1) * U^(1 / alpha): the draws themselves underflow for small alpha, their logarithms do not.
    """

    def sample(size: Sequence[int], generator: torch.Generator | None, device: torch.device, dtype: torch.dtype) -> Tensor:
        # the sampler behind torch.distributions.Gamma, which itself takes no generator
        above = torch._standard_gamma(torch.full(size, alpha + 1, dtype=torch.float64, device=device), generator=generator)
        share = 1 - torch.rand(size, dtype=torch.float64, device=device, generator=generator)
        return above.log() + share.log() / alpha

    return draw(sample, shape, like, generator)


def beta(alpha: float, shape: Sequence[int], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Beta(alpha, alpha), batch first."""
    pair = log_gamma(alpha, (*shape, 2), like, generator)
    return (pair[..., 0] - pair[..., 1]).sigmoid().to(like.dtype)


def dirichlet(alpha: float, shape: Sequence[int], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Dirichlet(alpha, ..., alpha) over the last dimension, batch first."""
    return log_gamma(alpha, shape, like, generator).softmax(-1).to(like.dtype)


@contextmanager
def global_seed(*keys: Key) -> Iterator[None]:
    """Run with torch's global generators seeded from these keys, and put the caller's back afterwards."""
    with torch.random.fork_rng():
        reseed_all(*keys)
        yield


def check_indices(indices: Tensor | None, count: int) -> Tensor:
    """Places of images in their data set, one whole number for each: 0, 1, ... if not given."""
    checked = torch.arange(count) if indices is None else torch.as_tensor(indices)
    require(checked.ndim == 1 and len(checked) == count, "indices", f"one for each of {count} images", checked.numel())
    whole = not (checked.is_floating_point() or checked.dtype == torch.bool)
    require(whole, "indices", "whole numbers", checked.dtype)
    return checked


class ImageDraws:
    """Draws for each image of a batch, seeded by (seed, name, image index), made on the CPU.

    They belong to the image, not to its batch, device or process. Severity and budget are no keys: an image sees the same draws
    at each of them, so they are paired. Who needs two sets of numbers tells them apart by `purpose`. A generator is reseeded
    for each image, the only loop over images here.
    """

    def __init__(self, seed: int, name: str, indices: Tensor) -> None:
        self.keys = [(seed, name, index) for index in indices.tolist()]

    def normal(self, shape: tuple[int, ...], purpose: str = "") -> Tensor:
        """Standard normal numbers, images x shape."""
        return self._fill(Tensor.normal_, shape, purpose)

    def uniform(self, shape: tuple[int, ...], purpose: str = "") -> Tensor:
        """Numbers in [0, 1), images x shape."""
        return self._fill(Tensor.uniform_, shape, purpose)

    def _fill(self, fill: Callable[..., Tensor], shape: tuple[int, ...], purpose: str) -> Tensor:
        out = torch.empty(len(self.keys), *shape)
        extra = (purpose,) if purpose else ()

        def part(rows: slice) -> None:
            generator = torch.Generator()
            for row, key in zip(out[rows], self.keys[rows], strict=True):
                fill(row, generator=generator.manual_seed(derive(*key, *extra)))

        workers = torch.get_num_threads() if out[:1].numel() >= THREADED else 1
        if workers == 1:
            part(slice(None))
        else:
            with ThreadPoolExecutor(workers) as threads:
                deque(threads.map(part, [slice(begin, None, workers) for begin in range(workers)]), maxlen=0)
        return out
