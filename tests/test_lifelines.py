"""Processes end with the one that they were started for, however it ends, and a signal is a line and an exit code."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import typer

from surefoot.lifelines import PARENT, Ended, end_with_parent, ended_by_signals, for_child

CHILD = "import time; from surefoot.lifelines import end_with_parent; assert end_with_parent(); time.sleep(60)"
PARENT_SCRIPT = """
import os, signal, subprocess, sys, time
from surefoot.lifelines import for_child
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background has it ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and one under nohup has this ignored
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=for_child(os.environ))
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_child_ends_with_its_parent(number):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT_SCRIPT, CHILD], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    child = psutil.Process(int(parent.stdout.readline()))
    parent.send_signal(number)  # not waited for: a parent that is not buried yet is gone all the same
    gone, _ = psutil.wait_procs([child], timeout=20)
    assert gone == [child]
    parent.communicate()
    assert parent.returncode != 0


def test_only_what_was_started_so_is_watched(monkeypatch):
    monkeypatch.delenv(PARENT, raising=False)
    assert not end_with_parent()
    assert for_child({"A": "b"}) == {"A": "b", PARENT: str(os.getpid())}


def test_signals_raise_once_and_are_given_back():
    before = signal.getsignal(signal.SIGTERM)

    def end():
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    with pytest.raises(Ended) as ended:
        end()
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_command_that_is_told_to_end_says_so(surefoot, monkeypatch, tmp_path):
    """Its half-written file is removed on the way out."""
    from surefoot.files import replacing

    app = typer.Typer()

    @app.command()
    def doctor():
        with replacing(tmp_path / "a.txt") as beside:
            beside.write_text("half")
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    monkeypatch.setattr("surefoot.cli.doctor.app", app)
    found = surefoot("doctor")
    assert (found.code, found.err) == (143, "surefoot: Ended by signal 15.\n")
    assert list(tmp_path.iterdir()) == []
