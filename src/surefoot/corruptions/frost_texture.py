"""Windows with crystals of frost that we draw ourselves, as hard as the photographs of the published benchmark.

Needles with barbs on both sides, lit from one side, are drawn pixel by pixel with hard rims. Their phases make the crystals;
the spectrum, the distribution of brightness and the colours are set to what was measured on the photographs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ..seeds import generator

HEIGHT, WIDTH = 512, 640
NEEDLES, BARBS, LEAN, SUN = 2000, 20, math.radians(50), math.radians(135)
GRAIN = 0.25  # noise beside the crystals, in their deviations
ROUNDS = 2  # of setting spectrum and brightness, each of which disturbs the other
FREQUENCIES = (0.0035, 0.0145, 0.0442, 0.0884, 0.1768, 0.3536, 0.6)  # in cycles for a pixel: the middles of octaves
ENERGIES = (0.5, 0.165, 0.1156, 0.137, 0.185, 0.195, 0.011)  # of the luminance between the edges of these octaves
EDGES = (0.001, 0.0067, 0.0312, 0.0625, 0.125, 0.25, 0.5)


class Kind(NamedTuple):
    """A window: mean colour; deviation (inside crops), skewness, excess kurtosis of its luminance; how far the hue wanders."""

    colour: tuple[float, float, float]
    deviation: float
    skewness: float
    kurtosis: float
    hue: tuple[float, float, float] = (0.0, 0.0, 0.0)


WHITE = Kind((0.783, 0.801, 0.838), 0.067, -0.9, 0.8)
KINDS = (
    Kind((0.295, 0.565, 0.632), 0.0485, 0.4, 0.0, (0.055, 0.012, 0.0)),
    WHITE,
    WHITE,
    Kind((0.562, 0.621, 0.672), 0.096, -0.16, 0.9),
    Kind((0.402, 0.445, 0.49), 0.128, 0.3, 0.0),
)


@lru_cache(maxsize=1)
def windows() -> tuple[Tensor, ...]:
    """Five windows, 3 x height x width in [0, 1], the same every time."""
    return tuple(window(kind, generator("frost", number)) for number, kind in enumerate(KINDS))


def window(kind: Kind, draws: torch.Generator) -> Tensor:
    """One window of a kind."""
    field = crystals(draws)
    field = field / field.std() + GRAIN * torch.randn(field.shape, generator=draws)
    for _ in range(ROUNDS):
        field = with_moments(with_spectrum(field, luminance_power), kind.skewness, kind.kurtosis)
    haze = with_spectrum(torch.randn(field.shape, generator=draws), lambda frequency: torch.exp(-((frequency / 0.01) ** 2)))
    colour, hue = (torch.tensor(values).view(3, 1, 1) for values in (kind.colour, kind.hue))
    depth = kind.deviation * math.sqrt(1 + ENERGIES[0])  # crops do not see the longest waves
    return (colour + depth * field + hue * haze).clamp_(0, 1)


def crystals(draws: torch.Generator) -> Tensor:
    """Needles at random places and angles with shorter and shorter barbs; where they cross, the brightest is seen."""

    def uniform() -> Tensor:
        return torch.rand(NEEDLES, 1, generator=draws)

    down, across, angle = uniform() * HEIGHT, uniform() * WIDTH, uniform() * (2 * math.pi)
    length = 12 * torch.exp(1.6 * uniform())
    shine = torch.randn(NEEDLES, 1, generator=draws)
    share = torch.linspace(0, 1, 80)
    stems = down + length * share * angle.sin(), across + length * share * angle.cos()
    canvas = torch.full((HEIGHT * WIDTH,), -math.inf)
    draw(canvas, *stems, (1.5 + shine).expand_as(stems[0]))
    share, along = torch.linspace(0, 1, 18), torch.linspace(0, 1, BARBS)[:, None]
    angle, length, shine, down, across = (value[:, :, None] for value in (angle, length, shine, down, across))
    for side in (-LEAN, LEAN):
        reach = 0.45 * length * (1 - along) * share
        rows = down + length * along * angle.sin() + reach * (angle + side).sin()
        columns = across + length * along * angle.cos() + reach * (angle + side).cos()
        draw(canvas, rows, columns, (0.6 * shine + (angle + side - SUN).cos()) * (1 - 0.5 * share).expand_as(rows))
    return canvas.masked_fill_(canvas == -math.inf, 0).view(HEIGHT, WIDTH)


def draw(canvas: Tensor, rows: Tensor, columns: Tensor, values: Tensor) -> None:
    """Put points onto a flat canvas that is wrapped at its borders; the brightest stays."""
    pixels = rows.round().long().remainder(HEIGHT) * WIDTH + columns.round().long().remainder(WIDTH)
    canvas.scatter_reduce_(0, pixels.flatten(), values.flatten(), "amax")


def luminance_power(frequency: Tensor) -> Tensor:
    """The density of the photographs' power at a frequency: straight lines between octaves, both in logarithms."""
    areas = [math.pi * (above**2 - below**2) for below, above in itertools.pairwise(EDGES)] + [1 - math.pi / 4]
    densities = [math.log(energy / area) for energy, area in zip(ENERGIES, areas, strict=True)]
    middles = torch.tensor(FREQUENCIES).log()
    log_frequency = frequency.clamp(FREQUENCIES[0], FREQUENCIES[-1]).log()
    above = torch.bucketize(log_frequency, middles).clamp(1, len(middles) - 1)
    share = (log_frequency - middles[above - 1]) / (middles[above] - middles[above - 1])
    levels = torch.tensor(densities)
    return torch.lerp(levels[above - 1], levels[above], share).exp()


def with_spectrum(field: Tensor, power: Callable[[Tensor], Tensor]) -> Tensor:
    """The field with the mean power that `power` gives at each frequency, its phases kept; deviation 1."""
    frequency = torch.hypot(torch.fft.fftfreq(HEIGHT)[:, None], torch.fft.rfftfreq(WIDTH)[None])
    spectrum = torch.fft.rfft2(field)
    octave = (3 * frequency.clamp_min(1e-4).log2()).floor().long()
    octave -= octave.min()
    ones = torch.ones_like(frequency).flatten()
    sums = torch.zeros(2, int(octave.max()) + 1)
    for row, values in zip(sums, (spectrum.abs().square().flatten(), ones), strict=True):
        row.index_add_(0, octave.flatten(), values)
    own = (sums[0] / sums[1].clamp_min(1)).clamp_min(1e-9)[octave]
    amplitude = (power(frequency) / own).sqrt_()
    amplitude[0, 0] = 0
    shaped: Tensor = torch.fft.irfft2(spectrum * amplitude, s=field.shape)
    return shaped / shaped.std()


def with_moments(field: Tensor, skewness: float, kurtosis: float) -> Tensor:
    """The same order of pixels, with values of this skewness and excess kurtosis (Cornish-Fisher) and deviation 1."""
    normal = torch.special.ndtri((torch.arange(field.numel(), dtype=torch.float64) + 0.5) / field.numel())
    values = normal + skewness / 6 * (normal**2 - 1) + kurtosis / 24 * (normal**3 - 3 * normal)
    values = ((values - values.mean()) / values.std()).sort().values.to(field)
    return torch.empty_like(field).view(-1).scatter_(0, field.flatten().argsort(), values).view_as(field)
