"""What importing costs: at most 1.3x of `import torch`, and `surefoot --help` below 1.5 s."""

import subprocess
import sys
from functools import partial

from _timing import interleaved, show


def python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


jobs = {
    "import torch": partial(python, "-c", "import torch"),
    "import surefoot": partial(python, "-c", "import surefoot"),
    "import surefoot.objectives": partial(python, "-c", "import surefoot.objectives"),
    "surefoot --help": partial(python, "-m", "surefoot", "--help"),
}
show("startup, whole processes", interleaved(jobs, rounds=5), "import torch")
