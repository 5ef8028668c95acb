"""How far long work is: one kind of progress bar, on stderr, for whoever is looking, and durations in words."""

from __future__ import annotations

from rich.console import Console
from rich.progress import Progress, ProgressColumn


def progress_bar(*columns: ProgressColumn, show: bool = True, keep: bool = False) -> Progress:
    """A bar that is gone when the work is done, unless `keep`; none where stderr is neither a terminal nor a notebook."""
    console = Console(stderr=True)
    seen = console.is_terminal or console.is_jupyter
    return Progress(*columns, console=console, disable=not (show and seen), transient=not keep)


def duration(seconds: float) -> str:
    """A rough duration: 40 seconds, 3 minutes, 2.5 hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
