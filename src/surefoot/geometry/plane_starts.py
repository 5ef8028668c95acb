"""The initialisations of Fig. 12 of representation-space: features, decision regions or both far from the origin."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import require
from ..models.observing import head_of, modes_kept, observed
from ..seeds import generator
from ..types import Images

FAR_WEIGHT = [
    *([0.1318, -0.0165], [0.2245, 0.0709], [0.2630, 0.1030], [0.2881, 0.1138], [0.2947, 0.1381]),
    *([0.3189, 0.1362], [0.3195, 0.1567], [0.3323, 0.1654], [0.3482, 0.1684], [0.3619, 0.1806]),
]  # App. G.1
FAR_BIAS = [15.705, 9.045, 5.644, 3.144, 0.834, -1.286, -3.442, -5.799, -8.489, -11.972]


def far_regions(model: nn.Module, images: Images) -> None:
    """Give the head, in place, the paper's weights, whose decision regions meet far from the origin (Fig. 12c)."""
    head = plane_head(model, images)
    require(head.out_features == 10, "model", "one with 10 classes, for which the paper gives weights", head.out_features)
    require(head.bias is not None, "model", "one whose head has a bias", None)
    with torch.no_grad():
        head.weight.copy_(torch.tensor(FAR_WEIGHT))
        head.bias.copy_(torch.tensor(FAR_BIAS))


def far_features(
    model: nn.Module,
    images: Images,
    target: float = 80.0,
    learning_rate: float = 0.0005,
    epochs: int = 1,
    batch_size: int = 128,
    seed: int = 0,
) -> None:
    """Train all but the head, in place, so that features come near (`target`, `target`) (Fig. 12b; App. G.1).

    SGD on the mean distance from there, in training mode. The paper's epoch has 390 steps (CIFAR-10): fewer images need more.
    """
    head = plane_head(model, images)
    own = set(head.parameters())
    optimiser = torch.optim.SGD([p for p in model.parameters() if p not in own and p.requires_grad], lr=learning_rate)
    with modes_kept(model):
        model.train()
        for epoch in range(epochs):
            order = torch.randperm(len(images), generator=generator(seed, epoch, "order")).to(images.device)
            for rows in order.split(batch_size):
                if len(rows) == 1 < len(images):  # batch norm has no deviation over one
                    continue
                features = observed(model, head, images[rows]).features
                loss: Tensor = torch.linalg.vector_norm(features - target, dim=1).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
    optimiser.zero_grad()


def plane_head(model: nn.Module, images: Images) -> nn.Linear:
    """The head of a model with a plane for a representation space."""
    head = head_of(model, images)
    require(head.in_features == 2, "model", "one with 2 feature dimensions (feature_dim=2)", head.in_features)
    return head
