"""The chart of cost against robustness as a picture: trade_off.py OUT.png, from the committed cells.

It is the figure "What robustness costs" of `surefoot study show docs/results/checks/first-generator.yaml --scale cpu
--results docs/results/first-generator --page PAGE.html`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from photograph import photograph

STUDY = ["docs/results/checks/first-generator.yaml", "--scale", "cpu", "--results", "docs/results/first-generator"]


def draw(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        command = [sys.executable, "-m", "surefoot", "study", "show", *STUDY, "--page", str(page)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        photograph(page, out, width=860, height=480, element="#figure-trade-off")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
