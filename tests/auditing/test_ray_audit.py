"""The chunks of an audit on a real Ray cluster of two nodes, one of whose workers is killed."""

import os
import signal
import threading
import time

import pandas as pd
import pytest

import surefoot as sf
from processes_below import pids_below
from surefoot.auditing.depths import Depth


@pytest.mark.stress
def test_a_killed_workers_chunk_is_done_again(run, digits, tmp_path, cluster):
    _, nodes = cluster
    depth = Depth("some", {"corruptions": {"names": ("gaussian_noise", "fog"), "severities": (1, 3, 5)}})
    options = {"depth": depth, "batch_size": 16, "progress": False}
    here = sf.audit(run.predictor, digits, output=tmp_path / "here", **options)
    found, killed = [], []
    audit = threading.Thread(
        target=lambda: found.append(sf.audit(run.predictor, digits, engine="ray", output=tmp_path / "there", **options))
    )
    audit.start()
    raylets = [node.all_processes["raylet"][0].process.pid for node in nodes]
    deadline = time.monotonic() + 300
    while not killed and time.monotonic() < deadline and audit.is_alive():
        working = [pid for raylet in raylets for pid, words in pids_below(raylet).items() if "chunk_there" in words]
        if working and list((tmp_path / "there" / "audit-data" / "table").glob("part-*.parquet")):
            os.kill(working[0], signal.SIGKILL)
            killed.append(working[0])
        time.sleep(0.05)
    audit.join(timeout=600)
    assert killed, "no worker was at work"
    assert found
    assert found[0].corruptions.mean_accuracy == pytest.approx(here.corruptions.mean_accuracy, abs=1e-9)
    rows = [
        each.table().astype({"condition": str}).sort_values(["condition", "index"]).reset_index(drop=True)
        for each in (here, found[0])
    ]
    pd.testing.assert_frame_equal(*rows, atol=1e-4)
