"""Batches of augmented training images: torchvision's ImageFolder with two workers against ours, on the CIFAR-10 JPEGs.

Give the folder that holds train/ and test/: `python benchmarks/data.py FOLDER`; without it, JPEGs are made from noise.
"""

import sys
import tempfile
from pathlib import Path

import torch
import torchvision
from torchvision.transforms import v2

import surefoot as sf
from _timing import interleaved
from surefoot.allocator import keep_large_blocks
from surefoot.seeds import generator

BATCH = 128


def main(folder: Path) -> None:
    keep_large_blocks()
    steps = [v2.PILToTensor(), v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]
    theirs = torchvision.datasets.ImageFolder(folder / "train", v2.Compose(steps))
    part = torch.utils.data.Subset(theirs, torch.randperm(len(theirs))[:8000].tolist())
    data = sf.load_data(str(folder))

    def image_folder() -> int:
        loader = torch.utils.data.DataLoader(part, BATCH, shuffle=True, num_workers=2)
        return sum(len(labels) for _, labels in loader)

    def tensors() -> int:
        batches = data.train.batches(BATCH, shuffle=generator(0, "order"))
        return sum(len(data.augmentation(batch.images, generator(0, k))) for k, batch in enumerate(batches))

    counts = {"torchvision ImageFolder, 2 workers": image_folder(), "surefoot, in memory": tensors()}
    seconds = interleaved({"torchvision ImageFolder, 2 workers": image_folder, "surefoot, in memory": tensors}, rounds=5)
    rates = {name: counts[name] / seconds[name] for name in seconds}
    for name, rate in rates.items():
        print(f"  {name:36} {rate:10.0f} images/s  {rate / rates['torchvision ImageFolder, 2 workers']:6.1f}x")


if len(sys.argv) > 1:
    main(Path(sys.argv[1]))
else:
    with tempfile.TemporaryDirectory() as made:
        for number in range(8000):
            place = Path(made) / "train" / str(number % 10) / f"{number}.jpg"
            place.parent.mkdir(parents=True, exist_ok=True)
            torchvision.io.write_jpeg(torch.randint(256, (3, 32, 32), dtype=torch.uint8), str(place), 75)
        (Path(made) / "test").symlink_to(Path(made) / "train")
        main(Path(made))
