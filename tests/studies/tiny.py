"""A study that takes seconds: two objectives, one epoch, a few digits."""

from __future__ import annotations

import yaml

from surefoot.studies.cells import cells_of
from surefoot.studies.study_files import read_study

TINY = {
    "title": "Tiny",
    "methods": {"cross-entropy": "cross-entropy", "focal": "focal"},
    "models": {"tiny-resnet": "tiny-resnet"},
    "data": {"digits": {"name": "digits", "fraction": 0.2, "max_images": 60}},
    "seeds": 1,
    "training": {"epochs": 1, "batch_size": 64},
    "baseline": "cross-entropy",
    "measure": {"clean": {}},
}


def write(folder, name="tiny", **changes):
    """The file of a tiny study."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**TINY, **changes}))
    return path


def cells(folder, allow_code=False, **changes):
    return cells_of(read_study(str(write(folder, **changes)), "smoke", allow_code=allow_code))
