"""Randomness is derived from named keys, so a resumed or distributed run draws the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

import torch

Key = int | str


def derive(*keys: Key) -> int:
    """A 63-bit seed from a list of keys such as (seed, epoch, step, "order")."""
    digest = blake2b(repr(keys).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(*keys: Key, device: torch.device | str = "cpu") -> torch.Generator:
    """A fresh generator for these keys."""
    return torch.Generator(device=device).manual_seed(derive(*keys))


@contextmanager
def global_seed(*keys: Key) -> Iterator[None]:
    """Run with torch's global generators seeded from these keys, and put the caller's back afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(derive(*keys))
        yield
