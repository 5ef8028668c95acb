"""Cheap random perturbations for training: `view(images, generator=None)`, batched, with parameters drawn for each image.

>>> import torch
>>> import surefoot as sf
>>> view = sf.views.build_view("blur+noise")
>>> view(torch.rand(2, 3, 8, 8)).shape
torch.Size([2, 3, 8, 8])
"""

from .augmix import AugMixChains
from .base import View
from .combining import Chain, MixedTone, OneOf
from .simple import JPEG, AutoContrast, Equalize, GaussianBlur, GaussianNoise, Posterize, RotateTranslate, Shear, Solarize
from .table import build_view

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
