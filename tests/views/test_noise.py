import pytest
import torch

from surefoot.errors import SurefootError
from surefoot.seeds import generator
from surefoot.views import GaussianNoise


def test_std_is_as_asked_and_nothing_is_clipped():
    images = torch.zeros(16, 3, 64, 64)
    change = GaussianNoise(0.1)(images, generator(0))
    assert change.std().item() == pytest.approx(0.1, rel=0.01)
    assert change.min() < -0.2


def test_std_is_drawn_for_each_image():
    change = GaussianNoise((0.0, 0.2))(torch.zeros(400, 1, 32, 32), generator(0))
    stds = change.flatten(1).std(1)
    assert stds.min() < 0.01
    assert stds.max() > 0.19
    assert stds.mean().item() == pytest.approx(0.1, abs=0.01)


def test_the_generator_decides(images):
    view = GaussianNoise(0.1)
    assert torch.equal(view(images, generator(1)), view(images, generator(1)))
    assert not torch.equal(view(images, generator(1)), view(images, generator(2)))
    assert torch.equal(GaussianNoise(0.0)(images), images)


@pytest.mark.parametrize("std", [-0.1, (0.2, 0.1), (0.1, 0.2, 0.3), (-0.1, 0.1)])
def test_bad_range(std):
    with pytest.raises(SurefootError, match="std must be a number or \\(low, high\\) in"):
        GaussianNoise(std)
