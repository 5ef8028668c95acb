"""How processes end: one that was started for another ends with it, and a command that is told to end cleans up first."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

PARENT = "SUREFOOT_PARENT"  # the process that a process was started for
PAUSE = 0.2  # seconds between looks
SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Ended(BaseException):
    """A signal that asks this process to end; no `except Exception` keeps it from doing so."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"signal {number}")

    @property
    def code(self) -> int:
        """The exit code, as a shell has it."""
        return 128 + self.number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Inside the block SIGTERM and SIGHUP raise `Ended`, so that half-written files and locks are removed.

    Only where they would end the process anyway (nohup ignores one), and only in the main thread, as Python has it.
    """

    def end(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # once is enough, and ending is not to be disturbed
        raise Ended(number)

    in_main = threading.current_thread() is threading.main_thread()
    before = [each for each in SIGNALS if in_main and signal.getsignal(each) is signal.SIG_DFL]
    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in before:
            signal.signal(each, signal.SIG_DFL)


def for_child(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that is to end with this one."""
    return {**environment, PARENT: str(os.getpid())}


def end_with_parent() -> bool:
    """Watch the process that this one was started for, if it was, and end when it has: even one that was killed."""
    given = os.environ.pop(PARENT, "")  # what we start ourselves is watched by us
    if not given.isdigit():
        return False
    threading.Thread(target=watch, args=(int(given),), daemon=True).start()
    return True


def watch(parent: int) -> None:
    while not is_gone(parent):
        time.sleep(PAUSE)
    os._exit(128 + signal.SIGTERM)


def is_gone(parent: int) -> bool:
    """Whether a parent has ended; where there are orphans they get another one, even while the dead is not yet buried."""
    if os.name == "posix":
        return os.getppid() != parent
    import psutil

    return not psutil.pid_exists(parent)
