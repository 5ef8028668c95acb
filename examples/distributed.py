"""Surefoot under DistributedDataParallel: `torchrun --nproc-per-node=2 examples/distributed.py`."""

import torch
import torch.distributed.nn  # before the group begins: later, it would keep the group's threads alive to the end
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import surefoot as sf


def main(epochs: int = 5) -> float:
    """Train on this process's part of each batch and give the accuracy on the test images."""
    distributed.init_process_group("gloo")  # "nccl" on GPUs
    torch.manual_seed(0)
    part = slice(distributed.get_rank(), None, distributed.get_world_size())
    data = sf.load_data("digits")
    layers = [nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 8 * 8, data.num_classes))
    parallel = DistributedDataParallel(net)  # gives every process the weights of the first
    objective = sf.objectives.Discriminative()
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    order = torch.Generator().manual_seed(0)  # the same order in every process

    for _ in range(epochs):
        for batch in data.train.batches(64, shuffle=order, drop_last=True, part=part):
            terms = objective(parallel, batch.images, batch.labels)
            optimiser.zero_grad()
            terms.total.backward()
            optimiser.step()

    del parallel, terms  # they hold the group
    distributed.destroy_process_group()
    test = next(data.test.batches(len(data.test)))
    with torch.no_grad():
        return (net(test.images).argmax(1) == test.labels).float().mean().item()


if __name__ == "__main__":
    print(f"test accuracy {main():.3f}")  # the same in every process
