"""Bars are for people: what a terminal of 80 columns shows, and what a log file gets."""

import os
import select
import subprocess
import sys
import time
import types
from itertools import pairwise

import pytest
import torch

from surefoot import progress
from surefoot.progress import duration, progress_bar
from surefoot.training.checkpoints import History
from surefoot.types import Terms


def train_two_epochs(shown=True):
    accelerator = types.SimpleNamespace(num_processes=1, trackers=[])
    found = {"validation_accuracy": 0.7125, "validation_ece": 0.043}
    with History(2, 1, shown, [], accelerator) as history:
        for _ in range(2):
            parts = {"cross_entropy": torch.tensor(1.25), "consistency": torch.tensor(0.5), "margin": torch.tensor(0.25)}
            history.add(Terms(total=torch.tensor(2.0), parts=parts, logits=torch.zeros(8, 2)), 8)
            history.end_epoch(dict(found), 1234.5)


def test_a_log_gets_a_line_for_each_epoch(capsys):
    train_two_epochs()
    line = "validation 71.2%, ECE 4.3%  1234 images/s  cross entropy 1.250  consistency 0.500  margin 0.250"
    assert capsys.readouterr().err.splitlines() == [f"epoch 1/2  {line}", f"epoch 2/2  {line}"]


def test_quiet_is_quiet(capsys):
    train_two_epochs(shown=False)
    assert capsys.readouterr().err == ""


def test_eighty_columns_show_what_matters(terminal, capsys):
    train_two_epochs()
    assert "epoch 2/2  validation 71.2%, ECE 4.3%  1234" in capsys.readouterr().err


@pytest.mark.parametrize("keep", [False, True])
def test_a_bar_is_gone_or_stays(terminal, capsys, keep):
    with progress_bar(keep=keep) as bar:
        bar.add_task("looking", total=1, completed=1)
    shown = capsys.readouterr().err
    assert "looking" in shown
    erased = "\x1b[2K"
    assert (shown.rstrip("\x1b[?25h\n").endswith(erased)) is not keep


def test_a_file_sees_no_bar(capsys):
    with progress_bar(keep=True) as bar:
        bar.add_task("looking", total=1, completed=1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "1 second"), (40, "40 seconds"), (200, "3 minutes"), (9000, "2.5 hours")])
def test_durations_in_words(seconds, said):
    assert duration(seconds) == said


SLOW = """
import time
import torch
from surefoot import progress
progress.EVERY = 0.2
def build():
    time.sleep(0.8)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10))
    net.register_forward_hook(lambda *_: time.sleep(0.1))
    return net
"""


def test_nothing_is_silent_without_a_terminal(here):
    """A slow model, in a process whose stderr is a pipe: with signs of life every 0.2 s no gap is as long as 15 of them.

    At the usual 2 s that is the promise of three seconds with room for a busy machine.
    """
    (here / "slow.py").write_text(SLOW)
    command = [sys.executable, "-m", "surefoot", "audit", "--import", "slow:build", "--data", "digits", "--max-images", "30"]
    command += ["--depth", "clean", "--batch-size", "10", "--output", "out"]
    times, said, starved, before = [], b"", 0.0, time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        while True:
            ready = select.select([child.stderr], [], [], 0.1)[0]
            starved, before = max(starved, time.monotonic() - before - 0.1), time.monotonic()
            if ready:
                times.append(time.monotonic())
                part = os.read(child.stderr.fileno(), 65536)
                said += part
                if not part:
                    break
    times.pop()  # the end of the process
    assert child.returncode == 0, said
    assert b"auditing slow:build: a first look, " in said
    assert b"writing the page in out, " in said
    longest = max(after - before for before, after in pairwise(times))
    assert longest < 3 + 4 * starved, said  # a busy machine does not even let this process look every 0.1 s
    assert len(times) > 8


def test_a_voice_says_what_is_being_done_until_it_is_done(capfd, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with progress.speaking(), progress_bar() as bar:
        bar.update(bar.add_task("counting", total=4), advance=1)
        time.sleep(0.3)
        with progress.speaking():  # one is enough
            progress.now("thinking")
            time.sleep(0.3)
    lines = capfd.readouterr().err.splitlines()
    assert "counting 25 %, 0 s" in lines
    assert "thinking, 0 s" in lines
    time.sleep(0.1)
    assert capfd.readouterr().err == ""
    with progress.speaking(show=False):
        time.sleep(0.1)
    assert capfd.readouterr().err == ""
