"""A training step in bf16 beside float32: what `precision="auto"` chooses on this processor, and whether it was right."""

import torch

import surefoot as sf
from _timing import ratios
from surefoot.allocator import keep_large_blocks
from surefoot.training.precision import choose_precision

MODELS = {"small-resnet": (32, 128), "resnet18": (32, 32), "mobilenetv3_small_100": (64, 32), "vit_tiny_patch16_224": (224, 4)}


def compare(name: str, size: int, batch: int) -> float:
    """The time of a step in bf16, divided by that of one in float32."""
    model = sf.load_model(name, num_classes=10, image_size=size, seed=0).train()
    images, labels = torch.rand(batch, 3, size, size), torch.arange(batch) % 10
    optimiser, objective = torch.optim.SGD(model.parameters(), 0.01), sf.objectives.CrossEntropy()

    def step(half: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            terms = objective(model, images, labels)
        optimiser.zero_grad()
        terms.total.backward()
        optimiser.step()

    return ratios({"float32": lambda: step(False), "bf16": lambda: step(True)}, "float32", rounds=5)["bf16"]


keep_large_blocks()
print("auto takes {} ({})".format(*choose_precision("auto", torch.device("cpu"))))
for name, (size, batch) in MODELS.items():
    print(f"{name}, batch {batch}, {size} px: a step in bf16 takes {compare(name, size, batch):.2f}x of one in float32")
