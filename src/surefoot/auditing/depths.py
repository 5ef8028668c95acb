"""How much an audit measures: quick while you wait, standard for a report, full for everything in the papers."""

from __future__ import annotations

from dataclasses import dataclass

from ..corruptions.families import NAMES
from ..errors import UnknownName, require

OCCLUSIONS = (  # discriminative-noise Table 4
    "occlusion",
    "down_up_sampling",
    "stripes",
    "occlusion+gaussian_noise",
    "down_up_sampling+occlusion",
    "down_up_sampling+stripes",
)


@dataclass(frozen=True)
class Depth:
    """What is measured on how many images; None stands for all of them. Clean images are always measured all."""

    name: str
    severities: tuple[int, ...]
    corruption_images: int | None
    gaussian_levels: tuple[float, ...]  # standard deviations in pixel units
    uniform_levels: tuple[float, ...]  # amplitudes
    noise_draws: int  # of every level (discriminative-noise 7.1)
    occlusions: tuple[str, ...]
    attacks: tuple[str, ...]
    attack_images: int | None
    curve_budgets: tuple[float, ...]  # of PGD
    masking_images: int
    geometry_images: int | None
    curvature_draws: int
    certified_images: int
    corruptions: tuple[str, ...] = NAMES

    def __post_init__(self) -> None:
        require(len(self.corruptions) > 0, "corruptions", "at least one", 0)
        require(len(self.severities) > 0, "severities", "at least one of 1 to 5", 0)
        require(self.noise_draws >= 1, "noise_draws", "at least 1", self.noise_draws)


LEVELS = tuple(level / 255 for level in (2, 4, 8, 16, 20, 40))
DEPTHS = {
    depth.name: depth
    for depth in (
        Depth(
            "quick",
            severities=(1, 3, 5),
            corruption_images=250,
            gaussian_levels=(),
            uniform_levels=(),
            noise_draws=1,
            occlusions=(),
            attacks=("fgsm", "pgd-weak"),
            attack_images=250,
            curve_budgets=(),
            masking_images=0,
            geometry_images=250,
            curvature_draws=5,
            certified_images=0,
        ),
        Depth(
            "standard",
            severities=(1, 2, 3, 4, 5),
            corruption_images=2000,
            gaussian_levels=LEVELS,
            uniform_levels=(),
            noise_draws=1,
            occlusions=OCCLUSIONS,
            attacks=("fgsm", "pgd-weak", "pgd-strong"),
            attack_images=500,
            curve_budgets=(0, 0.5 / 255, 1 / 255, 2 / 255, 4 / 255, 8 / 255),
            masking_images=100,
            geometry_images=500,
            curvature_draws=10,
            certified_images=0,
        ),
        Depth(
            "full",
            severities=(1, 2, 3, 4, 5),
            corruption_images=None,
            gaussian_levels=LEVELS,
            uniform_levels=(0.06, 0.15),
            noise_draws=10,
            occlusions=OCCLUSIONS,
            attacks=("fgsm", "pgd-weak", "pgd-strong", "autoattack-weak", "autoattack-strong"),
            attack_images=1000,
            curve_budgets=(0, 0.5 / 255, 1 / 255, 2 / 255, 4 / 255, 8 / 255, 16 / 255),
            masking_images=250,
            geometry_images=2000,
            curvature_draws=20,
            certified_images=100,
        ),
    )
}


def find_depth(depth: str | Depth) -> Depth:
    """A depth by name, or one's own."""
    if isinstance(depth, Depth):
        return depth
    if depth not in DEPTHS:
        raise UnknownName("depth", depth, DEPTHS)
    return DEPTHS[depth]
