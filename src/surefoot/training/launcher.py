"""Several processes on this machine: how many may be, how they are started and ended, and which of them speaks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from socket import socket

from ..errors import require
from ..lifelines import for_child
from ..progress import now

MOST = 64  # processes on one machine: a mistyped number must not take it down
GRACE = 3.0  # seconds for processes to end by themselves


def launched() -> bool:
    """Whether a launcher (torchrun, accelerate, ours) started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def launch(processes: int, arguments: Sequence[str]) -> int:
    """Run the same command in several processes on this machine; 0, or the exit code of the first that failed.

    The first speaks for all, and of an interrupt we do. One that is killed (out of memory) cannot speak: then we do, and the
    code is 128 and the signal, as a shell has it. They end with us in whatever way we end.
    """
    check_processes(processes)
    now("")
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    shared = {**os.environ, "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    shared.setdefault("OMP_NUM_THREADS", threads)
    command = [sys.executable, "-P", "-m", "surefoot", *arguments]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(processes):
            own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            started.append(subprocess.Popen(command, env=for_child(own)))
        while not failure(started) and any(process.poll() is None for process in started):
            time.sleep(0.1)
        failed = failure(started)
        if failed > 0:
            wait(started[:1], GRACE)  # the first says for all what is wrong
    except KeyboardInterrupt:
        wait(started, GRACE)  # it may have reached them too
        raise
    finally:
        end(started)
    if failed < 0:
        print(f"One of {processes} processes was ended by signal {-failed}.", file=sys.stderr)
    return failed if failed >= 0 else 128 - failed


def check_processes(processes: int, argument: str = "--processes") -> None:
    """Refuse more processes than a machine has use for."""
    require(1 <= processes <= MOST, argument, f"from 1 to {MOST}", processes)


def end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """End those that have not: asked first, and after a while made to."""
    for process in started:
        process.terminate()
    wait(started, GRACE)
    for process in started:
        process.kill()
        process.wait()


def wait(started: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """Until all have ended, or so long."""
    until = time.monotonic() + seconds
    while any(process.poll() is None for process in started) and time.monotonic() < until:
        time.sleep(0.05)


def failure(started: Sequence[subprocess.Popen[bytes]]) -> int:
    """The code of the first process that failed, a negative one if a signal ended it; 0 while there is none."""
    return next((process.returncode for process in started if process.poll()), 0)


def is_first() -> bool:
    """Whether this process speaks for all."""
    return os.environ.get("RANK", "0") == "0"
