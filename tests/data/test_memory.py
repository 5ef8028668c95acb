"""What must be in memory together is refused in one line where it cannot be."""

from __future__ import annotations

import pytest
import torch

from surefoot.data import image_files
from surefoot.data.dataset import TensorSplit, whole
from surefoot.errors import SurefootError


def split(count: int) -> TensorSplit:
    images = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 4, 4).contiguous()
    return TensorSplit(images, torch.arange(count), torch.arange(count) + 100)


def test_everything_comes_in_order() -> None:
    found = whole(split(7), 3)
    assert (255 * found.images[:, 0, 0, 0]).round().tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert found.labels.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert found.indices.tolist() == [100, 101, 102, 103, 104, 105, 106]


def test_too_many_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    one = 3 * 4 * 4 * 4  # bytes of an image in float32
    monkeypatch.setattr(image_files, "available", lambda device: 2 * 5 * one)
    assert len(whole(split(5), 2).images) == 5
    with pytest.raises(SurefootError, match=r"^6 images of 3 x 4 x 4 need .* take at most 5 of them \(--max-images"):
        whole(split(6), 2)


def test_the_machine_has_some_memory() -> None:
    assert 2**20 < image_files.available(torch.device("cpu")) < 2**50


def test_no_images() -> None:
    with pytest.raises(SurefootError, match="no images"):
        whole(split(0), 2)
