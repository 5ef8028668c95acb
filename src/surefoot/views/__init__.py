"""Cheap random perturbations for training: `view(images, generator=None)`, batched, with parameters drawn per image."""

from .noise import GaussianNoise

__all__ = ["GaussianNoise"]
