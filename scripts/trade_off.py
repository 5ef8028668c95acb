"""The chart of cost against robustness as a picture, from the committed cells: trade_off.py OUT.png [first-generator|main]

It is the figure "What robustness costs" of `surefoot study show STUDY --scale cpu --results docs/results/FOLDER --page
PAGE.html`: all methods with the first generator of corruptions, or those of `second-generator.yaml`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from photograph import photograph

STUDIES = {"first-generator": "first-generator", "main": "second-generator"}  # by the folder of their cells


def draw(out: Path, folder: str) -> None:
    study = [f"docs/results/checks/{STUDIES[folder]}.yaml", "--scale", "cpu", "--results", f"docs/results/{folder}"]
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "page.html"
        command = [sys.executable, "-m", "surefoot", "study", "show", *study, "--page", str(page)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        photograph(page, out, width=860, height=480, element="#figure-trade-off")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", nargs="?", choices=STUDIES, default="first-generator")
    draw(**vars(parser.parse_args()))
