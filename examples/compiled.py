"""Surefoot with `torch.compile`: the objective is called with the compiled module."""

import torch
from torch import nn

import surefoot as sf


def main(epochs: int = 5, backend: str = "inductor") -> float:
    """Train a network that has never heard of Surefoot and give its accuracy on the test images."""
    torch.manual_seed(0)
    data = sf.load_data("digits")
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 8 * 8, data.num_classes)),
    )
    compiled = torch.compile(net, backend=backend)
    objective = sf.objectives.Discriminative()
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    order = torch.Generator().manual_seed(0)

    for _ in range(epochs):
        for batch in data.train.batches(64, shuffle=order, drop_last=True):  # batches of one size: compiled once
            terms = objective(compiled, batch.images, batch.labels)
            optimiser.zero_grad()
            terms.total.backward()
            optimiser.step()

    test = next(data.test.batches(len(data.test)))
    with torch.no_grad():  # the compiled module shares its weights with the original
        return (net(test.images).argmax(1) == test.labels).float().mean().item()


if __name__ == "__main__":
    print(f"test accuracy {main():.3f}")
