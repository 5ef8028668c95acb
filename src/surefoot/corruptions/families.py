"""Which corruptions there are, and how the benchmarks group them."""

from __future__ import annotations

from ..registry import Registry

CORRUPTIONS = Registry(
    "corruption",
    [
        ("gaussian_noise", "surefoot.corruptions.noise:gaussian_noise", "x + N(0, std) at every pixel and channel"),
        ("shot_noise", "surefoot.corruptions.noise:shot_noise", "Poisson(x * photons) / photons"),
        ("impulse_noise", "surefoot.corruptions.noise:impulse_noise", "a fraction of the values becomes 0 or 1"),
        ("defocus_blur", "surefoot.corruptions.blur:defocus_blur", "a disk, smoothed at its rim"),
        ("glass_blur", "surefoot.corruptions.glass:glass_blur", "pixels copied from their neighbours, between two blurs"),
        ("motion_blur", "surefoot.corruptions.motion:motion_blur", "half a Gaussian along an angle of up to 45 degrees"),
        ("zoom_blur", "surefoot.corruptions.blur:zoom_blur", "the mean of the image and its enlargements"),
        ("snow", "surefoot.corruptions.snow:snow", "falling flakes over a paler image"),
        ("frost", "surefoot.corruptions.frost:frost", "a crop of a frosted window mixed in"),
        ("fog", "surefoot.corruptions.fog:fog", "a fractal haze"),
        ("brightness", "surefoot.corruptions.colour:brightness", "HSV value + shift"),
        ("contrast", "surefoot.corruptions.colour:contrast", "(x - channel mean) * factor + channel mean"),
        (
            "elastic_transform",
            "surefoot.corruptions.elastic:elastic_transform",
            "a random affine map and a smooth displacement",
        ),
        ("pixelate", "surefoot.corruptions.digital:pixelate", "box filter down, box filter up"),
        ("jpeg_compression", "surefoot.corruptions.digital:jpeg_compression", "JPEG at a quality, 4:2:0"),
        ("speckle_noise", "surefoot.corruptions.noise:speckle_noise", "x + x * N(0, std)"),
        ("gaussian_blur", "surefoot.corruptions.blur:gaussian_blur", "Gaussian, truncated at 4 sigma, edges repeated"),
        ("spatter", "surefoot.corruptions.spatter:spatter", "drops of water, or mud"),
        ("saturate", "surefoot.corruptions.colour:saturate", "HSV saturation * scale + shift"),
        ("uniform_noise", "surefoot.corruptions.papers:uniform_noise", "x + U(-level, level) at every pixel and channel"),
        ("occlusion", "surefoot.corruptions.papers:occlusion", "black squares at random places"),
        ("down_up_sampling", "surefoot.corruptions.papers:down_up_sampling", "bilinear down by a factor and up again"),
        ("stripes", "surefoot.corruptions.papers:stripes", "black vertical stripes"),
    ],
)
NAMES: tuple[str, ...] = tuple(CORRUPTIONS.names[:19])
COMMON15: tuple[str, ...] = NAMES[:15]
EXTRA4: tuple[str, ...] = NAMES[15:]
PAPERS4: tuple[str, ...] = tuple(CORRUPTIONS.names[19:])
FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
