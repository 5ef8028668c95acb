"""Surefoot in a plain PyTorch loop: the objective stands where `cross_entropy(net(images), labels)` stood."""

import torch
from torch import nn

import surefoot as sf


def main(epochs: int = 5) -> float:
    """Train a network that has never heard of Surefoot and give its accuracy on the test images."""
    torch.manual_seed(0)
    data = sf.load_data("digits")
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 8 * 8, data.num_classes)),
    )
    objective = sf.objectives.MaCS()
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    order = torch.Generator().manual_seed(0)

    for epoch in range(epochs):
        for batch in data.train.batches(64, shuffle=order, drop_last=True):
            terms = objective(net, batch.images, batch.labels)
            optimiser.zero_grad()
            terms.total.backward()
            optimiser.step()
        print(f"epoch {epoch + 1}, last batch:", {name: round(part.item(), 3) for name, part in terms.parts.items()})

    test = next(data.test.batches(len(data.test)))
    with torch.no_grad():
        return (net(test.images).argmax(1) == test.labels).float().mean().item()


if __name__ == "__main__":
    print(f"test accuracy {main():.3f}")
