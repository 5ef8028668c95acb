"""Surefoot with a timm model, a timm optimiser and a timm schedule."""

import timm
import torch
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2

import surefoot as sf


def main(epochs: int = 5) -> float:
    """Train a small residual network from scratch and give its accuracy on the test images."""
    torch.manual_seed(0)
    data = sf.load_data("digits")
    net = timm.create_model("test_resnet", num_classes=data.num_classes)
    objective = sf.objectives.Focal(gamma=2.0)
    optimiser = create_optimizer_v2(net, opt="adamw", lr=3e-3, weight_decay=0.05)
    schedule, epochs = create_scheduler_v2(optimiser, sched="cosine", num_epochs=epochs, warmup_epochs=1, warmup_lr=1e-3)
    order = torch.Generator().manual_seed(0)

    for epoch in range(epochs):
        net.train()
        for batch in data.train.batches(64, shuffle=order, drop_last=True):
            terms = objective(net, batch.images, batch.labels)
            optimiser.zero_grad()
            terms.total.backward()
            optimiser.step()
        schedule.step(epoch + 1)

    test = next(data.test.batches(len(data.test)))
    with torch.no_grad():
        return (net.eval()(test.images).argmax(1) == test.labels).float().mean().item()


if __name__ == "__main__":
    print(f"test accuracy {main():.3f}")
