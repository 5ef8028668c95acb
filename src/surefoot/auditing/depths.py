"""How much an audit measures: quick while you wait, standard for a report, full for everything in the papers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UnknownName

Options = Mapping[str, Any]
GAUSSIAN = (2, 4, 8, 16, 20, 40)  # levels of noise in units of 1/255
UNIFORM = (15.3, 38.25)


@dataclass(frozen=True)
class Depth:
    """Measurements by label with their options, as a study's `measure:` names them; clean images are always measured all."""

    name: str
    measure: Mapping[str, Options] = field(default_factory=dict)

    def having(self, **changes: Options | None) -> Depth:
        """The same with some options changed, a measurement added, or, for None, left out; `_` stands for `-` in a label."""
        measure = dict(self.measure)
        for name, options in changes.items():
            label = name.replace("_", "-")
            if options is None:
                measure.pop(label, None)
            else:
                measure[label] = {**measure.get(label, {}), **options}
        return Depth(self.name, measure)


def geometry(images: int, draws: int) -> dict[str, Options]:
    """What every depth says of the geometry, on so many images; `draws` are those of the curvature."""
    few = {"max_images": images}
    return {
        "features": {"attacked": 0, **few},
        "centres": few,
        "cone": few,
        "bias": few,
        "collapse": few,
        "displacement": few,
        "sensitivity": few,
        "radius": few,
        "curvature-noise": {"curvature_draws": draws, **few},
        "plane": {"max_images": min(images, 500)},
    }


def deeper(images: int) -> dict[str, Options]:
    """What a standard audit adds."""
    return {"fisher": {"max_images": min(images, 64)}, "classes": {"max_images": images}}


def deepest(images: int, draws: int) -> dict[str, Options]:
    """What only a full audit has time for."""
    few, fewer = {"max_images": images}, {"max_images": min(images, 64)}
    return {
        "slopes": few,
        "hessian": {"draws": draws, **fewer},
        "landscape": {},
        "stability": few,
        "centre-stability": few,
        "complexity": few,
        "mapping": few,
        "layers": few,
        "certificates": {"max_images": 100},
    }


DEPTHS = {
    depth.name: depth
    for depth in (
        Depth("clean"),
        Depth(
            "quick",
            {
                "corruptions": {"severities": (1, 3, 5), "max_images": 250},
                "attacks": {"names": ("fgsm", "pgd-weak"), "max_images": 250},
                "foreign": {"max_images": 250, "train_images": 2000},
                **geometry(250, 5),
            },
        ),
        Depth(
            "standard",
            {
                "corruptions": {"max_images": 2000},
                "noise": {"levels": GAUSSIAN, "draws": 1, "max_images": 2000},
                "occlusions": {"draws": 1, "max_images": 2000},
                "attacks": {"names": ("fgsm", "pgd-weak", "pgd-strong"), "max_images": 500},
                "security-curve": {"max_images": 500},
                "masking": {"max_images": 100},
                "foreign": {"max_images": 1000},
                **geometry(500, 10),
                **deeper(500),
            },
        ),
        Depth(
            "full",
            {
                "corruptions": {},
                "noise": {"levels": GAUSSIAN},
                "noise-uniform": {"measurement": "noise", "levels": UNIFORM, "distribution": "uniform"},
                "occlusions": {"draws": 1},
                "attacks": {
                    "names": ("fgsm", "pgd-weak", "pgd-strong", "fast-strong", "sparse-weak", "sparse-strong"),
                    "max_images": 1000,
                },
                "autoattack": {
                    "measurement": "attacks",
                    "names": ("autoattack-weak", "autoattack-strong"),
                    "max_images": 200,  # an image that withstands takes as long as thousands of others
                },
                "patch": {"max_images": 1000},
                "security-curve": {"budgets": (0, 0.5, 1, 2, 4, 8, 16), "max_images": 1000},
                "masking": {"max_images": 250},
                "foreign": {"max_images": None, "train_images": None},
                **geometry(2000, 20),
                **deeper(2000),
                **deepest(2000, 20),
            },
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
