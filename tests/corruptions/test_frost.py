"""Our own frost has the statistics of the photographs; real ones are cut from a folder."""

import itertools

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats

from surefoot.corruptions import corrupt, frost_photographs
from surefoot.corruptions.weather import crops, photographs
from surefoot.errors import NotFound, SurefootError

SCALES = {32: 0.2, 64: 0.3, 224: 1.0}
PHOTOGRAPHS = {  # measured on random crops of the five photographs, shrunk by these factors
    32: {
        "deviation": (0.049, 0.062, 0.081, 0.106, 0.144),
        "green": (0.398, 0.555, 0.637, 0.783, 0.836),
        "skewness": -0.26,
        "kurtosis": {"pixels": 0.95, "gradients": 1.49, "laplacian": 1.6},
        "gradient": 1.125,
        "edges": (0.0469, 0.125, 0.25, 0.5, 0.75),
        "energy": (0.1261, 0.177, 0.4079, 0.126),
    },
    64: {
        "deviation": (0.048, 0.065, 0.078, 0.095, 0.139),
        "green": (0.403, 0.556, 0.638, 0.786, 0.828),
        "skewness": -0.29,
        "kurtosis": {"pixels": 0.71, "gradients": 2.0, "laplacian": 1.76},
        "gradient": 0.926,
        "edges": (0.0234, 0.0625, 0.125, 0.25, 0.5, 0.75),
        "energy": (0.1228, 0.1208, 0.1704, 0.2795, 0.0756),
    },
    224: {
        "deviation": (0.052, 0.072, 0.085, 0.108, 0.160),
        "green": (0.403, 0.554, 0.636, 0.782, 0.822),
        "skewness": -0.26,
        "kurtosis": {"pixels": 0.84, "gradients": 2.52, "laplacian": 2.36},
        "gradient": 0.678,
        "edges": (0.0067, 0.0312, 0.0625, 0.125, 0.25, 0.5, 0.75),
        "energy": (0.179, 0.1156, 0.137, 0.1769, 0.1761, 0.0136),
    },
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@pytest.mark.parametrize("side", PHOTOGRAPHS)
def test_our_windows_have_the_statistics_of_the_photographs(side):
    expected = PHOTOGRAPHS[side]
    chances = torch.rand(2000 if side < 200 else 200, 3, generator=torch.Generator().manual_seed(0))
    found = crops(chances, (side, side), photographs(None, SCALES[side], (side, side))).double().numpy()
    assert np.quantile(found[:, 1].mean((1, 2)), QUANTILES) == pytest.approx(expected["green"], abs=0.03)
    grey = np.einsum("nchw,c->nhw", found, [0.299, 0.587, 0.114])
    deviation = grey.std((1, 2))
    assert np.quantile(deviation, QUANTILES) == pytest.approx(expected["deviation"], rel=0.25)
    assert np.median(deviation) == pytest.approx(expected["deviation"][2], rel=0.06)
    grey = (grey - grey.mean((1, 2), keepdims=True)) / deviation[:, None, None]
    gradients = np.concatenate([np.diff(grey, axis=axis).ravel() for axis in (1, 2)])
    laplacian = 4 * grey[:, 1:-1, 1:-1] - grey[:, 2:, 1:-1] - grey[:, :-2, 1:-1] - grey[:, 1:-1, 2:] - grey[:, 1:-1, :-2]
    assert stats.skew(grey.ravel()) == pytest.approx(expected["skewness"], abs=0.15)
    for name, values in {"pixels": grey.ravel(), "gradients": gradients, "laplacian": laplacian.ravel()}.items():
        assert stats.kurtosis(values) == pytest.approx(expected["kurtosis"][name], abs=0.6), name
    assert np.sqrt((gradients**2).mean()) == pytest.approx(expected["gradient"], rel=0.06)
    power = (np.abs(np.fft.fft2(grey)) ** 2).mean(0)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side))
    edges = expected["edges"]
    energy = [power[(frequency >= low) & (frequency < high)].sum() / power.sum() for low, high in itertools.pairwise(edges)]
    assert energy == pytest.approx(expected["energy"], abs=0.06)


def test_channels_are_those_of_the_photographs():
    chances = torch.rand(2000, 3, generator=torch.Generator().manual_seed(0))
    found = crops(chances, (32, 32), photographs(None, 0.2, (32, 32))).double().flatten(2)
    assert found.std(2).mean(0).tolist() == pytest.approx([0.096, 0.091, 0.091], abs=0.006)
    centred = found - found.mean(2, keepdim=True)
    centred /= centred.norm(dim=2, keepdim=True)
    correlation = (centred @ centred.mT).mean(0)
    assert [correlation[0, 1], correlation[0, 2], correlation[1, 2]] == pytest.approx([0.97, 0.94, 0.99], abs=0.02)


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
