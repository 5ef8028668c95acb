"""Theorem 1 of representation-space.txt: the best length of a feature is finite for smoothed labels, infinite for hard ones."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from surefoot.objectives import CrossEntropy, LabelSmoothing

LABEL = torch.tensor([0])


def loss_at(objective, lengths):
    """The loss along the ray of the right class, with orthonormal class weights and no bias."""
    return torch.stack(
        [objective(nn.Identity(), length * torch.eye(5, dtype=torch.float64)[:1], LABEL).total for length in lengths]
    )


def test_hard_labels_pull_features_out_for_ever():
    losses = loss_at(CrossEntropy(), torch.linspace(0, 30, 61, dtype=torch.float64))
    assert (losses.diff() < 0).all()


@pytest.mark.parametrize("smoothing", [0.05, 0.1, 0.3])
def test_smoothed_labels_have_a_best_length(smoothing):
    """The minimum is where p equals the smoothed label: exp(length) = q_y / q_other."""
    own, other = 1 - smoothing + smoothing / 5, smoothing / 5
    best = torch.log(torch.tensor(own / other, dtype=torch.float64))
    lengths = best + torch.tensor([-1e-3, 0, 1e-3], dtype=torch.float64)
    losses = loss_at(LabelSmoothing(smoothing), lengths)
    assert losses[1] < losses[0]
    assert losses[1] < losses[2]
    assert loss_at(LabelSmoothing(smoothing), [best * 10])[0] > 2 * losses[1]


@pytest.mark.parametrize(("objective", "grows"), [(CrossEntropy(), True), (LabelSmoothing(0.1), False)])
def test_descent_finds_it_or_never_stops(objective, grows):
    feature = torch.zeros(1, 5, dtype=torch.float64, requires_grad=True)
    lengths = []
    for _ in range(4):
        for _ in range(800):
            (slope,) = torch.autograd.grad(objective(nn.Identity(), feature, LABEL).total, feature)
            feature = (feature - 0.5 * slope).detach().requires_grad_()
        lengths.append(feature.norm().item())
    steps = [b - a for a, b in pairwise(lengths)]
    assert all(step > 0.1 for step in steps) if grows else all(abs(step) < 1e-6 for step in steps)
