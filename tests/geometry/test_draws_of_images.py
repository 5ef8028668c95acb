"""Draws belong to an image by its index: images in two chunks are measured as they are together."""

import pytest
import torch
from torch import nn

from surefoot import geometry
from surefoot.errors import SurefootError
from surefoot.geometry.evaluation import base_seed, gaussian, signs
from surefoot.geometry.layers import pca
from surefoot.seeds import generator

INDICES = torch.tensor([40, 3, 17, 8, 99, 0, 12])
DRAWN = {
    "sensitivity": "values",
    "margin_ratio": "sensitivities",
    "radius_estimates": "values",
    "input_curvature": "values",
    "hessian_curvature": "values",
    "hessian_trace": "values",
    "loss_change_bound": "values",
    "noise_stability": "feature_distances",
    "loss_landscape": "loss",
}


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(36, 4)).double()


def values(name, net, points, labels, indices):
    function = getattr(geometry, name)
    given = (points,) if name == "sensitivity" else (points, labels)
    few = {"steps": 2} if name == "loss_change_bound" else {}  # so that Lanczos depends on where it starts
    run = {"generator": generator(0, "draws"), "indices": indices, **few}
    return getattr(function(net, *given, **run), DRAWN[name])


@pytest.mark.parametrize("name", DRAWN)
def test_two_chunks_are_one_whole(name, net, points, labels):
    together = values(name, net, points, labels, INDICES)
    apart = [values(name, net, points[part], labels[part], INDICES[part]) for part in (slice(0, 4), slice(4, 7))]
    torch.testing.assert_close(torch.cat(apart), together, rtol=1e-9, atol=1e-12)
    same = [values(name, net, points[k : k + 1], labels[k : k + 1], INDICES[k : k + 1]) for k in (2, 2)]
    assert torch.equal(*same)


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "loss_landscape"])
def test_without_indices_they_are_the_places_in_the_batch(name, net, points, labels):
    torch.testing.assert_close(
        values(name, net, points, labels, None), values(name, net, points, labels, torch.arange(7)), rtol=0, atol=0
    )
    assert not torch.equal(values(name, net, points, labels, INDICES), values(name, net, points, labels, None))


@pytest.fixture
def pixels():
    """Seven grey images in [0, 1]."""
    return torch.rand(7, 1, 3, 3, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def grey():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(36, 4))


def test_noisy_copies_belong_to_the_image(grey, pixels, labels):
    options = {"level": 0.4, "draws": 30}
    together = geometry.noisy_correct(grey, pixels, labels, indices=INDICES, **options)
    parts = (slice(0, 3), slice(3, 7))
    apart = [geometry.noisy_correct(grey, pixels[p], labels[p], indices=INDICES[p], **options) for p in parts]
    assert torch.equal(torch.cat(apart), together)
    usual = geometry.noisy_correct(grey, pixels, labels, **options)
    assert torch.equal(usual, geometry.noisy_correct(grey, pixels, labels, indices=torch.arange(7), **options))


def test_an_attack_that_draws_is_given_the_indices(grey, pixels, labels):
    seen = []

    def attack(model, images, labels, indices):
        seen.append(indices)
        return images.clone()

    found = geometry.feature_displacement(grey, pixels, labels, attack, 4, indices=INDICES)
    assert torch.equal(torch.cat(seen), INDICES)
    assert found.mean == 0


def test_noise_of_layers_belongs_to_the_image(grey, pixels, labels):
    run = {"projection": pca, "level": 0.3}
    found = [
        geometry.layer_projection(grey, pixels, labels, ["0"], indices=indices, **run).noisy
        for indices in (None, torch.arange(7), INDICES)
    ]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_gaussian_and_signs(points):
    seed = base_seed(generator(0))
    whole = gaussian(points, 5, 1, seed)
    assert torch.equal(whole, gaussian(points, torch.arange(5, 12), 1, seed))
    assert torch.equal(signs(points, 5, 1, seed), torch.where(whole < 0, -1.0, 1.0).double())


def test_as_many_indices_as_images(net, points, labels):
    with pytest.raises(SurefootError, match="indices must be one for each of 7 images"):
        geometry.input_curvature(net, points, labels, indices=torch.arange(6))
