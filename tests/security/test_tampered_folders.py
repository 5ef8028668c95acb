"""Runs, audits and cells of which one file was changed anywhere: read, or refused in a line that says where to look."""

import random
import shutil
import sys
from pathlib import Path

import pytest
import torch
from test_fuzzed_readers import edited

import small_audits
import surefoot as sf
from surefoot.auditing.comparison import read_compared
from surefoot.auditing.table import read_table
from surefoot.calibration.calibrators import fit_calibrator
from surefoot.calibration.guarantees import fit_guarantees
from surefoot.errors import SurefootError
from surefoot.files import write_json
from surefoot.plain import plain
from surefoot.studies.cells import whole
from surefoot.studies.results import Results
from surefoot.training.runs import load_run, write_calibrated

sys.path.append(str(Path(__file__).parents[1] / "studies"))
import tiny

WORDS = [b"-1", b"1e400", b"null", b"[]", b"{}", b"\xff", b'"x"', b"99999999999999999999"]


@pytest.fixture(scope="module")
def calibrated(small_run, tmp_path_factory):
    """The small run with a calibrator and guarantees."""
    draws = torch.Generator().manual_seed(0)
    given, other = (sf.Predictions.from_logits(torch.randn(40, 10, generator=draws), torch.arange(40) % 10) for _ in range(2))
    run, folder = load_run(small_run), tmp_path_factory.mktemp("calibrated") / "r"
    calibrator = fit_calibrator("temperature", given, run.model)
    write_calibrated(run, calibrator, folder, fit_guarantees(given, other, coverage=0.9))
    return folder


def changes(content: bytes, header: bool, count: int):
    """The file changed so often, half of the time in its safetensors header, which says what it is."""
    chance, size = random.Random(len(content)), int.from_bytes(content[:8], "little")
    for number in range(count):
        places = [(chance.random(), chance.randrange(256)) for _ in range(2)]
        kind, word = chance.choice(["change", "insert", "cut", "swap"]), chance.choice(WORDS)
        if header and number % 2:
            head = edited(content[8 : 8 + size], "swap", places, word)
            yield len(head).to_bytes(8, "little") + head + content[8 + size :]
        else:
            yield edited(content, kind, places, word)


def read_changed(path: Path, read, count=8):
    """Whatever is raised but a line of our own fails the test; some change must be noticed."""
    content, said = path.read_bytes(), []
    for changed in changes(content, path.suffix == ".safetensors", count):
        path.write_bytes(changed)
        try:
            read()
        except SurefootError as error:
            said.append(str(error).strip())
    assert said
    assert not [line for line in said if "\n" in line or len(line) > 2000]


@pytest.mark.parametrize(
    "name", ["recipe.yaml", "history.jsonl", "model.safetensors", "calibration.safetensors", "guarantees.safetensors"]
)
def test_a_run(calibrated, tmp_path, name):
    shutil.copytree(calibrated, tmp_path / "r")
    assert load_run(tmp_path / "r").guarantees is not None
    read_changed(tmp_path / "r" / name, lambda: load_run(tmp_path / "r"))


def test_an_audit(tmp_path):
    small_audits.write(tmp_path, small_audits.audit(), small_audits.predictions(0))
    read_compared(tmp_path)
    read_changed(tmp_path / "audit.json", lambda: read_compared(tmp_path), 40)


def test_a_table(tmp_path):
    small_audits.write(tmp_path, small_audits.audit(), small_audits.predictions(0))
    assert len(read_table(tmp_path)) > 0
    part = min((tmp_path / "audit-data" / "table").glob("part-*.parquet"))
    read_changed(part, lambda: read_table(tmp_path), 40)


def test_a_cell(tmp_path):
    cell = tiny.cells(tmp_path)[0]
    name, options = cell.measure["clean"]
    measured = {
        cell.measure_name("clean"): {"measurement": name, "options": options, "metrics": {"accuracy": 0.5, "ece": None}}
    }
    results = Results(tmp_path)
    write_json(results.path(cell.name), plain({"recipe": whole(cell.recipe, cell.trained), "measurements": measured}))
    assert results.measured(cell) == {"clean": {"accuracy": 0.5, "ece": None}}
    read_changed(results.path(cell.name), lambda: results.measured(cell), 60)
    for wrong in ([], {"measurements": 3}, {"measurements": {"a": {"options": {}, "metrics": {"accuracy": [1]}}}}):
        write_json(results.path(cell.name), wrong)
        with pytest.raises(SurefootError, match="is not the whole record of a cell: remove it"):
            results.measured(cell)
