"""The families of corruptions, as the page groups its rows: the same as `corruptions.families`, which needs torch."""

from __future__ import annotations

FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
EVERY_FAMILY: dict[str, tuple[str, ...]] = {
    **FAMILIES,
    "c-bar": (
        *("blue_noise_sample", "brownish_noise", "caustic_refraction", "checkerboard_cutout", "cocentric_sine_waves"),
        *("inverse_sparkles", "perlin_noise", "plasma_noise", "single_frequency_greyscale", "sparkles"),
        *("circular_motion_blur", "lines", "pinch_and_twirl", "ripple", "transverse_chromatic_abberation"),
    ),
}
OTHER = "other"


def family_of(name: str) -> str:
    return next((family for family, members in EVERY_FAMILY.items() if name in members), OTHER)
