import torch
from torch import nn

from surefoot.geometry import margins


def test_by_hand_with_ties():
    """macs Eq. 3 on a table of logits."""
    logits = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 5.0], [-1.0, -1.0, -2.0], [4.0, 0.0, 1.0]])
    found = margins(nn.Identity(), logits, torch.tensor([0, 1, 2, 2]))
    assert found.tolist() == [1.0, 0.0, -1.0, -3.0]


def test_positive_just_where_the_model_is_right(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 4))
    labels = torch.arange(6) % 4
    assert ((margins(net, images, labels) > 0) == (net(images).argmax(1) == labels)).all()
