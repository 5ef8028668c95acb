"""A depth that measures a little of everything, so that tests of the audit are quick."""

import pytest
import torch

from surefoot.auditing.depths import Depth


@pytest.fixture(scope="session")
def small() -> Depth:
    return Depth(
        "small",
        severities=(1, 4),
        corruption_images=60,
        gaussian_levels=(8 / 255,),
        uniform_levels=(0.06,),
        noise_draws=2,
        occlusions=("occlusion", "down_up_sampling+stripes"),
        attacks=("fgsm",),
        attack_images=40,
        curve_budgets=(0, 2 / 255),
        masking_images=0,
        geometry_images=40,
        curvature_draws=2,
        certified_images=0,
        corruptions=("gaussian_noise", "contrast"),
    )


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
