import json

import pytest
import torch

from surefoot.errors import NotFound, SurefootError
from surefoot.files import read_json, read_tensors, replacing, write_json, write_tensors, write_text


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
