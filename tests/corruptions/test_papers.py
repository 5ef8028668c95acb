import numpy as np
import pytest
import torch
from torch.nn import functional as F

from surefoot.corruptions import add_gaussian_noise, add_uniform_noise, corrupt
from surefoot.errors import SurefootError

GREY = torch.full((40, 3, 32, 32), 0.5)


@pytest.mark.parametrize("level", [2 / 255, 16 / 255, 0.15])
def test_noise_at_a_given_level(level):
    gaussian, uniform = add_gaussian_noise(GREY, level) - 0.5, add_uniform_noise(GREY, level) - 0.5
    assert gaussian.std().item() == pytest.approx(level, rel=0.01)
    assert uniform.std().item() == pytest.approx(level / 3**0.5, rel=0.01)
    assert uniform.abs().max() <= level + 1e-6
    assert uniform.mean().abs() < 0.01 * level + 1e-4


def test_levels_share_the_draws_of_the_severities():
    found = add_gaussian_noise(GREY, 0.08, seed=2)
    assert (corrupt(GREY, "gaussian_noise", 3, seed=2) - found).abs().max() <= 1.01 / 255
    whole = add_uniform_noise(torch.full((4, 1, 8, 8), 128, dtype=torch.uint8), 0.1)
    assert whole.dtype == torch.uint8
    with pytest.raises(SurefootError, match="level must be from 0 to 1, in pixel units, got 16"):
        add_gaussian_noise(GREY, 16)


def test_occlusion_hides_squares_of_the_paper_s_share():
    """20 patches of 70 px at 400 x 500: each hides a share of 70 * 70 / (331 * 431) of the places it can reach."""
    images = torch.ones(12, 3, 400, 500)
    found = corrupt(images, "occlusion", 4)
    assert set(found.unique().tolist()) == {0.0, 1.0}
    generator = np.random.default_rng(0)
    shares = []
    for _ in range(200):
        hidden = np.zeros((400, 500), bool)
        for top, left in zip(generator.integers(0, 331, 20), generator.integers(0, 431, 20), strict=True):
            hidden[top : top + 70, left : left + 70] = True
        shares.append(hidden.mean())
    assert 1 - found.mean().item() == pytest.approx(np.mean(shares), abs=4 * np.std(shares) / 12**0.5)
    weaker = corrupt(images, "occlusion", 2)
    assert bool((weaker >= found).all())


def test_stripes_are_vertical_and_of_the_paper_s_width():
    found = corrupt(torch.ones(8, 1, 40, 500), "stripes", 4)
    assert torch.equal(found, found[:, :, :1].expand_as(found))
    runs = [len(run) for row in found[:, 0, 0] for run in "".join(str(int(v == 0)) for v in row).split("0") if run]
    assert min(runs) == 6
    assert 50 <= np.mean([(row == 0).sum().item() for row in found[:, 0, 0]]) <= 60


def test_down_and_up_sampling_is_bilinear_by_the_factor():
    images = torch.rand(2, 3, 30, 36)
    small = F.interpolate(images, (10, 12), mode="bilinear", align_corners=False)
    expected = F.interpolate(small, (30, 36), mode="bilinear", align_corners=False)
    assert (corrupt(images, "down_up_sampling", 4) - expected).abs().max() < 1.01 / 255
