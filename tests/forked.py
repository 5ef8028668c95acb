"""Real processes without their imports: forked from this one, or from a server that has read all commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass
class Child:
    """A process that was forked from this one, and its exit code once it has ended (negative if a signal ended it)."""

    number: int
    code: int | None = None

    def poll(self) -> int | None:
        if self.code is None:
            ended, status = os.waitpid(self.number, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if ended else None
        return self.code

    def wait(self, seconds: float = 120) -> int:
        until = time.monotonic() + seconds
        while self.poll() is None:
            assert time.monotonic() < until, "the process did not end"
            time.sleep(0.01)
        assert self.code is not None
        return self.code

    def send(self, number: int) -> int:
        """Send a signal, and wait for the end."""
        os.kill(self.number, number)
        return self.wait()


@contextmanager
def child_of_this(work: Callable[[], object], said: Path) -> Iterator[Child]:
    """A process with all that this one has imported that does some work; what it says on either stream goes to a file.

    It has one thread, since others do not survive a fork, and no code of ours runs after its work.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks where there are threads
        child = Child(os.fork())
    if not child.number:
        work_and_exit(work, said)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.send(signal.SIGKILL)


def work_and_exit(work: Callable[[], object], said: Path) -> None:
    code = 1
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(out, stream)
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", 1, closefd=False) for stream in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background has it ignored
        torch.set_num_threads(1)
        work()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


SERVER = """
import json, os, signal, sys, time
from importlib import import_module
import psutil
from surefoot.cli.main import COMMANDS, run

own = [f"surefoot.cli.{'listing' if name == 'list' else name}" for name in COMMANDS] + ["surefoot.report.page"]
for name in own + ["accelerate", "networkx", "onnxscript", "plotly.graph_objects", "scipy.optimize", "timm", "torch._dynamo"]:
    import_module(name)

def begin(arguments, folder, said):
    child = os.fork()
    if child:
        return child
    os.setsid()
    os.chdir(folder)
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1), os.dup2(out, 2)
    code = 99
    try:
        run(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)

def of_session(leader):
    return [each for each in psutil.pids() if each != leader and session(each) == leader]

def session(process):
    try:
        return os.getsid(process)
    except ProcessLookupError:
        return 0

print("ready", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    began = time.monotonic()
    started = [begin(arguments, job["folder"], f"{job['said']}.{number}") for number, arguments in enumerate(job["commands"])]
    codes = [None] * len(started)
    while None in codes:
        if job["moment"] is not None and time.monotonic() - began > job["moment"]:
            for child, code in zip(started, codes):
                if code is None:
                    os.kill(child, signal.SIGKILL)
        for number, child in enumerate(started):
            if codes[number] is None:
                ended, status = os.waitpid(child, os.WNOHANG)
                codes[number] = os.waitstatus_to_exitcode(status) if ended else None
        time.sleep(0.002)
    seconds = time.monotonic() - began
    until = time.monotonic() + 60  # what it started must end with it
    while any(map(of_session, started)) and time.monotonic() < until:
        time.sleep(0.05)
    left = sum(map(of_session, started), [])
    print(json.dumps({"codes": codes, "seconds": seconds, "left": left}), flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """How some commands ended: their exit codes, how long they took, what they said, and processes that outlived them."""

    codes: list[int]
    seconds: float
    said: list[str]
    left: list[int]


Call = Callable[..., Ended]


@contextmanager
def forked(folder: Path) -> Iterator[Call]:
    """`call(folder, arguments, ...)` runs commands at once in a folder; `moment` is after how many seconds they are killed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder / "tmp"), "SUREFOOT_CACHE": str(folder / "cache")}
    (folder / "tmp").mkdir()
    command = [sys.executable, "-W", "ignore", "-c", SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        assert server.stdout.readline() == "ready\n"

        def call(place: Path, *commands: list[str], moment: float | None = None) -> Ended:
            assert server.stdout is not None
            assert server.stdin is not None
            place.mkdir(parents=True, exist_ok=True)
            job = {"commands": commands, "folder": str(place), "moment": moment, "said": str(folder / "said")}
            server.stdin.write(json.dumps(job) + "\n")
            server.stdin.flush()
            found = json.loads(server.stdout.readline())
            said = [(folder / f"said.{number}").read_text() for number in range(len(commands))]
            return Ended(found["codes"], found["seconds"], said, found["left"])

        yield call
        server.stdin.close()
