"""Readers of files that somebody sent, on bytes that were changed anywhere: they read, or say in a line why not."""

import io
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

import small_audits
import surefoot as sf
from surefoot.cli.gate import read_numbers
from surefoot.errors import SurefootError
from surefoot.models.checkpoints import read_weights
from surefoot.studies.cells import cells_of
from surefoot.studies.study_files import read_study
from surefoot.training.recipes import Recipe

sys.path.append(str(Path(__file__).parents[1] / "studies"))
import tiny

QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def pickled():
    file = io.BytesIO()
    torch.save({"state_dict": {"w": torch.zeros(2, 3)}}, file)
    return file.getvalue()


LOGITS, LABELS = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([0, 1, 2, 0])
RECIPE = {"data": "digits", "model": "tiny-resnet", "objective": {"name": "focal", "gamma": 2}, "training": {"epochs": 3}}
STUDY = {**tiny.TINY, "table": {"columns": ["clean.accuracy"]}, "scales": {"smoke": {"seeds": 1}}}
AUDIT = small_audits.audit()
PIXELS = np.zeros((4, 8, 8), np.uint8)
READERS = {
    "predictions.npz": (npz(logits=LOGITS, labels=LABELS), sf.Predictions.load),
    "images.npz": (npz(images=PIXELS, labels=LABELS, class_names=np.array(["a", "b", "c"])), sf.load_data),
    "predictions.csv": (b"label,index,logit_0,logit_1\n0,5,0.25,-1e3\n1,6,2,3\n", sf.Predictions.load),
    "predictions.safetensors": (
        save({"logits": torch.tensor(LOGITS), "labels": torch.tensor(LABELS)}, {"surefoot": "{}"}),
        sf.Predictions.load,
    ),
    "recipe.yaml": (yaml.safe_dump(RECIPE).encode(), Recipe.read),
    "study.yaml": (yaml.safe_dump(STUDY).encode(), lambda path: cells_of(read_study(str(path), "smoke"))),
    "weights.safetensors": (save({"w": torch.zeros(2, 3)}), read_weights),
    "weights.pth": (pickled(), read_weights),
    "audit.json": (json.dumps(AUDIT).encode(), read_numbers),
}
PLACES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6)
EDITS = st.tuples(st.sampled_from(["change", "insert", "cut", "swap"]), PLACES)
WORDS = st.sampled_from(
    [b"-1", b"1e400", b"NaN", b"null", b"[]", b"{}", b"\x00", b"\xff", b"99999999999999999999", b"'", b"&a *a"]
)


def edited(whole: bytes, kind: str, places, word: bytes) -> bytes:
    """Bytes that were changed, put in, cut off, or replaced by a word of another kind."""
    content = bytearray(whole)
    for share, value in places:
        at = int(share * len(content)) if content else 0
        if kind == "change" and content:
            content[at] = value
        elif kind == "insert":
            content.insert(at, value)
        elif kind == "cut":
            del content[at:]
        elif content:
            content[at : at + value % 12] = word
    return bytes(content)


def walk(name: str, folder: Path, kind: str, places, word: bytes) -> None:
    """Read one changed file; whatever is raised but a line of our own fails the test."""
    whole, read = READERS[name]
    (folder / name).write_bytes(edited(whole, kind, places, word))
    read_or_refuse(read, folder / name)


def read_or_refuse(read, path: Path) -> None:
    said = ""
    try:
        read(path)
    except SurefootError as error:
        said = str(error).strip()
    assert "\n" not in said
    assert len(said) < 2000


@pytest.mark.parametrize("name", READERS)
def test_the_whole_file_is_read(name, tmp_path):
    whole, read = READERS[name]
    (tmp_path / name).write_bytes(whole)
    assert read(tmp_path / name) is not None


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, deadline=None, suppress_health_check=QUIET, derandomize=True, database=None)
@given(edit=EDITS, word=WORDS)
def test_a_changed_file_is_read_or_refused(name, tmp_path, edit, word):
    walk(name, tmp_path, *edit, word)


def leaves(value, path=()):
    """The places of a parsed file, inner ones too."""
    yield path
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(each, (*path, key))


def with_leaf(value, path, new):
    if not path:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = with_leaf(value[path[0]], path[1:], new)
    return changed


PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(["1e400", "a:b", "../x"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=4,
)
PARSED = {"recipe.yaml": (RECIPE, yaml.safe_dump), "study.yaml": (STUDY, yaml.safe_dump), "audit.json": (AUDIT, json.dumps)}


def change_value(name, folder, place, new):
    """Another value anywhere in a file that stays well-formed."""
    whole, write = PARSED[name]
    places = list(leaves(whole))
    (folder / name).write_text(write(with_leaf(whole, places[int(place * len(places))], new)))
    read_or_refuse(READERS[name][1], folder / name)


@pytest.mark.parametrize("name", PARSED)
@settings(max_examples=60, deadline=None, suppress_health_check=QUIET, derandomize=True, database=None)
@given(place=st.floats(0, 1, exclude_max=True), new=PLAIN)
def test_a_changed_value_is_read_or_refused(name, tmp_path, place, new):
    change_value(name, tmp_path, place, new)


@pytest.mark.stress
@pytest.mark.parametrize("name", READERS)
def test_ten_minutes_of_changed_files(name, tmp_path):
    """FUZZ_SECONDS for all readers together, 600 if not said."""
    until, walked = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", 600)) / len(READERS), Counter()

    @settings(max_examples=200, deadline=None, suppress_health_check=QUIET, database=None)
    @given(edit=EDITS, word=WORDS, place=st.floats(0, 1, exclude_max=True), new=PLAIN)
    def some(edit, word, place, new):
        walk(name, tmp_path, *edit, word)
        if name in PARSED:
            change_value(name, tmp_path, place, new)
        walked["files"] += 1 + (name in PARSED)

    while time.monotonic() < until:
        some()
    print(f"{name}: {walked['files']} changed files")
    assert walked["files"] >= 200
