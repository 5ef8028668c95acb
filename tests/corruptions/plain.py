"""Every corruption for one image (height x width x 3, floats in [0, 1]) in plain NumPy, SciPy and Pillow.

Written from the published definitions, one image and one pixel rule at a time; the tests and the benchmark compare with it.
Each function takes the image, the constants and a NumPy generator; the result is neither clipped nor rounded.
"""

import io
import math

import numpy as np
from PIL import Image
from scipy import ndimage


def levels(x):
    """Clipped and cut off to 8 bits, as the published files are."""
    return (np.clip(x, 0, 1) * 255).astype(np.uint8)


def to_pillow(x):
    return Image.fromarray(np.uint8(np.round(x * 255)))


def gaussian(x, sigma):
    widths = (sigma, sigma, 0)[: x.ndim]
    return ndimage.gaussian_filter(x, widths, mode="nearest", truncate=4)


def gaussian_noise(x, c, rng):
    return x + rng.normal(size=x.shape) * c["std"]


def speckle_noise(x, c, rng):
    return x + x * rng.normal(size=x.shape) * c["std"]


def shot_noise(x, c, rng):
    return rng.poisson(x * c["photons"]) / c["photons"]


def impulse_noise(x, c, rng):
    out = x.copy()
    replaced = rng.random(x.shape) < c["fraction"]
    out[replaced] = rng.random(x.shape)[replaced] < 0.5
    return out


def gaussian_blur(x, c, rng):
    return gaussian(x, c["sigma"])


def disk(radius, alias):
    reach, taps = (8, 3) if radius <= 8 else (int(math.ceil(radius)), 5)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    kernel = (x**2 + y**2 <= radius**2).astype(float)
    kernel /= kernel.sum()
    offsets = np.arange(taps) - taps // 2
    smooth = np.exp(-(offsets**2) / (2 * alias**2))
    smooth /= smooth.sum()
    return ndimage.convolve(kernel, np.outer(smooth, smooth), mode="mirror")


def defocus_blur(x, c, rng):
    kernel = disk(c["radius"], c["alias"])
    return np.stack([ndimage.convolve(x[..., n], kernel, mode="mirror") for n in range(3)], 2)


def glass_blur(x, c, rng):
    delta = int(c["delta"])
    x = levels(gaussian(x, c["sigma"])) / 255
    height, width = x.shape[:2]
    for _ in range(int(c["rounds"])):
        for h in range(height - delta, delta, -1):
            for w in range(width - delta, delta, -1):
                dy, dx = rng.integers(-delta, delta, size=2)
                x[h, w] = x[h + dy, w + dx]
    return gaussian(x, c["sigma"])


def motion(x, radius, sigma, angle):
    taps = np.exp(-(np.arange(int(2 * radius) + 1) ** 2) / (2 * sigma**2))
    taps /= taps.sum()
    rows, columns = np.arange(x.shape[0]), np.arange(x.shape[1])
    out = np.zeros_like(x)
    for i, tap in enumerate(taps):
        dy, dx = math.ceil(i * math.sin(angle) - 0.5), math.ceil(i * math.cos(angle) - 0.5)
        out += tap * x[np.clip(rows + dy, 0, len(rows) - 1)][:, np.clip(columns + dx, 0, len(columns) - 1)]
    return out


def motion_blur(x, c, rng):
    return motion(x, c["radius"], c["sigma"], math.radians(rng.uniform(-45, 45)))


def zoom(x, factor):
    """Cut the middle, enlarge it corner on corner, trim."""
    sides = x.shape[:2]
    middle = [math.ceil(side / factor) for side in sides]
    top, left = ((side - inner) // 2 for side, inner in zip(sides, middle, strict=True))
    cut = x[top : top + middle[0], left : left + middle[1]]
    large = ndimage.zoom(cut, (factor, factor, 1)[: x.ndim], order=1)
    top, left = ((own - side) // 2 for own, side in zip(large.shape, sides, strict=False))
    return large[top : top + sides[0], left : left + sides[1]]


def zoom_blur(x, c, rng):
    factors = np.arange(1, c["stop"], c["step"])
    return (x + sum(zoom(x, factor) for factor in factors)) / (len(factors) + 1)


def plasma(size, decay, rng):
    """Diamond-square on a wrapped square, in place."""
    field = np.zeros((size, size))
    step, amplitude = size, 100.0

    def noisy(total):
        return total / 4 + amplitude * rng.uniform(-amplitude, amplitude, total.shape)

    while step >= 2:
        half = step // 2
        corners = field[::step, ::step]
        total = corners + np.roll(corners, -1, 0) + np.roll(corners, -1, 1) + np.roll(corners, (-1, -1), (0, 1))
        middle = field[half::step, half::step] = noisy(total)
        field[::step, half::step] = noisy(corners + np.roll(corners, -1, 1) + middle + np.roll(middle, 1, 0))
        field[half::step, ::step] = noisy(corners + np.roll(corners, -1, 0) + middle + np.roll(middle, 1, 1))
        step, amplitude = half, amplitude / decay
    field -= field.min()
    return field / field.max()


def fog(x, c, rng):
    size = 2 ** math.ceil(math.log2(max(x.shape[:2])))
    haze = plasma(size, c["decay"], rng)[: x.shape[0], : x.shape[1], None]
    return (x + c["amount"] * haze) * x.max() / (x.max() + c["amount"])


def frost(x, c, rng, photographs):
    photograph = photographs[rng.integers(len(photographs))]
    top, left = (rng.integers(0, a - b + 1) for a, b in zip(photograph.shape, x.shape[:2], strict=False))
    return c["image_weight"] * x + c["frost_weight"] * photograph[top : top + x.shape[0], left : left + x.shape[1]]


def snow(x, c, rng):
    layer = zoom(rng.normal(c["mean"], c["std"], x.shape[:2]), c["zoom"])
    layer[layer < c["threshold"]] = 0
    layer = motion(levels(layer) / 255, c["radius"], c["sigma"], math.radians(rng.uniform(-135, -45)))[..., None]
    grey = (x @ [0.299, 0.587, 0.114])[..., None]
    pale = c["keep"] * x + (1 - c["keep"]) * np.maximum(x, grey * 1.5 + 0.5)
    return pale + layer + layer[::-1, ::-1]


def canny(levels, low, high):
    """Pixel by pixel: Sobel, thinning along the gradient, and a stack of pixels that strong edges reach."""
    across, down = (ndimage.sobel(levels, axis, mode="nearest") for axis in (1, 0))
    steep = np.abs(across) + np.abs(down)
    height, width = levels.shape

    def at(h, w):
        return steep[h, w] if 0 <= h < height and 0 <= w < width else 0

    candidates = set()
    for h, w in zip(*np.nonzero(steep > low), strict=True):
        angle = math.degrees(math.atan2(abs(down[h, w]), abs(across[h, w])))
        here = steep[h, w]
        if angle < 22.5:
            peak = here > at(h, w - 1) and here >= at(h, w + 1)
        elif angle > 67.5:
            peak = here > at(h - 1, w) and here >= at(h + 1, w)
        else:
            step = -1 if (across[h, w] < 0) != (down[h, w] < 0) else 1
            peak = here > at(h - 1, w - step) and here > at(h + 1, w + step)
        if peak:
            candidates.add((h, w))
    edges = np.zeros(levels.shape, bool)
    stack = [place for place in candidates if steep[place] > high]
    while stack:
        h, w = stack.pop()
        if not edges[h, w]:
            edges[h, w] = True
            stack += [(h + y, w + x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (h + y, w + x) in candidates]
    return edges


def equalise(values):
    counts = np.bincount(values.ravel().astype(int), minlength=256)
    cumulated = counts.cumsum()
    lowest = counts[np.nonzero(counts)[0][0]]
    table = np.round((cumulated - lowest) * 255 / max(values.size - lowest, 1))
    return table[values.astype(int)]


def spatter(x, c, rng):
    layer = gaussian(rng.normal(c["mean"], c["std"], x.shape[:2]), c["sigma"])
    layer[layer < c["threshold"]] = 0
    if c["mud"]:
        cover = gaussian((layer > c["threshold"]).astype(float), c["strength"])
        cover[cover < 0.8] = 0
        return x * (1 - cover[..., None]) + cover[..., None] * np.array([63, 42, 20]) / 255
    drops = np.floor(np.minimum(layer, 1) * 255)
    rims = canny(drops, 50, 150)
    distance = np.minimum(ndimage.distance_transform_edt(~rims), 20) if rims.any() else np.full(drops.shape, 20.0)
    distance = np.floor(ndimage.uniform_filter(distance, 3, mode="mirror") + 1e-3)
    light = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    lit = np.clip(ndimage.correlate(equalise(distance), light, mode="mirror"), 0, 255)
    shine = drops * np.round(ndimage.uniform_filter(lit, 3, mode="mirror"))
    shine *= c["strength"] / max(shine.max(), 1e-6)
    return x + shine[..., None] * np.array([175, 238, 238]) / 255


def contrast(x, c, rng):
    means = x.mean((0, 1), keepdims=True)
    return (x - means) * c["factor"] + means


def to_hsv(x):
    value, spread = x.max(2), np.ptp(x, axis=2)
    safe = np.where(spread == 0, 1, spread)
    red, green, blue = np.moveaxis(x, 2, 0)
    hue = np.select([red == value, green == value], [(green - blue) / safe, 2 + (blue - red) / safe], 4 + (red - green) / safe)
    return np.where(spread == 0, 0, hue / 6 % 1), np.where(value == 0, 0, spread / np.where(value == 0, 1, value)), value


def from_hsv(hue, saturation, value):
    sector = np.floor(hue * 6)
    rest = hue * 6 - sector
    p, q, t = value * (1 - saturation), value * (1 - rest * saturation), value * (1 - (1 - rest) * saturation)
    sector = sector.astype(int) % 6
    channels = ([value, q, p, p, t, value], [t, value, value, q, p, p], [p, p, t, value, value, q])
    return np.stack([np.choose(sector, choices) for choices in channels], 2)


def brightness(x, c, rng):
    hue, saturation, value = to_hsv(x)
    return from_hsv(hue, saturation, np.clip(value + c["value_shift"], 0, 1))


def saturate(x, c, rng):
    hue, saturation, value = to_hsv(x)
    return from_hsv(hue, np.clip(saturation * c["scale"] + c["shift"], 0, 1), value)


def jpeg_compression(x, c, rng):
    file = io.BytesIO()
    to_pillow(x).save(file, "JPEG", quality=int(c["quality"]))
    return np.asarray(Image.open(file)) / 255


def pixelate(x, c, rng):
    height, width = x.shape[:2]
    small = to_pillow(x).resize((int(width * c["fraction"]), int(height * c["fraction"])), Image.BOX)
    return np.asarray(small.resize((width, height), Image.BOX)) / 255


def elastic_transform(x, c, rng):
    height, width = x.shape[:2]
    side = min(height, width) * c["stretch"]
    third = min(height, width) // 3
    points = np.array([width // 2, height // 2]) + np.array([[third, third], [third, -third], [-third, -third]])
    moved = points + rng.uniform(-c["affine"] * side, c["affine"] * side, (3, 2))
    square = np.column_stack([points, np.ones(3)])
    matrix = np.vstack([np.linalg.solve(square, moved).T, [0, 0, 1]])
    y, w = np.mgrid[:height, :width].astype(float)
    columns, rows, _ = np.linalg.inv(matrix) @ np.stack([w.ravel(), y.ravel(), np.ones(w.size)])
    warp = [ndimage.map_coordinates(x[..., n], [rows, columns], order=1, mode="mirror") for n in range(3)]
    x = np.stack([channel.reshape(height, width) for channel in warp], 2)
    if c["alpha"] == 0:
        return x
    fields = [
        ndimage.gaussian_filter(rng.uniform(-1, 1, (height, width)), c["sigma"] * side, mode="reflect", truncate=3)
        for _ in range(2)
    ]
    dy, dx = (field * c["alpha"] * side for field in fields)
    return np.stack([ndimage.map_coordinates(x[..., n], [y + dy, w + dx], order=1, mode="reflect") for n in range(3)], 2)
