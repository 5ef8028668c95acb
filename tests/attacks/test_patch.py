"""One patch for all pictures: it changes its own pixels alone, and is trained as a plain loop would train it."""

import pytest
import torch
from attack_nets import linear_net, pictures, small_net
from torch.nn import functional as F

from surefoot.attacks import put_patch, train_patch
from surefoot.attacks._patch import BATCH, patch_side
from surefoot.errors import SurefootError
from surefoot.seeds import generator


@pytest.mark.parametrize(("share", "side"), [(0, 0), (0.05, 2), (0.25, 4), (0.5, 6), (1, 8)])
def test_only_pixels_of_the_patch_change(share, side):
    images = pictures(20)
    patch = torch.full((3, patch_side(share, 8, 8), patch_side(share, 8, 8)), 2.0)  # no pixel has this
    found = put_patch(images, patch)
    changed = found != images
    assert changed.sum((1, 2, 3)).tolist() == [3 * side * side] * 20
    for one, where in zip(found, changed, strict=True):
        rows, columns = where.any((0, 2)).nonzero().flatten(), where.any((0, 1)).nonzero().flatten()
        if side:
            assert (len(rows), int(rows[-1] - rows[0]) + 1) == (side, side)
            assert (one[:, rows[0] : rows[0] + side, columns[0] : columns[0] + side] == 2).all()


def test_places_belong_to_the_image():
    images, patch = pictures(6), torch.zeros(3, 2, 2)
    numbers = torch.tensor([5, 3, 9, 0, 2, 7])
    whole = put_patch(images, patch, indices=numbers)
    assert torch.equal(put_patch(images[3:], patch, indices=numbers[3:]), whole[3:])
    assert not torch.equal(put_patch(images, patch, indices=numbers, seed=1), whole)
    corners = {tuple((each == 0).all(0).nonzero()[0].tolist()) for each in put_patch(torch.ones(400, 3, 5, 5), patch)}
    assert len(corners) == 16  # every place of a square of 2 in 5 x 5


def test_training_against_a_plain_loop():
    """Gradients of whole pictures, cut out and added up one by one."""
    net, images = small_net(), pictures(10)
    labels = net(images).argmax(1)
    found = train_patch(net, images, labels, share=0.1, steps=4, seed=3)
    side, patch = round((0.1 * 64) ** 0.5), torch.full((3, 3, 3), 0.5)
    assert side == 3
    for step in range(4):
        rows = torch.randperm(10, generator=generator(3, "patch", step))[:BATCH]
        marked = put_patch(images[rows], torch.full((3, side, side), 2.0), seed=3, indices=rows, purpose=f"step {step}")
        total = torch.zeros_like(patch)
        for one, mark, label in zip(images[rows], marked, labels[rows], strict=True):
            top, left = (mark == 2).all(0).nonzero()[0].tolist()
            shown = one.clone()
            shown[:, top : top + side, left : left + side] = patch
            shown = shown[None].requires_grad_()
            (slope,) = torch.autograd.grad(F.cross_entropy(net(shown), label[None]), shown)
            total += slope[0, :, top : top + side, left : left + side]
        patch = (patch + 0.1 * 0.1 ** (step / 3) * total.sign()).clamp(0, 1)
    assert torch.allclose(found, patch, atol=1e-6)


def test_a_trained_patch_is_worse_than_a_grey_one_on_other_pictures():
    net, images = small_net(), pictures(80)
    labels = net(images).argmax(1)
    patch = train_patch(net, images[:40], labels[:40], share=0.2, steps=40)
    assert 0 <= float(patch.min()) < float(patch.max()) <= 1
    right = [
        float((net(put_patch(images[40:], each)).argmax(1) == labels[40:]).float().mean()) for each in (patch, patch * 0 + 0.5)
    ]
    assert right[0] < right[1] - 0.1


def test_a_patch_as_large_as_the_picture_leaves_nothing_of_it():
    """A linear net then gives every picture the class that the patch was trained for: at most one is right."""
    net, images = linear_net(side=8), pictures(30)
    labels = net(images).argmax(1)
    patch = train_patch(net, images, labels, share=1, steps=30)
    assert len(set(net(put_patch(images, patch)).argmax(1).tolist())) == 1


def test_nothing_of_the_model_is_touched_and_bad_values_are_refused():
    net, images = small_net().train(), pictures(4)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    labels = torch.zeros(4, dtype=torch.long)
    assert train_patch(net, images, labels, share=0, steps=1).shape == (3, 0, 0)
    train_patch(net, images, labels, steps=2)
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in net.parameters())
    with pytest.raises(SurefootError, match="share must be from 0 to 1, got 1.5"):
        train_patch(net, images, labels, share=1.5)
    with pytest.raises(SurefootError, match="steps must be at least 1, got 0"):
        train_patch(net, images, labels, steps=0)
    with pytest.raises(SurefootError, match="labels must be in 0 to 4, got 0 to 5"):
        train_patch(net, images, labels + torch.tensor([0, 0, 0, 5]))
