"""Which corruptions there are, and how the benchmarks group them."""

from __future__ import annotations

from ..registry import Registry

CORRUPTIONS = Registry(
    "corruption",
    [
        ("gaussian_noise", "surefoot.corruptions.noise:gaussian_noise", "x + N(0, std) at every pixel and channel"),
        ("gaussian_blur", "surefoot.corruptions.blur:gaussian_blur", "Gaussian, truncated at 4 sigma, edges repeated"),
        ("contrast", "surefoot.corruptions.digital:contrast", "(x - channel mean) * factor + channel mean"),
    ],
)
NAMES: tuple[str, ...] = tuple(CORRUPTIONS.names)
COMMON15: tuple[str, ...] = ("gaussian_noise", "contrast")
EXTRA4: tuple[str, ...] = ("gaussian_blur",)
FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise",),
    "blur": ("gaussian_blur",),
    "weather": (),
    "digital": ("contrast",),
}
