"""Nets small enough for dense Hessians, in float64, and what the paper says about them written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F


@pytest.fixture
def points() -> Tensor:
    """Seven images of 2 x 3 x 3 in float64."""
    return torch.rand(7, 2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def labels() -> Tensor:
    return torch.arange(7) % 4


@pytest.fixture
def linear() -> nn.Module:
    """Softmax regression with weights large enough to matter."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(18, 4)).double()
    with torch.no_grad():
        net[1].weight.mul_(4)
    return net


@pytest.fixture
def kinked() -> nn.Module:
    """A ReLU net with a convolution, batch norm and pooling, off its initial statistics."""
    net = nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(24, 4)
    ).double()
    net(torch.rand(20, 2, 3, 3, dtype=torch.float64))
    return net


@pytest.fixture
def smooth() -> nn.Module:
    net = nn.Sequential(nn.Flatten(), nn.Linear(18, 12), nn.Tanh(), nn.Linear(12, 4)).double()
    with torch.no_grad():
        net[1].weight.mul_(3)
        net[3].weight.mul_(3)
    return net


@pytest.fixture
def hessians() -> Callable[[nn.Module, Tensor, Tensor], Tensor]:
    """Dense Hessians of the loss of each image by torch's own, images x pixels x pixels."""

    def dense(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        net.eval()
        size = images[0].numel()

        def one(image: Tensor, label: Tensor) -> Tensor:
            found = torch.autograd.functional.hessian(lambda x: F.cross_entropy(net(x[None]), label[None]), image)
            return found.reshape(size, size)

        return torch.stack([one(image, label) for image, label in zip(images, labels, strict=True)])

    return dense
