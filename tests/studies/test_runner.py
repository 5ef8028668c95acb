"""Studies that really run: nothing twice, nothing lost, and a failure stays alone."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import product

import pytest
import torch
from filelock import FileLock, Timeout
from tiny import cells, write
from torchvision.transforms.functional import to_pil_image

from surefoot.errors import SurefootError
from surefoot.studies.cell_runs import alone
from surefoot.studies.cells import cells_of
from surefoot.studies.engines import Here, Local, find_engine
from surefoot.studies.layout import build_table
from surefoot.studies.results import Results
from surefoot.studies.runner import run_study, threads_for
from surefoot.studies.study_files import read_study, study_names
from surefoot.studies.worker import job_of
from surefoot.training import loop
from surefoot.training.precision import choose_precision


def run(found, folder, engine=None, **options):
    said = []
    engine = Here() if engine is None else engine
    report = run_study(found, engine, Results(folder / "results"), folder / "work", tell=said.append, **options)
    return report, said


def files(folder):
    """When each file of results and weights was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.suffix in (".json", ".safetensors", ".log")}


def test_a_finished_study_is_not_run_again(tmp_path, monkeypatch):
    found = cells(tmp_path, measure={"clean": {}, "temperature": {}})
    report, said = run(found, tmp_path)
    assert (report.cells, report.done_before, len(report.outcomes), report.failed) == (2, 0, 2, [])
    assert said[0] == "2 cells, 0 finished before, 2 to do"
    metrics = Results(tmp_path / "results").metrics(found[0], "clean")
    assert 0 <= metrics["accuracy"] <= 1
    assert metrics["nll"] > 0
    before = files(tmp_path)
    monkeypatch.setattr(loop, "train", lambda *_: 1 / 0)
    report, _ = run(found, tmp_path)
    assert (report.done_before, report.outcomes) == (2, ())
    assert files(tmp_path) == before


def test_a_study_with_nothing_held_out(tmp_path):
    """Temperatures are cross-fitted there."""
    data = {"digits": {"name": "digits", "fraction": 0.2, "max_images": 60, "calibration": 0, "validation": 0}}
    found = cells(tmp_path, data=data, measure={"clean": {}, "temperature": {}})[:1]
    report, _ = run(found, tmp_path)
    assert report.failed == []
    results = Results(tmp_path / "results")
    assert results.metrics(found[0], "temperature")["accuracy"] == results.metrics(found[0], "clean")["accuracy"]
    setting = results.read(found[0].name)["setting"]
    precision = choose_precision("auto", torch.device("cpu"))[0]  # the processor's
    assert (setting["image_size"], setting["resize_to"], setting["precision"]) == ([32, 32], None, precision)
    assert setting["images"] == {
        "train": 252,
        "calibration": 0,
        "validation": 0,
        "test": 60,
    }  # a fifth of seven tenths of 1,797


def test_a_log_says_how_long_it_takes(tmp_path):
    _, said = run(cells(tmp_path), tmp_path)
    took = r"took \d+ seconds?"
    assert re.fullmatch(rf"\[1/2\] .* seed 0: {took}; about \d+ seconds? to go", said[1])
    assert re.fullmatch(rf"\[2/2\] .*: {took}", said[2])


def test_a_terminal_sees_the_cells_go_by(tmp_path, terminal, capsys):
    found = cells(tmp_path)
    run(found[:1], tmp_path)
    capsys.readouterr()
    _, said = run(found, tmp_path, progress=True)
    shown = capsys.readouterr().err
    assert said == ["2 cells, 1 finished before, 1 to do"]  # the rest stands above the bar
    assert "[1/1]" in shown
    assert "0/1" in shown


def test_a_lock_goes_with_the_process_that_held_it(tmp_path):
    code = "import sys, time; from pathlib import Path; from surefoot.studies.cell_runs import alone\n"
    code += "with alone(Path(sys.argv[1]), 'cell'): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Timeout):
            FileLock(tmp_path / "locks" / "cell").acquire(blocking=False)
        holder.kill()
    with alone(tmp_path, "cell"):
        assert holder.returncode == -signal.SIGKILL


def test_what_is_new_is_measured_on_weights_that_are_there(tmp_path, monkeypatch):
    """A second study with the same baseline and other measurements trains nothing that the first trained."""
    run(cells(tmp_path), tmp_path)
    trained, real = [], loop.train
    monkeypatch.setattr(loop, "train", lambda *a: trained.append(1) or real(*a))
    others = {"cross-entropy": "cross-entropy", "label-smoothing": "label-smoothing"}
    found = cells(tmp_path, name="second", title="Second", methods=others, measure={"clean": {}, "logits": {}})
    report, _ = run(found, tmp_path)
    assert len(trained) == 1  # label smoothing
    assert len(report.outcomes) == 2  # the baseline got its logits
    results = Results(tmp_path / "results")
    assert results.missing(found[0]) == results.missing(found[1]) == []
    assert len(list((tmp_path / "results" / "cells").iterdir())) == 3
    assert len(results.read(found[0].name)["measurements"]) == 2
    assert results.read(found[0].name)["training"]["epochs"] == 1  # as the first study wrote it


def test_main_measures_all_that_it_says(tmp_path):
    """The first cell of the shipped main comparison at smoke scale: every column of its table has a number."""
    study = read_study("main", "smoke")
    found = cells_of(study)[:1]
    assert run(found, tmp_path)[0].failed == []
    table = build_table(study, found, Results(tmp_path / "results"))
    assert [column.name for column in table.columns] == list(study.table.columns)
    assert all(entry is not None for entry in table.rows[("cross-entropy",)])


@pytest.mark.stress
def test_every_shipped_study_runs_at_smoke_scale(tmp_path):
    """Its first cell; what they share is trained once."""
    trained = set()
    for name in study_names():
        study = read_study(name, "smoke")
        found = cells_of(study)[:1]
        assert run(found, tmp_path)[0].failed == [], name
        assert any(build_table(study, found, Results(tmp_path / "results")).rows.values()), name
        trained.add(found[0].name)
    runs = {path.parent.name for path in (tmp_path / "work" / "runs").glob("*/model.safetensors")}
    assert trained <= runs
    assert len(runs) < len(study_names()) / 2


def test_a_study_that_is_stopped_leaves_its_table(tmp_path):
    """Saved before the first cell and after each."""
    found, results, saved = cells(tmp_path), Results(tmp_path / "results"), []
    run(found, tmp_path, save=lambda: saved.append([len(results.missing(cell)) for cell in found]))
    assert saved == [[1, 1], [0, 1], [0, 0]]


def test_a_cell_says_where_it_comes_from(tmp_path):
    found = cells(tmp_path, methods={"focal": {"name": "focal", "gamma": 3}}, baseline=None)
    run(found, tmp_path)
    record = json.loads((tmp_path / "results" / "cells" / f"{found[0].name}.json").read_text())
    assert record["recipe"]["objective"] == {"name": "focal", "gamma": 3.0}
    assert set(record["versions"]) == {"python", "torch", "timm", "machine"}
    assert record["training"]["epochs"] == 1
    assert record["training"]["seconds"] > 0
    assert str(tmp_path) not in json.dumps(record)  # no path of this machine
    assert not list((tmp_path / "results").rglob("*.safetensors"))


def test_same_numbers_from_the_same_study(tmp_path):
    found = cells(
        tmp_path, methods={"macs": "macs"}, baseline=None, measure={"clean": {}, "noise": {"levels": [20], "draws": 2}}
    )
    for folder in ("a", "b"):
        run(found, tmp_path / folder)
    one, two = (Results(tmp_path / folder / "results") for folder in ("a", "b"))
    for label in ("clean", "noise"):
        assert one.metrics(found[0], label) == two.metrics(found[0], label)


def test_a_failed_cell_stops_no_other_and_is_told_with_its_log(tmp_path, monkeypatch):
    """One recipe cannot be trained, one measurement breaks, the rest is computed."""
    (tmp_path / "breaking.py").write_text(
        "import surefoot as sf\nfrom surefoot.errors import SurefootError\n"
        "class Objective(sf.objectives.CrossEntropy):\n"
        "    def forward(self, *_, **__):\n        raise SurefootError('No loss today.')\n"
        "def measurement(context):\n    raise SurefootError('No ruler.')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    methods = {"bad": "breaking:Objective", "focal": "focal"}
    broken = {"measurement": "breaking:measurement"}
    found = cells(tmp_path, True, methods=methods, baseline=None, measure={"broken": broken, "clean": {}})
    report, said = run(found, tmp_path)
    assert len(report.failed) == 2
    results = Results(tmp_path / "results")
    assert results.missing(found[0]) == ["broken", "clean"]
    assert results.missing(found[1]) == ["broken"]
    told = {outcome.cell: outcome for outcome in report.failed}
    assert told[found[0].name].said == "No loss today."
    assert told[found[1].name].said == "No ruler."
    assert "Traceback" in told[found[0].name].log.read_text()
    assert sum("FAILED" in line for line in said) == 2


def test_a_process_that_dies_is_a_failed_cell(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n'surefoot.studies.worker' in ' '.join(sys.orig_argv) and os._exit(9)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    report, said = run(cells(tmp_path), tmp_path, Local(jobs=2))
    assert len(report.failed) == 2
    assert "FAILED: no word in its log" in said[1]


def test_what_a_cell_leaves_behind_changes_no_other_and_a_worker_that_died_is_replaced(tmp_path, monkeypatch):
    """This process does them in this order, others in the other; a job that kills its worker is followed by two of another."""
    found = cells(tmp_path, methods={name: name for name in ("cross-entropy", "macs", "focal", "noisy")})
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'surefoot.studies.worker' in ' '.join(sys.orig_argv):\n"
        "    import surefoot.studies.engines as jobs\n"
        "    real = jobs.read_job\n"
        f"    jobs.read_job = lambda path: os._exit(9) if path.stem == {found[2].name!r} else real(path)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert run(found, tmp_path / "forwards")[0].failed == []
    report, _ = run(found[::-1], tmp_path / "backwards", Local(jobs=1))
    assert [outcome.ok for outcome in report.outcomes] == [True, False, True, True], report.outcomes[-1].log.read_text()
    one, other = (Results(tmp_path / name / "results") for name in ("forwards", "backwards"))
    for cell in (found[0], found[1], found[3]):
        assert one.metrics(cell, "clean") == other.metrics(cell, "clean")


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def workers(folder):
    """Processes that work in a folder."""
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if "surefoot.studies.worker" in line and str(folder) in line]


def test_a_killed_study_goes_on_from_the_last_epoch(surefoot, tmp_path):
    """kill -9 in the middle of training: no worker is left, and the same command computes only the epochs that are missing."""
    path = write(tmp_path, methods={"cross-entropy": "cross-entropy"}, training={"epochs": 12, "batch_size": 64})
    words = ["study", "run", str(path), "--results", str(tmp_path / "results")]
    process = subprocess.Popen([sys.executable, "-m", "surefoot", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    runs = tmp_path / ".study-work" / "runs"
    wait_for(lambda: list(runs.glob("*/state/epoch-*")))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not workers(tmp_path))
    history = next(runs.glob("*/history.jsonl"))
    done = [json.loads(line) for line in history.read_text().splitlines()]
    assert 1 <= len(done) < 12
    assert "0 of 1 cells are finished" in (tmp_path / "results" / f"{path.stem}.md").read_text()
    again = surefoot(*words)
    assert again.code == 0
    assert "1 cell, 0 finished before, 1 to do" in again.err
    assert "| cross-entropy |" in again.out
    whole = [json.loads(line) for line in history.read_text().splitlines()]
    assert whole[: len(done)] == done  # those epochs were not computed again
    assert len(whole) == 12


def test_an_interrupted_study_leaves_no_worker(tmp_path):
    engine = Local(jobs=2).run([job_of(cell, ["clean"], tmp_path / "results", tmp_path / "work") for cell in cells(tmp_path)])

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(engine)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert workers(tmp_path) == []


@pytest.mark.stress
def test_a_cell_trained_by_two_processes(tmp_path):
    """The same cell, by one process and by two: the same name, and numbers that differ by rounding only."""
    found = cells(tmp_path, methods={"cross-entropy": "cross-entropy"})
    both = []
    for processes in (1, 2):
        report, _ = run(found, tmp_path / str(processes), processes=processes)
        assert report.failed == [], report.failed[0].log.read_text()
        both.append(Results(tmp_path / str(processes) / "results").metrics(found[0], "clean"))
    assert both[0]["nll"] == pytest.approx(both[1]["nll"], rel=0.05)


def test_weights_stay_out_of_the_results(tmp_path):
    found = cells(tmp_path)
    with pytest.raises(SurefootError, match="work must be outside of the results"):
        run_study(found, Here(), Results(tmp_path), tmp_path / "work")


def test_cores_are_divided(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert [threads_for(jobs) for jobs in (1, 2, 3, 16)] == [8, 4, 2, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert [threads_for(jobs) for jobs in (1, 2, 8)] == [2, 2, 1]


def test_engines_by_name():
    assert find_engine("local", 2) == Local(jobs=2)
    with pytest.raises(SurefootError, match="Unknown engine 'lokal'. Did you mean 'local'?"):
        find_engine("lokal", 1)
    with pytest.raises(SurefootError, match="Engine 'local' does not take gpus"):
        find_engine("local", 1, gpus=1.0)
    with pytest.raises(SurefootError, match="jobs must be at least 1"):
        find_engine("local", 0)
    with pytest.raises(SurefootError, match="jobs must be 1 in this process, got 2"):
        find_engine("here", 2)


def folder_study(tmp_path, **changes):
    """The cell of a study that reads a folder of images."""
    data = {"folder": {"name": ".", "image_size": [16, 16]}}
    training = {"epochs": 1, "batch_size": 16}
    methods = {"cross-entropy": "cross-entropy"}
    return read_study(str(write(tmp_path, data=data, training=training, methods=methods, **changes)), "smoke")


def test_data_that_moved_and_defaults_that_changed(tmp_path, monkeypatch):
    """The run goes on wherever the data are; one of other defaults than today's is begun anew, whose name it has."""
    numbers = torch.Generator().manual_seed(0)
    for split, label, number in product(("train", "test"), "ab", range(20)):
        path = tmp_path / "here" / split / label / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        to_pil_image(torch.rand(3, 16, 16, generator=numbers)).save(path)
    first = cells_of(folder_study(tmp_path), tmp_path / "here")
    assert run(first, tmp_path)[0].failed == []
    trained, real = [], loop.train
    monkeypatch.setattr(loop, "train", lambda *a: trained.append(1) or real(*a))
    (tmp_path / "here").rename(tmp_path / "there")
    moved = cells_of(folder_study(tmp_path, measure={"clean": {}, "logits": {}}), tmp_path / "there")
    assert run(moved, tmp_path)[0].failed == []
    assert trained == []
    recipe = tmp_path / "work" / "runs" / first[0].name / "recipe.yaml"
    assert f"root: {tmp_path / 'there'}" in recipe.read_text()
    recipe.write_text(recipe.read_text().replace("momentum: 0.9", "momentum: 0.5"))
    more = cells_of(folder_study(tmp_path, measure={"temperature": {}}), tmp_path / "there")
    assert run(more, tmp_path)[0].failed == []
    assert trained == [1]
    assert "momentum: 0.9" in recipe.read_text()


def test_a_cell_goes_on_in_the_precision_it_was_begun_in(tmp_path, monkeypatch):
    """On a machine where `auto` takes another, a new measurement finds the weights that are there."""
    one = {"methods": {"cross-entropy": "cross-entropy"}}
    monkeypatch.setattr("surefoot.training.precision.has_bf16_units", lambda: True)
    first = cells(tmp_path, **one)
    assert run(first, tmp_path)[0].failed == []
    weights = tmp_path / "work" / "runs" / first[0].name / "model.safetensors"
    before = weights.read_bytes()
    monkeypatch.setattr("surefoot.training.precision.has_bf16_units", lambda: False)
    assert run(cells(tmp_path, **one, measure={"clean": {}, "logits": {}}), tmp_path)[0].failed == []
    assert weights.read_bytes() == before
    assert "precision: bf16" in (weights.parent / "recipe.yaml").read_text()


def test_how_others_train_does_not_matter_to_weights_as_they_are(tmp_path):
    """Two studies that measure the same untrained net share its cell, whatever they say about training."""
    only_one = {"methods": {"cross-entropy": "cross-entropy"}, "trained": False}
    found = cells(tmp_path, **only_one)
    assert run(found, tmp_path)[0].failed == []
    others = cells(tmp_path, **only_one, training={"epochs": 5}, measure={"clean": {}, "logits": {}})
    report, _ = run(others, tmp_path)
    assert (others[0].name, report.failed) == (found[0].name, [])
    assert list(Results(tmp_path / "results").read(found[0].name)["measurements"]) == [
        found[0].measure_name("clean"),
        others[0].measure_name("logits"),
    ]
    assert run(found, tmp_path)[0].outcomes == ()


def test_a_measurement_of_ones_own_gives_numbers(tmp_path, monkeypatch):
    """Words would end every table that shows them."""
    (tmp_path / "own_measures.py").write_text(
        "def words(subject):\n    return {'verdict': 'good'}\n"
        "def images(context):\n    return {'count': len(context.data.test), 'nothing': float('nan')}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    measure = {name: {"measurement": f"own_measures:{name}"} for name in ("words", "images")}
    found = cells(tmp_path, True, methods={"cross-entropy": "cross-entropy"}, trained=False, measure=measure)
    report, _ = run(found, tmp_path)
    assert "must give a dictionary of numbers, got {'verdict': 'good'}" in report.failed[0].said
    results = Results(tmp_path / "results")
    assert results.missing(found[0]) == ["words"]
    assert results.metrics(found[0], "images")["count"] > 0
    assert results.metrics(found[0], "images")["nothing"] is None
