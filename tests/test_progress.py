"""Bars are for people: what a terminal of 80 columns shows, and what a log file gets."""

import types

import pytest
import torch

from surefoot.progress import duration, progress_bar
from surefoot.training.checkpointing import History
from surefoot.types import Terms


def train_two_epochs(progress=True):
    accelerator = types.SimpleNamespace(num_processes=1, trackers=[])
    found = {"validation_accuracy": 0.7125, "validation_ece": 0.043}
    with History(2, 1, progress, [], accelerator) as history:
        for _ in range(2):
            parts = {"cross_entropy": torch.tensor(1.25), "consistency": torch.tensor(0.5), "margin": torch.tensor(0.25)}
            history.add(Terms(total=torch.tensor(2.0), parts=parts, logits=torch.zeros(8, 2)), 8)
            history.end_epoch(dict(found), 1234.5)


def test_a_log_gets_a_line_for_each_epoch(capsys):
    train_two_epochs()
    line = "validation 71.2%, ECE 4.3%  1234 images/s  cross entropy 1.250  consistency 0.500  margin 0.250"
    assert capsys.readouterr().err.splitlines() == [f"epoch 1/2  {line}", f"epoch 2/2  {line}"]


def test_quiet_is_quiet(capsys):
    train_two_epochs(progress=False)
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
