"""How large may be what we are given: checked from headers, before memory is taken for it.

Each limit is far above honest data, and an environment variable of its name raises it.
"""

from __future__ import annotations

import os

from .errors import SurefootError

LIMITS = {
    "SUREFOOT_MAX_PIXELS": 2**27,  # of one picture
    "SUREFOOT_MAX_CLASSES": 2**16,
}
GIB = 2**30


def limit(name: str) -> int:
    """A limit: as its environment variable says, else ours."""
    given = os.environ.get(name, "")
    if given and not given.isdigit():
        raise SurefootError(f"{name} must be a whole number, got '{given}'.")
    return int(given) if given else LIMITS[name]


def check_limit(name: str, what: str, count: int) -> None:
    """Refuse more than a limit allows; `what` says of what it is, as in 'image 'a.png' has ... pixels'."""
    most = limit(name)
    if count > most:
        raise SurefootError(f"{what} {count:,}, and more than {most:,} are taken for a mistake: raise {name} if they are none.")


def check_memory(what: str, needed: int) -> None:
    """Refuse what does not fit into the memory that is free."""
    free = free_memory()
    if needed > free:
        raise SurefootError(f"{what} need {needed / GIB:,.1f} GiB of memory, and {free / GIB:,.1f} are free.")


def free_memory() -> int:
    """Free bytes of the machine, or what is left of this process's own limit (ulimit -v), where that is less."""
    import psutil

    free = int(psutil.virtual_memory().available)
    if hasattr(process := psutil.Process(), "rlimit"):  # Linux
        most = process.rlimit(psutil.RLIMIT_AS)[0]
        free = free if most < 0 else min(free, max(0, most - process.memory_info().vms))
    return free
