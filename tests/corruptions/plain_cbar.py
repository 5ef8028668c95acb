"""The second set of corruptions for one image (height x width x 3, floats in [0, 1]) in plain NumPy and SciPy.

Written from the paper's definitions (Mintun, Kirillov and Xie 2021), pixel by pixel where that is the plainest. Each function
takes the image, the magnitude and the random numbers that the batched one draws for it; the result is neither clipped nor
rounded.
"""

import math

import numpy as np
from scipy import ndimage


def pixels(x):
    """Row and column of every pixel."""
    return np.mgrid[: x.shape[0], : x.shape[1]].astype(float)


def spectral(half, height, width, amplitude):
    """The real part of the sum of complex waves, normalised."""
    middle = np.empty((height, width))
    for n in range(height * width):
        opposite = height * width - 1 - n
        middle[n // width, n % width] = half[min(n, opposite)]
    phases = np.roll(middle, (-(height // 2), -(width // 2)), (0, 1))
    rows, columns = np.fft.fftfreq(height, 1 / height), np.fft.fftfreq(width, 1 / width)
    side = min(height, width)
    radius = np.sqrt((rows[:, None] * side / height) ** 2 + (columns * side / width) ** 2)
    waves_down = np.exp(2j * np.pi * np.outer(np.arange(height), rows) / height)
    waves_across = np.exp(2j * np.pi * np.outer(columns, np.arange(width)) / width)
    field = (waves_down @ (amplitude(radius) * np.exp(2j * np.pi * phases)) @ waves_across).real
    return field / field.std()


def blue_noise_sample(x, magnitude, uniform):
    kept = spectral(uniform[0], *x.shape[:2], lambda f: f) > 0.3 * magnitude - 2.5
    return x * kept[..., None]


def brownish_noise(x, magnitude, uniform):
    noise = [spectral(half, *x.shape[:2], lambda f: 1 / (1 + f**2)) for half in uniform]
    return x + np.stack(noise, 2) * magnitude * 6.4 / 255


def perlin(x, y, permutation, gradients):
    """Perlin's noise at one place."""
    i, j = math.floor(x), math.floor(y)
    u, v = x - i, y - j

    def corner(down, right):
        number = permutation[(permutation[(i + down) % 256] + j + right) % 256]
        return gradients[number] @ [u - down, v - right]

    def fade(t):
        return 3 * t**2 - 2 * t**3

    left = corner(0, 0) * (1 - fade(u)) + corner(1, 0) * fade(u)
    right = corner(0, 1) * (1 - fade(u)) + corner(1, 1) * fade(u)
    return 1.5 * (left * (1 - fade(v)) + right * fade(v))


def perlin_noise(x, magnitude, uniform):
    permutation = np.argsort(uniform[0], kind="stable")
    gradients = 2 * uniform[1:].T - 1
    gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
    noise = np.zeros(x.shape[:2])
    period = min(x.shape[:2]) / 7
    for row in range(x.shape[0]):
        for column in range(x.shape[1]):
            for f in (1, 2, 4, 8, 16):
                noise[row, column] += abs(perlin(row / period * f, column / period * f, permutation, gradients)) / f
    noise = np.clip(0.5 * noise + 0.5, 0, 1)
    return x * (1 - magnitude / 20) + magnitude / 20 * noise[..., None]


def plasma_noise(x, magnitude, uniform):
    time, steps, sharpness = uniform[0] * 6 * np.pi, 4 + int(3 * uniform[1]), 0.5 + 0.5 * uniform[2]
    v, u = pixels(x) / (min(x.shape[:2]) * (0.075 + 0.125 * uniform[3]))
    for k in range(steps):
        a = np.cos(v * 1.93**k + time / 1.15**k) / (2.25 - sharpness) ** k
        b = np.sin(u * 1.93**k + time / 1.15**k) / (2.25 - sharpness) ** k
        u, v = u + a - 0.3 * b, v + b + 0.3 * a
    noise = np.stack([np.sin(u - time), np.sin((u + v + np.sin(time)) / 2), np.sin(v + time)], 2)
    return x * (1 - magnitude * 6.4 / 255) + magnitude * 6.4 / 255 * noise


def single_frequency_greyscale(x, magnitude, uniform):
    larger = (2 * uniform[0] - 1) * np.pi
    pair = [larger, (2 * uniform[1] - 1) * abs(larger)]
    across, down = pair if uniform[2] < 0.5 else pair[::-1]
    rows, columns = pixels(x)
    return x + (np.sin(columns * across + rows * down + 2 * np.pi * uniform[3]) * magnitude * 19.6 / 255)[..., None]


def cocentric_sine_waves(x, magnitude, uniform):
    rows, columns = pixels(x)
    height, width = x.shape[:2]
    right, below = columns - uniform[0] * width, rows - uniform[1] * height
    tenth = min(height, width) / 10
    distance = np.hypot(right, below) + np.sin(np.arctan2(right, below) * 10 * uniform[2]) * uniform[3] * tenth
    ring = uniform[4] * tenth
    return x + ((np.mod(distance, ring) / ring - 0.5) * magnitude * 12.8 / 255)[..., None]


def checkerboard_cutout(x, magnitude, uniform):
    angle, size = 2 * np.pi * uniform[0], max((0.1 + 0.15 * uniform[1]) * min(x.shape[:2]), 1)
    out = x.copy()
    for row in range(x.shape[0]):
        for column in range(x.shape[1]):
            i = math.floor((row * math.cos(angle) + column * math.sin(angle)) / size)
            j = math.floor((column * math.cos(angle) - row * math.sin(angle)) / size)
            if i % 2 == j % 2 and uniform[2:].reshape(32, 32)[i % 32, j % 32] < magnitude / 10:
                out[row, column] = 128 / 255
    return out


def star(x, place, count, lengths, power):
    """How much light each pixel gets from a star."""
    rows, columns = pixels(x)
    below, right = rows - place[0] * x.shape[0], columns - place[1] * x.shape[1]
    number = 50 + int(150 * count)
    turn = (np.arctan2(right, below) + np.pi) / (2 * np.pi) * number
    ray = turn.astype(int)
    between = turn - ray
    length = lengths[ray % number] * (1 - between) + lengths[(ray + 1) % number] * between
    glow = (length**2 / (below**2 + right**2 + 1e-4)) ** power
    return np.clip((1 - (between - 0.5) ** 2) * glow, 0, 1)[..., None]


def sparkles(x, magnitude, uniform, normal):
    radius = 0.01 * magnitude * min(x.shape[:2])
    for (*place, count), rough in zip(uniform, normal, strict=True):
        light = star(x, place, count, np.maximum(radius * (1 + 0.25 * rough), 1), 1)
        x = x * (1 - light) + light
    return x


def inverse_sparkles(x, magnitude, uniform, normal):
    radius = min(x.shape[:2]) / 4
    light = star(x, 0.25 + uniform[:2] / 2, uniform[2], radius * (1 + 0.25 * normal), 0.13 * magnitude)
    return x * light + 1 - light


def lines(x, magnitude, uniform):
    rows, columns = pixels(x)
    for row, column, turn in uniform[2:].reshape(-1, 3)[: int(magnitude / 10 * min(x.shape[:2]))]:
        angle = 2 * np.pi * (uniform[0] + (0.1 + 0.9 * uniform[1]) * (turn - 0.5))
        along = np.array([np.cos(angle), np.sin(angle)])
        offset = np.stack([rows - row * x.shape[0], columns - column * x.shape[1]], 2)
        away = np.linalg.norm(offset - (offset @ along)[..., None] * along, axis=2)
        cover = np.clip(1 - away, 0, 1)[..., None]
        x = x * (1 - cover) + cover * 128 / 255
    return x


def read(x, rows, columns):
    """Bilinear, black beyond the border."""
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    places = [np.clip(rows + 1, 0, x.shape[0] + 1), np.clip(columns + 1, 0, x.shape[1] + 1)]
    return np.stack([ndimage.map_coordinates(padded[..., n], places, order=1) for n in range(3)], 2)


def caustic_refraction(x, magnitude, uniform):
    height, width = x.shape[:2]
    side = min(height, width)
    time, period = 0.5 + 1.5 * uniform[0], (0.75 + 0.5 * uniform[1]) * side
    p = np.mod(pixels(x) / period, 1) * 2 * np.pi - 250
    i, c = p, 1.0
    for n in range(5):
        t = time * (1 - 3.5 / (n + 1))
        i = p + np.stack([np.cos(t - i[0]) + np.sin(t + i[1]), np.sin(t - i[1]) + np.cos(t + i[0])])
        c = c + 1 / np.hypot(p[0] * 0.005 / np.sin(i[0] + t), p[1] * 0.005 / np.cos(i[1] + t))
    light = np.clip(np.abs(1.17 - (c / 5) ** 1.4) ** 8, 0, 1)
    light = np.pad(ndimage.gaussian_filter(light, 1), 1)
    rows, columns = pixels(x)
    extra = np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            above, below = light[row, column + 1], light[row + 2, column + 1]
            left, right = light[row + 1, column], light[row + 1, column + 2]
            extra[row, column] = 0.2 * magnitude * (left - right + below - above)
            normal = np.array([below - above, right - left, 1])
            normal /= np.linalg.norm(normal)
            if normal[2] < 0.999:  # bend a ray that comes from above: Snell's law, in the plane of ray and normal
                inside = math.asin(math.sin(math.acos(normal[2])) / 4)
                tangent = np.array([0, 0, 1]) - normal[2] * normal
                bent = math.cos(inside) * normal + math.sin(inside) * tangent / np.linalg.norm(tangent)
                rows[row, column] += bent[0] * 0.05 * magnitude * side
                columns[row, column] += bent[1] * 0.05 * magnitude * side
    return read(x, rows, columns) + extra[..., None]


def pinch_and_twirl(x, magnitude, uniform, cells):
    rows, columns = pixels(x)
    cell = min(x.shape[:2]) // cells
    for row in range(x.shape[0] // cell * cell):
        for column in range(x.shape[1] // cell * cell):
            i, j = row // cell, column // cell
            away = np.array([row - (i + 0.5) * cell, column - (j + 0.5) * cell])
            share = np.linalg.norm(away) / (cell / 2)
            if 0 < share <= 1:
                sign = 1 if uniform[i * (x.shape[1] // cell + 1) + j] < 0.5 else -1
                angle = sign * magnitude / 10 * np.pi / 2 * (1 - share) ** 2
                turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
                moved = turn @ away * np.sin(np.pi / 2 * share) ** -(0.1 + 0.04 * magnitude)
                rows[row, column], columns[row, column] = moved + np.array([i + 0.5, j + 0.5]) * cell
    return read(x, rows, columns)


def ripple(x, magnitude, uniform):
    side = min(x.shape[:2])
    moved = [
        at + 0.0025 * magnitude * side * np.sin(2 * np.pi * (at / (side * (0.1 + 0.2 * uniform[n])) + uniform[n + 2]))
        for n, at in enumerate(pixels(x))
    ]
    return read(x, *moved)


def transverse_chromatic_abberation(x, magnitude, uniform):
    out = np.empty_like(x)
    height, width = x.shape[:2]
    for channel, factor in zip(np.argsort(uniform, kind="stable"), 1 + np.arange(3) * magnitude * 0.025, strict=True):
        large = ndimage.zoom(x[..., channel], factor, order=3, prefilter=False)
        top, left = (large.shape[0] - height) // 2, (large.shape[1] - width) // 2
        out[..., channel] = large[top : top + height, left : left + width]
    return out


def circular_motion_blur(x, magnitude):
    shares = np.linspace(-1, 1, 21)
    weights = np.exp(-2 * shares**2)
    turned = [ndimage.rotate(x, share * 1.5 * magnitude, reshape=False) for share in shares]
    return np.tensordot(weights / weights.sum(), np.stack(turned), 1)
