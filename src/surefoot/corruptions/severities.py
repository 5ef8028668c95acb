"""The benchmarks' constants: for an image side and a name, five values, interpolated in between."""

from __future__ import annotations

from ..errors import UnknownName, require

Constants = dict[str, float]

SEVERITIES: dict[str, dict[str, dict[str, list[float]]]] = {
    "32": {
        "gaussian_noise": {"std": [0.04, 0.06, 0.08, 0.09, 0.10]},
        "gaussian_blur": {"sigma": [0.4, 0.6, 0.7, 0.8, 1.0]},
        "contrast": {"factor": [0.75, 0.5, 0.4, 0.3, 0.15]},
    },
    "64": {
        "gaussian_noise": {"std": [0.04, 0.08, 0.12, 0.15, 0.18]},
        "gaussian_blur": {"sigma": [0.5, 0.75, 1, 1.25, 1.5]},
        "contrast": {"factor": [0.4, 0.3, 0.2, 0.1, 0.05]},
    },
    "224": {
        "gaussian_noise": {"std": [0.08, 0.12, 0.18, 0.26, 0.38]},
        "gaussian_blur": {"sigma": [1, 2, 3, 4, 6]},
        "contrast": {"factor": [0.4, 0.3, 0.2, 0.1, 0.05]},
    },
}


def scale_for(height: int, width: int) -> str:
    """The nearest published table for an image: up to 48 px CIFAR-C's, up to 144 Tiny ImageNet-C's, else ImageNet-C's."""
    side = min(height, width)
    return "32" if side <= 48 else "64" if side <= 144 else "224"


def constants(name: str, severity: float, scale: str) -> Constants:
    """The constants of a corruption at a severity from 1 to 5, linear in between."""
    if scale not in SEVERITIES:
        raise UnknownName("scale", scale, [*SEVERITIES, "auto"])
    require(1 <= severity <= 5, "severity", "from 1 to 5", severity)
    below = min(int(severity), 4)
    share = severity - below
    return {key: values[below - 1] * (1 - share) + values[below] * share for key, values in SEVERITIES[scale][name].items()}
