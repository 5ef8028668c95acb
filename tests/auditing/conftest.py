"""A depth that measures a little of everything, so that tests of the audit are quick."""

import pytest

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
