"""Training and evaluation speed of the small net, in images a second."""

import torch

import surefoot as sf
from _timing import interleaved
from surefoot.allocator import keep_large_blocks

keep_large_blocks()
model = sf.load_model("small-resnet", num_classes=10, seed=0)
objective = sf.objectives.CrossEntropy()
optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
images, labels = torch.rand(128, 3, 32, 32), torch.randint(10, (128,))


def train() -> None:
    model.train()
    optimiser.zero_grad()
    objective(model, images, labels).total.backward()
    optimiser.step()


def evaluate() -> None:
    model.eval()
    with torch.inference_mode():
        model(images)


for name, seconds in interleaved({"training": train, "evaluation": evaluate}, rounds=30).items():
    print(f"small-resnet, 32 px, batch 128, {name}: {128 / seconds:.0f} images/s")
