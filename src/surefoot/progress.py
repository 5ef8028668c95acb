"""One kind of progress bar, on stderr, for whoever is looking: a log file gets none."""

from __future__ import annotations

from rich.console import Console
from rich.progress import Progress, ProgressColumn


def progress_bar(*columns: ProgressColumn, show: bool = True, keep: bool = False) -> Progress:
    """A bar that is gone when the work is done, unless `keep`; none where stderr is neither a terminal nor a notebook."""
    console = Console(stderr=True)
    seen = console.is_terminal or console.is_jupyter
    return Progress(*columns, console=console, disable=not (show and seen), transient=not keep)
