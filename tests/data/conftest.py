"""Small image folders on disk, made for the tests."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def write_images():
    """`write_images(folder, count, size)`: PNG files whose red channel holds their number."""

    def write(folder, count, size=(32, 32), suffix=".png", start=0):
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(start, start + count):
            pixels = np.random.default_rng(number).integers(0, 256, (*size, 3), dtype=np.uint8)
            pixels[..., 0] = number % 256
            Image.fromarray(pixels).save(folder / f"{number:04}{suffix}")

    return write


@pytest.fixture
def class_folders(tmp_path, write_images):
    """Three classes of 40 images, in train and test."""
    for split, count in (("train", 30), ("test", 10)):
        for number, name in enumerate(("cat", "dog", "eel")):
            write_images(tmp_path / "pets" / split / name, count, start=100 * number + (50 if split == "test" else 0))
    return tmp_path / "pets"
