"""Small nets to attack, and the presets at a size that suits tests."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from surefoot.attacks import AutoAttack
from surefoot.attacks.table import ATTACKS
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
    """An attack by name, with fewer iterations and queries where it has any."""
    found = ATTACKS.load(name)
    if isinstance(found, AutoAttack):
        return replace(found, iterations=5, queries=20)
    known = inspect.signature(found).parameters
    return partial(found, **{option: few for option, few in (("iterations", 5), ("queries", 20)) if option in known})
