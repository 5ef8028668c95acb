"""The gallery of docs/figures.md: gallery.py [NAME ...] [--results DIR] draws figures at smoke scale, each by its command.

Without names it draws every figure of the papers. The page has all pictures that are in docs/images/figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from PIL import Image

from surefoot.studies.papers import FAMILIES, NOT_COMPUTED, places_of

PICTURES = Path("docs/images/figures")
WIDTH, COLOURS, LARGEST = 960, 64, 60_000  # pixels, colours, bytes of a picture


def names() -> dict[str, tuple[str, str, str]]:
    """The figures by name, with the paper, the place and the title that its study gives it."""
    return {
        f"{FAMILIES[paper]}-{place.lower().replace(' ', '')}": (paper, place, next(iter(titles.values())))
        for paper, places in places_of().items()
        for place, titles in places.items()
        if place.startswith("Figure") and place not in NOT_COMPUTED[paper]
    }


def draw(name: str, results: Path) -> None:
    """Run the command of a figure, and make its picture small."""
    out = PICTURES / f"{name}.png"
    command = [sys.executable, "-m", "surefoot", "study", "figure", name, "--output", str(out), "--results", str(results)]
    subprocess.run(command, check=True)
    picture = Image.open(out).convert("RGB")
    picture.thumbnail((WIDTH, 10 * WIDTH))
    for colours in (COLOURS, COLOURS // 4):
        picture.quantize(colours).save(out, optimize=True)
        if out.stat().st_size < LARGEST:
            return
    sys.exit(f"{out} has {out.stat().st_size:,} bytes, and {LARGEST:,} are allowed.")


def page() -> str:
    """Every picture that is there, below the command that made it, and which figures have none yet."""
    lines = [
        "# Figures",
        "",
        "Figures of the papers at smoke scale (a few digits, two epochs, a small net): what is drawn, not what they found.",
    ]
    lines += [
        "Each is made by the command above it; `scripts/gallery.py` makes them all. More in [studies](studies.md#figures).",
        "",
    ]
    left = []
    for name, (paper, place, title) in names().items():
        if (PICTURES / f"{name}.png").is_file():
            command = f"surefoot study figure {name} --output {name}.png"
            lines += [f"## {paper}, {place}: {title}", "", f"`{command}`", "", f"![{title}](images/figures/{name}.png)", ""]
        else:
            left.append(f"`{name}`")
    lines += [f"Drawn by the same command, and not in this gallery yet: {', '.join(left)}.", ""] if left else []
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--results", type=Path, default=Path("studies/smoke"))
    given = parser.parse_args()
    PICTURES.mkdir(parents=True, exist_ok=True)
    for each in given.names or names():
        draw(each, given.results)
    Path("docs/figures.md").write_text(page(), encoding="utf-8")
