"""Cells as Ray tasks on a real cluster of two nodes, one of which dies in the middle."""

import os
import threading
import time

import pytest
from tiny import cells, write

from processes_below import below
from surefoot.errors import SurefootError
from surefoot.studies.engines import Here
from surefoot.studies.layout import build_table
from surefoot.studies.results import Results
from surefoot.studies.runner import run_study
from surefoot.studies.study_files import read_study
from surefoot.studies.table_formats import render


@pytest.mark.stress
def test_a_node_dies_and_the_study_completes(tmp_path, cluster):
    """Both nodes are at work when one is killed; its cell goes on elsewhere, and the table equals the local one."""
    made, nodes = cluster
    from surefoot.studies.engines import OnRay

    found = cells(tmp_path, training={"epochs": 20, "batch_size": 64})  # the first is at work until the second has begun
    raylet = nodes[0].all_processes["raylet"][0].process.pid
    outcomes, deadline = [], time.monotonic() + 400
    study = threading.Thread(target=lambda: outcomes.append(run_on_ray(found, tmp_path / "ray", OnRay(jobs=2))))
    study.start()
    runs = tmp_path / "ray" / "work" / "runs"

    def both_at_work():
        saved = {path.parents[1] for path in runs.glob("*/state/epoch-*")}
        return len(saved) == 2 and any("studies.worker" in words for words in below(raylet))

    while not both_at_work():
        assert time.monotonic() < deadline
        assert study.is_alive()
        time.sleep(0.05)
    made.remove_node(nodes[0], allow_graceful=False)
    study.join(400)
    report = outcomes[0]
    assert (len(report.outcomes), report.failed) == (2, [])
    local = run_study(found, Here(), Results(tmp_path / "local" / "results"), tmp_path / "local" / "work", tell=print)
    assert local.failed == []
    tables = [table(tmp_path, found, tmp_path / engine / "results") for engine in ("ray", "local")]
    assert tables[0] == tables[1]
    assert "cross-entropy" in tables[0]


def run_on_ray(found, folder, engine):
    return run_study(found, engine, Results(folder / "results"), folder / "work", tell=print)


def table(tmp_path, found, folder):
    study = read_study(str(write(tmp_path)), "smoke")
    return render(build_table(study, found, Results(folder)), "csv")


def test_no_cluster_is_one_line(monkeypatch):
    from surefoot.studies.engines import OnRay

    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr("ray.init", refuse)
    with pytest.raises(SurefootError, match="No Ray cluster is running here: start one with `ray start --head`"):
        next(OnRay(jobs=1).run([]), None)
    assert os.environ["RAY_ADDRESS"] == "127.0.0.1:1"


def refuse(**_):
    raise ConnectionError("nothing there")
