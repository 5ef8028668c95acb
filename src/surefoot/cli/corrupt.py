"""`surefoot corrupt`: corrupted copies of a data set on disk, or a sheet of all corruptions of one image."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ..corruptions.arguments import check_copies, check_corruptions, find_photographs
from ..corruptions.families import CBAR, CBAR_CIFAR, COMMON15, EXTRA4, NAMES, PAPERS4
from ..data.arguments import check_data
from ..errors import SurefootError, require
from ..keys import LARGEST as LARGEST_SEED
from . import options as flag

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
GROUPS = {  # all are the published ones of the first set
    "all": NAMES,
    "common15": COMMON15,
    "extra4": EXTRA4,
    "papers4": PAPERS4,
    "c-bar": CBAR,
    "c-bar-cifar": CBAR_CIFAR,
}


@app.command()
@flag.with_blocks
def corrupt(
    *,
    data: Annotated[str, typer.Option(help="Name, folder or .npz")],
    output: Annotated[Path | None, typer.Option(help="Folder for the copies")] = None,
    preview: Annotated[Path | None, typer.Option(help="Instead: draw every corruption of one image into this PNG")] = None,
    image: Annotated[int | None, typer.Option(help="With --preview: which image of the split [default: 0]")] = None,
    names: Annotated[
        str,
        typer.Option(
            help="all (the first 19), common15, extra4, papers4, c-bar, c-bar-cifar, or names with commas; + makes chains"
        ),
    ] = "all",
    layout: Annotated[
        str | None, typer.Option(help="With --output: arrays (as CIFAR-C) or folders (as ImageNet-C) [default: arrays]")
    ] = None,
    split: Annotated[str, typer.Option(help="train, calibration, validation or test")] = "test",
    scale: Annotated[str, typer.Option(help="Constants for 32, 64 or 224 px [auto: by the images' side]")] = "auto",
    frost: Annotated[str | None, typer.Option(help="Folder of photographs of frost, or imagecorruptions")] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides the random draws")] = 0,
    reading: flag.DataFlags,
    max_images: flag.MaxImages = None,
    quiet: flag.Quiet = False,
) -> None:
    """Write five severities of each corruption of a data set; the same command goes on where it was stopped."""
    if (output is None) == (preview is None):
        raise SurefootError("Give --output for the copies, or --preview for a sheet.")
    for name, value, owner, used in (("image", image, "preview", preview), ("layout", layout, "output", output)):
        if value is not None and used is None:
            raise SurefootError(f"--{name} is for --{owner}.")
    if preview is not None:
        require(preview.suffix.lower() == ".png", "--preview", "a file *.png", str(preview))
        flag.check_output(preview, "--preview")
    flag.check_folder(output)
    given = reading.options(split, max_images=max_images)
    chosen = GROUPS.get(names) or tuple(name.strip() for name in names.split(","))
    check_corruptions(chosen)
    check_copies(layout or "arrays", scale)
    check_data(data, given.get("root"))
    photographs = None if frost is None else find_photographs(frost)
    from ..corruptions.copies import write, write_sheet
    from ..corruptions.weather import frost_photographs
    from ..data.loading import load_data

    loaded = load_data(data, **given)
    with frost_photographs(photographs) if photographs else nullcontext():
        if output is not None:
            drawn: dict[str, Any] = {"names": chosen, "seed": seed, "scale": scale}
            done = write(loaded, output, split=split, layout=layout or "arrays", progress=not quiet, **drawn)
        elif preview is not None:
            shown, images = image or 0, loaded.split(split)
            require(0 <= shown < len(images), "--image", f"below {len(images)}", shown)
            batch = next(batch for index, batch in enumerate(images.batches(1)) if index == shown)
            done = write_sheet(preview, batch.images[0], chosen, seed=seed, index=int(batch.indices[0]), scale=scale)
    if not quiet:
        print(done)
