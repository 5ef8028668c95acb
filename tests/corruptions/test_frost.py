"""Our own frost has the statistics of the photographs; real ones are cut from a folder."""

import numpy as np
import pytest
import torch
from PIL import Image

from surefoot.corruptions import corrupt, frost_photographs
from surefoot.corruptions.frost_texture import crops
from surefoot.errors import NotFound, SurefootError

MEASURED = {  # side: luminance deviation in a crop and its spread, slope of the spectrum; on crops of five photographs
    32: (0.2, 0.058, 0.021, -2.05, 0.51),
    64: (0.3, 0.068, 0.022, -2.02, 0.32),
    224: (1.0, 0.092, 0.031, -1.72, 0.22),
}


def slope(grey):
    """Of the log of the radial power spectrum against the log of frequency."""
    side = len(grey)
    window = np.hanning(side)[:, None] * np.hanning(side)
    power = np.abs(np.fft.fft2((grey - grey.mean()) * window)) ** 2
    radius = np.hypot(*np.meshgrid(np.fft.fftfreq(side, 1 / side), np.fft.fftfreq(side, 1 / side))).round().astype(int)
    bins = range(2, side // 2)
    means = [power[radius == r].mean() for r in bins]
    return np.polyfit(np.log(list(bins)), np.log(means), 1)[0]


@pytest.mark.parametrize("side", MEASURED)
def test_own_texture_has_the_measured_statistics(side):
    scale, deviation, spread, steepness, slopes = MEASURED[side]
    chances = torch.rand(300 if side < 200 else 60, 5, generator=torch.Generator().manual_seed(0))
    found = crops(chances, (side, side), scale)
    colour = found.mean((0, 2, 3)).tolist()
    assert colour == pytest.approx([0.564, 0.647, 0.694], abs=0.03)
    assert found.mean((1, 2, 3)).std().item() == pytest.approx(0.152, abs=0.025)
    grey = (found * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1)
    inside = grey.flatten(1).std(1)
    assert inside.mean().item() == pytest.approx(deviation, rel=0.1)
    assert inside.std().item() == pytest.approx(spread, rel=0.3)
    assert np.mean([slope(image.double().numpy()) for image in grey[:60]]) == pytest.approx(steepness, abs=slopes / 2)


def test_weights_of_image_and_frost():
    black, white = (corrupt(torch.full((50, 3, 32, 32), value), "frost", 5) for value in (0.0, 0.3))
    assert torch.allclose(white - black, torch.full_like(white, 0.75 * 0.3), atol=1.1 / 255)
    assert black.mean().item() == pytest.approx(0.45 * 0.635, abs=0.03)


def test_photographs_from_a_folder(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "frost1.png")
    with frost_photographs(tmp_path):
        found = corrupt(torch.zeros(4, 3, 40, 50), "frost", 5, scale="224")
        grey = corrupt(torch.zeros(4, 1, 40, 50), "frost", 5, scale="224")
    assert grey.shape == (4, 1, 40, 50)
    levels = np.floor(0.75 * pixels.astype(float) + 1e-3)
    for image in (found * 255).round().permute(0, 2, 3, 1).numpy():
        windows = ((top, left) for top in range(21) for left in range(31))
        assert any(np.array_equal(levels[top : top + 40, left : left + 50], image) for top, left in windows)
    assert not torch.equal(found, corrupt(torch.zeros(4, 3, 40, 50), "frost", 5, scale="224"))


def test_photographs_from_an_installed_package(tmp_path, monkeypatch):
    folder = tmp_path / "imagecorruptions" / "frost"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise ImportError('must not be imported')")
    Image.new("RGB", (300, 300), (100, 150, 200)).save(folder / "frost1.png")
    monkeypatch.syspath_prepend(tmp_path)
    with frost_photographs("imagecorruptions"):
        found = corrupt(torch.zeros(1, 3, 32, 32), "frost", 1)
    assert (found[0, :, 5, 5] * 255).round().tolist() == [20, 30, 40]


def test_folders_that_do_not_do(tmp_path):
    with pytest.raises(NotFound, match="No folder of frost photographs"), frost_photographs(tmp_path / "nothing"):
        pass
    with pytest.raises(SurefootError, match="which is not installed"), frost_photographs("imagecorruptions"):
        pass
    with frost_photographs(tmp_path), pytest.raises(SurefootError, match="has none"):
        corrupt(torch.zeros(1, 3, 32, 32), "frost", 1)
