"""Corrupted copies of a data set on disk, and a sheet of all corruptions of one image."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..data.dataset import Dataset, Split
from ..errors import SurefootError, require
from ..files import LOCK, inside, only_writer, part_of, read_json, remove, replacing, write_json
from ..progress import progress_bar
from ..types import Images
from .arguments import check_copies
from .engine import GENERATOR, corrupt
from .families import CORRUPTIONS, NAMES
from .severities import scale_for
from .weather import photographs_in_use

if TYPE_CHECKING:
    from PIL.Image import Image

# A picture of one image under every corruption at every severity.


LEAST, GAP, MARGIN = 64, 4, 132  # pixels: a picture's side, between pictures, for the names


def draw_sheet(image: Images, names: tuple[str, ...] = NAMES, *, seed: int = 0, index: int = 0, scale: str = "auto") -> Image:
    """A row for each corruption: its name, the image itself, and severities 1 to 5. `image` is channels x height x width."""
    from PIL import Image, ImageDraw

    require(image.ndim == 3, "image", "channels x height x width", tuple(image.shape))
    require(len(names) > 0, "names", "at least one", 0)
    image = image.float() / 255 if image.dtype == torch.uint8 else image
    draws: dict[str, Any] = {"seed": seed, "indices": torch.tensor([index]), "scale": scale}
    rows = [
        torch.cat([image[None], *(corrupt(image[None], name, severity, **draws) for severity in SEVERITIES)]) for name in names
    ]
    enlarged = [enlarge(row) for row in rows]
    height, width = (side + GAP for side in enlarged[0].shape[2:])
    margin = max(MARGIN, 8 + 6 * max(map(len, names)))
    sheet = Image.new("RGB", (margin + 6 * width, 20 + len(rows) * height), "white")
    pen = ImageDraw.Draw(sheet)
    for column, title in enumerate(["clean", *map(str, SEVERITIES)]):
        pen.text((margin + column * width + 2, 4), title, fill="black")
    for line, (name, row) in enumerate(zip(names, enlarged, strict=True)):
        top = 20 + line * height
        pen.text((4, top + height // 2 - 8), name, fill="black")
        joined = torch.cat(list(F.pad(row, (0, GAP, 0, 0), value=1.0)), 2).mul(255).round().byte()
        pixels = joined.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()
        sheet.paste(Image.fromarray(pixels), (margin, top))
    return sheet


def enlarge(images: Tensor) -> Tensor:
    """Small pictures by a whole factor, so that their pixels can be seen."""
    factor = max(1, LEAST // min(images.shape[2:]))
    return images.repeat_interleave(factor, 2).repeat_interleave(factor, 3)


def write_sheet(path: str | Path, image: Images, names: tuple[str, ...] = NAMES, **draws: Any) -> Path:
    """Draw the sheet into a PNG file; `draws` are seed, index and scale."""
    sheet = draw_sheet(image, names, **draws)
    with replacing(path) as beside:
        sheet.save(beside, "PNG")
    return Path(path)


# Write corrupted copies of a data set, in a layout that other people's tools read.
#
# A copy is finished when it has its name: `.npy` files and severity folders are written beside their place and renamed into it.
# `copies.json` comes first and says what the folder holds; a folder that says something else is refused, so nothing is mixed.


SEVERITIES = (1, 2, 3, 4, 5)
MANIFEST = "copies.json"
BATCH = 512
HOW = ("workers", "memory_gib", "download")  # options of data that change no pixel
SEEN = 16  # images that a folder remembers
Tick = Callable[[], None]


def write(
    data: Dataset,
    output: str | Path,
    *,
    split: str = "test",
    names: Iterable[str] = NAMES,
    layout: str = "arrays",
    seed: int = 0,
    scale: str = "auto",
    progress: bool = True,
) -> Path:
    """Write five severities of each corruption of a split, as CIFAR-C's `<name>.npy` ("arrays") or ImageNet-C's "folders".

    What is there already is kept; a folder with other copies, or with files that are not ours, is refused.
    """
    wanted, folder, images = list(names), Path(output), data.split(split)
    check_copies(layout, scale)
    for name in wanted:
        for link in name.split("+"):
            CORRUPTIONS.load(link)
    require(len(images) > 0, f"the {split} split", "at least one image", 0)
    chosen = scale_for(*data.image_size) if scale == "auto" else scale
    if layout == "folders":
        check_class_folders(data.class_names)
    with claimed(folder, manifest(data, split, layout, seed, chosen)):
        write_missing(folder, wanted, images, data, layout, seed, chosen, progress)
    return folder


def write_missing(
    folder: Path, names: list[str], images: Split, data: Dataset, layout: str, seed: int, scale: str, progress: bool
) -> None:
    """What is not there yet."""
    missing = [name for name in names if not is_written(folder, name, layout)]
    bar = progress_bar(show=progress, keep=True)
    batches = -(-len(images) // BATCH)
    with bar:
        task = bar.add_task("corrupting", total=len(missing) * batches)
        for name in missing:
            bar.update(task, description=name)
            one = write_array if layout == "arrays" else write_folders
            one(folder, name, images, data, seed, scale, lambda: bar.advance(task))
        if layout == "arrays":
            known = getattr(images, "labels", None)  # a stream is read for them
            labels = torch.cat([batch.labels for batch in images.batches(BATCH)]) if known is None else known
            save_array(folder / "labels.npy", labels.numpy())


def check_class_folders(names: tuple[str, ...]) -> None:
    """Each class must be one folder, and no two the same."""
    require(len(set(names)) == len(names), "class names", "different, to be folders", names)
    wrong = next((name for name in names if name in ("", ".", "..") or "/" in name or "\\" in name), None)
    require(wrong is None, "class names", "names of folders", wrong)


def manifest(data: Dataset, split: str, layout: str, seed: int, scale: str) -> dict[str, Any]:
    """What decides the pixels of the copies; `content` tells data apart that have no name."""
    images = data.split(split)
    first = next(iter(images.batches(SEEN)))
    content = blake2b(repr(data.class_names).encode(), digest_size=8)
    for tensor in (first.images, first.labels, *(getattr(images, name, first.indices) for name in ("labels", "indices"))):
        content.update(np.ascontiguousarray(tensor.cpu().numpy()).tobytes())
    return {
        "schema": 1,
        "data": {key: value for key, value in data.source.items() if key not in HOW},
        "content": content.hexdigest(),
        "generator": GENERATOR,
        "split": split,
        "images": len(images),
        "image_size": list(data.image_size),
        "channels": data.channels,
        "layout": layout,
        "seed": seed,
        "scale": scale,
        "frost": photographs_in_use(),
    }


@contextmanager
def claimed(folder: Path, described: dict[str, Any]) -> Iterator[None]:
    """An empty folder, or one that holds part of the same copies, for this process alone."""
    with only_writer(folder):
        claim(folder, described)
        yield


def claim(folder: Path, described: dict[str, Any]) -> None:
    """Make sure that the folder is for these copies; remove what a stopped run left unfinished."""
    path = folder / MANIFEST
    if path.is_file():
        there = spread(read_json("manifest", path))
        for key, value in spread(described).items():
            if there.get(key) != value:
                raise SurefootError(f"'{folder}' holds other copies: {key} is {there.get(key)!r} there and {value!r} here.")
    elif any(left.name != LOCK for left in folder.iterdir()):
        raise SurefootError(f"'{folder}' must be a new or empty folder, or one with corrupted copies ({MANIFEST}).")
    else:
        write_json(path, described)
    for parent, folders, files in os.walk(folder):  # nobody else writes here: the lock is ours
        for left in [name for name in (*folders, *files) if name.startswith(".") and name.endswith(".part")]:
            remove(Path(parent) / left)


def spread(described: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the options of its data one by one, without those that change no pixel."""
    options = {f"data {key}": value for key, value in (described.get("data") or {}).items() if key not in HOW}
    return {**{key: value for key, value in described.items() if key != "data"}, **options}


def is_written(folder: Path, name: str, layout: str) -> bool:
    if layout == "arrays":
        return (folder / f"{name}.npy").is_file()
    return all((folder / name / str(severity)).is_dir() for severity in SEVERITIES)


def write_array(folder: Path, name: str, images: Split, data: Dataset, seed: int, scale: str, tick: Tick) -> None:
    """One `.npy` with the severities one after the other."""
    count, one = len(images), math.prod(data.image_size) * data.channels
    with replacing(folder / f"{name}.npy") as beside, open(beside, "wb") as file:  # a map of a full disk would end the process
        shape = (len(SEVERITIES) * count, *data.image_size, data.channels)
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        head, begin = file.tell(), 0
        for batch in images.batches(BATCH):
            for number, severity in enumerate(SEVERITIES):
                levels = corrupted_levels(batch.images, name, severity, seed, batch.indices, scale)
                file.seek(head + one * (number * count + begin))
                file.write(np.ascontiguousarray(levels).data)
            begin += len(batch)
            tick()


def write_folders(folder: Path, name: str, images: Split, data: Dataset, seed: int, scale: str, tick: Tick) -> None:
    """`<name>/<severity>/<class>/<index>.png`; a severity's folder has its name when it is whole."""
    parts = {severity: part_of(inside(folder, name) / str(severity)) for severity in SEVERITIES}
    for part in parts.values():
        part.parent.mkdir(exist_ok=True)
        part.mkdir()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch in images.batches(BATCH):
            files = [f"{data.class_names[label]}/{index:08d}.png" for label, index in pairs(batch.labels, batch.indices)]
            for severity, part in parts.items():
                for label in batch.labels.unique():  # a folder without images would be refused as a mistake
                    (part / data.class_names[label]).mkdir(parents=True, exist_ok=True)
                levels = corrupted_levels(batch.images, name, severity, seed, batch.indices, scale)
                list(pool.map(save_image, [part / file for file in files], levels))
            tick()
    for severity, part in parts.items():
        finished = folder / name / str(severity)
        remove(finished)
        os.replace(part, finished)


def corrupted_levels(images: Tensor, name: str, severity: int, seed: int, indices: Tensor, scale: str) -> np.ndarray:
    """uint8, count x height x width x channels."""
    corrupted = corrupt(images, name, severity, seed=seed, indices=indices, scale=scale)
    levels: np.ndarray = corrupted.mul_(255).round_().byte().permute(0, 2, 3, 1).cpu().numpy()
    return levels


def pairs(labels: Tensor, indices: Tensor) -> list[tuple[int, int]]:
    return list(zip(labels.tolist(), indices.tolist(), strict=True))


def save_image(path: Path, pixels: np.ndarray) -> None:
    from PIL import Image

    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(path, compress_level=1)


def save_array(path: Path, values: np.ndarray) -> None:
    with replacing(path) as beside, open(beside, "wb") as file:
        np.save(file, values)
