"""Which corruptions there are, how the benchmarks group them, and AlexNet's errors, which make errors comparable."""

from __future__ import annotations

from collections.abc import Sequence

from ..registry import Own, Registry, takes
from .severities import scale_for

# Which corruptions there are, and how the benchmarks group them.


CORRUPTIONS = Registry(
    "corruption",
    [
        ("gaussian_noise", "surefoot.corruptions.noise:gaussian_noise", "x + N(0, std) at every pixel and channel"),
        ("shot_noise", "surefoot.corruptions.noise:shot_noise", "Poisson(x * photons) / photons"),
        ("impulse_noise", "surefoot.corruptions.noise:impulse_noise", "a fraction of the values becomes 0 or 1"),
        ("defocus_blur", "surefoot.corruptions.blur:defocus_blur", "a disk, smoothed at its rim"),
        ("glass_blur", "surefoot.corruptions.blur:glass_blur", "pixels copied from their neighbours, between two blurs"),
        ("motion_blur", "surefoot.corruptions.blur:motion_blur", "half a Gaussian along an angle of up to 45 degrees"),
        ("zoom_blur", "surefoot.corruptions.blur:zoom_blur", "the mean of the image and its enlargements"),
        ("snow", "surefoot.corruptions.weather:snow", "falling flakes over a paler image"),
        ("frost", "surefoot.corruptions.weather:frost", "a crop of a frosted window mixed in"),
        ("fog", "surefoot.corruptions.weather:fog", "a fractal haze"),
        ("brightness", "surefoot.corruptions.digital:brightness", "HSV value + shift"),
        ("contrast", "surefoot.corruptions.digital:contrast", "(x - channel mean) * factor + channel mean"),
        (
            "elastic_transform",
            "surefoot.corruptions.digital:elastic_transform",
            "a random affine map and a smooth displacement",
        ),
        ("pixelate", "surefoot.corruptions.digital:pixelate", "box filter down, box filter up"),
        ("jpeg_compression", "surefoot.corruptions.digital:jpeg_compression", "JPEG at a quality, 4:2:0"),
        ("speckle_noise", "surefoot.corruptions.noise:speckle_noise", "x + x * N(0, std)"),
        ("gaussian_blur", "surefoot.corruptions.blur:gaussian_blur", "Gaussian, truncated at 4 sigma, edges repeated"),
        ("spatter", "surefoot.corruptions.weather:spatter", "drops of water, or mud"),
        ("saturate", "surefoot.corruptions.digital:saturate", "HSV saturation * scale + shift"),
        ("uniform_noise", "surefoot.corruptions.papers:uniform_noise", "x + U(-level, level) at every pixel and channel"),
        ("occlusion", "surefoot.corruptions.papers:occlusion", "black squares at random places"),
        ("down_up_sampling", "surefoot.corruptions.papers:down_up_sampling", "bilinear down by a factor and up again"),
        ("stripes", "surefoot.corruptions.papers:stripes", "black vertical stripes"),
        ("blue_noise_sample", "surefoot.corruptions.cbar_noise:blue_noise_sample", "pixels black where blue noise is low"),
        ("brownish_noise", "surefoot.corruptions.cbar_noise:brownish_noise", "x + noise that falls with frequency squared"),
        ("caustic_refraction", "surefoot.corruptions.cbar_warps:caustic_refraction", "seen through glass with waves, lit"),
        ("checkerboard_cutout", "surefoot.corruptions.cbar_noise:checkerboard_cutout", "grey squares of a turned board"),
        ("cocentric_sine_waves", "surefoot.corruptions.cbar_noise:cocentric_sine_waves", "x + wavy rings about a point"),
        ("inverse_sparkles", "surefoot.corruptions.cbar_noise:inverse_sparkles", "white around one star"),
        ("perlin_noise", "surefoot.corruptions.cbar_noise:perlin_noise", "bright turbulence mixed in"),
        ("plasma_noise", "surefoot.corruptions.cbar_noise:plasma_noise", "coloured swirls mixed in"),
        (
            "single_frequency_greyscale",
            "surefoot.corruptions.cbar_noise:single_frequency_greyscale",
            "x + one plane sine wave",
        ),
        ("sparkles", "surefoot.corruptions.cbar_noise:sparkles", "five white stars"),
        ("circular_motion_blur", "surefoot.corruptions.cbar_warps:circular_motion_blur", "the mean of rotations"),
        ("lines", "surefoot.corruptions.cbar_noise:lines", "thin grey lines across"),
        ("pinch_and_twirl", "surefoot.corruptions.cbar_warps:pinch_and_twirl", "round cells pinched and twirled"),
        ("ripple", "surefoot.corruptions.cbar_warps:ripple", "rows and columns shifted by sines"),
        (
            "transverse_chromatic_abberation",
            "surefoot.corruptions.cbar_warps:transverse_chromatic_abberation",
            "channels enlarged differently",
        ),
    ],
    Own("a function of (images, severity, draws)", takes(3)),
    "surefoot.corruptions",
)
NAMES: tuple[str, ...] = tuple(CORRUPTIONS.ours[:19])
COMMON15: tuple[str, ...] = NAMES[:15]
EXTRA4: tuple[str, ...] = NAMES[15:]
PAPERS4: tuple[str, ...] = tuple(CORRUPTIONS.ours[19:23])
CBAR: tuple[str, ...] = tuple(CORRUPTIONS.ours[23:33])  # the ten of ImageNet-C-bar
CBAR_CIFAR: tuple[str, ...] = (  # the ten of CIFAR-10-C-bar
    *("blue_noise_sample", "brownish_noise", "checkerboard_cutout", "circular_motion_blur", "inverse_sparkles"),
    *("lines", "pinch_and_twirl", "ripple", "sparkles", "transverse_chromatic_abberation"),
)
FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
EVERY_FAMILY: dict[str, tuple[str, ...]] = {**FAMILIES, "c-bar": tuple(CORRUPTIONS.ours[23:])}  # with both sets of C-bar


# Errors of AlexNet, which make those of other models on ImageNet comparable over corruptions.


ALEXNET = {  # top-1 errors that ImageNet-C's authors divide by (Hendrycks and Dietterich 2019)
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}


def is_fair(num_classes: int, image_size: tuple[int, int], severities: Sequence[float]) -> bool:
    """Whether AlexNet's errors are a fair measure: a thousand classes, constants of ImageNet-C, all five severities."""
    return num_classes == 1000 and scale_for(*image_size) == "224" and list(severities) == [1, 2, 3, 4, 5]
