"""A run folder that somebody sent, and the real command in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import surefoot as sf

WATCH = """
import socket
def watched(function):
    def call(*arguments, **options):
        open({marker!r}, "a").write("network")
        return function(*arguments, **options)
    return call
socket.getaddrinfo, socket.socket.connect = watched(socket.getaddrinfo), watched(socket.socket.connect)
"""


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One epoch on a few digits."""
    data = sf.load_data("digits", fraction=0.1, max_images=40)
    folder = tmp_path_factory.mktemp("small") / "r"
    sf.fit(sf.load_model("tiny-resnet", data=data, seed=0), "noisy", data, epochs=1, output=folder, progress=False)
    return folder


@pytest.fixture
def sent(small_run: Path, here: Path) -> Callable[..., Path]:
    """A copy of the run in the current folder, with other sections in its recipe: `sent(objective={...})`."""

    def tamper(**sections: object) -> Path:
        folder = here / "r"
        shutil.copytree(small_run, folder, dirs_exist_ok=True)
        recipe = yaml.safe_load((folder / "recipe.yaml").read_text())
        (folder / "recipe.yaml").write_text(yaml.safe_dump({**recipe, **sections}))
        weights = folder / "model.safetensors"
        with safe_open(weights, "pt") as file:
            about = json.loads(file.metadata()["surefoot"])
        del about["recipe"]  # whoever sends a folder can make this fit
        save_file(load_file(weights), weights, {"surefoot": json.dumps(about)})
        return folder

    return tamper


@pytest.fixture
def marker(here: Path) -> Path:
    """What a payload makes, if it is run."""
    return here / "MARKER"


@pytest.fixture
def watched(surefoot: Callable[..., object], marker: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """`surefoot` in this process; whatever asks for the network makes the marker."""
    for owner, name in ((socket, "getaddrinfo"), (socket.socket, "connect")):
        monkeypatch.setattr(owner, name, lambda *_, **__: marker.write_text("network"))
    return surefoot


@pytest.fixture
def command(here: Path, marker: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`surefoot` in another process, in the current folder; whatever asks for the network there makes the marker."""
    watch = here / "watch"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(WATCH.format(marker=str(marker)))
    path = os.pathsep.join(filter(None, [str(watch), str(Path(sf.__file__).parents[1]), os.environ.get("PYTHONPATH")]))

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        start = [Path(sys.executable).with_name("surefoot")]
        words = list(map(str, start + list(arguments)))
        return subprocess.run(words, capture_output=True, text=True, cwd=here, env={**os.environ, "PYTHONPATH": path})

    return call
