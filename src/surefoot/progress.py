"""How far long work is: one kind of progress bar, on stderr, for whoever is looking, signs of life, and durations in words."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn

EVERY = 2.0  # seconds: nothing is silent for longer than three


class Voice(threading.Thread):
    """Says every few seconds, on stderr, what is being done, unless a bar on a terminal shows it."""

    def __init__(self) -> None:
        super().__init__(name="surefoot-voice", daemon=True)
        self.what, self.bars, self.began, self.ended = "at work", 0, time.monotonic(), threading.Event()

    def run(self) -> None:
        while not self.ended.wait(EVERY):
            if self.what and not self.bars:
                print(f"{self.what}, {time.monotonic() - self.began:.0f} s", file=sys.stderr, flush=True)


_voice: Voice | None = None


@contextmanager
def speaking(show: bool = True) -> Iterator[None]:
    """While this lasts nothing is silent for longer than three seconds; one voice is enough."""
    global _voice
    if not show or _voice is not None:
        yield
        return
    _voice = Voice()
    _voice.start()
    try:
        yield
    finally:
        voice, _voice = _voice, None
        voice.ended.set()


def now(what: str) -> None:
    """What is being done, for the next sign of life; nothing where another process speaks."""
    if _voice is not None:
        _voice.what = what


class Bar(Progress):
    """A bar that the voice speaks for where it is not seen."""

    def update(self, task_id: Any, **changes: Any) -> None:
        super().update(task_id, **changes)
        task = self.tasks[0]
        now(f"{task.description} {task.percentage:.0f} %" if task.total and task.percentage else task.description)

    def start(self) -> None:
        super().start()
        if _voice is not None and not self.disable:
            _voice.bars += 1

    def stop(self) -> None:
        if _voice is not None and not self.disable and self.live.is_started:
            _voice.bars = max(0, _voice.bars - 1)
        super().stop()


def progress_bar(*columns: ProgressColumn, show: bool = True, keep: bool = False) -> Progress:
    """A bar that is gone when the work is done, unless `keep`; none where stderr is neither a terminal nor a notebook."""
    console = Console(stderr=True)
    seen = console.is_terminal or console.is_jupyter
    return Bar(*columns, console=console, disable=not (show and seen), transient=not keep)


def duration(seconds: float) -> str:
    """A rough duration: 40 seconds, 3 minutes, 2.5 hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
