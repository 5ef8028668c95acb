"""The smallest change of a point of [0, 1]^n that reaches a hyperplane without leaving the box, in L-inf, L2 and L1."""

from __future__ import annotations

import torch
from torch import Tensor

FLAT = 1e-12  # a smaller slope is none


def to_hyperplane(points: Tensor, normals: Tensor, offsets: Tensor, norm: str) -> Tensor:
    """argmin ||d|| with <w, x + d> = b and x + d in [0, 1], for rows x of `points` (Croce and Hein 2020, "Minimally ...").

    Where the box does not reach the hyperplane, d goes to the corner of the box that comes nearest.
    Every pixel moves against the sign of its slope, by m_i in [0, room_i], and sum |w_i| m_i must be the gap |<w, x> - b|.
    The norms differ in who moves: in L-inf all by the same t, in L2 each by t |w_i|, in L1 the steepest first.
    """
    gap = (normals * points).sum(1) - offsets
    towards = -normals.sign() * torch.where(gap >= 0, 1.0, -1.0).to(points)[:, None]
    slopes, gap = normals.abs(), gap.abs()
    room = torch.where(towards > 0, 1 - points, points).clamp_min(0)
    if norm == "l1":
        order = slopes.argsort(1, descending=True)
        gains = (slopes * room).gather(1, order)
        before = gains.cumsum(1) - gains  # what the steeper ones do
        ordered = slopes.gather(1, order)
        moved = torch.where(ordered > FLAT, (gap[:, None] - before) / ordered.clamp_min(FLAT), 0.0)
        moves = torch.zeros_like(room).scatter_(1, order, moved).clamp_min(0)
    elif norm == "l2":
        moves = water_level(slopes**2, room / slopes.clamp_min(FLAT), gap)[:, None] * slopes
    else:
        moves = water_level(slopes, room, gap)[:, None] * (slopes > 0)
    return torch.minimum(moves, room) * towards


def water_level(weights: Tensor, caps: Tensor, wanted: Tensor) -> Tensor:
    """The level t at which sum_i weights_i min(t, caps_i) is what is wanted; a number above all caps if it is never reached.

    The sum is concave in t, so Newton's method from 0 climbs to the level without passing it, and ends after as many steps as
    caps are met in groups: a few, where sorting all pixels would cost more.
    """
    level = torch.zeros_like(wanted)
    highest, filled = caps.amax(1), weights * caps
    for _ in range(weights.shape[1] + 1):
        free = caps > level[:, None]
        slope = (weights * free).sum(1)
        full = filled.masked_fill(free, 0).sum(1)
        higher = torch.where(slope > 0, (wanted - full) / slope.clamp_min(torch.finfo(slope.dtype).tiny), highest)
        higher = torch.minimum(torch.maximum(higher, level), highest)
        done = bool((higher <= level * (1 + 1e-6)).all())  # but for rounding
        level = higher
        if done:
            break
    return level
