"""The cost of each view of 256 images of 32 x 32 as a share of a ResNet-18 forward: noise and blur < 3 %, AugMix < 15 %."""

import torch

import surefoot as sf
from _timing import ratios
from surefoot.allocator import keep_large_blocks
from surefoot.seeds import generator
from surefoot.views.table import VIEWS, build_view

keep_large_blocks()
images = torch.rand(256, 3, 32, 32, generator=generator("images"))
model = sf.load_model("resnet18", num_classes=10, image_size=32, seed=0).eval()
needs = {"one-of": {"views": ["noise", "blur"]}, "chain": {"views": ["blur", "noise"]}}


def forward() -> None:
    with torch.no_grad():
        model(images)


def look(view):
    return lambda: view(images, generator(0))


jobs = {"ResNet-18 forward": forward}
jobs |= {name: look(build_view({"name": name, **needs.get(name, {})})) for name in VIEWS.names}
for name, ratio in ratios(jobs, "ResNet-18 forward", rounds=9).items():
    print(f"  {name:24} {100 * ratio:7.2f} % of a forward pass")
