import json
import os
import stat
import subprocess
import sys

import pytest
import torch

from surefoot.errors import NotFound, SurefootError
from surefoot.files import inside, part_of, read_json, read_tensors, remove, replacing, write_json, write_tensors, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail():
        with replacing(path) as beside:
            beside.write_text("half of the ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_holds_no_nan(tmp_path):
    with pytest.raises(ValueError):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_read_json_says_what_is_wrong(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(SurefootError, match="not valid JSON"):
        read_json("audit", tmp_path / "a.json")
    with pytest.raises(NotFound, match="No audit at"):
        read_json("audit", tmp_path / "b.json")
    (tmp_path / "a.json").write_text(json.dumps([1]))
    assert read_json("audit", tmp_path / "a.json") == [1]
    (tmp_path / "a.json").write_text('["\u00e9"]', encoding="utf-8-sig")
    assert read_json("audit", tmp_path / "a.json") == ["\u00e9"]
    (tmp_path / "a.json").write_bytes(b'["\xe9"]')
    with pytest.raises(SurefootError, match="audit '.*a.json' must be text in UTF-8: .* at byte 2"):
        read_json("audit", tmp_path / "a.json")


def test_tensors_round_trip_even_when_they_share_memory(tmp_path):
    x = torch.arange(6.0).view(2, 3)
    write_tensors(tmp_path / "x.safetensors", {"x": x, "row": x[0], "turned": x.t()})
    back = read_tensors("weights", tmp_path / "x.safetensors")
    assert torch.equal(back["turned"], x.t())
    assert torch.equal(back["row"], x[0])


def test_half_a_tensor_file_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"x": torch.rand(100)})
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(SurefootError, match="not a whole safetensors file"):
        read_tensors("weights", path)


@pytest.fixture
def gone():
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_files_have_the_permissions_that_the_user_wants(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "a.txt", "")
        write_tensors(tmp_path / "x.safetensors", {"x": torch.zeros(1)})
    finally:
        os.umask(before)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_temporary_names_are_new_and_not_to_be_guessed(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    assert part_of(path) != part_of(path)
    (tmp_path / "taken").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr("surefoot.files.part_of", lambda _: tmp_path / "taken")
    with pytest.raises(SurefootError, match=r"a\.txt' cannot be written: File exists"):
        write_text(path, "new")
    assert not (tmp_path / "elsewhere").exists()


def test_what_the_dead_left_is_swept_by_the_next_writer(tmp_path, monkeypatch, gone):
    """Of the same file, on the same machine, and never of a process that lives."""
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    living = part_of(path)
    with monkeypatch.context() as dead:
        dead.setattr(os, "getpid", lambda: gone)
        left, of_another = part_of(path), part_of(other)
        dead.setattr("socket.gethostname", lambda: "elsewhere")
        remote = part_of(path)
    strange = tmp_path / ".a.txt.part"
    for each in (living, left, of_another, remote, strange):
        each.write_text("half")
    write_text(path, "new")
    assert set(tmp_path.iterdir()) == {path, living, of_another, remote, strange}


def test_folders_below_the_users_own_are_no_links(tmp_path):
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "named").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "led").symlink_to(tmp_path)
    assert inside(tmp_path / "named", "deep", "new") == tmp_path / "named" / "deep" / "new"
    for names in (["led"], ["led", "x"], ["deep", "..", "led"]):
        with pytest.raises(SurefootError, match="led' is a link"):
            inside(tmp_path / "named", *names)


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("")
    (tmp_path / "led").symlink_to(tmp_path / "real")
    remove(tmp_path / "led")
    assert [path.name for path in tmp_path.rglob("*")] == ["real", "file"]
    remove(tmp_path / "real")
    remove(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    calls, replace = [], os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync"))
    monkeypatch.setattr(os, "replace", lambda *paths: calls.append("replace") or replace(*paths))
    write_text(tmp_path / "a.txt", "whole")
    assert calls == ["fsync", "replace"]
    assert (tmp_path / "a.txt").read_text() == "whole"
