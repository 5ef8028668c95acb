"""`python -m surefoot`."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # where `-m` puts it: a `torch.py` here is not ours to import
    del sys.path[0]

from .cli.main import run

run()
