"""Every study that comes with the package, at smoke scale, to its end, with its figures."""

import json
import os
import re
from pathlib import Path

import pytest

from surefoot.studies.study_files import read_study, study_names


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One folder for all, so that a cell that several studies share is trained once; kept where SMOKE_FOLDER says."""
    kept = os.environ.get("SMOKE_FOLDER")
    return Path(kept) if kept else tmp_path_factory.mktemp("smoke")


@pytest.mark.stress
@pytest.mark.parametrize("name", study_names())
def test_study_runs_to_its_end(surefoot, place, name):
    folder = ("--results", place / "results", "--work", place / "work", "--engine", "here")
    done = surefoot("study", "run", name, *folder, "--page", place / f"{name}.html")
    assert done.code == 0, done.err
    assert "cells are finished" not in done.out  # which is said only of a table that lacks some
    page = (place / f"{name}.html").read_text()
    drawn = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.S)[1])["figures"]
    for figure in read_study(name, "smoke").figures:
        own = [each for key, each in drawn.items() if key.startswith(f"{figure.lower().replace(' ', '-')}-")]
        assert own, figure
        assert all(each["data"] for each in own), figure
