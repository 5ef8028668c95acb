"""A depth that measures a little of everything, so that tests of the audit are quick."""

import pytest
import torch

import surefoot as sf
from surefoot.auditing.depths import Depth, geometry
from surefoot.data.dataset import Dataset


@pytest.fixture(scope="session")
def small() -> Depth:
    few = {"max_images": 40}
    return Depth(
        "small",
        {
            "corruptions": {"names": ("gaussian_noise", "contrast"), "severities": (1, 4), "max_images": 60},
            "noise": {"levels": (8,), "draws": 2, "max_images": 60},
            "noise-uniform": {
                "measurement": "noise", "levels": (15.3,), "distribution": "uniform", "draws": 2, "max_images": 60,
            },
            "occlusions": {"draws": 1, "max_images": 60},
            "attacks": {"names": ("fgsm",), **few},
            "security-curve": {"budgets": (0, 2), **few},
            **geometry(40, 2),
        },
    )  # fmt: skip


@pytest.fixture(scope="session")
def few() -> Dataset:
    """As many test images as a small audit damages."""
    return sf.load_data("digits", max_images=60)


class Squared(torch.nn.Module):
    """A model that does not end in a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3072, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images.flatten(1)).square()


@pytest.fixture
def squared() -> Squared:
    return Squared()
