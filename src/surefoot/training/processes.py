"""One process or several: who am I, which part of a batch is mine, and how are several started."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from socket import socket
from typing import Any

import torch
from torch import Tensor

from ..errors import SurefootError, require
from ..files import inside
from ..lifelines import for_child
from ..progress import now
from .precision import NAMES
from .trackers import FOLDER

if torch.distributed.is_available():
    import torch.distributed.nn  # read after a group began, its functions would keep that group as a default argument


MOST = 64  # processes on one machine: a mistyped number must not take it down
GRACE = 3.0  # seconds for processes to end by themselves


@contextmanager
def accelerated(device: torch.device, precision: str, tracker: str | None, folder: Path | None) -> Iterator[Any]:
    """accelerate's view of devices, processes and mixed precision.

    The process group serves every run of a script and is destroyed at its end; a thread of it that outlives the interpreter
    aborts the process now and then.

    Buffers are not broadcast at each step: batch statistics are averaged over processes after each epoch instead.
    """
    from accelerate import Accelerator, DistributedDataParallelKwargs
    from accelerate.state import AcceleratorState

    refuse_lost_processes()
    AcceleratorState._reset_state(reset_partial_state=not launched())  # it would refuse another precision or device later
    if device.type == "cuda" and device.index is not None and not launched():
        torch.cuda.set_device(device)
    if tracker is not None and folder is None:
        raise SurefootError(f"tracker '{tracker}' needs an output folder.")
    if tracker is not None and folder is not None:
        inside(folder, FOLDER)
    try:
        accelerator = Accelerator(
            cpu=device.type == "cpu",
            mixed_precision=NAMES[precision],
            log_with=tracker,
            project_dir=folder,
            kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)],
        )
    except ValueError as error:
        raise SurefootError(f"accelerate refuses: {' '.join(str(error).split())}") from error
    if tracker is not None and not accelerator.log_with:
        raise SurefootError(f"tracker '{tracker}' is not installed.")
    if accelerator.num_processes > 1:
        atexit.register(leave_group)
    try:
        yield accelerator
    finally:
        for each in accelerator.trackers:
            each.finish()


def leave_group() -> None:
    """Leave the process group, once."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def refuse_lost_processes() -> None:
    """`accelerate launch --cpu --num_processes 2` starts one process and says nothing: say it, and stop."""
    if "WORLD_SIZE" in os.environ or "ACCELERATE_USE_CPU" not in os.environ:
        return
    import psutil

    command = [part for word in psutil.Process(os.getppid()).cmdline() for part in word.split("=")]
    wanted = next((b for a, b in pairwise(command) if a in ("--num_processes", "--num-processes")), "1")
    if "launch" in command and wanted.isdigit() and int(wanted) > 1:
        raise SurefootError(
            f"accelerate launch was asked for {wanted} processes and started one; use --processes {wanted} or torchrun instead."
        )


def share_of(count: int, rank: int, processes: int, accumulation: int = 1) -> Tensor:
    """The indices of a global batch that belong to a process: its share of each of the parts that are accumulated."""
    return torch.arange(count).view(accumulation, processes, -1)[:, rank].flatten()


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
