"""One process or several: who am I, which part of a batch is mine, and how are several started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import SurefootError, require
from .precision import NAMES


@contextmanager
def accelerated(device: torch.device, precision: str, tracker: str | None, folder: Path | None) -> Iterator[Any]:
    """accelerate's view of devices, processes and mixed precision; its process group is destroyed at the end.

    Buffers are not broadcast at each step: batch statistics are averaged over processes after each epoch instead.
    """
    from accelerate import Accelerator, DistributedDataParallelKwargs
    from accelerate.state import AcceleratorState

    refuse_lost_processes()
    AcceleratorState._reset_state()  # it would refuse another precision in the same process
    if tracker is not None and folder is None:
        raise SurefootError(f"tracker '{tracker}' needs an output folder.")
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
    try:
        if tracker is not None:
            accelerator.init_trackers("tracker")
        yield accelerator
    finally:
        if accelerator.num_processes > 1 or tracker:
            accelerator.end_training()


def refuse_lost_processes() -> None:
    """`accelerate launch --cpu --num_processes 2` starts one process and says nothing: say it, and stop."""
    if "WORLD_SIZE" in os.environ or "ACCELERATE_USE_CPU" not in os.environ:
        return
    import psutil

    command = psutil.Process(os.getppid()).cmdline()
    wanted = next((b for a, b in pairwise(command) if a in ("--num_processes", "--num-processes")), "1")
    if "launch" in command and wanted.isdigit() and int(wanted) > 1:
        raise SurefootError(
            f"accelerate launch was asked for {wanted} processes and started one; use --processes {wanted} or torchrun instead."
        )


def share_of(count: int, rank: int, processes: int, accumulation: int = 1) -> Tensor:
    """The places of a global batch that belong to a process: its share of each of the parts that are accumulated."""
    return torch.arange(count).view(accumulation, processes, -1)[:, rank].flatten()


def launched() -> bool:
    """Whether a launcher (torchrun, accelerate, ours) started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def launch(processes: int, arguments: Sequence[str]) -> int:
    """Run the same command in several processes on this machine, with torch's launcher; its exit code."""
    require(processes >= 1, "processes", "at least 1", processes)
    threads = max(1, (os.cpu_count() or 1) // processes)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads))}
    return subprocess.run([*command, "-m", "surefoot", *arguments], env=environment, check=False).returncode
