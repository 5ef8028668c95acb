"""Keep large blocks in the process on Linux, where glibc gives them back to the system at every step.

Every activation above 128 KiB is a fresh `mmap` by default and costs a page fault per 4 KiB. Raising the two thresholds
makes them ordinary heap blocks that are used again; `benchmarks/allocator.py` prints what it gains. The price is that memory,
once used, stays with the process. `SUREFOOT_ALLOCATOR=system` leaves glibc alone.
The command line and `fit` call `keep_large_blocks()`; importing Surefoot does not.
"""

from __future__ import annotations

import ctypes
import os
import platform

SWITCH = "SUREFOOT_ALLOCATOR"
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
KEEP = 2**30
GLIBC_DEFAULT = 128 * 1024


def keep_large_blocks() -> str:
    """Raise the thresholds where that is possible and wanted, and say what was done."""
    setting = os.environ.get(SWITCH, "keep")
    if setting == "system":
        return f"left to the system ({SWITCH}=system)"
    if platform.libc_ver()[0] != "glibc":
        return "left to the system (not glibc)"
    return "large blocks are kept" if set_thresholds(KEEP) else "left to the system (mallopt refused)"


def set_thresholds(size: int) -> bool:
    """Set glibc's mmap and trim thresholds to `size` bytes; False if it refuses."""
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(M_MMAP_THRESHOLD, size)) and bool(libc.mallopt(M_TRIM_THRESHOLD, size))
