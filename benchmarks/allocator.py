"""Forward passes with glibc's own thresholds and with ours (`surefoot.allocator`), in one process."""

import timm
import torch

import surefoot as sf
from _timing import interleaved, show
from surefoot.allocator import GLIBC_DEFAULT, KEEP, set_thresholds


def passes(model: torch.nn.Module, images: torch.Tensor, size: int) -> None:
    set_thresholds(size)
    with torch.inference_mode():
        for _ in range(5):
            model(images)


def compare(name: str, model: torch.nn.Module, images: torch.Tensor) -> None:
    jobs = {
        "glibc's thresholds": lambda: passes(model, images, GLIBC_DEFAULT),
        "large blocks kept": lambda: passes(model, images, KEEP),
    }
    show(f"{name}, {len(images)} images of {images.shape[-1]} px, 5 passes", interleaved(jobs), "large blocks kept")


compare("small-resnet", sf.load_model("small-resnet", num_classes=10, seed=0).eval(), torch.rand(256, 3, 32, 32))
compare("resnet18 (timm)", timm.create_model("resnet18").eval(), torch.rand(16, 3, 128, 128))
