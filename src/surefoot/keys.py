"""Seeds from named keys, without torch, since comparisons of audits draw too."""

from __future__ import annotations

from hashlib import blake2b
from operator import index

Key = int | str
LARGEST = 2**63 - 1  # seed that is taken from a user


def derive(*keys: Key) -> int:
    """A 63-bit seed from a list of keys such as (seed, epoch, step, "order")."""
    plain = tuple(key if isinstance(key, str) else index(key) for key in keys)  # numpy's 0 is 0 too
    digest = blake2b(repr(plain).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
