"""Small nets to attack, and the presets at a size that suits tests."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from surefoot.attacks import AutoAttack
from surefoot.attacks.presets import ATTACKS
from surefoot.seeds import generator


def linear_net(classes=2, side=4, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * side * side, classes))


def small_net(classes=5, side=8, seed=0):
    """A convolution, batch norm and a linear layer, with sharper weights than at the start of training."""
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * (side // 2) ** 2, classes)
    )
    with torch.no_grad():
        net[4].weight.mul_(4)
    return net.eval()


def pictures(count=12, side=8, seed=0):
    return torch.rand(count, 3, side, side, generator=generator(seed, "pictures"))


def quick(name):
    """An attack by name; AutoAttack with fewer iterations and queries."""
    found = ATTACKS.load(name)
    return replace(found, iterations=5, queries=20) if isinstance(found, AutoAttack) else found
