"""One process or several, as accelerate sees them: the group, and which part of a batch is mine."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import SurefootError
from ..files import inside
from .launcher import launched
from .precision import NAMES
from .trackers import FOLDER

if torch.distributed.is_available():
    import torch.distributed.nn  # read after a group began, its functions would keep that group as a default argument


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
