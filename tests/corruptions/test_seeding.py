"""An image does not depend on its batch, order or process, and its severities are paired."""

import subprocess
import sys

import pytest
import torch
from pictures import pictures

from surefoot.corruptions import NAMES, PAPERS4, corrupt
from surefoot.corruptions.families import EVERY_FAMILY


@pytest.mark.parametrize("side", [32, 72])
@pytest.mark.parametrize("name", [*NAMES, *PAPERS4, *EVERY_FAMILY["c-bar"], "occlusion+gaussian_noise"])
def test_alone_in_a_batch_and_in_any_order(name, side):
    images = pictures(400 if side == 32 else 24, side)
    whole = corrupt(images, name, 3, seed=5)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))[:40]
    assert torch.equal(corrupt(images[order], name, 3, seed=5, indices=order), whole[order])
    for number in (17, len(images) - 1):
        alone = corrupt(images[number : number + 1], name, 3, seed=5, indices=torch.tensor([number]))
        assert torch.equal(alone[0], whole[number])


def test_another_process_gives_the_same():
    code = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); from pictures import pictures; torch.set_num_threads(1)\n"
        "from surefoot.corruptions import NAMES, corrupt\n"
        "images, places = pictures(20, 32)[10:13], torch.tensor([10, 11, 12])\n"
        "print([int(corrupt((images * 255).byte(), name, 4, indices=places).long().sum()) for name in NAMES])"
    )
    folder = __file__.rpartition("/")[0]
    found = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True).stdout
    images = (pictures(20, 32) * 255).byte()
    assert found.strip() == str([int(corrupt(images, name, 4)[10:13].long().sum()) for name in NAMES])


def noise(name, severity):
    """The change of flat grey images."""
    return (corrupt(torch.full((20, 3, 32, 32), 0.5), name, severity) - 127 / 255).flatten()


@pytest.mark.parametrize(("name", "ratio"), [("gaussian_noise", 0.1 / 0.04), ("speckle_noise", 0.2 / 0.06)])
def test_severities_are_the_same_noise_scaled(name, ratio):
    assert torch.allclose(noise(name, 1) * ratio, noise(name, 5), atol=(2 + ratio) / 255)


def test_shot_and_impulse_noise_are_paired():
    weak, strong = noise("shot_noise", 1), noise("shot_noise", 5)
    assert torch.corrcoef(torch.stack([weak, strong]))[0, 1] > 0.95
    hit, more = (noise("impulse_noise", severity).abs() > 0.1 for severity in (1, 5))
    assert bool((more | ~hit).all())
    assert more.sum() > 5 * hit.sum()


@pytest.mark.parametrize(
    ("name", "severities", "flat"),
    [
        ("motion_blur", (4, 5), False),
        ("elastic_transform", (4, 5), False),
        ("fog", (4, 5), True),
        ("snow", (1, 2), True),
        ("frost", (4, 5), True),
        ("spatter", (4, 5), True),
    ],
)
def test_other_draws_are_paired_too(name, severities, flat):
    """The changes at neighbouring severities of an image are alike, those of two seeds are less so."""
    images = torch.full((30, 3, 32, 32), 0.4) if flat else pictures(30, 32)
    low, high = (corrupt(images, name, severity) - images for severity in severities)
    other = corrupt(images, name, severities[1], seed=1) - images
    paired, apart = (torch.corrcoef(torch.stack([high.flatten(), change.flatten()]))[0, 1] for change in (low, other))
    assert paired > apart + 0.15


def test_a_link_looks_the_same_in_every_chain():
    images = torch.full((3, 3, 32, 32), 0.6)
    hidden = corrupt(images, "occlusion", 4) == 0
    noisy = corrupt(images, "gaussian_noise+occlusion", 4)
    assert bool((noisy[hidden] == 0).all())
    assert torch.equal(noisy[~hidden], corrupt(images, "gaussian_noise", 4)[~hidden])
    twice = corrupt(images, "gaussian_noise+gaussian_noise", 3)
    assert (twice - 0.6).std().item() == pytest.approx(0.08 * 2**0.5, rel=0.05)


@pytest.mark.parametrize("chain", ["gaussian_noise+jpeg_compression", "brightness+jpeg_compression", "gaussian_noise+fog"])
def test_a_chain_is_one_after_the_other(chain):
    """Every link gets pixels: between them only the rounding to bytes is missing."""
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)).round()  # black and white
    expected = images
    for link in chain.split("+"):
        expected = corrupt(expected, link, 5)
    assert (corrupt(images, chain, 5) - expected).abs().mean() < 0.03  # JPEG makes more of the rounding
