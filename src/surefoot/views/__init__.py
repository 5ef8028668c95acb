"""Cheap random perturbations for training: `view(images, generator=None)`, batched, with parameters drawn for each image."""

from .augmix import AugMixChains
from .base import View
from .blur import GaussianBlur
from .combining import Chain, OneOf
from .compression import JPEG
from .mixing import MixedTone
from .motion import RotateTranslate, Shear
from .noise import GaussianNoise
from .table import build_view
from .tones import AutoContrast, Equalize, Posterize, Solarize

__all__ = [
    "JPEG",
    "AugMixChains",
    "AutoContrast",
    "Chain",
    "Equalize",
    "GaussianBlur",
    "GaussianNoise",
    "MixedTone",
    "OneOf",
    "Posterize",
    "RotateTranslate",
    "Shear",
    "Solarize",
    "View",
    "build_view",
]
