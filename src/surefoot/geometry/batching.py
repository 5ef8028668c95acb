"""Long measurements go through the images in batches and show how far they are."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import require
from ..progress import progress_bar


def slices(count: int, batch_size: int, progress: bool, what: str) -> Iterator[slice]:
    """Consecutive slices of `count` images, with a bar on stderr where one is wanted."""
    require(batch_size >= 1, "batch_size", "at least 1", batch_size)
    with progress_bar(show=progress) as bar:
        for start in bar.track(range(0, count, batch_size), description=what):
            yield slice(start, min(start + batch_size, count))
