"""The families of corruptions, as the page groups its rows: the same as `corruptions.families`, which needs torch."""

from __future__ import annotations

FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
OTHER = "other"


def family_of(name: str) -> str:
    return next((family for family, members in FAMILIES.items() if name in members), OTHER)
